"""Rules of a tree's weight against what it may weigh: real trees, and ones that hide something."""

import os
import pwd
from pathlib import Path
from typing import Any

from msgspec import structs

from sentinel.checks.du.check import DuCheck
from sentinel.checks.du.settings import DuSettings
from sentinel.checks.du.tree import TreeSizes, tree_finding
from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.core.model import Status
from sentinel.core.values import Share, Size
from tests.checks.quota.test_further import about, look
from tests.lab.fuse import Fuse


def test_a_tree_against_its_size(tmp_path: Path) -> None:
    """Shares are of the size that is given; the largest and the owners are told."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data").write_bytes(b"x" * 900_000)
    report = look(tmp_path, kind=DuCheck, size=Size(1_000_000))
    found = about(report, "tree")
    assert found.status is Status.WARNING
    assert "in 3 files and directories" in found.summary
    assert f"{tmp_path}/sub" in found.details
    owner = f"owner {pwd.getpwuid(os.geteuid()).pw_name}"
    assert owner in found.details
    kept = {s.name: s.value for s in report.samples}
    assert kept["used_bytes"] >= kept[owner] > kept[f"dir {tmp_path}/sub"] > 900_000


def test_a_partial_tree_is_never_called_well(tmp_path: Path) -> None:
    """Against a limit it is unknown, and says that it is at least so much."""
    for number in range(3000):
        (tmp_path / str(number)).touch()
    settings: Any = {"kind": DuCheck, "size": Size(10**12), "calls": 500}
    report = look(tmp_path, limit=5.0, **settings)
    found = about(report, "tree")
    assert (found.status, found.values["complete"]) == (Status.UNKNOWN, False)
    assert "at least" in found.summary
    assert "partial" in found.summary
    assert not {s.name for s in report.samples} & {"used_bytes", "owner root"}


def test_a_tree_that_could_not_be_read_everywhere_is_never_called_well(tmp_path: Path) -> None:
    """Whatever is in there is not counted."""
    tree = TreeSizes(
        apparent=10, allocated=10, entries=2, complete=True, unread=1,
        errors={"/x/y": "Permission denied"}, calls=1, dirs={}, owners={},
    )  # fmt: skip
    warn, crit = SpaceLimits(used=Share(85)), SpaceLimits(used=Share(95))
    found = tree_finding("/x", tree, DuSettings(size=Size(1000)), warn, crit)
    assert (found.status, "at least 10 B" in found.summary) == (Status.UNKNOWN, True)
    assert tree_finding("/x", tree, DuSettings(), warn, crit).status is Status.OK
    assert tree_finding("/x", tree, DuSettings(size=Size(10)), warn, crit).status is Status.CRITICAL


def test_what_is_too_deep_is_a_warning_and_blinds_nothing(tmp_path: Path) -> None:
    """Anybody can make such a folder: the rest is still judged, and its growth is kept."""
    tree = TreeSizes(
        apparent=10, allocated=10, entries=2, complete=True, unread=0, deep=1,
        errors={"/x/y": "it is too deep"}, calls=1, dirs={}, owners={},
    )  # fmt: skip
    warn, crit = SpaceLimits(used=Share(85)), SpaceLimits(used=Share(95))
    found = tree_finding("/x", tree, DuSettings(size=Size(1000)), warn, crit)
    assert (found.status, "at least 10 B" in found.summary) == (Status.WARNING, True)
    assert "not read: /x/y: it is too deep" in found.details
    assert tree_finding("/x", tree, DuSettings(size=Size(10)), warn, crit).status is Status.CRITICAL
    assert tree_finding("/x", structs.replace(tree, deep=0), DuSettings(size=Size(1000)), warn,
                        crit).status is Status.OK  # fmt: skip


def test_names_in_no_encoding_are_told(tmp_path: Path) -> None:
    """The largest directory may have one."""
    folder = tmp_path / os.fsdecode(b"\xff\xfe")
    folder.mkdir()
    (folder / "x").write_bytes(b"x" * 100_000)
    found = about(look(tmp_path, kind=DuCheck), "tree")
    assert (found.status, "\\xff\\xfe" in found.details) == (Status.OK, True)


def test_a_tree_that_hangs_is_walked_once(fuse: Fuse) -> None:
    """What is left behind in it is remembered, as of any other question."""
    settings: Any = {"kind": DuCheck, "calls": 0, "threads": 1}
    fuse.hold("opendir")
    first = look(fuse.point, limit=4.0, **settings)
    assert "hangs" in about(first, "tree").summary
    waiting = fuse.withheld()
    second = about(look(fuse.point, memory=first.memory, limit=4.0, **settings), "tree")
    assert "still waits for it" in second.summary
    assert fuse.withheld() == waiting
    fuse.release()
