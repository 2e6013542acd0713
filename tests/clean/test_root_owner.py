"""A root that belongs to a user, cleaned by root: with no more rights than that user has."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clean.world import RULES, asked, checkpoint, names
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder

pytestmark = pytest.mark.root


class World:
    """Mallory's folder of checkpoints, beside alice's private folder."""

    def __init__(self, folder: Path) -> None:
        self.alices = folder_of(ALICE, folder / "alice", 0o700)
        self.secret = file_of(ALICE, self.alices / "gold", "400\n")
        self.root = folder_of(MALLORY, folder / "mallory")
        for number in range(1, 6):
            checkpoint(self.root, number)
        self.give(self.root)
        for number in (4, 5):
            os.utime(self.root / f"step{number}")

    def give(self, path: Path, uid: int = MALLORY) -> None:
        """All of it to that user."""
        for above, folders, files in os.walk(path):
            for name in (".", *folders, *files):
                os.chown(os.path.join(above, name), uid, uid, follow_symlinks=False)


@pytest.fixture
def world() -> Iterator[World]:
    with shared_folder() as folder:
        yield World(folder)


def test_what_is_the_user_s_own_goes(world: World) -> None:
    found, said = asked("remove", world.root, RULES, ("step1", "step2"))
    assert (found["removed"], said) == (2, "")
    assert names(world.root) == ["step3", "step4", "step5"]


@pytest.mark.parametrize("target", ["gold", "no-such-file"])
def test_a_link_does_not_tell_whether_another_user_has_a_file(world: World, target: str) -> None:
    """The same words for what is there and what is not: root could tell them apart."""
    (world.root / "latest").symlink_to(world.alices / target)
    found, said = asked("list", world.root)
    assert found is None
    assert "latest: is a link that leads nowhere: Permission denied" in said


def test_the_text_of_a_pointer_does_not_either(world: World) -> None:
    said = []
    for target in ("gold", "no-such-file"):
        file_of(MALLORY, world.root / "latest", f"{world.alices}/{target}\n", 0o644)
        said.append(asked("list", world.root)[1].replace(target, "it"))
    assert said[0] == said[1]
    assert "Permission denied" in said[0]


def test_what_another_user_put_there_stays(world: World) -> None:
    """Alice's folder in it, which mallory could not empty."""
    world.give(world.root / "step1", ALICE)
    found, _ = asked("remove", world.root, RULES, ("step1", "step2"))
    assert found["removed"] == 1
    assert "step1" in names(world.root)
    assert (world.root / "step1" / "weights").exists()


def test_a_folder_of_root_is_cleaned_as_root(world: World) -> None:
    """What users put below a folder of root's is root's to remove, whoever owns it."""
    os.chown(world.root, 0, 0)
    found, said = asked("remove", world.root, RULES, ("step1", "step2"))
    assert (found["removed"], said) == (2, "")
