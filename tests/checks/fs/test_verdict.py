"""Rules of what an answer means, without any file system."""

import errno
import os
import subprocess
from collections.abc import Collection

import pytest
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.filesystems.limits import CRIT, WARN, FileSystemUsage
from sentinel.checks.filesystems.probe import PathAnswer, probe_all
from sentinel.checks.filesystems.remedies import guide_full, guide_hang
from sentinel.checks.filesystems.verdict import (
    DO_NOT_LOOK,
    KEPT,
    PathObservation,
    PathState,
    VerdictSettings,
    is_measured,
    next_path_state,
    path_finding,
    path_values,
    was_answered,
)
from sentinel.checks.fs.write_probe import judge_probe
from sentinel.core.clock import shift_instant
from sentinel.core.guidance import look
from sentinel.core.model import Finding, Status
from sentinel.core.mounts import Mount
from sentinel.proc import StuckProcess
from sentinel.testing import START
from tests.kinds import looks
from tests.lab.fuse import Fuse

RULES = VerdictSettings(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
WELL = FileSystemUsage(size=100, used=10, free=90, inodes=0, inodes_free=0, type="xfs")


def sight(answer: PathAnswer | None) -> PathObservation:
    return PathObservation(path="/x", answer=answer, at=shift_instant(START, 7200))


@pytest.mark.parametrize(
    ("answer", "status", "summary"),
    [
        (PathAnswer(error="Permission denied"), Status.UNKNOWN, "may not be looked at: permission"),
        *(
            (PathAnswer(error=os.strerror(number)), Status.UNKNOWN, "may not be looked at without")
            for number in (errno.ENOKEY, errno.EKEYEXPIRED, errno.EKEYREVOKED, errno.EKEYREJECTED)
        ),
        (PathAnswer(error="No such device"), Status.CRITICAL, "cannot be read: No such device"),
        (
            PathAnswer(error="Stale file handle"),
            Status.CRITICAL,
            "cannot be read: Stale file handle",
        ),
        (PathAnswer(error="Input/output error"), Status.CRITICAL, "cannot be read: Input/output"),
        (PathAnswer(blind="cannot start stat"), Status.UNKNOWN, "could not be asked: cannot start"),
        (None, Status.UNKNOWN, "was not asked: too many other file systems hang"),
        (PathAnswer(usage=WELL), Status.OK, "10% used, 90 B free"),
    ],
)
def test_an_error_of_the_file_system_is_bad_and_one_of_the_question_is_a_doubt(
    answer: PathAnswer | None, status: Status, summary: str
) -> None:
    """Nothing that was not seen is called ok."""
    seen = path_finding(sight(answer), PathState(), RULES)
    assert seen.status is status
    assert seen.summary.startswith(summary)


def test_a_hang_is_counted_from_its_first_sight() -> None:
    """Also when each probe could be killed, so that none is stuck."""
    since = next_path_state(sight(PathAnswer(hung=True, waited=5)), PathState(hangs_since=START))
    assert since.hangs_since == START
    assert path_finding(
        sight(PathAnswer(hung=True)), PathState(hangs_since=START), RULES
    ).summary == (f"no answer for 2h; {DO_NOT_LOOK}")


def test_an_answer_ends_the_hang_and_forgets_its_probe() -> None:
    """Whatever the answer is."""
    hung = PathState(mounted=True, hangs_since=START, stuck=StuckProcess(1, 2, "b"))
    for answer in (PathAnswer(usage=WELL), PathAnswer(error="Stale file handle")):
        assert next_path_state(sight(answer), hung) == PathState(mounted=True)


def test_a_path_that_was_not_asked_keeps_its_memory() -> None:
    """Nothing was seen, nothing changes."""
    hung = PathState(hangs_since=START, stuck=StuckProcess(1, 2, "b"))
    assert next_path_state(sight(None), hung) == hung


def test_paths_whose_turn_never_came_have_no_answer() -> None:
    """When the time is used up by others, the rest is left out rather than called well."""
    hangs = PathAnswer(hung=True)
    assert probe_all(["a", "b"], limit=0.0, patience=1.0, ask=lambda *_: hangs) == {}
    assert set(probe_all(["a", "b"], limit=9.0, patience=1.0, ask=lambda *_: hangs)) == {"a", "b"}


def mount(writable: Collection[str], point: str = "/x", kind: str = "xfs") -> Mount:
    how = {"mount": frozenset({"ro"}), "superblock": frozenset({"ro"})}
    how |= dict.fromkeys(writable, frozenset({"rw"}))
    return Mount(
        id=1,
        parent=0,
        device="8:1",
        root="/",
        point=point,
        type=kind,
        options=how["mount"],
        super_options=how["superblock"],
    )


BOTH = ("mount", "superblock")
DISK = mount(BOTH)
FULL = FileSystemUsage(size=100, used=97, free=3, inodes=1000, inodes_free=20, type="xfs")
HERE = PathAnswer(usage=WELL, real="/x")


def on(answer: PathAnswer, mount: Mount | None = DISK) -> PathObservation:
    return PathObservation(path="/x", answer=answer, mount=mount, at=START)


@pytest.mark.parametrize("kind", ["nfs4", "lustre"])
def test_nobody_is_told_to_walk_all_of_a_shared_file_system(kind: str) -> None:
    """A du of it burdens the servers that everybody waits for."""
    answer = PathAnswer(usage=FULL, real="/x")
    told = path_finding(on(answer, replace(DISK, type=kind)), PathState(mounted=True), RULES)
    assert looks(told) == ("df -h /x",)
    assert "your directories" in told.guidance.todo


def test_a_lost_mount_is_looked_at_before_it_is_mounted() -> None:
    """What is pasted whole must not hide what was written meanwhile."""
    told = path_finding(on(HERE, mount(BOTH, "/", "ext4")), PathState(mounted=True), RULES)
    assert looks(told) == ("ls -la /x | cat -v", "findmnt --fstab --mountpoint /x")
    assert "move it to another disk. Then `mount /x`" in told.guidance.todo


def test_what_is_told_of_a_full_file_system() -> None:
    """All of it: words, numbers, commands."""
    told = path_finding(on(PathAnswer(usage=FULL, real="/x")), PathState(mounted=True), RULES)
    assert told == Finding(
        subject="/x",
        status=Status.CRITICAL,
        summary="97% used, 3 B free, 98% of inodes used (critical from 95% of space or inodes)",
        values={
            "used_percent": 97.0,
            "free_bytes": 3,
            "inodes_used_percent": 98.0,
            "size_bytes": 100,
            "used_bytes": 97,
            "inodes": 1000,
            "inodes_free": 20,
            "type": "xfs",
            "mount": "/x",
            "read_only": False,
            "warn_percent": 85.0,
            "critical_percent": 95.0,
        },
        commands=(
            look("du -x --inodes -d 1 /x | sort -n | tail | cat -v"),
            look("du -xah -d 1 /x | sort -h | tail | cat -v"),
        ),
        guidance=guide_full("/x", status=Status.CRITICAL, inodes=True),
    )
    assert [(s.subject, s.name, s.value) for s in told.samples(KEPT)] == [
        ("/x", "used_percent", 97.0),
        ("/x", "free_bytes", 3.0),
        ("/x", "inodes_used_percent", 98.0),
    ]


@pytest.mark.parametrize(
    ("usage", "shares"),
    [
        (FULL, (85.0, 60.0)),  # what is free counts where that is sooner
        (replace(FULL, size=1000, used=970), (85.0, 95.0)),
        (replace(FULL, size=0, used=0, free=0), (85.0, 95.0)),
    ],
)
def test_a_limit_on_what_is_free_is_a_share_too(
    usage: FileSystemUsage, shares: tuple[float, float]
) -> None:
    """As the page and the metrics draw it; of what was not measured there is none."""
    rules = replace(RULES, crit=replace(CRIT, free=40))
    values = path_finding(
        on(PathAnswer(usage=usage, real="/x")), PathState(mounted=True), rules
    ).values
    assert (values["warn_percent"], values["critical_percent"]) == shares
    gone = path_finding(
        on(PathAnswer(error="No such file or directory")), PathState(mounted=True), rules
    )
    assert "critical_percent" not in gone.values
    assert path_finding(on(PathAnswer(blind="cannot start stat")), PathState(), rules).values == {}


def test_what_is_told_of_a_hang() -> None:
    """No number, and nothing to type that would hang too."""
    told = path_finding(on(PathAnswer(hung=True, waited=5)), PathState(mounted=True), RULES)
    assert told == Finding(
        subject="/x",
        status=Status.CRITICAL,
        summary=f"no answer within 5s; {DO_NOT_LOOK}",
        commands=(
            look("grep -F /x /proc/mounts | cat -v"),
            look("ps -eo stat,pid,wchan:32,comm | grep ^D"),
        ),
        guidance=guide_hang("/x"),
    )
    stuck = PathAnswer(hung=True, stuck=StuckProcess(17, 2, "b"))
    assert path_finding(on(stuck), PathState(hangs_since=START), RULES).summary == (
        f"no answer for 0s (probe 17 is stuck; no other is sent); {DO_NOT_LOOK}"
    )


def test_what_is_recommended_for_a_hung_mount_does_not_hang(fuse: Fuse) -> None:
    """Each command is run against the fault itself."""
    hung = PathObservation(path=str(fuse.point), answer=PathAnswer(hung=True, waited=1), at=START)
    fuse.hold("statfs", "getattr", "lookup", "open", "opendir")
    commands = looks(path_finding(hung, PathState(), RULES))
    assert commands
    for command in commands:
        subprocess.run(["sh", "-c", command], timeout=10, check=False, capture_output=True)
    assert fuse.withheld() == 0
    fuse.release()


def test_a_lost_mount_has_no_numbers() -> None:
    """Those would be of the disk below; what it is told of, and what stays remembered."""
    below = mount(BOTH, "/", "ext4")
    lost = on(HERE, below)
    told = path_finding(lost, PathState(mounted=True), RULES)
    assert (told.status, told.values) == (Status.CRITICAL, {})
    assert told.summary == "is not mounted: what is written there goes to / (ext4)"
    assert path_finding(on(HERE, None), PathState(mounted=True), RULES).summary == "is not mounted"
    assert not is_measured(lost, PathState(mounted=True), RULES)
    assert is_measured(lost, PathState(), RULES)
    assert not is_measured(on(PathAnswer(error="Stale file handle")), PathState(), RULES)
    assert next_path_state(lost, PathState(mounted=True, writable=("mount",))) == PathState(
        mounted=True, writable=("mount",)
    )


def test_having_been_mounted_and_writable_is_never_forgotten() -> None:
    """And is learned from an answer alone."""
    assert next_path_state(on(HERE), PathState()) == PathState(mounted=True, writable=BOTH)
    assert next_path_state(on(HERE, None), PathState()) == PathState()
    assert (
        next_path_state(on(HERE, mount(["mount"])), PathState(writable=("superblock",))).writable
        == BOTH
    )
    assert next_path_state(on(PathAnswer(hung=True)), PathState(mounted=True)) == PathState(
        mounted=True, hangs_since=START
    )


@pytest.mark.parametrize(
    ("before", "now", "summary"),
    [
        (("mount", "superblock"), {"mount"}, "has become read-only"),
        (("mount",), {"mount"}, "has become read-only"),
        ((), {"mount"}, "has become read-only"),
        ((), set(), "read-only"),
        ((), {"superblock"}, "read-only here, its disk is writable"),
        ((), {"mount", "superblock"}, ""),
    ],
)
def test_read_only_is_bad_where_it_was_writable(
    before: tuple[str, ...], now: set[str], summary: str
) -> None:
    """One that always was read-only is told, and well."""
    told = path_finding(on(HERE, mount(now)), PathState(writable=before), RULES)
    assert told.summary.removeprefix("10% used, 90 B free").removeprefix("; ") == summary
    assert told.status is (Status.CRITICAL if "become" in summary else Status.OK)
    assert told.values["read_only"] is bool(summary)
    assert bool(looks(told)) is told.status.bad


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (None, False),
        (PathAnswer(blind="cannot start stat"), False),
        (PathAnswer(error="Permission denied"), False),
        (PathAnswer(error="No such file or directory"), True),
        (PathAnswer(error="Stale file handle"), True),
        (PathAnswer(hung=True), True),
        (PathAnswer(usage=WELL), True),
    ],
)
def test_only_what_the_file_system_says_itself_counts_as_seen(
    answer: PathAnswer | None, seen: bool
) -> None:
    """An error of the question shows nothing."""
    assert was_answered(sight(answer)) is seen


