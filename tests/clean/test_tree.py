"""Rules of removing: never outside the root, never through a link, never what was not looked at."""

import os
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import pytest

from sentinel.clean.gone_marks import GONE_PREFIX
from sentinel.clean.program import remove_names
from sentinel.clean.root_path import RemovalRefused
from sentinel.clean.rules import RetentionRules
from sentinel.clean.steps import removable_steps
from sentinel.clean.tree import CheckpointRoot, error_line
from sentinel.core.work import PROGRESS_PREFIX, PROGRESS_VARIABLE
from tests.clean.world import (
    RULES,
    asked,
    checkpoint,
    first,
    mounted,
    names,
    renewed,
    soon,
    treasure,
)


def test_a_list_removes_nothing(root: Path) -> None:
    """It tells what would go, the oldest first, and what that frees."""
    before = names(root)
    told, complaint = asked("list", root)
    assert [e["name"] for e in told["going"]] == ["step1", "step2", "step3"]
    assert all(e["bytes"] >= 10_000 for e in told["going"])
    assert (told["entries"], complaint, names(root)) == (5, "", before)


def test_named_ones_go_whole(root: Path) -> None:
    """And the others stay as they are."""
    told, complaint = asked("remove", root, names=("step1", "step3"))
    assert (told["removed"], told["errors"], complaint) == (2, [], "")
    assert told["freed"] >= 20_000
    assert names(root) == ["step2", "step4", "step5"]


def test_what_the_rules_keep_does_not_go_by_its_name(root: Path) -> None:
    """Neither the newest nor what lies elsewhere, however it is asked for."""
    told, complaint = asked("remove", root, names=("step5", "step4", "../treasure", "/etc", "."))
    assert told["removed"] == 0
    assert "'step4': may not be removed any more" in complaint
    assert len(names(root)) == 5
    assert treasure(root) == "gold"


def test_links_inside_go_as_links(root: Path) -> None:
    """To a directory, to a file, to nothing, and a hard link: what they name stays."""
    outside = root.parent / "treasure"
    (root / "step1" / "dir").symlink_to(outside)
    (root / "step1" / "inner" / "file").symlink_to(outside / "gold")
    (root / "step1" / "dangling").symlink_to("/nowhere")
    for number in range(1, 6):
        os.link(outside / "gold", root / f"step{number}" / "hard")
    renewed(root)
    told, complaint = asked("remove", root, names=("step1",))
    assert (told["removed"], complaint) == (1, "")
    assert treasure(root) == "gold"


def test_a_hard_link_frees_nothing(root: Path) -> None:
    """What has another name stays on disk, and is not promised."""
    os.link(root / "step1" / "weights", root.parent / "kept")
    renewed(root)
    told, _ = asked("list", root)
    first, second = told["going"][:2]
    assert first["bytes"] < second["bytes"]


def test_a_link_in_the_place_of_a_checkpoint_is_no_entry(root: Path) -> None:
    """It fits by its name only."""
    (root / "step0").symlink_to(root.parent / "treasure")
    told, _ = asked("list", root)
    assert "step0" not in [e["name"] for e in told["going"]]
    told, _ = asked("remove", root, names=("step0",))
    assert (told["removed"], treasure(root)) == (0, "gold")
    assert (root / "step0").is_symlink()


def test_pipes_sockets_and_devices_are_no_entries(root: Path) -> None:
    """Only files and directories are."""
    os.mkfifo(root / "step0")
    assert asked("list", root)[0]["entries"] == 5


@pytest.mark.parametrize("step", ["ckpt", "parent"])
def test_a_root_behind_a_link_is_refused(root: Path, step: str) -> None:
    """At the end or on the way: what it leads to has to be named."""
    link = root.parent / "link"
    link.symlink_to(root if step == "ckpt" else root.parent)
    path = link if step == "ckpt" else link / "ckpt"
    told, complaint = asked("list", path)
    assert told is None
    assert complaint == f"{link} is a link; name what it leads to"


@pytest.mark.parametrize(
    "path", ["/", "/tmp", "relative/path", "", "/tmp/../etc", "/tmp/./x", "/no/such/root"]
)
def test_roots_that_are_none(path: str) -> None:
    """Too high, not absolute, with a way up, or not there."""
    with pytest.raises(RemovalRefused):
        CheckpointRoot(path)


