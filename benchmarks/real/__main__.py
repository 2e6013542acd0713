"""`python -m benchmarks.real DIR…`: real logs replayed; each DIR was cloned by the reader.

For MLPerf's: `git clone --depth 1 https://github.com/mlcommons/training_results_v5.1`.
"""

import argparse
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.measure import machine
from benchmarks.real.closer_looks import looked_at, table
from benchmarks.real.forms import print_forms
from benchmarks.real.hangs import Hang, Outcome, training
from benchmarks.real.logs import Run, runs
from benchmarks.real.slowdowns import SOON, Slowdowns, slowdowns
from tests.replay.simulate import DAY, GIVE_UP, RULES

RATE = 3.0
"""Rule of three: nothing seen in n days is at most 3/n a day, with 95 % confidence
(Hanley and Lippman-Hand, JAMA 249, 1983)."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("place", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--hangs", type=int, default=2, help="in each run (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slower", type=float, default=5, help="percent (default %(default)s)")
    parser.add_argument("--days", type=float, default=20, help="resampled from each training")
    asked = parser.parse_args()
    print(machine())
    known = runs(asked.place)
    named: dict[str, list[Run]] = {}
    for run in known:
        named.setdefault(run.training, []).append(run)
    by_kind: dict[str, Outcome] = {}
    slower: dict[str, Slowdowns] = {}
    seeds, count = range(asked.seed, asked.seed + len(named)), len(named)
    with ProcessPoolExecutor(asked.workers) as workers:
        hung = workers.map(training, named.values(), seeds, [asked.hangs] * count)
        shares, days = [asked.slower / 100] * count, [asked.days] * count
        slow = workers.map(slowdowns, named.values(), seeds, shares, days)
        for several, outcome, one in zip(named.values(), hung, slow, strict=True):
            by_kind.setdefault(several[0].kind, Outcome()).add(outcome)
            slower.setdefault(several[0].kind, Slowdowns()).add(one)
        tables(by_kind)
        slowdown_table(slower)
        closer = workers.map(looked_at, named.values(), seeds)
        print(table([one for several in closer for one in several]))
        print_forms(asked.place, workers)


def tables(by_kind: dict[str, Outcome]) -> None:
    """A line for each training, and what is told of all."""
    total = Outcome()
    print(
        "training           runs  days | false: 20m auto | hangs  20m  auto  hindsight (mean m)"
        " | median 20m auto | missed 20m auto"
    )
    for kind, outcome in sorted(by_kind.items()):
        print(line(kind, outcome, outcome.hangs))
        total.add(outcome)
    print(line("all", total, total.hangs))
    parts = {
        "over 2 h": [hang for hang in total.hangs if hang.long],
        "over 2 h, no luck": [hang for hang in total.hangs if hang.long and not hang.luck],
        "no luck": [hang for hang in total.hangs if not hang.luck],
        "before a number": [hang for hang in total.hangs if hang.early],
    }
    for name, hangs in parts.items():
        print(line(name, total, hangs))
    for rule, where in total.false.items():
        bound = (len(where) or RATE) / (total.healthy / DAY)
        print(f"{rule}: {len(where)} false alarms, {bound:.2g} a day")
        print(*(f"  {one}" for one in where[:20]), sep="\n")


def slowdown_table(by_kind: dict[str, Slowdowns]) -> None:
    """What the detector of small slowdowns says of the same runs."""
    total = Slowdowns()
    print(
        "\ntraining         values  days | told, messages | injected seen median | least"
        " | resampled: days told"
    )
    for kind, found in sorted(by_kind.items()):
        print(slowdown_line(kind, found))
        total.add(found)
    print(slowdown_line("all", total))
    hidden = sorted(
        least
        for count, least in zip(total.told, total.least, strict=True)
        if count is None or count > SOON
    )
    shown = ", ".join(f"{100 * least:.0f} %" for least in hidden)
    print(
        f"not told within {SOON} values: {len(hidden)}, where the least to be seen is {shown or '-'}"
    )
    print(f"told, at most: {(len(total.false) or RATE) / (total.days or 1):.2g} a day")
    print(*(f"  {one}" for one in total.false[:20]), sep="\n")


def slowdown_line(name: str, found: Slowdowns) -> str:
    """`seen`: of those injected, within 200 values; `least`: the median of what could be seen."""
    seen = [count for count in found.told if count is not None and count <= SOON]
    least = f"{100 * statistics.median(found.least):.1f} %" if found.least else "-"
    return (
        f"{name:<16}{found.values:>7}{found.days:>6.1f} | {len(found.false):>4}{found.messages:>10} | "
        f"{len(found.told):>8}{len(seen):>5}{statistics.median(seen) if seen else '-':>7}"
        f" | {least:>6} | {found.resampled:>15.0f}{found.resampled_false:>5}"
    )


def line(name: str, outcome: Outcome, hangs: Sequence[Hang]) -> str:
    """One line of the table, in minutes."""
    told = {rule: [_seconds(hang, rule) for hang in hangs] for rule in RULES}
    best = [hang.hindsight for hang in hangs]
    missed = [sum(hang.told[rule] is None for hang in hangs) for rule in RULES]
    false = [len(outcome.false.get(rule, [])) for rule in RULES]
    return (
        f"{name:<18}{outcome.runs:>5}{outcome.healthy / DAY:>6.1f} | {false[0]:>10}{false[1]:>5} | "
        f"{len(hangs):>5}{_mean(told['20m']):>6}{_mean(told['auto']):>6}{_mean(best):>8}"
        f" | {_median(told['20m']):>10}{_median(told['auto']):>5} | {missed[0]:>10}{missed[1]:>5}"
    )


def _seconds(hang: Hang, rule: str) -> float:
    """Until it was told; one that never was counts with the two hours it was watched."""
    found = hang.told[rule]
    return GIVE_UP if found is None else found


def _mean(seconds: Sequence[float]) -> str:
    return f"{statistics.mean(seconds) / 60:.1f}" if seconds else "-"


def _median(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds) / 60:.1f}" if seconds else "-"


if __name__ == "__main__":
    main()