def test_a_path_that_is_gone_does_not_exist() -> None:
    """In fewer words than the kernel's."""
    told = path_finding(on(PathAnswer(error="No such file or directory"), None), PathState(), RULES)
    assert (told.status, told.summary) == (Status.CRITICAL, "does not exist")


def test_what_was_writable_is_remembered_of_every_path_that_is_there() -> None:
    """Of a directory that is no mount too, and of a mount that becomes writable; but not of the
    empty directory below a mount that is gone."""
    below = replace(sight(PathAnswer(usage=WELL, real="/x/y")), mount=mount(["mount"]))
    assert next_path_state(below, PathState()) == PathState(writable=("mount",))
    there = replace(sight(PathAnswer(usage=WELL, real="/x")), mount=mount(["superblock"]))
    known = PathState(mounted=True, writable=("mount",))
    assert next_path_state(there, known) == PathState(
        mounted=True, writable=("mount", "superblock")
    )
    gone = replace(below, mount=mount(["superblock"]))
    assert next_path_state(gone, known) == known


def test_what_did_not_answer_has_no_numbers() -> None:
    """No zeros either, which would be numbers."""
    assert path_values(sight(PathAnswer(error="Stale file handle"))) == {}
    assert path_values(sight(None)) == {}


def test_what_was_not_seen_is_neither_mounted_nor_remembered_as_writable() -> None:
    """Whatever the table of mounts says of the path."""
    known = mount(["mount"])
    assert not replace(sight(None), mount=known).is_mounted
    lost = replace(sight(PathAnswer(error="Stale file handle")), mount=known)
    assert next_path_state(lost, PathState()) == PathState()


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (errno.EACCES, Status.UNKNOWN),
        (errno.ENOKEY, Status.UNKNOWN),
        (errno.EKEYREVOKED, Status.UNKNOWN),
        (errno.EROFS, Status.CRITICAL),
        (errno.EIO, Status.CRITICAL),
        (errno.ENOSPC, Status.CRITICAL),
    ],
)
def test_a_write_that_may_not_be_made_is_no_fault(number: int, status: Status) -> None:
    """Of a directory that fscrypt or Kerberos has locked, nothing is known."""
    failed = proc.Done(code=1, out=b"", err=os.strerror(number).encode(), seconds=0.1)
    assert judge_probe(failed)[0] is status
