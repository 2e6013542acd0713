"""Rules of the fs check on real file systems, made and broken for the occasion."""

import errno
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.filesystems.verdict import DO_NOT_LOOK
from sentinel.checks.fs import FsCheck
from sentinel.core.model import Finding, Report, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Size
from sentinel.testing import START, ManualClock, context
from tests.lab.fuse import Fuse

root = pytest.mark.root


@contextmanager
def mounted(kind: str, point: Path, *options: str) -> Iterator[Path]:
    """A file system at that point for as long as the block lasts."""
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", *kind.split(), *options, str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=False, capture_output=True)


def tmpfs(point: Path, options: str = "size=1m") -> Any:
    return mounted("-t tmpfs", point, "-o", options, "tmpfs")


def remount(point: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(point)], check=True)


def look(*paths: Path, memory: Any = None, limit: float = 10.0, **settings: Any) -> Report:
    """One run, its memory sent through JSON as a store would."""
    check = FsCheck(paths=[FilePath(path) for path in paths], **settings)
    report = check.run(context(memory=memory or {}, limit=limit))
    msgspec.json.encode(report.findings)
    return msgspec.structs.replace(
        report, memory=msgspec.json.decode(msgspec.json.encode(report.memory))
    )


def one(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


def said(report: Report) -> tuple[Status, str]:
    return one(report).status, one(report).summary


def test_the_share_used_is_the_one_df_prints() -> None:
    """df rounds up; nothing else differs."""
    df = subprocess.run(["df", "--output=pcent", "/"], capture_output=True, text=True, check=True)
    used = one(look(Path("/"))).values["used_percent"]
    assert isinstance(used, float)
    assert abs(int(df.stdout.split()[1].rstrip("%")) - used) <= 1.1


def test_a_finding_carries_what_a_table_needs() -> None:
    """Sizes in bytes, shares in percent, the type and where it is mounted."""
    real = os.statvfs("/")
    finding = one(look(Path("/")))
    values = finding.values
    assert type(finding.subject) is str
    assert values["size_bytes"] == real.f_blocks * real.f_frsize
    assert values["inodes"] == real.f_files
    assert values["mount"] == "/"
    assert set(values) == {
        *("used_percent", "free_bytes", "inodes_used_percent", "size_bytes", "used_bytes"),
        *("inodes", "inodes_free", "type", "mount", "read_only"),
        *("warn_percent", "critical_percent"),
    }


def test_the_numbers_worth_a_history_are_samples() -> None:
    """By subject; the time is that of the run."""
    names = [(s.subject, s.name) for s in look(Path("/")).samples]
    assert names[:2] == [("/", "used_percent"), ("/", "free_bytes")]


def test_without_paths_all_local_disks_are_looked_at() -> None:
    """The root of a real machine or container is always among them."""
    assert "/" in [f.subject for f in look().findings]


def test_what_is_no_folder_is_told_in_one_line(tmp_path: Path) -> None:
    """A missing path is bad, a file a mistake; neither takes the others' answers away."""
    file = tmp_path / "file"
    file.touch()
    report = look(tmp_path / "missing", file, tmp_path)
    assert [(f.status, f.summary) for f in report.findings][:2] == [
        (Status.CRITICAL, "does not exist"),
        (Status.UNKNOWN, "is not a directory; give the directory that is to be watched"),
    ]
    assert "used" in report.findings[2].summary
    assert not report.findings[0].values


@pytest.mark.long
def test_hundreds_of_paths_are_all_answered(tmp_path: Path) -> None:
    """In the order of the settings, each once."""
    paths = [tmp_path / str(n) for n in range(200)]
    for path in paths:
        path.mkdir()
    report = look(*paths, paths[0], limit=100.0)
    assert [f.subject for f in report.findings] == [str(p) for p in paths]
    assert {f.status for f in report.findings} <= {Status.OK, Status.WARNING, Status.CRITICAL}


@pytest.mark.parametrize("path", ["/new\nline", "/\x1b[31mred", "/{x}", "/ leading", "/-f"])
def test_a_hostile_name_stays_text(path: str) -> None:
    """Nothing of it is obeyed by a terminal, a shell or stat."""
    report = look(Path(path))
    assert one(report).summary == "does not exist"
    assert one(report).guidance.todo.startswith("Check the path.")
    assert one(report).subject.isprintable()


@root
def test_a_file_system_full_by_bytes_is_critical(tmp_path: Path) -> None:
    """All blocks used."""
    with tmpfs(tmp_path / "t") as point:
        (point / "file").write_bytes(b"x" * 2**20)
        status, summary = said(look(point))
    assert (status, summary) == (Status.CRITICAL, "100% used, 0 B free (critical from 95%)")


@root
def test_a_file_system_full_by_inodes_is_critical(tmp_path: Path) -> None:
    """Space is left, but no file can be made."""
    with tmpfs(tmp_path / "t", "size=1m,nr_inodes=10") as point:
        for number in range(9):
            (point / str(number)).touch()
        status, summary = said(look(point))
    assert status is Status.CRITICAL
    assert summary == ("0% used, 1.05 MB free, 100% of inodes used (critical from 95% of inodes)")


@root
def test_without_fixed_inodes_nothing_is_said_of_them(tmp_path: Path) -> None:
    """nr_inodes=0 is how tmpfs says it; btrfs and many network file systems do by nature."""
    with tmpfs(tmp_path / "t", "size=1m,nr_inodes=0") as point:
        finding = one(look(point))
    assert finding.status is Status.OK
    assert finding.values["inodes_used_percent"] is None


@root
def test_a_file_system_that_becomes_read_only_is_critical_until_it_is_writable(
    tmp_path: Path,
) -> None:
    """Judged against memory: one that always was read-only is as it should be."""
    with tmpfs(tmp_path / "t") as point:
        first = look(point)
        remount(point, "ro")
        alone = look(point)
        second = look(point, memory=first.memory)
        third = look(point, memory=second.memory)
        remount(point, "rw")
        last = look(point, memory=third.memory)
    assert said(alone) == (Status.OK, "0% used, 1.05 MB free; read-only")
    bad = (Status.CRITICAL, "0% used, 1.05 MB free; has become read-only")
    assert [said(second), said(third)] == [bad, bad]
    assert said(last) == (Status.OK, "0% used, 1.05 MB free")


@root
@pytest.mark.parametrize("answer", ["warning", "ok"])
def test_how_bad_read_only_is_can_be_set(tmp_path: Path, answer: Any) -> None:
    """Told in any case."""
    with tmpfs(tmp_path / "t") as point:
        first = look(point)
        remount(point, "ro")
        report = look(point, memory=first.memory, read_only=answer)
    assert said(report) == (Status(answer), "0% used, 1.05 MB free; has become read-only")


@root
def test_a_mount_that_vanishes_is_critical_not_the_disk_below_it(tmp_path: Path) -> None:
    """Silently judging the root in its place is how a lost scratch goes unnoticed."""
    with tmpfs(tmp_path / "t") as point:
        first = look(point)
    second = look(point, memory=first.memory)
    third = look(point, memory=second.memory)
    for report in (second, third):
        status, summary = said(report)
        assert status is Status.CRITICAL
        assert summary.startswith("is not mounted: what is written there goes to /")
        assert not one(report).values
        assert not report.samples
    assert "used" in said(look(point, memory=second.memory, mounted=False))[1]


@root
def test_a_mount_can_be_demanded(tmp_path: Path) -> None:
    """With `mounted: true` even the first look knows."""
    with tmpfs(tmp_path / "t") as point:
        assert said(look(point, mounted=True))[0] is Status.OK
    assert said(look(point, mounted=True))[1].startswith("is not mounted")


@root
def test_a_link_to_a_mount_counts_as_mounted(tmp_path: Path) -> None:
    """/scratch is a link on many clusters."""
    link = tmp_path / "link"
    with tmpfs(tmp_path / "t") as point:
        link.symlink_to(point)
        assert said(look(link, mounted=True))[0] is Status.OK
        assert one(look(link)).values["mount"] == str(point)


@root
def test_a_name_in_no_encoding_is_looked_at_and_shown_as_text(tmp_path: Path) -> None:
    """Its bytes reach the kernel as they are; the report is plain text."""
    name = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe data"))
    with tmpfs(name) as point:
        report = look(point, mounted=True)
    assert said(report)[0] is Status.OK
    assert one(report).subject == f"{tmp_path}/\\udcff\\udcfe data"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An ext4 of 4 MiB."""
    image = tmp_path / "image"
    image.write_bytes(b"\0" * 2**22)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    return image


@root
def test_what_is_unmounted_while_it_is_looked_at_is_gone(tmp_path: Path, image: Path) -> None:
    """Without paths it is as nobody's at the next look: somebody takes it away on purpose."""
    disk, over = tmp_path / "disk", threading.Event()

    def comes_and_goes() -> None:
        while not over.is_set():
            with mounted("-t ext4", disk, "-o", "loop", str(image)):
                time.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(comes_and_goes)
        try:
            told = [f for _ in range(30) for f in look().findings if f.subject == str(disk)]
        finally:
            over.set()
        done.result()
    assert [f.summary for f in told if f.status is not Status.OK] == []


@root
def test_binds_of_one_disk_are_counted_once(tmp_path: Path, image: Path) -> None:
    """Without paths; named ones are each told, with the mount point by which they are one alert."""
    disk, bind = tmp_path / "disk", tmp_path / "by"
    with (
        mounted("-t ext4", disk, "-o", "loop", str(image)),
        mounted("--bind", bind, str(disk)),
    ):
        listed = [f.subject for f in look().findings]
        assert {str(disk), str(bind)} & set(listed) == {str(bind)}
        named = look(disk, bind, disk / "lost+found").findings
        assert [f.values["mount"] for f in named] == [str(bind)] * 3


@root
def test_a_directory_with_a_quota_of_its_own_is_told_from_its_file_system(fuse: Fuse) -> None:
    """statfs answers there with the quota's numbers, as on XFS and ext4 with project quotas."""
    tib = 1 << 40
    fuse.space(total=100 * tib, free=20 * tib)
    fuse.space(of="project-1", total=tib, free=0)
    fuse.space(of="project-2", total=100 * tib, free=20 * tib, inodes=1000, free_inodes=0)
    names = ("project-1", "project-2", "plain", "")
    found = look(*(fuse.point / name for name in names)).findings
    assert [f.values.get("own_limit") for f in found] == [True, True, None, None]
    assert {f.values["mount"] for f in found} == {str(fuse.point)}
    few = look(fuse.point / "project-1", fuse.point / "plain", reliable=90).findings
    assert [f.values.get("own_limit") for f in few] == [True, None]


@root
def test_of_a_mount_point_that_alone_hangs_one_probe_is_left(fuse: Fuse) -> None:
    """Two of its directories answer, and are asked in each pass."""
    paths = (fuse.point / "project-1", fuse.point / "plain")
    memory: Any = {}
    fuse.hold("statfs-1")
    for _ in range(3):
        report = look(*paths, memory=memory, limit=4.0)
        memory = report.memory
        assert [f.values["mount"] for f in report.findings] == [str(fuse.point)] * 2
    assert fuse.withheld() == 1


@root
def test_a_mount_that_hangs_is_critical_and_the_others_are_on_time(fuse: Fuse) -> None:
    """The limit of the run is kept, with room for the kill."""
    fuse.hold("statfs")
    report = look(fuse.point, Path("/"), limit=4.0)
    hung, root = report.findings
    assert (hung.status, hung.summary) == (
        Status.CRITICAL,
        f"no answer within 2s; {DO_NOT_LOOK}",
    )
    assert root.values


@root
@pytest.mark.parametrize("hangs", [True, False])
def test_paths_of_a_file_system_that_does_not_answer_are_one_alert(
    fuse: Fuse, tmp_path: Path, hangs: bool
) -> None:
    """The mount point that they had in common is remembered, binds included."""
    with mounted("--bind", tmp_path / "bind", str(fuse.point)) as bind:
        first = look(fuse.point, bind)
        fuse.hold("statfs") if hangs else fuse.crash()
        second = look(fuse.point, bind, memory=first.memory, limit=6.0)
        if hangs:
            fuse.release()
    assert {f.status for f in second.findings} == {Status.CRITICAL}
    common = {"mount": first.findings[0].values["mount"]}
    assert [f.values for f in second.findings] == [common, common]


@root
def test_no_second_probe_is_sent_while_the_first_one_hangs(fuse: Fuse) -> None:
    """Not in a hundred passes; once it ends the path is asked again."""
    clock = ManualClock(START)
    memory: Any = {}
    fuse.hold("statfs")
    for _ in range(100):
        check = FsCheck(paths=[FilePath(fuse.point)])
        report = check.run(context(memory=memory, limit=6.0, now=clock.now()))
        memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        clock.advance(60)
    assert fuse.withheld() == 1
    pid = memory[str(fuse.point)]["stuck"]["pid"]
    assert said(report) == (
        Status.CRITICAL,
        f"no answer for 1h 39m (probe {pid} is stuck; no other is sent); {DO_NOT_LOOK}",
    )
    fuse.release()
    freed = poll(fuse.point, memory)
    assert said(freed)[0] is Status.OK
    assert freed.memory is not None
    assert freed.memory[str(fuse.point)]["hangs_since"] is None


def poll(path: Path, memory: Any) -> Report:
    """Look until the probe that was let go has really ended."""
    for _ in range(100):
        report = look(path, memory=memory)
        if one(report).status is not Status.CRITICAL:
            break
        time.sleep(0.05)
    return report


@root
def test_a_dead_file_system_is_critical_in_the_kernels_words(fuse: Fuse) -> None:
    """A FUSE daemon that died, a stale NFS handle: an answer, not a doubt."""
    fuse.crash()
    assert said(look(fuse.point)) == (
        Status.CRITICAL,
        "cannot be read: Transport endpoint is not connected",
    )


@root
def test_a_stale_file_handle_is_critical_until_it_answers_again(fuse: Fuse) -> None:
    """An NFS export that was replaced: told in the C library's words, without numbers, and well
    again without a restart."""
    first = look(fuse.point)
    fuse.fail(errno.ESTALE, "statfs", "getattr", "lookup", "open", "opendir")
    stale = look(fuse.point, memory=first.memory)
    assert said(stale) == (Status.CRITICAL, "cannot be read: Stale file handle")
    assert "and mount it again" in one(stale).guidance.ask
    assert (one(stale).values, stale.samples) == ({"mount": str(fuse.point)}, ())
    fuse.fail(0)
    assert one(look(fuse.point, memory=stale.memory)).status is Status.OK


@root
def test_terabytes_are_judged_to_the_byte(fuse: Fuse) -> None:
    """1.2 TB of 30 TB free is 96% used and below 10 TB."""
    fuse.space(total=30 * 10**12, free=12 * 10**11)
    assert said(look(fuse.point, crit=SpaceLimits(free=Size(10**13)))) == (
        Status.CRITICAL,
        "96% used, 1.2 TB free (critical below 10 TB)",
    )
