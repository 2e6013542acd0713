"""What the `log` check says of a training's log: of a whole one, and while it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sentinel.checks.log import Log
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import START, FixedSlurm, ManualClock, context
from tests.world.case import Case

STALE_MINUTES = 20
"""The limit of every log that is watched here."""


@dataclass(frozen=True)
class Answer:
    """What one look says."""

    summary: str
    status: Status
    number: float | None
    """The progress, where one was found."""
    loss: Status
    cause: str
    """What the finding about errors says; empty where there is none."""
    details: str


def of_whole_log(folder: Path, text: str) -> Answer:
    """As `sentinel check log --path FILE` says it."""
    path = folder / "training.log"
    path.write_bytes(text.encode())
    return _answer(Log(path=FilePath(path)).run(context(FixedSlurm(), one_shot=True)).findings)


def assert_cause(case: Case, folder: Path, record: Callable[[str, object], None]) -> None:
    """The cause that is told holds the right words; none is told where none is right."""
    told = of_whole_log(folder, case.form).cause
    record("answer", str(told or "none"))
    record("right", str(case.right or "none"))
    assert case.right in told
    assert bool(case.right) == bool(told)


def assert_number_and_loss(case: Case, folder: Path, record: Callable[[str, object], None]) -> None:
    """The progress and the state of the loss are the right ones."""
    answer = of_whole_log(folder, case.form)
    record("answer", (answer.number, str(answer.loss)))
    record("right", (case.right[0], str(case.right[1])))
    assert (answer.number, answer.loss) == case.right


def of_growing_log(folder: Path, chunks: Iterable[str], minutes: float = 1) -> list[Answer]:
    """A look after each chunk, with so many minutes between."""
    path, clock, memory = folder / "training.log", ManualClock(START), dict[str, Any]()
    check = Log(path=FilePath(path), stale_after=Duration(60 * STALE_MINUTES))
    answers = []
    for chunk in chunks:
        with path.open("a", newline="") as file:
            file.write(chunk)
        now = clock.advance(60 * minutes)
        report = check.run(context(FixedSlurm(), now=now, memory=memory))
        memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        answers.append(_answer(report.findings))
    return answers


def bar(words: str, total: int, *counts: int, rate: str = "3.10it/s") -> str:
    """A bar of tqdm at each of these counts, as it overwrites itself."""
    return "".join(
        f"\r{words}{100 * n // total:3d}%|{'█' * (10 * n // total):10s}| {n}/{total} [00:{n % 60:02d}<00:09, {rate}]"
        for n in counts
    )


def _answer(findings: Iterable[Finding]) -> Answer:
    first, *others = findings
    by_topic = {finding.subject.rpartition(" ")[2]: finding for finding in others}
    loss, errors = by_topic.get("loss"), by_topic.get("errors")
    told = errors if errors and errors.status.bad else None
    number = first.values["progress"]
    return Answer(
        summary=first.summary,
        status=first.status,
        number=float(number) if isinstance(number, int | float) else None,
        loss=loss.status if loss else Status.OK,
        cause=told.summary.removesuffix(", and no progress since") if told else "",
        details=told.details if told else "",
    )
