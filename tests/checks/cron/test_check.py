"""What the `cron` kind says of a cron directory."""

import os
from pathlib import Path

import pytest

from sentinel.chain.script_book import CronBook, write_book
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.checks.cron import CronCheck
from sentinel.core.clock import SECOND
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import START, context

NOW = START.wall / SECOND
KEY = "cron.daily/x"


def findings(base: Path, **known: object) -> list[Finding]:
    (base / ".sentinel").mkdir(exist_ok=True)
    write_book(str(base), CronBook(**{"at": NOW - 60, **known}))  # type: ignore[arg-type]
    return list(CronCheck(base=FilePath(str(base))).run(context()).findings)


def ran(log: Path, **more: object) -> ScriptRecord:
    end = {"state": "FAILED", "code": 1, **more}
    return ScriptRecord(
        handled=NOW,
        runs=(SubmittedRun(slot=int(NOW), job="7", at=NOW, log=str(log), **end),),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("at", "status"),
    [
        (NOW, Status.OK),
        (NOW - 3600, Status.OK),
        (NOW - 3601, Status.CRITICAL),
        (0.0, Status.CRITICAL),
        (NOW + 3601, Status.UNKNOWN),
    ],
)
def test_passes_have_to_come(tmp_path: Path, at: float, status: Status) -> None:
    """By whatever clock: one of next year would hide every silence until then."""
    assert findings(tmp_path, at=at)[0].status is status


def test_how_long_passes_may_stay_away_can_be_set(tmp_path: Path) -> None:
    """A minute ago is too long where half a minute is."""
    findings(tmp_path)
    check = CronCheck(base=FilePath(str(tmp_path)), stale_after=Duration(30))
    assert check.run(context()).findings[0].status is Status.CRITICAL


def test_a_directory_without_any_script_says_so(tmp_path: Path) -> None:
    """It may be another one than was meant."""
    (found,) = findings(tmp_path)
    assert (found.status, found.summary) == (Status.OK, "last 1m ago; no script is there")
    assert (
        "no script" not in findings(tmp_path, records={KEY: ScriptRecord(handled=NOW)})[0].summary
    )


def test_a_failed_run_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    """And how to read all of it, whatever the path."""
    log = tmp_path / "a b.log"
    log.write_text("the disk\nis on fire\n")
    found = findings(tmp_path, records={KEY: ran(log)})[1]
    assert (found.subject, found.status) == (KEY, Status.WARNING)
    assert found.summary.startswith("job 7 FAILED with exit code 1, slot ")
    assert found.details == "the disk\nis on fire"
    assert found.commands == (f"less '{log}'",)


@pytest.mark.parametrize("what", ["link", "pipe", "directory"])
def test_only_a_log_is_shown(tmp_path: Path, what: str) -> None:
    """A link in its place could send any file of one's own to everybody."""
    log, secret = tmp_path / "x.log", tmp_path / "secret"
    secret.write_text("key")
    make = {
        "link": lambda: log.symlink_to(secret),
        "pipe": lambda: os.mkfifo(log),
        "directory": log.mkdir,
    }
    make[what]()
    assert findings(tmp_path, records={KEY: ran(log)})[1].details == ""


@pytest.mark.parametrize("refused", [KEY, "cron.daily"])
def test_what_is_refused_is_told_once(tmp_path: Path, refused: str) -> None:
    """Its past says nothing about it now."""
    found = findings(
        tmp_path, records={KEY: ran(tmp_path)}, refused={refused: "is no regular file"}
    )
    assert [(f.subject, f.summary) for f in found[1:]] == [
        (refused, "is not run: is no regular file")
    ]


@pytest.mark.parametrize(
    ("record", "status", "said"),
    [
        (ScriptRecord(handled=NOW), Status.OK, "waits for its first slot"),
        (
            ScriptRecord(handled=NOW, trouble="sbatch: no"),
            Status.WARNING,
            "not submitted: sbatch: no",
        ),
        (ScriptRecord(handled=NOW, missed=2), Status.WARNING, "2 slots missed while nothing ran"),
        (ScriptRecord(handled=NOW, skipped=1), Status.OK, "waits"),
        (ScriptRecord(handled=NOW, skipped=2), Status.WARNING, "2 slots skipped"),
        (ran(Path("/x"), state="COMPLETED", code=0), Status.OK, "job 7 COMPLETED"),
        (
            ran(Path("/x"), state="LOST", code=None),
            Status.UNKNOWN,
            "nothing remembers how it ended",
        ),
    ],
)
def test_how_a_script_stands(
    tmp_path: Path, record: ScriptRecord, status: Status, said: str
) -> None:
    """One slot skipped is a run that took a little longer."""
    found = findings(tmp_path, records={KEY: record})[1]
    assert (found.status, said in found.summary) == (status, True)
