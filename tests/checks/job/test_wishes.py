"""What a job's owner asked for at submission: `off` is for this owner, refusals are told, nothing else."""

import re

import pytest
from msgspec.structs import replace

from sentinel.core.model import Status
from sentinel.testing import START, FixedSlurm, context
from tests.checks.job.making import Watch, check, ended, job

TEXTS = ("=" * 1000, 'progress="' * 90, "stale=00:12:00", "\x1b[31m", "off " * 250, '"' * 1000)


@pytest.mark.parametrize("many", [False, True])
def test_a_wish_off_is_remembered_when_the_job_is_gone(many: bool) -> None:
    """The finding says so; nothing else of it changes."""
    settings = {"name": None, "match": re.compile("train")} if many else {}
    quiet, plain = Watch(check(**settings)), Watch(check(**settings))
    for watch, wish in ((quiet, "sentinel: off"), (plain, "")):
        assert watch.look(job(wish=wish)).owner_muted is bool(wish)
    found, other = (w.look(after=600, ends=[ended()]) for w in (quiet, plain))
    assert (found.status, found.owner_muted, other.owner_muted) == (Status.CRITICAL, True, False)
    assert replace(found, owner_muted=False) == other


def test_a_refused_wish_is_one_letter_however_many_jobs_have_it() -> None:
    """A command that checks once sends none."""
    jobs = [job(str(n), wish="sentinel: stael=5m") for n in range(10, 60)]
    slurm = FixedSlurm(jobs=jobs)
    (letter,) = check().run(context(slurm, START)).letters
    assert letter.user == "alice"
    assert "stael=5m is none of off, stale=, progress=" in letter.summary
    assert check().run(context(slurm, START, one_shot=True)).letters == ()


def test_a_script_that_cannot_be_read_is_told_to_its_author() -> None:
    """Once for the same reason, and by the status that stays as it was."""
    why = "NOT watched: cannot read the batch script: Invalid user id"
    jobs = [job(str(n), wish_trouble=why) for n in range(10, 60)]
    report = check().run(context(FixedSlurm(jobs=jobs), START))
    (letter,) = report.letters
    assert (letter.user, letter.summary) == ("alice", f"{why} (job 10)")
    assert report.watched_jobs == tuple(one.job_id for one in jobs)
    assert report.findings[0].status is Status.OK


def test_hostile_wishes_of_very_many_jobs_disturb_nobody() -> None:
    """5,000 jobs of one user, each with another text: few letters to that user. The findings and
    requests about everybody are as they were without wishes."""
    alice = job("7", wish="sentinel: off")
    many = [
        job(str(n), name=f"j{n}", user="mallory", wish=f"sentinel: {n} {TEXTS[n % 6]}")
        for n in range(100, 5099)
    ]
    one = check(name=None, match=re.compile(".*"), users=["*"])
    report = one.run(context(FixedSlurm(jobs=(alice, *many)), START, limit=60))
    quiet = [replace(row, wish="") for row in (alice, *many)]
    plain = one.run(context(FixedSlurm(jobs=quiet), START, limit=60))
    assert {letter.user for letter in report.letters} == {"mallory"}
    assert len(report.letters) == 20
    assert all(letter.summary.isprintable() for letter in report.letters)
    assert [replace(f, owner_muted=False) for f in report.findings] == list(plain.findings)
    assert [f.labels["user"] for f in report.findings if f.owner_muted].count("alice") == 1
    assert (report.samples, report.requests) == (plain.samples, plain.requests)
