"""What the `cron` kind says of a cron directory."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.script_book import CronBook, write_book
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.checks.cron import CronCheck
from sentinel.checks.cron_remedies import format_slot
from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import START, context
from tests.kinds import looks
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder

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


NOBODY_KNOWS = SubmittedRun(slot=int(NOW), job="", at=NOW, state="LOST")


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
    assert found.summary.endswith("failed with exit code 1 (Slurm job 7)")
    assert found.details == "last lines of a b.log:\nthe disk\nis on fire"
    assert f"less '{log}'" in looks(found)
    assert "sacct -j 7 " in looks(found)[-1]


def test_how_bad_a_failure_is_can_be_judged(tmp_path: Path) -> None:
    """When it runs again, when it last ended well, and which file it is."""
    record = ran(tmp_path / "x.log")
    good = replace(record.runs[0], slot=int(NOW) - 86400, job="6", state="COMPLETED", code=0)
    known = replace(record, runs=(*record.runs, good), next_slot=int(NOW) + 86400)
    found = findings(tmp_path, records={KEY: known})[1]
    assert format_slot(NOW + 86400) in found.guidance.impact
    assert f"Its last good run was that of {format_slot(NOW - 86400)}." in found.guidance.impact
    assert f"head -n 20 {tmp_path}/{KEY}" in looks(found)[0]
    never = findings(tmp_path, records={KEY: record})[1].guidance.impact
    assert "at its next time" in never
    assert "No good run of it is known." in never


def test_what_may_be_a_pipe_is_not_read(tmp_path: Path) -> None:
    """`head` would wait for a writer."""
    (_, pipe) = findings(tmp_path, refused={KEY: "is no regular file"})
    (_, unsafe) = findings(tmp_path, refused={KEY: "its group may write to it (chmod g-w)"})
    assert [c.split()[0] for c in looks(pipe)] == ["ls"]
    assert [c.split()[0] for c in looks(unsafe)] == ["ls", "head"]
    assert [c.argv[0] for c in unsafe.acts] == ["chmod"]
    assert pipe.acts == ()


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


@pytest.mark.root
def test_whose_book_it_is_decides_what_is_read(tmp_path: Path) -> None:
    """Root looks at a directory of mallory's: her book names a file that she may not read. One of a
    stranger is not believed at all."""
    with shared_folder() as folder:
        base = folder_of(MALLORY, folder / "cron")
        own = file_of(MALLORY, folder / "own.log", "it burns\n")
        secret = file_of(0, folder / "secret")
        for log, told in ((own, "last lines of own.log:\nit burns"), (secret, "")):
            findings(base, records={KEY: ran(log)})
            os.chown(base / ".sentinel" / "cron.json", MALLORY, MALLORY)
            check = CronCheck(base=FilePath(str(base)))
            assert check.run(context()).findings[1].details == told
        os.chown(base / ".sentinel" / "cron.json", ALICE, ALICE)
        with pytest.raises(CannotTell, match=f"belongs to uid {ALICE}, whom `trust` does not name"):
            check.run(context())


@pytest.mark.root
def test_a_directory_that_root_refuses_is_told_at_once() -> None:
    """Nothing there is started, whatever the book of passes says; named, the group may write."""
    with shared_folder() as folder:
        base = folder / "cron"
        base.mkdir()
        assert findings(base)[0].status is Status.OK
        os.chown(base, -1, 100)
        base.chmod(0o775)
        found = findings(base)[0]
        assert found.status is Status.CRITICAL
        assert "no script is started" in found.summary
        assert "chmod g-w" in found.summary
        check = CronCheck(base=FilePath(str(base)), trust_groups=["users"])
        assert check.run(context()).findings[0].status is Status.OK


def test_a_pipe_in_place_of_the_book_is_none(tmp_path: Path) -> None:
    """Opening it would wait for ever."""
    (tmp_path / ".sentinel").mkdir()
    os.mkfifo(tmp_path / ".sentinel" / "cron.json")
    with pytest.raises(CannotTell, match="is no book"):
        CronCheck(base=FilePath(str(tmp_path))).run(context())


@pytest.mark.parametrize("refused", [KEY, "cron.daily"])
def test_what_is_refused_is_told_once(tmp_path: Path, refused: str) -> None:
    """Its past says nothing about it now."""
    found = findings(
        tmp_path, records={KEY: ran(tmp_path)}, refused={refused: "is no regular file"}
    )
    assert [(f.subject, f.summary) for f in found[1:]] == [
        (refused, "is skipped: is no regular file")
    ]


@pytest.mark.parametrize(
    ("record", "status", "said"),
    [
        (ScriptRecord(handled=NOW), Status.OK, "not due yet"),
        (
            ScriptRecord(handled=NOW, trouble="sbatch: no"),
            Status.WARNING,
            "not submitted: sbatch: no",
        ),
        (ScriptRecord(handled=NOW, missed=2), Status.WARNING, "2 runs missed"),
        (ScriptRecord(handled=NOW, skipped=1), Status.OK, "not due yet"),
        (ScriptRecord(handled=NOW, skipped=2), Status.WARNING, "2 runs skipped"),
        (ran(Path("/x"), state="COMPLETED", code=0), Status.OK, "completed: job 7"),
        (
            ran(Path("/x"), state="LOST", code=None),
            Status.UNKNOWN,
            "nothing remembers how it ended",
        ),
        (
            replace(ran(Path("/x"), state="LOST", code=None), runs=(NOBODY_KNOWS,)),
            Status.UNKNOWN,
            "was submitted is not known",
        ),
        (
            ran(Path("/x"), state="FAILED", elements="2 elements: 2 FAILED"),
            Status.WARNING,
            "ended badly in 2 elements: 2 FAILED (Slurm job array 7)",
        ),
    ],
)
def test_how_a_script_stands(
    tmp_path: Path, record: ScriptRecord, status: Status, said: str
) -> None:
    """One slot skipped is a run that took a little longer."""
    found = findings(tmp_path, records={KEY: record})[1]
    assert (found.status, said in found.summary) == (status, True)
