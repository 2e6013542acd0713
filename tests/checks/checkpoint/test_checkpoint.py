"""Checkpoints in real folders: which are complete, how old, and what would be lost."""

import os
import pwd
import re
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.checkpoint import (
    CheckpointCheck,
    CheckpointPlace,
    CheckpointRule,
    describe_work_at_risk,
)
from sentinel.checks.checkpoint.files import CheckpointFolder
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Size, clock_text
from sentinel.proc import StuckProcess
from sentinel.testing import START, FixedSlurm, context
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose
from tests.kinds import looks
from tests.lab.fuse import Fuse

NOW = START.wall / SECOND
ME = pwd.getpwuid(os.geteuid()).pw_name
HOUR = 3600.0


def job(*, ran: float, state: str = "RUNNING") -> Job:
    return Job(
        "7", "7", "7", "", "llm", "root", "main", state, "None", "node-0", 1, "",
        None, int(NOW - ran), None, None,
    )  # fmt: skip


def save(folder: Path, name: str, *, age: float, size: int = 1000, marker: str = "") -> Path:
    """A checkpoint whose files were written so many seconds before START."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for file in ["shard.pt", *([marker] if marker else [])]:
        path = place / file
        path.write_bytes(b"x" * size if file == "shard.pt" else b"")
        os.utime(path, (NOW - age, NOW - age))
    os.utime(place, (NOW - age, NOW - age))
    return place


def check(folder: Path, **settings: Any) -> CheckpointCheck:
    return CheckpointCheck(path=FilePath(folder), **settings)


def run(
    checkpoint: CheckpointCheck,
    *,
    jobs: tuple[Job, ...] = (),
    now: Instant = START,
    before: Report | None = None,
) -> Report:
    memory = (before.memory or {}) if before else {}
    return checkpoint.run(context(FixedSlurm(jobs=jobs), now, memory=memory, limit=30.0))


def only(report: Report) -> Finding:
    [finding] = report.findings
    return finding


def test_the_newest_complete_one_is_told_with_age_size_and_number(tmp_path: Path) -> None:
    """Links, such as `latest`, are none of them."""
    save(tmp_path, "global_step100", age=2 * HOUR)
    save(tmp_path, "global_step200", age=HOUR, size=5000)
    (tmp_path / "latest-200").symlink_to("global_step200")
    finding = only(run(check(tmp_path)))
    assert finding.status is Status.OK
    assert finding.summary == (
        f"newest global_step200, complete {clock_text(NOW - HOUR, NOW)} (1h old, 5 kB)"
    )
    assert finding.values == {
        "age_seconds": HOUR, "at_risk_seconds": HOUR, "size_bytes": 5000, "complete": 2, "step": 200,
    }  # fmt: skip


@pytest.mark.parametrize("state", ["RUNNING", "SIGNALING", "RESIZING"])
def test_a_job_with_a_flag_still_runs(tmp_path: Path, state: str) -> None:
    """squeue shows such a flag in place of RUNNING."""
    late = run(check(tmp_path, job="llm", users=["*"]), jobs=(job(ran=5 * HOUR, state=state),))
    assert only(late).status is Status.CRITICAL


@pytest.mark.parametrize(
    ("rule", "complete"),
    [
        (CheckpointRule(marker=".metadata"), 100),  # the second has none
        (CheckpointRule(latest="latest"), 100),  # which names the first
        (CheckpointRule(min_size=Size(2000)), 100),  # the second is too small
        (CheckpointRule(settled=Duration(60)), 100),  # the second was changed 30 s ago
        (CheckpointRule(settled=Duration(30)), 200),
    ],
)
def test_one_that_is_not_complete_is_named_and_does_not_count(
    tmp_path: Path, rule: CheckpointRule, complete: int
) -> None:
    """By a marker in it, a file beside it, its size, or quiet."""
    save(tmp_path, "step_100", age=HOUR, size=3000, marker=".metadata")
    save(tmp_path, "step_200", age=30, marker=".metadata" if complete == 200 else "")
    (tmp_path / "latest").write_text("step_100\n")
    finding = only(run(check(tmp_path, complete=rule)))
    assert finding.values["step"] == complete
    assert ("step_200 is not complete: it" in finding.summary) is (
        complete == 100 and not rule.latest
    )


def test_latest_may_hold_the_number_alone(tmp_path: Path) -> None:
    """As Megatron-LM's latest_checkpointed_iteration.txt."""
    save(tmp_path, "iter_0000100", age=HOUR)
    save(tmp_path, "iter_0000200", age=10)
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("100")
    rule = CheckpointRule(latest="latest_checkpointed_iteration.txt")
    assert only(run(check(tmp_path, complete=rule))).values["step"] == 100