def test_a_relative_root_is_none_even_where_it_could_be_found_from_the_top(root: Path) -> None:
    with pytest.raises(RemovalRefused, match="has to be an absolute path"):
        CheckpointRoot(str(root).removeprefix("/"))


def test_a_root_of_two_steps_is_one() -> None:
    """As /scratch/run is."""
    with TemporaryDirectory(dir="/tmp") as folder:
        checkpoint(Path(folder), 1)
        assert [s.first_name for s in CheckpointRoot(folder).find_steps(RULES)] == ["step1"]


def test_a_file_is_no_root(tmp_path: Path) -> None:
    """It says so."""
    (tmp_path / "file").touch()
    with pytest.raises(RemovalRefused, match="Not a directory"):
        CheckpointRoot(str(tmp_path / "file"))


def test_a_root_is_open_as_long_as_its_object_lives(root: Path) -> None:
    """Each one that stayed open would cost a descriptor."""
    opened = CheckpointRoot(str(root))
    fd = opened.fd
    assert os.path.samestat(os.fstat(fd), root.stat())
    del opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_nothing_stays_open_but_the_root(root: Path) -> None:
    """A root has thousands of directories, and a process may open 1,024 files (RLIMIT_NOFILE)."""
    before = len(os.listdir("/proc/self/fd")) + 1
    opened = CheckpointRoot(str(root))
    opened.remove_step(first(opened), RULES, soon())
    with mounted(root / "step2" / "inner"):
        opened.find_steps(RULES)
    assert names(root) == ["step2", "step3", "step4", "step5"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_hidden_checkpoints_go_where_the_pattern_says_so(root: Path) -> None:
    """What they are renamed to fits the pattern too, and is nobody's newer part of the step."""
    for number in range(1, 6):
        (root / f"step{number}").rename(root / f".a-step{number}")
    rules = RetentionRules(r"\..*step(\d+)", complete="weights")
    opened = CheckpointRoot(str(root))
    opened.remove_step(first(opened, rules), rules, soon())
    assert names(root) == [f".a-step{number}" for number in range(2, 6)]


def test_a_mark_that_vanishes_meanwhile_says_that_the_step_is_whole(root: Path) -> None:
    """NeMo removes it at the end of a save."""
    mark = root / "step5-unfinished"
    mark.touch()
    opened = CheckpointRoot(str(root))
    opened.find_steps(RULES)
    looked = [opened.look_at_entry("step5", RULES)]
    mark.unlink()
    looked.append(opened.look_at_entry("step5", RULES))
    assert [entry and entry.unfinished for entry in looked] == [True, False]


def test_a_checkpoint_swapped_after_the_look_is_put_back(root: Path) -> None:
    """Another directory of its name is not the one that was looked at."""
    opened = CheckpointRoot(str(root))
    victim = first(opened)
    (root / "step1").rename(root.parent / "aside")
    (root.parent / "treasure").rename(root / "step1")
    with pytest.raises(RemovalRefused, match="replaced"):
        opened.remove_step(victim, RULES, soon())
    assert (root / "step1" / "gold").read_text() == "gold"


def test_a_step_that_is_saved_meanwhile_keeps_no_other(root: Path) -> None:
    """The training goes on while it is cleaned. What is saved of the step itself keeps it."""
    opened = CheckpointRoot(str(root))
    old = first(opened)
    checkpoint(root, 6)
    opened.remove_step(old, RULES, soon())
    assert names(root) == ["step2", "step3", "step4", "step5", "step6"]


def test_a_checkpoint_swapped_for_a_link_is_put_back(root: Path) -> None:
    """The link is left as it is, and so is what it leads to."""
    opened = CheckpointRoot(str(root))
    victim = first(opened)
    (root / "step1").rename(root.parent / "aside")
    (root / "step1").symlink_to(root.parent / "treasure")
    with pytest.raises(RemovalRefused, match="replaced"):
        opened.remove_step(victim, RULES, soon())
    assert (root / "step1").is_symlink()
    assert treasure(root) == "gold"


def test_a_root_swapped_for_a_link_stays_the_one_that_was_opened(root: Path) -> None:
    """All goes by the descriptor of the directory that was named at first."""
    opened = CheckpointRoot(str(root))
    victims = removable_steps(opened.find_steps(RULES), RULES, time.time())
    decoy = root.parent / "decoy"
    for number in range(1, 6):
        checkpoint(decoy, number)
    root.rename(root.parent / "moved")
    root.symlink_to(decoy)
    for entry in victims:
        opened.remove_step(entry, RULES, soon())
    assert len(names(decoy)) == 5
    assert names(root.parent / "moved") == ["step4", "step5"]


def test_somebody_who_swaps_a_directory_for_a_link_all_the_time_wins_nothing(root: Path) -> None:
    """A race on a directory inside, a hundred times: what lies outside is always still there."""
    over, target = Event(), root.parent / "treasure"

    def swap() -> None:
        at = root.parent / "swapped"
        while not over.is_set():
            for folder in root.glob(f"{GONE_PREFIX}*/inner"):
                try:
                    folder.rename(at)
                    folder.symlink_to(target)
                    folder.unlink()
                    at.rename(folder)
                except OSError:
                    subprocess.run(["rm", "-rf", str(at)], check=False)

    enemy = Thread(target=swap)
    enemy.start()
    opened = CheckpointRoot(str(root))
    try:
        for number in range(100, 200):
            checkpoint(root, number, size=1)
        for entry in removable_steps(opened.find_steps(RULES), RULES, time.time()):
            try:
                opened.remove_step(entry, RULES, soon())
            except (OSError, RemovalRefused):
                continue
    finally:
        over.set()
        enemy.join()
    assert treasure(root) == "gold"
    assert {"step198", "step199"} <= set(names(root))


@pytest.mark.root
def test_a_mount_inside_is_not_entered(root: Path) -> None:
    """Neither as an entry nor below one: nothing of it goes. What was not looked into is not whole."""
    with mounted(root / "step1" / "inner") as inside, mounted(root / "step2") as entry:
        steps = CheckpointRoot(str(root)).find_steps(RetentionRules(r"step(\d+)"))
        whole = {entry.name: entry.complete for step in steps for entry in step.parts}
        assert (whole["step1"], whole["step3"]) == (False, True)
        for point in (inside, entry):
            (point / "data").write_text("data")
        told, complaint = asked("remove", root, names=("step1", "step2", "step3"))
        assert told is None or told["removed"] <= 1
        assert complaint
        assert (inside / "data").read_text() == (entry / "data").read_text() == "data"


@pytest.mark.root
def test_a_file_of_another_file_system_is_no_entry(root: Path) -> None:
    """It would be the newest, in place of one of this training."""
    (root / "step9").touch()
    (root / "step0").write_text("a file of this one is one")
    with mounted(root.parent / "treasure") as other:
        (other / "data").write_text("data")
        with mounted(root / "step9", "--bind", str(other / "data")):
            found = CheckpointRoot(str(root)).find_steps(RULES)
    assert {s.first_name for s in found} == {f"step{n}" for n in range(6)}


@pytest.mark.root
@pytest.mark.parametrize("where", ["step1/inner", "step1"])
def test_a_bind_mount_of_the_same_file_system_is_not_entered(root: Path, where: str) -> None:
    """Its device is the root's own, and what lies there is somebody else's."""
    treasury = root.parent / "treasury"
    treasury.mkdir()
    (treasury / "data").write_text("gold")
    with mounted(root / where, "--bind", str(treasury)):
        renewed(root)
        asked("remove", root, names=("step1",))
        assert (treasury / "data").read_text() == "gold"


@pytest.mark.parametrize(("below", "is_read"), [("", True), ("a/b/c", True), ("a/b/c/d", False)])
def test_how_deep_in_a_step_a_description_is_read(root: Path, below: str, is_read: bool) -> None:
    """An adapter lies up to two folders deep in the forms that are known; one more is read."""
    folder = root / "step5" / below
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/runs/step1"}')
    needs = {s.first_name: s.parts[0].needs for s in CheckpointRoot(str(root)).find_steps(RULES)}
    assert ("step1" in str(needs["step5"])) is is_read
    assert not needs["step4"]


@pytest.mark.parametrize("waits", [True, False])
def test_who_waits_is_told_how_far_the_look_is(
    root: Path, waits: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A command that asked for it; not the service."""
    monkeypatch.delenv(PROGRESS_VARIABLE, raising=False)
    if waits:
        monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    CheckpointRoot(str(root)).find_steps(RULES)
    told = capfd.readouterr().err.splitlines()
    assert (told[:1], bool(told)) == ([f"{PROGRESS_PREFIX}0 5 0"] if waits else [], waits)


def test_what_could_not_be_finished_goes_on_later(root: Path) -> None:
    """It no longer has the name of a checkpoint, and the next run takes it away."""
    opened = CheckpointRoot(str(root))
    victim = first(opened)
    with pytest.raises(TimeoutError):
        opened.remove_step(victim, RULES, time.monotonic() - 1)
    assert "step1" not in names(root)
    assert any(name.startswith(GONE_PREFIX) for name in names(root))
    told, _ = asked("list", root)
    (left, *others) = [e["name"] for e in told["going"]]
    assert (left[: len(GONE_PREFIX)], others) == (GONE_PREFIX, ["step2", "step3"])
    told, complaint = asked("remove", root, names=(left,))
    assert (told["removed"], complaint, names(root)) == (
        1,
        "",
        ["step2", "step3", "step4", "step5"],
    )


def test_what_there_was_no_time_for_is_told_and_keeps_its_name(root: Path) -> None:
    """It goes with the next request."""
    told = remove_names(CheckpointRoot(str(root)), RULES, ["step1", "step2"], within=-1.0)
    assert told == {"removed": 0, "freed": 0, "late": ["step1", "step2"], "errors": []}
    assert len(names(root)) == 5


def test_a_name_like_ours_that_is_a_link_or_somebody_elses_stays(root: Path) -> None:
    """Leftovers are told by their whole name, and a link is never one."""
    (root / f"{GONE_PREFIX}{'a' * 16}").symlink_to(root.parent / "treasure")
    (root / f"{GONE_PREFIX}mine").mkdir()
    (root / f"{GONE_PREFIX}{'c' * 16}").symlink_to(root.parent / "treasure" / "gold")
    os.mkfifo(root / f"{GONE_PREFIX}{'b' * 16}")
    told, complaint = asked("remove", root, names=("step1",))
    assert (told["removed"], complaint) == (1, "")
    assert treasure(root) == "gold"
    assert f"{GONE_PREFIX}mine" in names(root)
    assert CheckpointRoot(str(root)).find_leftovers(RULES, time.time()) == []


def test_of_several_markers_the_largest_counts(root: Path) -> None:
    """An empty one beside it is what a full disk has left."""
    (root / "step5" / "a.done").touch()
    (root / "step5" / "b.done").write_text("ok")
    steps = CheckpointRoot(str(root)).find_steps(RetentionRules(r"step(\d+)", complete="*.done"))
    marked = {step.first_name: step.parts[0].marker for step in steps}
    assert (marked["step5"], marked["step4"]) == (2, None)


def test_what_fails_is_said_in_its_own_words() -> None:
    errors = (OSError(13, "Permission denied", "/home/ann"), OSError("odd"), RemovalRefused("why"))
    assert [error_line(error) for error in errors] == ["Permission denied", "odd", "why"]


def test_a_marker_that_is_a_link_makes_nothing_complete(root: Path) -> None:
    """Only a regular file does."""
    for number in range(1, 6):
        (root / f"step{number}" / "done").touch()
    rules = RetentionRules(r"step(\d+)", complete="done")
    assert [e["name"] for e in asked("list", root, rules)[0]["going"]] == [
        "step1",
        "step2",
        "step3",
    ]
    (root / "step5" / "done").unlink()
    (root / "step5" / "done").symlink_to("/etc/passwd")
    assert [e["name"] for e in asked("list", root, rules)[0]["going"]] == ["step1", "step2"]


def test_a_young_file_deep_inside_keeps_it_all(root: Path) -> None:
    """The age is that of the latest write to anything in it."""
    os.utime(root / "step1" / "inner" / "more")
    assert "step1" not in [e["name"] for e in asked("list", root)[0]["going"]]
