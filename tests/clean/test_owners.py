"""A folder that several users write, cleaned as root: nobody's files decide over another's."""

import errno
import os
from pathlib import Path

import pytest

from sentinel.clean.root_path import RemovalRefused
from sentinel.clean.rules import RetentionRules
from sentinel.clean.trackers import UnclearPointer
from sentinel.clean.tree import CheckpointRoot
from sentinel.core.checkpoint_names import get_unfinished_marker_name
from tests.clean.world import asked, checkpoint, going, names, renewed
from tests.lab.fuse import Fuse
from tests.user_files.places import folder_of, shared_folder

ALICE, MALLORY = 61_001, 61_002
RULES = RetentionRules(r"step(\d+)(?:\.more)?", complete="weights")
pytestmark = pytest.mark.root


@pytest.fixture
def root(tmp_path: Path, as_root: None) -> Path:
    """Sticky and open to all, with three steps of alice's."""
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(0o1777)
    for number in (100, 200, 300, 400):
        own(checkpoint(root, number), ALICE)
    return root


def own(path: Path, user: int) -> None:
    for one in (path, *path.rglob("*")):
        os.chown(one, user, user, follow_symlinks=False)


def removable(root: Path) -> list[str]:
    return going(CheckpointRoot(str(root)), RULES, later=60 * 86_400)


def test_another_users_newer_and_larger_steps_take_nobodys_place(root: Path) -> None:
    """Two of the newest stay for each. Sparse files cost their owner nothing."""
    assert removable(root) == ["step100", "step200"]  # the control
    for number in (9_000_001, 9_000_002, 9_000_003):
        sparse = root / f"step{number}"
        sparse.mkdir()
        (sparse / "weights").touch()
        os.truncate(sparse / "weights", 1 << 30)
        own(sparse, MALLORY)
    assert removable(root) == ["step100", "step200", "step9000001"]


def test_a_step_of_parts_of_several_users_stays(root: Path) -> None:
    """Nobody can say whose it is. A part of its owner's is the control."""
    for number in (400, 300, 200, 100):
        part = root / f"step{number}.more"
        part.write_bytes(b"m" * 100)
        os.chown(part, ALICE, ALICE)
    renewed(root, 300, 400)
    assert removable(root) == ["step100", "step200"]
    os.chown(part, MALLORY, MALLORY)
    renewed(root, 300, 400)
    assert removable(root) == ["step200"]


def test_another_users_mark_makes_no_step_unfinished(root: Path) -> None:
    """As Lightning's strategies mark a save in flight, with a name beside it."""
    for number in (300, 400):
        mark = root / get_unfinished_marker_name(f"step{number}")
        mark.touch()
        os.chown(mark, MALLORY, MALLORY)
    assert removable(root) == ["step100", "step200"]
    os.chown(root / get_unfinished_marker_name("step400"), ALICE, ALICE)
    assert removable(root) == ["step100"]


def test_a_link_of_another_user_leads_root_to_no_text(root: Path, tmp_path: Path) -> None:
    """What is kept would tell which words stand there, so nothing goes. A link of root's is root's own
    word."""
    secret = tmp_path / "secret"
    secret.write_text("step100\n")
    secret.chmod(0o600)
    link = root / "latest"
    link.symlink_to(secret)
    os.chown(link, MALLORY, MALLORY, follow_symlinks=False)
    with pytest.raises(UnclearPointer, match="a link of one user to a file of another"):
        removable(root)
    os.chown(link, 0, 0, follow_symlinks=False)
    assert removable(root) == ["step200"]


TEAM = 61_003
"""A group in which alice and mallory are."""


def share(path: Path, mode: int) -> None:
    os.chown(path, -1, TEAM)
    path.chmod(mode)


