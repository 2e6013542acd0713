"""Plant faults in the modules that judge, delete, kill or tell, and see whether a test notices.

`python -m tests.mutants [--module M | --measured] [--seed S] [--limit N]`; the modules are found by
the rules of `known`. Each fault is tried in a copy of the tree, with those tests of the module that
execute its line, the quickest first. 0 when all but the known survivors are noticed, else 1.
"""

import argparse
import difflib
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.mutants.changes import Change, changes, find_lines
from tests.mutants.copy import Copy, Nursery, TestsFailAlready
from tests.mutants.known import MEASURED, ROOT, SURVIVORS, TESTS, find_modules
from tests.mutants.watch import SeenTest


class Count(NamedTuple):
    """What became of the faults in one module."""

    module: str
    possible: int
    noticed: int
    known: int
    """Nobody can notice them; `known` says why."""
    unnoticed: list[Change]

    @property
    def planted(self) -> int:
        """All that were tried."""
        return self.noticed + self.known + len(self.unnoticed)

    def row(self) -> str:
        """A row of the table in docs/planted-faults.md."""
        can = self.noticed + len(self.unnoticed)
        share = f"{100 * self.noticed / can:.0f} %" if can else "-"
        name = self.module.removeprefix("sentinel/").removesuffix(".py")
        numbers = f"{self.possible} | {self.planted} | {self.noticed} | {self.known}"
        return f"| {name} | {numbers} | {len(self.unnoticed)} | {share} |"


def try_faults(copy: Copy, module: str, chosen: list[Change], possible: int) -> Count:
    """Plant each and run its tests."""
    source = (ROOT / module).read_text()
    nursery = Nursery(copy, module)
    try:
        seen = sorted(nursery.watch_tests(), key=lambda test: test.seconds)
        if not nursery.passes([test for test in seen if test.lines or test.starts] or seen):
            raise TestsFailAlready(f"{module}: without any fault its tests fail in another order")
        noticed = known = 0
        unnoticed: list[Change] = []
        for change in chosen:
            copy.write(module, change.applied(source))
            dead = is_noticed(copy, nursery, seen, source, change)
            copy.write(module, source)
            why = "" if dead else find_reason(module, source, change)
            noticed, known = noticed + dead, known + bool(why)
            word = "noticed  " if dead else "known    " if why else "UNNOTICED"
            print(f"{word} {module}:{change.line}  {why}", flush=True)
            if not dead and not why:
                unnoticed.append(change)
                print(diff(source, change), flush=True)
    finally:
        nursery.close()
    return Count(module, possible, noticed, known, unnoticed)


def is_noticed(
    copy: Copy, nursery: Nursery, seen: list[SeenTest], source: str, change: Change
) -> bool:
    """Whether a test fails: in the nursery, or afresh where that cannot be."""
    lines = find_lines(source, change)
    tests = choose_tests(seen, lines)
    passes = nursery.passes(tests, change.applied(source), change.line) if lines else None
    return not (copy.passes_afresh(tests) if passes is None else passes)


def choose_tests(seen: list[SeenTest], lines: range | None) -> list[SeenTest]:
    """Those that execute one of these lines (None: what an import executes, so any line), then those
    that may do so in a process of their own; where there is none, all. What an import executes may be
    a constant, which a test can read without executing a line: then the others come last."""
    executes = [test for test in seen if test.lines and (not lines or test.lines & set(lines))]
    elsewhere = [test for test in seen if test.starts and test not in executes]
    if lines is None:
        return sorted(seen, key=lambda test: 0 if test in executes else 1 if test.starts else 2)
    return [*executes, *elsewhere] or seen


def find_reason(module: str, source: str, change: Change) -> str:
    """Why it is known to survive; empty where it is not."""
    line = source.splitlines()[change.line - 1].strip()
    return SURVIVORS.get((module, line, change.new), "")


def diff(source: str, change: Change) -> str:
    """What changes, as a person reads it."""
    both = source.splitlines(), change.applied(source).splitlines()
    return "\n".join(list(difflib.unified_diff(*both, n=0, lineterm=""))[2:])


def parse_arguments() -> argparse.Namespace:
    """What is asked on the command line."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--module", action="append", choices=find_modules(), metavar="M")
    parser.add_argument(
        "--measured", action="store_true", help="the modules of docs/planted-faults.md"
    )
    parser.add_argument(
        "--tests", action="append", metavar="FILE",
        help="these notice, in place of those that `known` finds for the module",
    )  # fmt: skip
    parser.add_argument("--seed", default="1", help="which faults are drawn; 1")
    parser.add_argument("--limit", type=int, default=25, help="so many a module, 0 for all; 25")
    parser.add_argument("--modules", type=int, default=0, help="of so many modules, drawn too; all")
    parser.add_argument(
        "--minutes", type=float, default=0, help="begin no module after that; 0: no end"
    )
    parser.add_argument(
        "--floor", type=int, default=100,
        help="the least share of noticed faults in percent, known survivors apart; 100",
    )  # fmt: skip
    return parser.parse_args()


def main() -> int:
    """Exit code."""
    asked, began = parse_arguments(), time.monotonic()
    modules = asked.module or list(MEASURED if asked.measured else find_modules())
    if asked.modules:
        modules = random.Random(asked.seed).sample(modules, min(asked.modules, len(modules)))
    if asked.tests:
        TESTS.update(dict.fromkeys(modules, tuple(asked.tests)))
    counts: list[Count] = []
    unusable: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sentinel-mutants-") as folder:
        os.chmod(folder, 0o755)  # tests become other users, who read the code too
        copy = Copy(Path(folder) / "tree")
        for module in modules:
            if asked.minutes and time.monotonic() - began > 60 * asked.minutes:
                print(f"{module}: not begun, the time is over")
                continue
            every = changes((ROOT / module).read_text())
            draw = random.Random(f"{asked.seed} {module}")
            chosen = draw.sample(every, min(asked.limit or len(every), len(every)))
            try:
                counts.append(try_faults(copy, module, sorted(chosen), len(every)))
            except TestsFailAlready as error:
                print(error, flush=True)
                unusable.append(module)
    print("| module | possible | planted | noticed | known | unnoticed | share |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(count.row() for count in counts))
    left = [f"{count.module}:{change.line}" for count in counts for change in count.unnoticed]
    planted = sum(count.planted for count in counts)
    dead = sum(count.noticed for count in counts)
    print(f"{dead} of {planted} noticed, {len(left)} unnoticed: {' '.join(left)}")
    if unusable:
        print(f"not tried, since their tests fail here: {' '.join(unusable)}")
        if asked.floor == 100:  # a sample is about the net, and other targets about the tests
            return 1
    return 1 if 100 * len(left) > (100 - asked.floor) * planted else 0


if __name__ == "__main__":
    sys.exit(main())
