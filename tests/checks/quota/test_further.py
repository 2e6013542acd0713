"""Rules of what is asked beyond statfs: real qgroups, trees and writes; tools that fail or lie."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.du.check import DuCheck
from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.fs import FsCheck
from sentinel.checks.quota.check import QuotaCheck, QuotaCriticalLimits
from sentinel.core.errors import Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Share
from sentinel.testing import context
from tests.lab import needs
from tests.lab.fuse import Fuse

MIB = 2**20


def look(
    path: Path, memory: Any = None, limit: float = 10.0, kind: Any = FsCheck, **settings: Any
) -> Report:
    check = kind(paths=[FilePath(str(path))], **settings)
    report: Report = check.run(context(memory=memory or {}, limit=limit))
    return report


def about(report: Report, ending: str) -> Finding:
    """The one finding whose subject ends so."""
    (found,) = [f for f in report.findings if f.subject.endswith(ending)]
    return found


@contextmanager
def mounted(*words: str, point: Path) -> Iterator[Path]:
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", *words, str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=False, capture_output=True)


@pytest.fixture
def btrfs(tmp_path: Path, as_root: None) -> Iterator[Path]:
    """A real Btrfs with quotas on, a subvolume `proj` limited to 20 MiB."""
    image, point = tmp_path / "image", tmp_path / "btrfs"
    with open(image, "wb") as file:
        file.truncate(150 * MIB)
    make = needs.require_program("mkfs.btrfs", "btrfs-progs")
    subprocess.run([make, "-q", str(image)], check=True, capture_output=True)
    with mounted("-o", "loop", str(image), point=point):
        run("btrfs", "quota", "enable", str(point))
        run("btrfs", "subvolume", "create", str(point / "proj"))
        run("btrfs", "qgroup", "limit", str(20 * MIB), str(point / "proj"))
        yield point / "proj"


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def fill(folder: Path, size: int) -> None:
    (folder / f"f{size}").write_bytes(os.urandom(size))
    run("sync", "-f", str(folder))


def test_a_real_qgroup(btrfs: Path) -> None:
    """Its limit is judged as a file system of that size would be."""
    fill(btrfs, 5 * MIB)
    found = about(look(btrfs, kind=QuotaCheck), "qgroup:0/256")
    assert (found.status, found.values["size_bytes"]) == (Status.OK, 20 * MIB)
    assert found.values["used_bytes"] == pytest.approx(5 * MIB, rel=0.02)


def test_a_real_qgroup_that_is_full(btrfs: Path) -> None:
    """The file system around it has plenty left."""
    fill(btrfs, 15 * MIB)
    with pytest.raises(OSError, match="Disk quota exceeded"):
        fill(btrfs, 6 * MIB)
    report = look(btrfs, kind=QuotaCheck, tool="btrfs")
    assert about(report, "qgroup:0/256").status is Status.CRITICAL


def test_a_file_system_without_quotas_is_unknown(tmp_path: Path) -> None:
    """Whoever asks for quotas is not told that all is well where there are none to ask."""
    found = about(look(tmp_path, kind=QuotaCheck, tool="btrfs"), "qgroup")
    assert found.status is Status.UNKNOWN
    assert "btrfs" in found.summary


@pytest.mark.root
def test_a_type_without_a_tool_is_unknown(tmp_path: Path) -> None:
    """It is not guessed at."""
    with mounted("-t", "tmpfs", "tmpfs", point=tmp_path / "t") as point:
        found = about(look(point, kind=QuotaCheck), "quota")
    assert found.status is Status.UNKNOWN
    assert "tmpfs has no quotas that sentinel can ask for; name a tool with `tool`" in found.summary


def test_a_command_of_the_site(tmp_path: Path) -> None:
    """JSON, several rows, the path in place of {path}."""
    script = tmp_path / "tool"
    script.write_text(
        '#!/bin/sh\necho "[{\\"name\\": \\"$1\\", \\"used_bytes\\": 99, \\"limit_bytes\\": 100}]"\n'
    )
    script.chmod(0o755)
    report = look(tmp_path, kind=QuotaCheck, command=[str(script), "{path}"])
    found = about(report, f"command:{tmp_path}")
    assert (found.status, found.values["used_percent"]) == (Status.CRITICAL, 99.0)


def test_a_command_with_a_pattern(tmp_path: Path) -> None:
    """Its words, units and all."""
    report = look(
        tmp_path,
        kind=QuotaCheck,
        command=["echo", "WORK 4.5 TiB of 5 TiB"],
        pattern=re.compile(r"(?P<name>\w+) (?P<used>.*) of (?P<limit>.*)"),
    )
    found = about(report, "command:WORK")
    assert (found.status, found.summary) == (
        Status.WARNING,
        "90% used, 550 GB free (warning from 85%)",
    )


def test_a_command_that_is_missing_is_unknown(tmp_path: Path) -> None:
    """With the reason."""
    found = about(look(tmp_path, kind=QuotaCheck, command=["/no/such/tool"]), "command")
    assert (found.status, "cannot start /no/such/tool" in found.summary) == (Status.UNKNOWN, True)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"command": ["x"], "pattern": re.compile("x")}, "pattern"),
        ({"quotas": ["users:alice"]}, "quotas"),
        (
            {"warn": SpaceLimits(used=Share(95)), "crit": QuotaCriticalLimits(used=Share(85))},
            "warn",
        ),
        ({"headroom": "many"}, "headroom"),
    ],
)
def test_settings_that_do_not_fit_together(settings: dict[str, Any], key: str) -> None:
    """The key is named."""
    with pytest.raises(Invalid) as told:
        QuotaCheck(paths=[FilePath("/x")], **settings)
    assert told.value.path[0] == key


@pytest.mark.parametrize("kind", [QuotaCheck, DuCheck])
def test_measuring_needs_a_path(kind: Any) -> None:
    """A walk through all disks was never meant."""
    with pytest.raises(Invalid, match="name the paths"):
        kind(paths=[])


def test_a_small_write(tmp_path: Path) -> None:
    """It leaves nothing behind, and its time is kept as history."""
    report = look(tmp_path, write_probe=True)
    found = about(report, "write")
    assert (found.status, list(tmp_path.iterdir())) == (Status.OK, [])
    assert [s.name for s in report.samples if s.subject == found.subject] == ["write_seconds"]


def test_a_write_that_is_slower_than_ever(tmp_path: Path) -> None:
    """Ten times the usual and at least half a second; a few samples are no usual."""
    from sentinel.checks.fs.write_probe import write_finding

    result = (Status.OK, "", 2.0)
    assert write_finding("/x", result, [0.1] * 20).status is Status.WARNING
    assert write_finding("/x", result, [0.1] * 19).status is Status.OK
    assert write_finding("/x", result, [0.2] * 20).status is Status.OK
    assert write_finding("/x", (Status.OK, "", 0.5), [0.001] * 20).status is Status.OK


@pytest.mark.root
def test_a_write_where_there_is_no_room(tmp_path: Path) -> None:
    """statfs may still promise some."""
    with mounted("-t", "tmpfs", "-o", "size=64k", "tmpfs", point=tmp_path / "t") as point:
        with pytest.raises(OSError, match="No space"):
            (point / "ballast").write_bytes(b"x" * 100_000)
        found = about(look(point, write_probe=True), "write")
        left = [p.name for p in point.iterdir()]
    assert (found.status, found.summary) == (
        Status.CRITICAL,
        "cannot be written: No space left on device",
    )
    assert left == ["ballast"]


def test_the_name_of_what_is_written_goes_before_the_disk_is_waited_for(tmp_path: Path) -> None:
    """Whoever is ended while a slow disk syncs leaves no file, however often that happens."""
    program = (
        "import os, sys; from sentinel.checks.fs import tap\n"
        "def hook(name, args):\n"
        "    if name == 'os.remove': print(os.stat(args[0]).st_size)\n"
        "sys.addaudithook(hook); tap.write_and_read(sys.argv[1])"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert (done.stdout, list(tmp_path.iterdir())) == ("0\n", [])


@pytest.mark.root
def test_a_write_that_is_not_allowed_is_unknown(tmp_path: Path) -> None:
    """Read-only is critical, no right to write says nothing about the file system."""
    with mounted("-t", "tmpfs", "-o", "ro", "tmpfs", point=tmp_path / "t") as point:
        found = about(look(point, write_probe=True), "write")
    assert found.summary == "cannot be written: Read-only file system"
    found = about(look(Path("/proc"), write_probe=True), "write")
    assert found.status in (Status.UNKNOWN, Status.CRITICAL)


def test_a_write_that_hangs_is_critical_and_not_repeated(fuse: Fuse) -> None:
    """One child waits; the next run sends none."""
    fuse.hold("lookup")
    first = look(fuse.point, limit=3.0, write_probe=True)
    found = about(first, "write")
    assert (found.status, "written, synced and read back" in found.summary) == (
        Status.CRITICAL,
        True,
    )
    waiting = fuse.withheld()
    second = about(look(fuse.point, memory=first.memory, limit=3.0, write_probe=True), "write")
    assert second.status is Status.UNKNOWN
    assert "still waits for it" in second.summary
    assert fuse.withheld() == waiting == 1
    fuse.release()


@pytest.mark.root
def test_only_so_much_of_it_is_counted_on(tmp_path: Path) -> None:
    """`reliable: 80%` of a file system that is 75% full is 93.7% used."""
    with mounted("-t", "tmpfs", "-o", "size=1m", "tmpfs", point=tmp_path / "t") as point:
        (point / "x").write_bytes(b"x" * (3 * MIB // 4))
        whole = look(point).findings[0]
        part = look(point, reliable=Share(80)).findings[0]
    assert (whole.values["used_percent"], whole.status) == (75.0, Status.OK)
    assert (part.values["used_percent"], part.status) == (93.75, Status.WARNING)
    assert part.values["free_bytes"] == pytest.approx(0.05 * MIB, rel=0.01)


def test_what_fstab_names_has_to_be_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty directory in its place is critical at the first look already."""
    from sentinel.checks.filesystems import observation

    point = tmp_path / "scratch"
    point.mkdir()
    table = tmp_path / "fstab"
    monkeypatch.setattr(observation, "FSTAB", str(table))
    table.write_text(f"# x\nserver:/x {point} nfs rw,noauto 0 0\n")
    assert look(point).findings[0].status is Status.OK
    table.write_text(f"server:/x {point} nfs rw,hard 0 0\n")
    found = look(point).findings[0]
    assert (found.status, "is not mounted" in found.summary) == (Status.CRITICAL, True)


