"""What `on_stale` acts upon: logs of many trainers, written line by line. While they grow nothing hangs; when they end, it is told.

The logs are those of the other batches; whether a number is found there is their answer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel.core.model import Status
from tests.world.case import Case
from tests.world.logs import of_growing_log
from tests.world.test_progress_drawn import DRAWN_1, DRAWN_2, DRAWN_3, DRAWN_4
from tests.world.test_progress_hunted import HUNTED_1
from tests.world.test_progress_met import MET, MET_LATER

LOOKS, MINUTES = 8, 9.0
QUIET_LOOKS = 8
"""72 minutes: the longest limit before a number is known is an hour."""


def chunks_of(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return ["".join(lines[len(lines) * n // LOOKS : len(lines) * (n + 1) // LOOKS]) for n in range(LOOKS)]  # fmt: skip


CASES = [
    case
    for case in (*DRAWN_1, *DRAWN_2, *DRAWN_3, *DRAWN_4, *HUNTED_1, *MET, *MET_LATER)
    if all(chunks_of(case.form)) and case.right[0] is not None
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_training_is_acted_upon_where_its_log_has_ended_and_not_before(
    case: Case, tmp_path: Path
) -> None:
    answers = of_growing_log(tmp_path, [*chunks_of(case.form), *[""] * QUIET_LOOKS], MINUTES)
    grows, quiet = answers[:LOOKS], answers[LOOKS:]
    assert [a.summary for a in grows if a.status is Status.CRITICAL] == []
    assert quiet[-1].status is Status.CRITICAL
