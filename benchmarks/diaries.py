"""The report about trainings whose teams published a diary, by the diary's own figures.

    python -m benchmarks.diaries

A diary says when which step was reached, how long a step, a checkpoint and an evaluation take, and
what some faults cost. A ledger of that is given to `report_runs`, and its shares are printed beside
what the figures give by hand. The time that the diary does not explain has to be `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from msgspec import Struct

from sentinel.core.clock import SECOND
from sentinel.core.run_ledger import EndCause, LedgerKind, LedgerRow
from sentinel.report.gpu_time import CLASSES
from sentinel.report.run_report import report_runs

HOUR_S = 3600.0
MAX_DIFFERENCE = 0.001
"""By how much of the whole the report may differ from the figures: times are whole microseconds."""


class Leg(Struct, frozen=True, kw_only=True):
    """A part of a training from one dated step to the next one."""

    until: datetime  # When the last step of it was made.
    step: int  # The last step.
    step_s: float  # Seconds a step.
    evaluated_s: float = 0.0  # Seconds of evaluation a step.
    saved_s: float = 0.0  # Seconds of saving a step.
    hung_h: float = 0.0  # Hours of hangs that the diary names.
    redone_h: float = 0.0  # Hours of steps that were made twice, by the diary.
    cause: EndCause = ""  # Why the job ended at the end of this part.


class Diary(Struct, frozen=True, kw_only=True):
    """What a diary says of one training."""

    name: str
    source: str
    gpus: int
    began: datetime
    first_step: int
    legs: Sequence[Leg]


def at_utc(text: str) -> datetime:
    """Where a diary has only the day, it is noon, or what the steps before and after leave room for."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


BLOOM_OVERHEAD: dict[str, Any] = {"evaluated_s": 12 * 60 / 1000, "saved_s": 40 / 100}
"""An evaluation takes about 12 minutes and comes every 1,000 steps, a checkpoint 40 s every 100."""

OPT_BEGAN, OPT_ENDED = at_utc("2021-11-11T12:00"), at_utc("2022-01-06T20:46")
OPT_RESTARTS, OPT_IDEAL_DAYS, OPT_STEPS = 90, 33.0, 90 * 1500

DIARIES = (
    Diary(
        name="BLOOM-176B",
        source="train/tr11-176B-ml/chronicles.md of bigscience-workshop/bigscience",
        gpus=384,
        began=at_utc("2022-03-18T19:42"),  # 7 days after the launch
        first_step=12_695,
        legs=(
            Leg(until=at_utc("2022-04-12T12:00"), step=31_214, step_s=105.84, redone_h=7.3,
                cause="gpu", **BLOOM_OVERHEAD),
            Leg(until=at_utc("2022-04-28T00:00"), step=42_780, step_s=105.8, **BLOOM_OVERHEAD),
            Leg(until=at_utc("2022-04-30T22:00"), step=45_000, step_s=111.0, **BLOOM_OVERHEAD),
            Leg(until=at_utc("2022-05-09T12:00"), step=51_000, step_s=105.16, hung_h=18.0,
                cause="software", **BLOOM_OVERHEAD),
            Leg(until=at_utc("2022-07-04T12:00"), step=94_767, step_s=105.16, hung_h=6.0 + 11.0,
                cause="software", **BLOOM_OVERHEAD),
        ),
    ),
    # 33 days "assuming no hardware issues", about 90 restarts. How long each one took is not said.
    Diary(
        name="OPT-175B",
        source="projects/OPT/chronicles/ of facebookresearch/metaseq",
        gpus=1024,
        began=OPT_BEGAN,
        first_step=0,
        legs=[
            Leg(
                until=OPT_BEGAN + (OPT_ENDED - OPT_BEGAN) * number / OPT_RESTARTS,
                step=OPT_STEPS * number // OPT_RESTARTS,
                step_s=OPT_IDEAL_DAYS * 24 * HOUR_S / OPT_STEPS,
                cause="unknown",
            )
            for number in range(1, OPT_RESTARTS + 1)
        ],
    ),
)  # fmt: skip