@pytest.mark.parametrize("kind", [DuCheck, QuotaCheck])
def test_what_a_lost_path_hides_is_not_gone(tmp_path: Path, kind: Any) -> None:
    """The alert about its tree or quota stays: nobody sees that it is well. It is remembered for
    as long as the path is lost."""
    path = tmp_path / "scratch"
    path.mkdir()
    told = '{"name": "q", "used": 9, "limit": 10}'
    settings: Any = {"command": ["echo", told]} if kind is QuotaCheck else {}
    first = look(path, kind=kind, **settings)
    (further,) = [f.subject for f in first.findings]
    path.rmdir()
    second = look(path, first.memory, kind=kind, **settings)
    for report in (second, look(path, second.memory, kind=kind, **settings)):
        assert [(f.subject, f.status) for f in report.findings] == [(str(path), Status.UNKNOWN)]
        assert report.findings[0].summary == "cannot tell: does not exist"
        assert report.coverage.unseen == (str(path), further)
        assert (report.coverage.meant, report.status) == (2, Status.UNKNOWN)
    path.mkdir()
    assert look(path, second.memory, kind=kind, **settings).coverage.whole


@pytest.mark.root
def test_the_disk_below_a_lost_mount_is_not_asked_in_its_place(tmp_path: Path) -> None:
    """Neither its tree nor its quotas: what was known of the lost one stays."""
    with mounted("-t", "tmpfs", "lab", point=tmp_path / "scratch") as path:
        first = look(path, kind=DuCheck)
        tree = first.findings[0].subject
    lost = look(path, first.memory, kind=DuCheck)
    assert [(f.subject, f.status) for f in lost.findings] == [(str(path), Status.UNKNOWN)]
    assert lost.coverage.unseen == (str(path), tree)