@pytest.mark.parametrize(("age", "status"), [(4 * HOUR + 1, "ok"), (4 * HOUR + 60, "critical")])
def test_a_late_one_is_critical_and_says_what_is_at_risk(
    tmp_path: Path, age: float, status: str
) -> None:
    """The message shows that it is more than the limit: nobody is woken for "4h (limit 4h)"."""
    save(tmp_path, "step_100", age=age)
    finding = only(run(check(tmp_path, job="llm", users=["root"]), jobs=(job(ran=9 * HOUR),)))
    assert finding.status == status
    if status == "critical":
        assert "nothing saved for 4h 01m (limit 4h); newest step_100, complete" in finding.summary


def test_a_job_cannot_lose_more_than_it_has_run(tmp_path: Path) -> None:
    """Two days in the queue make no late checkpoint."""
    save(tmp_path, "step_100", age=48 * HOUR)
    finding = only(run(check(tmp_path, job="llm", users=["root"]), jobs=(job(ran=HOUR),)))
    assert (finding.status, finding.values["at_risk_seconds"]) == (Status.OK, HOUR)


@pytest.mark.parametrize(("ran", "status"), [(4 * HOUR + 1, "ok"), (4 * HOUR + 60, "critical")])
def test_a_job_without_any_checkpoint_is_late_by_its_own_time(
    tmp_path: Path, ran: float, status: str
) -> None:
    finding = only(run(check(tmp_path, job="llm", users=["root"]), jobs=(job(ran=ran),)))
    assert finding.status == status
    assert "no complete checkpoint" in finding.summary


def test_without_such_a_job_nothing_is_awaited(tmp_path: Path) -> None:
    finding = only(run(check(tmp_path / "missing", job="llm", users=["root"])))
    assert finding.status is Status.OK


@pytest.mark.parametrize(("fewest", "status"), [(2, "ok"), (3, "warning")])
def test_too_few_complete_ones_are_a_warning(tmp_path: Path, fewest: int, status: str) -> None:
    for step in (1, 2):
        save(tmp_path, f"step_{step}", age=HOUR)
    assert only(run(check(tmp_path, fewest=fewest))).status == status


@pytest.mark.parametrize("skew", [-HOUR, HOUR])
def test_a_file_servers_clock_counts_only_at_the_first_look(tmp_path: Path, skew: float) -> None:
    """Later, quiet and age are what passed between looks here."""
    rule = check(tmp_path)
    first = run(rule)
    save(tmp_path, "step_100", age=-skew)
    second = run(rule, now=shift_instant(START, 300), before=first)
    assert "step_100 is not complete: it changed" in only(second).summary
    third = run(rule, now=shift_instant(START, 360), before=second)
    assert only(third).values["age_seconds"] == 60.0


def test_one_that_grows_is_not_complete(tmp_path: Path) -> None:
    """A writer that takes longer than `settled` from look to look."""
    rule = check(tmp_path)
    report = run(rule)
    for look in range(1, 4):
        save(tmp_path, "step_100", age=0, size=1000 * look)
        report = run(rule, now=shift_instant(START, 300.0 * look), before=report)
        assert only(report).values["complete"] == 0
    report = run(rule, now=shift_instant(START, 1200.0), before=report)
    assert only(report).values["age_seconds"] == 300.0


def test_after_a_fall_back_to_an_earlier_step_what_is_saved_anew_counts(tmp_path: Path) -> None:
    """The higher steps of the branch that was given up are old, and one is written over."""
    rule = CheckpointRule(marker="done")
    for step, age in [(100, 9 * HOUR), (200, 8 * HOUR), (300, 7 * HOUR)]:
        save(tmp_path, f"step_{step}", age=age, marker="done")
    checkpoint = check(tmp_path, complete=rule)
    before = run(checkpoint)
    assert only(before).status is Status.CRITICAL
    for moment, step in [(600, 150), (1200, 200)]:
        save(tmp_path, f"step_{step}", age=-moment, marker="done")
        before = run(checkpoint, now=shift_instant(START, moment), before=before)
        finding = only(before)
        assert (finding.status, finding.values["step"]) == (Status.OK, step)
        assert finding.values["age_seconds"] == 0.0
    where = CheckpointPlace(path=FilePath(tmp_path), complete=rule)
    assert describe_work_at_risk(where, shift_instant(START, 1260), None, user="", limit=10.0) == (
        "1m of work since checkpoint step_200 at risk"
    )


