"""Gaps between the jobs of trainings on a real cluster: none is told once its rhythm is known.

`GAPS=25 pytest tests/service/test_gaps.py` sees a hundred gaps of each case, in about twenty minutes.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import combinations

import pytest

from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.service.watch import Watch

GAPS = int(os.environ.get("GAPS", "5"))
"""Of each training; the first ones may be told, for all that is known."""

CASES = ("timeout", "failed", "cancelled")
"""A chain whose jobs end in TIMEOUT, a launcher that submits again what has FAILED, an owner's
scancel and sbatch, of which nobody says whose it was: there is no accounting."""

LEARNED_AFTER = {"timeout": 3, "failed": 3, "cancelled": 1}
"""Gaps of each case after which none is told: three alike are a rhythm, and a scancel of which nobody
knows whose it was waits for hours once another job has followed one."""

ALIKE_S = 3.0
"""Seconds between the shortest and the longest of gaps that certainly count as alike. A busy machine
makes a launcher late, and then sentinel is right to know no rhythm; Slurm says how long a gap was."""

RHYTHM_S = 40.0
"""Seconds after which a launcher submits again: longer than a second look."""

TRAININGS = 4
"""Of each case, each with gaps of its own."""

ENDED = ("TIMEOUT", "FAILED", "CANCELLED")
SCRIPTS = {"timeout": "exec sleep 300", "failed": "sleep {length}; exit 1"}
CHECK = "  {name}: {{kind: job, every: 5s, name: {name}, users: [{user}]}}\n"
CHANNELS = """\
channels:
  oncall: {{kind: email, to: [ops@example.org], from: sentinel@example.org, host: localhost, port: {port}, security: none}}
  book: {{kind: file, path: "{folder}/book.jsonl"}}
"""


class Training:
    """One name: its jobs, and how long nothing runs between them."""

    def __init__(self, lab: Lab, user: User, case: str, number: int) -> None:
        self.name, self.case, self.gaps = f"{case}-{number}", case, 0
        self._lab, self._user, self._random = lab, user, random.Random(self.name)
        self._again: float | None = None
        self.delays: list[float] = []
        """Seconds of each gap by Slurm's own clock: from the end of a job to the next submission."""
        self._ended_at: datetime | None = None
        self.submit()

    def submit(self) -> None:
        """The next job; the last one goes on."""
        self.length = self._random.uniform(2, 8)  # some come and go between two looks
        script = SCRIPTS.get(self.case, SCRIPTS["timeout"]).format(length=self.length)
        last = self.gaps >= GAPS
        text = "exec sleep 300" if last else script
        more = {"time": "1" if self.case == "timeout" and not last else "60"}
        self.job = self._lab.sbatch(text, name=self.name, user=self._user, **more)
        self._again, self._began, self._ending = None, time.monotonic(), last

    def is_known(self, number: int) -> bool:
        """Whether its rhythm must be known when gap `number` begins, and that gap keeps to it."""
        if number < LEARNED_AFTER[self.case]:
            return False
        if self.case == "cancelled":
            return True
        return any(
            max(some) - min(some) <= ALIKE_S
            for some in (
                (*three, *self.delays[number : number + 1])
                for three in combinations(self.delays[:number], 3)
            )
        )

    def look(self, jobs: Mapping[str, Sequence[str]]) -> None:
        """Its end is brought about, and after a while the next job."""
        now, (state, ended, submitted) = time.monotonic(), jobs.get(self.job, ("", "", ""))
        if self._ended_at is not None and submitted:
            gap = datetime.fromisoformat(submitted) - self._ended_at
            self.delays.append(gap.total_seconds())
            self._ended_at = None
        if state == "RUNNING" and not self._ending and now >= self._began + self.length:
            self._ending = True
            if self.case == "timeout":  # a limit is a minute at least, an end is not
                self._lab.ask(["scontrol", "update", f"JobId={self.job}", "EndTime=now+2"])
            elif self.case == "cancelled":
                self._lab.ask(["scancel", self.job], user=self._user)
        elif state in ENDED and self._again is None:
            by_hand = 20 * self._random.lognormvariate(0, 0.8)
            launcher = RHYTHM_S * self._random.uniform(0.97, 1.03)
            self._again = now + (by_hand if self.case == "cancelled" else launcher)
            self._last_end = datetime.fromisoformat(ended)
        elif self._again is not None and now >= self._again:
            self.gaps += 1
            self._ended_at = self._last_end
            self.submit()


@pytest.mark.nightly
@pytest.mark.timeout(120 + 90 * GAPS)
def test_no_gap_is_told_once_its_rhythm_is_known(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """Launchers after 40 s, and hands after a scancel whose gaps are lognormal (median 20 s)."""
    user = fresh.user("alice")
    names = [(case, number) for case in CASES for number in range(TRAININGS)]
    checks = "".join(CHECK.format(name=f"{c}-{n}", user=user.name) for c, n in names)
    night.configure(
        "checks:\n" + checks.replace("{", "{{").replace("}", "}}") + CHANNELS, port=smtp.port
    )
    trainings = [Training(fresh, user, case, number) for case, number in names]
    service = night.run()
    told: dict[str, list[int]] = {one.name: [] for one in trainings}
    words: dict[tuple[str, int], str] = {}
    read = 0
    while any(one.gaps < GAPS for one in trainings):
        assert service.running
        rows = fresh.ask(["squeue", "-h", "--states=all", "-o", "%A %T %e %V"]).splitlines()
        jobs = {job: rest for job, *rest in map(str.split, rows)}
        for one in trainings:
            one.look(jobs)
        lines, read = night.book[read:], len(night.book)
        for line in lines:
            if line["status"] == "critical":
                number = next(t.gaps for t in trainings if t.name == line["check"])
                told[line["check"]].append(number)
                why = f"{line['summary']}; {line['values'].get('why_now', '')}; {line['details']}"
                words[line["check"], number] = why
        time.sleep(1)
    gaps = Counter({case: sum(t.gaps for t in trainings if t.case == case) for case in CASES})
    print(f"gaps {dict(gaps)}; told in gap number: {told}; mails: {len(smtp.mails)}")
    by_name = {one.name: one for one in trainings}
    late = {
        (name, number): why
        for (name, number), why in words.items()
        if by_name[name].is_known(number)
    }
    assert late == {}
    known = [one.name for one in trainings if any(map(one.is_known, range(GAPS)))]
    assert len(known) > len(trainings) / 2, {one.name: one.delays for one in trainings}
    assert any(told.values())  # a first death is told: somebody watches