def main() -> int:
    """Print a table for each diary. 1 if the report says something else than the figures."""
    return max(map(show_diary, DIARIES))


def show_diary(diary: Diary) -> int:
    """Print what the report says beside what the figures say."""
    rows = list(make_rows(diary))
    began, ended = micros(diary.began), micros(diary.legs[-1].until)
    (report,) = report_runs({("", diary.name): rows}, began, ended)
    account = report.account
    expected, whole = add_up_figures(diary), float(account.held)
    days = (ended - began) / (24 * HOUR_S * SECOND)
    print(f"{diary.name}: {diary.gpus} GPUs, {days:.1f} days; {diary.source}")
    wrong = 0
    for name in CLASSES:
        share, by_hand = account.parts[name] / whole, expected.get(name, 0.0)
        wrong |= abs(share - by_hand) > MAX_DIFFERENCE
        if share or by_hand:
            print(f"  {name:12} {100 * share:5.1f} %   by its figures {100 * by_hand:5.1f} %")
    print(
        f"  interruptions {len(account.interruptions)}, ETTR {100 * float(account.ettr or 0):.1f} %"
    )
    return int(wrong)


def add_up_figures(diary: Diary) -> dict[str, float]:
    """Shares of the whole time, from the figures alone."""
    whole = (diary.legs[-1].until - diary.began).total_seconds()
    sums = dict.fromkeys(("useful", "evaluation", "checkpoint", "hung", "redone"), 0.0)
    step = diary.first_step
    for leg in diary.legs:
        made, step = leg.step - step, leg.step
        sums["useful"] += made * leg.step_s
        sums["evaluation"] += made * leg.evaluated_s
        sums["checkpoint"] += made * leg.saved_s
        sums["hung"] += leg.hung_h * HOUR_S
        sums["redone"] += leg.redone_h * HOUR_S
    return {name: s / whole for name, s in sums.items()} | {
        "unknown": 1 - sum(sums.values()) / whole
    }


def make_rows(diary: Diary) -> Iterator[LedgerRow]:
    """The ledger: each part is a job; its steps come first, what its faults cost then, and last what
    nobody explains."""
    began, step = diary.began, diary.first_step
    for number, leg in enumerate(diary.legs, 1):
        job, start = str(number), began

        def span(kind: LedgerKind, seconds: float, job: str = job, **more: Any) -> LedgerRow:
            nonlocal start
            row = LedgerRow(run=diary.name, kind=kind, job=job, began=micros(start),
                            ended=micros(start) + round(seconds * SECOND), **more)  # fmt: skip
            start += timedelta(seconds=seconds)
            return row

        yield LedgerRow(run=diary.name, kind="held", job=job, began=micros(began), ended=micros(leg.until),
                        gpus=diary.gpus, cause=leg.cause)  # fmt: skip
        if lost := round(leg.redone_h * HOUR_S / leg.step_s):
            yield span("steps", leg.redone_h * HOUR_S, first_step=step, last_step=step + lost)
        made = leg.step - step
        busy_s = leg.step_s + leg.evaluated_s + leg.saved_s
        yield span("steps", made * busy_s, first_step=step, last_step=leg.step,
                   evaluation_us=round(made * leg.evaluated_s * SECOND),
                   checkpoint_us=round(made * leg.saved_s * SECOND))  # fmt: skip
        yield LedgerRow(run=diary.name, kind="saved", began=micros(start), ended=micros(start),
                        last_step=leg.step)  # fmt: skip
        if leg.hung_h:
            yield span("hung", leg.hung_h * HOUR_S)
        yield LedgerRow(
            run=diary.name, kind="blind", job=job, began=micros(start), ended=micros(leg.until)
        )
        began, step = leg.until, leg.step


def micros(moment: datetime) -> int:
    """µs UTC."""
    return round(moment.timestamp() * SECOND)


if __name__ == "__main__":
    raise SystemExit(main())