def test_one_that_is_written_over_in_place_is_new_again(tmp_path: Path) -> None:
    """DeepSpeed does so: the folder is not changed by it, and `latest` names the same."""
    place = save(tmp_path, "global_step100", age=9 * HOUR)
    (tmp_path / "latest").write_text("global_step100")
    checkpoint = check(tmp_path, complete=CheckpointRule(latest="latest"))
    before = run(checkpoint)
    assert only(before).status is Status.CRITICAL
    os.utime(place / "shard.pt", (NOW + 60, NOW + 60))
    after = run(checkpoint, now=shift_instant(START, 60), before=before)
    assert (only(after).status, only(after).values["age_seconds"]) == (Status.OK, 0.0)


def test_a_folder_that_is_touched_is_no_new_checkpoint(tmp_path: Path) -> None:
    """Whoever puts a note into it has saved nothing."""
    place = save(tmp_path, "step_100", age=HOUR, marker="done")
    checkpoint = check(tmp_path, complete=CheckpointRule(marker="done"))
    before = run(checkpoint)
    os.utime(place, (NOW, NOW))
    after = run(checkpoint, now=shift_instant(START, 600), before=before)
    assert only(after).values["age_seconds"] == HOUR + 600


def test_one_that_is_being_deleted_is_complete_no_more(tmp_path: Path) -> None:
    """Deleting terabytes takes long, and nobody could load what is left."""
    place = save(tmp_path, "step_100", age=HOUR, marker="done")
    checkpoint = check(tmp_path, complete=CheckpointRule(marker="done"))
    before = run(checkpoint)
    (place / "done").unlink()
    finding = only(run(checkpoint, now=shift_instant(START, 60), before=before))
    assert finding.values["complete"] == 0
    assert "step_100 is not complete: it has no done" in finding.summary


def test_files_that_go_while_they_are_looked_at_blind_nobody(tmp_path: Path) -> None:
    """Writers rename temporary files, and old checkpoints are deleted meanwhile."""
    place = save(tmp_path, "step_100", age=HOUR)
    folder = CheckpointFolder(
        str(tmp_path), check(tmp_path).match, UserFiles(5.0, 5.0, {}), Whose(literal=True)
    )
    (entry,) = folder.list_checkpoints()
    rmtree(place)
    assert folder.look_into(entry, CheckpointRule()).size == 0


def test_those_that_were_deleted_are_forgotten(tmp_path: Path) -> None:
    """Rotation keeps the last few; an older one becomes the newest again."""
    save(tmp_path, "step_1", age=2 * HOUR)
    place = save(tmp_path, "step_2", age=HOUR)
    before = run(check(tmp_path))
    (place / "shard.pt").unlink()
    place.rmdir()
    assert only(run(check(tmp_path), before=before)).values["step"] == 1


def test_a_folder_that_is_not_there_is_unknown_not_empty(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="cannot be read: No such file"):
        run(check(tmp_path / "missing"))


def test_a_folder_that_hangs_is_unknown(fuse: Fuse) -> None:
    """The child that cannot be killed is remembered, and no second one is sent after it."""
    fuse.hold("opendir", "getattr", "lookup")
    slow = CheckpointCheck(path=FilePath(fuse.point))
    with pytest.raises(CannotTell, match="hangs"):
        slow.run(context(FixedSlurm(), START, limit=6.0, one_shot=True))
    first = slow.run(context(FixedSlurm(), START, limit=6.0))
    assert (only(first).status, first.memory is None) == (Status.UNKNOWN, False)
    again = slow.run(context(FixedSlurm(), START, limit=6.0, memory=first.memory))
    assert only(again).summary.endswith(" still waits for it")
    assert (again.memory or {})["stuck"] == (first.memory or {})["stuck"]
    fuse.release()


