"""Files of several users in one run: what one user's files cost, another user does not pay."""

import subprocess

import pytest
from msgspec import structs

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.user_files.files import MAX_HANGING_PER_USER, UserFiles
from sentinel.user_files.whose import Whose
from tests.lab.fuse import Fuse
from tests.lab.tied import tied
from tests.user_files.places import ALICE, MALLORY, file_of, shared_folder

pytestmark = pytest.mark.root


def test_a_user_whose_files_hang_takes_half_of_the_time(fuse: Fuse) -> None:
    """Each look at a file of root's takes 0.5 of 6 seconds; a file of alice's is read all the same."""
    fuse.hold("lookup", "getattr")
    files = UserFiles(0.5, 6.0, {}, shared=True)
    said = []
    for number in range(1, 9):
        with pytest.raises(CannotTell) as caught:
            files.read_tail(f"{fuse.point}{'/' * number}data", 9, Whose(user="root"))
        said.append(str(caught.value))
    with shared_folder() as folder:
        log = file_of(ALICE, folder / "log", "step 1\n")
        assert files.read_tail(str(log), 9, Whose(user=str(ALICE))) == "step 1\n"
    fuse.release()
    assert "hangs" in said[0]
    assert said[-1].endswith("was not looked at: others took all the time")


def test_files_of_a_user_for_which_many_children_wait_are_not_opened() -> None:
    """Whichever check asks, and whatever the path; other users' files are. When one of the children has
    ended, her files are opened again."""
    children = [subprocess.Popen(tied(["sleep", "60"])) for _ in range(MAX_HANGING_PER_USER)]
    stuck = {
        str(child.pid): structs.replace(proc.remember_process(child.pid), user=str(MALLORY))
        for child in children
    }
    with shared_folder() as folder:
        hers, alices = (
            file_of(MALLORY, folder / "a", "step 1\n"),
            file_of(ALICE, folder / "b", "step 2\n"),
        )
        UserFiles(5.0, 30.0, stuck)  # of one check, as it remembers them
        files = UserFiles(5.0, 30.0, {})
        with pytest.raises(CannotTell, match=f"8 others of {MALLORY} hang"):
            files.read_tail(str(hers), 9, Whose(user=str(MALLORY)))
        assert files.read_tail(str(alices), 9, Whose(user=str(ALICE))) == "step 2\n"
        for child in children:
            child.kill()
            child.wait()
        assert files.read_tail(str(hers), 9, Whose(user=str(MALLORY))) == "step 1\n"