def test_quotas_that_fs_finds_by_itself_are_unseen_while_it_does_not_answer(
    tmp_path: Path,
) -> None:
    """`fs` tells of the path; what was asked of it stays, too."""
    path = tmp_path / "scratch"
    path.mkdir()
    first = look(path, write_probe=True)
    path.rmdir()
    second = look(path, first.memory, write_probe=True)
    assert [(f.subject, f.status) for f in second.findings] == [(str(path), Status.CRITICAL)]
    assert second.coverage.unseen == (f"{path} write",)
    assert second.coverage.excused == "their file system does not answer"


@pytest.mark.parametrize("answer", ["/home 100.2G* 100G", "", "exit 1"])
def test_a_row_is_not_over_where_the_whole_answer_cannot_be_read(
    tmp_path: Path, answer: str
) -> None:
    """The only row no longer fits, nothing is printed, or the tool fails: each row of before is
    unknown, so that its alert stays."""
    tool = tmp_path / "tool"
    pattern = re.compile(r"(?P<name>/\w+) (?P<used>[\d.]+G) (?P<limit>[\d.]+G)")

    def asked(text: str, memory: Any = None) -> Any:
        tool.write_text("#!/bin/sh\n" + (text if text == "exit 1" else f"echo '{text}'") + "\n")
        tool.chmod(0o755)
        settings: Any = {"command": [str(tool)], "pattern": pattern}
        return look(tmp_path, memory or {}, kind=QuotaCheck, **settings)

    first = asked("/home 97.2G 100G")
    [full] = [f for f in first.findings if f.subject.endswith("command:/home")]
    assert full.status is Status.CRITICAL
    report = first
    for _ in range(2):  # and it stays so
        report = asked(answer, report.memory)
        found = {f.subject: f.status for f in report.findings}
        assert found[full.subject] is Status.UNKNOWN