def test_other_checks_send_nobody_after_a_child_that_waits(fuse: Fuse) -> None:
    """They remember it by the folder, as they do for their own files."""
    fuse.hold("opendir", "getattr", "lookup")
    where, stuck = CheckpointPlace(path=FilePath(fuse.point)), dict[str, StuckProcess]()
    told = describe_work_at_risk(where, START, HOUR, user="", limit=6.0, stuck=stuck)
    assert told.startswith(f"work at risk is not known: {fuse.point} hangs: ")
    told = describe_work_at_risk(where, START, HOUR, user="", limit=6.0, stuck=stuck)
    pid = stuck[str(fuse.point)].pid
    assert told.endswith(f"hangs: process {pid} still waits for it")
    fuse.release()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"path": FilePath("ckpt")}, "no absolute path"),
        ({"path": FilePath("/ckpt"), "match": re.compile("step.*")}, "put the step in a group"),
        ({"path": FilePath("/ckpt"), "late_after": Duration(0)}, "must be longer than 0s"),
    ],
)
def test_settings_that_can_find_nothing_are_refused(settings: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        CheckpointCheck(**settings)


def test_other_checks_tell_the_work_at_risk_in_one_line(tmp_path: Path) -> None:
    """Of the newest complete one; a folder that cannot be read is told, and raises nothing."""
    save(tmp_path, "step_100", age=2 * HOUR, marker="done")
    save(tmp_path, "step_200", age=HOUR)
    where = CheckpointPlace(path=FilePath(tmp_path), complete=CheckpointRule(marker="done"))
    told = [
        describe_work_at_risk(where, START, ran, user="", limit=10.0)
        for ran in (5 * HOUR, HOUR, None)
    ]
    assert told == [
        "2h of work since checkpoint step_100 at risk",
        "1h of work since checkpoint step_100 at risk",
        "2h of work since checkpoint step_100 at risk",
    ]
    none = CheckpointPlace(path=FilePath(tmp_path), complete=CheckpointRule(marker="other"))
    assert describe_work_at_risk(none, START, HOUR, user="", limit=10.0) == (
        "1h of work at risk: there is no complete checkpoint"
    )
    before = shift_instant(START, -1800)
    assert describe_work_at_risk(where, START, None, user="", limit=10.0, ended=before) == (
        "1h 30m of work since checkpoint step_100 at risk"
    )
    missing = CheckpointPlace(path=FilePath(tmp_path / "missing"))
    assert "work at risk is not known: " in describe_work_at_risk(
        missing, START, HOUR, user="", limit=10.0
    )


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x"])
def test_a_marker_lies_below_the_folder(name: str) -> None:
    with pytest.raises(Invalid):
        CheckpointRule(marker=name)
    with pytest.raises(Invalid):
        CheckpointRule(latest=name)


def named(name: str, number: str, *, ran: float = 9 * HOUR, nodes: int = 1) -> Job:
    return replace(job(ran=ran), id=number, job_id=number, name=name, user=ME, node_count=nodes)


def test_each_training_that_fits_has_a_folder_and_is_a_subject(tmp_path: Path) -> None:
    """One saves and one does not; the third has another name, the fourth none of its own folder."""
    save(tmp_path / "flag-a", "step1", age=HOUR)
    save(tmp_path / "flag-b", "step1", age=8 * HOUR)
    save(tmp_path / "other", "step1", age=8 * HOUR)
    several = check(tmp_path / "%x", job_match=re.compile("flag-.*"), users=[ME])
    jobs = tuple(named(n, i) for n, i in (("flag-a", "7"), ("flag-b", "8"), ("other", "9")))
    first = run(several, jobs=jobs)
    assert {f.subject: f.status for f in first.findings} == {
        "flag-a": Status.OK,
        "flag-b": Status.CRITICAL,
    }
    assert str(tmp_path / "flag-b") in looks(first.findings[1])[0]
    gone = run(several, jobs=jobs[1:], before=first)
    assert [f.summary for f in gone.findings if f.subject == "flag-a"] == [
        "no job of exactly this name runs, so no checkpoint is awaited"
    ]
    assert {f.subject for f in run(several, jobs=jobs[1:], before=gone).findings} == {"flag-b"}


def test_one_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """Its folder is not there, or its name would lead elsewhere; the size says which are meant."""
    save(tmp_path / "flag-a", "step1", age=HOUR)
    save(tmp_path / "small", "step1", age=8 * HOUR)
    several = check(tmp_path / "%x", min_nodes=4)
    assert several.jobs_of() is None
    jobs = (
        named("flag-a", "7", nodes=4),
        named("none", "8", nodes=4),
        named("..", "9", nodes=4),
        named("small", "10"),
    )
    report = run(several, jobs=jobs)
    assert {f.subject: f.status for f in report.findings} == {
        f"{ME}/flag-a": Status.OK,
        f"{ME}/none": Status.UNKNOWN,
        f"{ME}/..": Status.UNKNOWN,
    }
    assert report.coverage.unseen == (f"{ME}/none", f"{ME}/..")
    assert not run(several).findings


def test_several_trainings_need_folders_of_their_own(tmp_path: Path) -> None:
    """And one way to say which are meant."""
    with pytest.raises(Invalid, match="one folder of many trainings; write %x or %j in it"):
        check(tmp_path, job_match=re.compile("a"))
    with pytest.raises(Invalid, match="exclude each other"):
        check(tmp_path / "%x", job="a", min_gpus=8)
    with pytest.raises(Invalid, match="cannot be negative"):
        check(tmp_path, min_nodes=-1)
