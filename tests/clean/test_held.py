"""Rules of what cannot be removed: it is told, it keeps its name, and it holds up nothing else."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sentinel.clean.root_path import RemovalRefused
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import MAX_DEPTH, CheckpointRoot
from tests.clean.world import RULES, WHOLE, asked, checkpoint, going, mounted, names, renewed

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
LONG = "\u00e4" * 126
FILES = RetentionRules(r"f(\d+)", complete="f*", ignore=["step*"])


@pytest.fixture
def shared(as_root: None) -> Iterator[Path]:
    """A directory of nobody's with five checkpoints of nobody's, where nobody can reach it."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o711)  # may be passed, not listed
        root = Path(name) / "ckpt"
        for number in range(1, 6):
            checkpoint(root, number)
        owned(root, 65534)
        renewed(root)
        yield root


def owned(path: Path, uid: int) -> None:
    for found in (*path.rglob("*"), path):
        os.chown(found, uid, uid)


def test_directories_on_the_way_need_not_be_readable(shared: Path) -> None:
    """Homes and project directories mostly may only be passed."""
    told, complaint = asked("remove", shared, names=("step1", "step2"), who=NOBODY)
    assert (told["removed"], complaint, names(shared)) == (2, "", ["step3", "step4", "step5"])


@pytest.mark.parametrize("where", ["step1", "step1/inner"])
def test_what_belongs_to_somebody_else_keeps_its_name(shared: Path, where: str) -> None:
    """Not hidden, not half removed; the others go."""
    for number in (6, 7):  # the newest two of each owner stay
        owned(checkpoint(shared, number), 0)
    owned(shared / where, 0)
    renewed(shared, 4, 5, 6, 7)
    owned(shared / "step4", 65534)
    told, complaint = asked("list", shared, who=NOBODY)
    assert [e["name"] for e in told["going"]] == ["step2", "step3"]
    assert told["held"] == ["'step1': the user who runs this may not change it"]
    told, complaint = asked("remove", shared, names=("step1", "step2"), who=NOBODY)
    assert (told["removed"], complaint) == (1, told["errors"][0])
    assert (shared / "step1" / "inner" / "more").exists()


def test_a_sticky_root_lets_only_owners_remove(shared: Path) -> None:
    """As /tmp does (unlink(2), EPERM)."""
    owned(shared, 0)
    os.chmod(shared, 0o1777)
    for number in range(1, 8):
        (shared / f"f{number}").write_text("x")
        os.chown(shared / f"f{number}", *((0, 0) if number % 2 else (65534, 65534)))
    told, _ = asked("list", shared, FILES, who=NOBODY)
    assert [e["name"] for e in told["going"]] == ["f2"]
    assert told["held"] == [f"'f{n}': it belongs to somebody else" for n in (1, 3)]
    os.chmod(shared, 0o777)
    assert asked("list", shared, FILES, who=NOBODY)[0]["held"] == []


def test_a_root_that_may_not_be_written_is_told_before_anything_is_tried(shared: Path) -> None:
    """By mode, and where the whole file system is read-only."""
    os.chmod(shared, 0o555)
    told, _ = asked("list", shared, who=NOBODY)
    assert (told["removable"], len(told["held"])) == (0, 3)
    with mounted(shared, "--bind", str(shared)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(shared)], check=True)
        told, _ = asked("list", shared)
    assert told["held"][0] == "'step1': the file system is read-only"


def test_what_may_not_be_read_does_not_count(shared: Path) -> None:
    """Nobody knows whether it is complete."""
    os.chmod(shared / "step5", 0)
    os.chown(shared / "step5", 0, 0)
    renewed(shared, 3, 4)
    told, _ = asked("list", shared, who=NOBODY)
    assert [e["name"] for e in told["going"]] == ["step1", "step2"]


@pytest.mark.root
def test_a_mount_in_one_holds_up_only_that_one(root: Path) -> None:
    """It is not entered, and the others go."""
    with mounted(root / "step1" / "inner"):
        renewed(root)
        told, _ = asked("list", root)
        assert [e["name"] for e in told["going"]] == ["step2", "step3"]
        assert "another file system" in told["held"][0]


def test_what_is_too_deep_holds_up_only_itself(root: Path) -> None:
    """Every level costs a descriptor."""
    at = os.open(root / "step1", os.O_RDONLY)
    for _ in range(MAX_DEPTH + 1):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    renewed(root)
    told, _ = asked("list", root)
    assert [e["name"] for e in told["going"]] == ["step2", "step3"]
    assert "deeper" in told["held"][0]


@pytest.mark.parametrize("name", [b"step0\xff", b"step0\n", "step0\u202e".encode()])
def test_a_name_that_cannot_be_written_down_holds_up_only_itself(root: Path, name: bytes) -> None:
    """The log names what went: whoever gives such a name must not keep all the others."""
    folder = os.fsencode(root) + b"/" + name
    os.mkdir(folder)
    Path(os.fsdecode(folder), "weights").write_text("w")
    renewed(root)
    told, _ = asked("list", root, RetentionRules(r"(?s)step(\d+).*", complete=WHOLE))
    assert [e["name"] for e in told["going"]] == ["step1", "step2", "step3"]
    assert "its name cannot be written down" in told["held"][0]


def test_the_longest_names_can_go(root: Path) -> None:
    """What they are renamed to is no longer than a name may be (NAME_MAX)."""
    for number in range(1, 4):
        (root / f"{number}{LONG}").write_text("x")
    told, complaint = asked(
        "remove",
        root,
        RetentionRules(r"(\d)\u00e4+", complete="*\u00e4", ignore=["step*"]),
        names=(f"1{LONG}",),
    )
    assert (told["removed"], complaint) == (1, "")


def test_a_home_directory_is_no_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below it may be one."""
    monkeypatch.setenv("HOME", str(root) + "/")
    with pytest.raises(RemovalRefused, match="home directory"):
        CheckpointRoot(str(root))
    monkeypatch.setenv("HOME", str(root.parent))
    assert going(CheckpointRoot(str(root)))


def filled(root: Path) -> None:
    for number in range(1000):
        (root / f"fill{number}.log").write_bytes(b"x" * 100_000)


@pytest.mark.root
@pytest.mark.parametrize("options", ["size=2m", "nr_inodes=40"])
def test_a_file_system_without_room_or_inodes_can_be_cleaned(root: Path, options: str) -> None:
    """That is when it is needed most."""
    with mounted(root, "-t", "tmpfs", "-o", options, "tmpfs"):
        for number in range(1, 6):
            checkpoint(root, number)
        with pytest.raises(OSError, match="No space left"):
            filled(root)
        told, complaint = asked("remove", root, RULES, names=("step1", "step2"))
        assert (told["removed"], complaint) == (2, "")
