"""Rules of what an answer means, without any file system."""

import subprocess
from collections.abc import Collection

import pytest
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import CRIT, WARN, Usage
from sentinel.checks.filesystems.probe import Answer, probe_all
from sentinel.checks.filesystems.verdict import (
    KEPT,
    Rules,
    Seen,
    Sight,
    finding,
    measured,
    remembered,
    seen_at_all,
    values,
)
from sentinel.core.clock import shifted
from sentinel.core.model import Finding, Status
from sentinel.core.mounts import Mount
from sentinel.proc import Stuck
from sentinel.testing import START
from tests.lab.fuse import Fuse

RULES = Rules(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
WELL = Usage(size=100, used=10, free=90, inodes=0, inodes_free=0, type="xfs")


def sight(answer: Answer | None) -> Sight:
    return Sight(path="/x", answer=answer, at=shifted(START, 7200))


@pytest.mark.parametrize(
    ("answer", "status", "summary"),
    [
        (Answer(error="Permission denied"), Status.UNKNOWN, "may not be looked at: permission"),
        (
            Answer(error="Required key not available"),
            Status.UNKNOWN,
            "may not be looked at without",
        ),
        (Answer(error="Stale file handle"), Status.CRITICAL, "cannot be read: Stale file handle"),
        (Answer(error="Input/output error"), Status.CRITICAL, "cannot be read: Input/output"),
        (Answer(blind="cannot start stat"), Status.UNKNOWN, "could not be asked: cannot start"),
        (None, Status.UNKNOWN, "was not asked: too many other file systems hang"),
        (Answer(usage=WELL), Status.OK, "10% used, 90 B free"),
    ],
)
def test_an_error_of_the_file_system_is_bad_and_one_of_the_question_is_a_doubt(
    answer: Answer | None, status: Status, summary: str
) -> None:
    """Nothing that was not seen is called ok."""
    seen = finding(sight(answer), Seen(), RULES)
    assert seen.status is status
    assert seen.summary.startswith(summary)


def test_a_hang_is_counted_from_its_first_sight() -> None:
    """Also when each probe could be killed, so that none is stuck."""
    since = remembered(sight(Answer(hung=True, waited=5)), Seen(hangs_since=START))
    assert since.hangs_since == START
    assert finding(sight(Answer(hung=True)), Seen(hangs_since=START), RULES).summary == (
        "still hangs, since 2h: statfs does not answer"
    )


def test_an_answer_ends_the_hang_and_forgets_its_probe() -> None:
    """Whatever the answer is."""
    hung = Seen(mounted=True, hangs_since=START, stuck=Stuck(1, 2, "b"))
    for answer in (Answer(usage=WELL), Answer(error="Stale file handle")):
        assert remembered(sight(answer), hung) == Seen(mounted=True)


def test_a_path_that_was_not_asked_keeps_its_memory() -> None:
    """Nothing was seen, nothing changes."""
    hung = Seen(hangs_since=START, stuck=Stuck(1, 2, "b"))
    assert remembered(sight(None), hung) == hung


def test_paths_whose_turn_never_came_have_no_answer() -> None:
    """When the time is used up by others, the rest is left out rather than called well."""
    hangs = Answer(hung=True)
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
FULL = Usage(size=100, used=97, free=3, inodes=1000, inodes_free=20, type="xfs")
HERE = Answer(usage=WELL, real="/x")


def on(answer: Answer, mount: Mount | None = DISK) -> Sight:
    return Sight(path="/x", answer=answer, mount=mount, at=START)


def test_what_is_told_of_a_full_file_system() -> None:
    """All of it: words, numbers, commands."""
    told = finding(on(Answer(usage=FULL, real="/x")), Seen(mounted=True), RULES)
    assert told == Finding(
        subject="/x",
        status=Status.CRITICAL,
        summary="97% used, 3 B free, 98% of inodes used (critical from 95% and from 95% of inodes)",
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
        commands=("df -h /x", "df -i /x"),
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
def test_a_limit_on_what_is_free_is_a_share_too(usage: Usage, shares: tuple[float, float]) -> None:
    """As the page and the metrics draw it; of what was not measured there is none."""
    rules = replace(RULES, crit=replace(CRIT, free=40))
    values = finding(on(Answer(usage=usage, real="/x")), Seen(mounted=True), rules).values
    assert (values["warn_percent"], values["critical_percent"]) == shares
    gone = finding(on(Answer(error="No such file or directory")), Seen(mounted=True), rules)
    assert "critical_percent" not in gone.values
    assert finding(on(Answer(blind="cannot start stat")), Seen(), rules).values == {}


def test_what_is_told_of_a_hang() -> None:
    """No number, and nothing to type that would hang too."""
    told = finding(on(Answer(hung=True, waited=5)), Seen(mounted=True), RULES)
    assert told == Finding(
        subject="/x",
        status=Status.CRITICAL,
        summary="hangs: statfs did not answer within 5s",
        commands=("grep -F /x /proc/mounts", "ps -eo stat,pid,wchan:32,args | grep ^D"),
    )
    stuck = Answer(hung=True, stuck=Stuck(17, 2, "b"))
    assert finding(on(stuck), Seen(hangs_since=START), RULES).summary == (
        "still hangs, since 0s (probe 17 is stuck; no other is sent)"
    )


def test_what_is_recommended_for_a_hung_mount_does_not_hang(fuse: Fuse) -> None:
    """Each command is run against the fault itself."""
    hung = Sight(path=str(fuse.point), answer=Answer(hung=True, waited=1), at=START)
    fuse.hold("statfs", "getattr", "lookup", "open", "opendir")
    commands = finding(hung, Seen(), RULES).commands
    assert commands
    for command in commands:
        subprocess.run(["sh", "-c", command], timeout=10, check=False, capture_output=True)
    assert fuse.withheld() == 0
    fuse.release()


def test_a_lost_mount_has_no_numbers() -> None:
    """Those would be of the disk below; what it is told of, and what stays remembered."""
    below = mount(BOTH, "/", "ext4")
    lost = on(HERE, below)
    told = finding(lost, Seen(mounted=True), RULES)
    assert (told.status, told.values) == (Status.CRITICAL, {})
    assert told.summary == "is not mounted: it lies on / (ext4)"
    assert finding(on(HERE, None), Seen(mounted=True), RULES).summary == "is not mounted"
    assert not measured(lost, Seen(mounted=True), RULES)
    assert measured(lost, Seen(), RULES)
    assert not measured(on(Answer(error="Stale file handle")), Seen(), RULES)
    assert remembered(lost, Seen(mounted=True, writable=("mount",))) == Seen(
        mounted=True, writable=("mount",)
    )


def test_having_been_mounted_and_writable_is_never_forgotten() -> None:
    """And is learned from an answer alone."""
    assert remembered(on(HERE), Seen()) == Seen(mounted=True, writable=BOTH)
    assert remembered(on(HERE, None), Seen()) == Seen()
    assert remembered(on(HERE, mount(["mount"])), Seen(writable=("superblock",))).writable == BOTH
    assert remembered(on(Answer(hung=True)), Seen(mounted=True)) == Seen(
        mounted=True, hangs_since=START
    )


@pytest.mark.parametrize(
    ("before", "now", "summary"),
    [
        (("mount", "superblock"), {"mount"}, "has become read-only"),
        (("mount",), {"mount"}, "read-only"),
        ((), set(), "read-only"),
        ((), {"superblock"}, "read-only here, its disk is writable"),
        ((), {"mount", "superblock"}, ""),
    ],
)
def test_read_only_is_bad_where_it_was_writable(
    before: tuple[str, ...], now: set[str], summary: str
) -> None:
    """One that always was read-only is told, and well."""
    told = finding(on(HERE, mount(now)), Seen(writable=before), RULES)
    assert told.summary.removeprefix("10% used, 90 B free").removeprefix("; ") == summary
    assert told.status is (Status.CRITICAL if "become" in summary else Status.OK)
    assert told.values["read_only"] is bool(summary)
    assert bool(told.commands) is told.status.bad


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (None, False),
        (Answer(blind="cannot start stat"), False),
        (Answer(error="Permission denied"), False),
        (Answer(error="No such file or directory"), True),
        (Answer(error="Stale file handle"), True),
        (Answer(hung=True), True),
        (Answer(usage=WELL), True),
    ],
)
def test_only_what_the_file_system_says_itself_counts_as_seen(
    answer: Answer | None, seen: bool
) -> None:
    """An error of the question shows nothing."""
    assert seen_at_all(sight(answer)) is seen