@pytest.mark.parametrize("mode", [0o2775, 0o777])
def test_a_name_that_others_could_give_deletes_nothing(root: Path, mode: int) -> None:
    """Who writes a folder without the sticky bit renames in it what they may not remove: the newest
    step to an old number, or data to a step. With the bit, only owners rename (the control)."""
    data = root / "data"
    (data / "inner").mkdir(parents=True)
    (data / "weights").write_bytes(b"d" * 10_000)
    own(data, ALICE)
    share(root, mode)
    data.rename(root / "step0")
    (root / "step400").rename(root / "step1")
    renewed(root, 200, 300)
    assert removable(root) == ["step0", "step1", "step100"]  # by name, number and age
    steps = CheckpointRoot(str(root)).find_steps(RULES)
    assert {s.first_name for s in steps if "others may rename it here" in s.held} == {
        "step0", "step1", "step100", "step200", "step300"
    }  # fmt: skip
    told, complaint = asked("remove", root, RULES, ("step0", "step1"))
    assert (told["removed"], names(root)) == (
        0,
        ["step0", "step1", "step100", "step200", "step300"],
    )
    assert "chmod +t" in complaint
    root.chmod(mode | 0o1000)
    assert asked("remove", root, RULES, ("step0", "step1"))[0]["removed"] == 2


def test_what_all_of_a_group_may_remove_goes(root: Path) -> None:
    """Directories that the group writes as it writes the folder (umask 002). One that it does not
    write, however deep, keeps its step."""
    share(root, 0o2775)
    for one in root.rglob("*"):
        if one.is_dir():
            share(one, 0o2775)
    (root / "step200" / "inner").chmod(0o755)
    renewed(root, 300, 400)
    told, _ = asked("list", root, RULES)
    assert [one["name"] for one in told["going"]] == ["step100"]
    (held,) = told["held"]
    assert held.startswith("'step200': others may rename it here")


def test_root_cleans_nothing_that_others_may_put_there(root: Path) -> None:
    """Another directory of alice's can take the place of this one, if others may rename it."""
    above = root.parent
    share(above, 0o2775)
    told, complaint = asked("list", root, RULES)
    assert told is None
    assert complaint.startswith(f"others may put another directory in the place of {root}")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(RemovalRefused):
        CheckpointRoot(str(root))
    assert os.listdir("/proc/self/fd") == before
    above.chmod(0o3775)
    assert len(asked("list", root, RULES)[0]["going"]) == 2  # the control


def test_a_user_cleans_where_others_may_rename(as_root: None) -> None:
    """It is the user's own folder: no more can be lost than the others may take there already."""
    with shared_folder() as above:
        share(above, 0o2775)
        root = folder_of(ALICE, above / "hers")
        for number in (100, 200, 300):
            own(checkpoint(root, number), ALICE)
        for uid, expected in ((ALICE, ["step100"]), (0, None)):
            who = ["setpriv", f"--reuid={uid}", "--clear-groups"]
            told, _ = asked("list", root, RULES, who=who)
            assert (told and [one["name"] for one in told["going"]]) == expected


def test_a_mount_whose_server_has_ended_hides_no_other_step(root: Path) -> None:
    """Anybody can leave one behind in a folder of all (FUSE); its owner is not known any more."""
    with Fuse(root / "step50", MALLORY) as mount:
        mount.fail(errno.ENOTCONN, "getattr", "lookup")
        with pytest.raises(OSError, match="not connected"):
            (root / "step50").stat()
        told, complaint = asked("list", root, RULES)
    assert (complaint, [one["name"] for one in told["going"]]) == ("", ["step100", "step200"])
    assert told["entries"] == 4  # the mount is not looked at


@pytest.mark.parametrize("where", ["step50", ".sentinel-gone-0123456789abcdef", "step100/in ner"])
def test_a_mount_whose_server_never_answers_is_not_looked_at(root: Path, where: str) -> None:
    """Whoever may write the folder can serve one: it kept the look waiting, and nothing was removed."""
    with Fuse(root / where, MALLORY) as mount:
        mount.hold("getattr", "lookup", "opendir", "statfs")
        told, complaint = asked("list", root, RULES)
        assert mount.withheld() == 0
    going = [one["name"] for one in told["going"]]
    assert (complaint, going) == ("", ["step200"] if "/" in where else ["step100", "step200"])
    assert told["held"] == (
        ["'step100': another file system is mounted in it"] if "/" in where else []
    )