def test_a_path_that_is_gone_does_not_exist() -> None:
    """In fewer words than the kernel's."""
    told = finding(on(Answer(error="No such file or directory"), None), Seen(), RULES)
    assert (told.status, told.summary) == (Status.CRITICAL, "does not exist")


def test_what_was_writable_is_remembered_of_every_path_that_is_there() -> None:
    """Of a directory that is no mount too, and of a mount that becomes writable; but not of the
    empty directory below a mount that is gone."""
    below = replace(sight(Answer(usage=WELL, real="/x/y")), mount=mount(["mount"]))
    assert remembered(below, Seen()) == Seen(writable=("mount",))
    there = replace(sight(Answer(usage=WELL, real="/x")), mount=mount(["superblock"]))
    known = Seen(mounted=True, writable=("mount",))
    assert remembered(there, known) == Seen(mounted=True, writable=("mount", "superblock"))
    gone = replace(below, mount=mount(["superblock"]))
    assert remembered(gone, known) == known


def test_what_did_not_answer_has_no_numbers() -> None:
    """No zeros either, which would be numbers."""
    assert values(sight(Answer(error="Stale file handle"))) == {}
    assert values(sight(None)) == {}


def test_what_was_not_seen_is_neither_mounted_nor_remembered_as_writable() -> None:
    """Whatever the table of mounts says of the path."""
    known = mount(["mount"])
    assert not replace(sight(None), mount=known).mounted
    lost = replace(sight(Answer(error="Stale file handle")), mount=known)
    assert remembered(lost, Seen()) == Seen()
