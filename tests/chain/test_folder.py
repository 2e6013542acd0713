"""The folder of a chain."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.folder import Place, mount_of
from sentinel.chain.journal import Entry
from sentinel.chain.model import Chain

CHAIN = Chain(name="s", every=600, command=("sentinel",))
NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(str(tmp_path / "chain"))
    made.install(CHAIN, "")
    return made


@pytest.mark.root
def test_a_folder_that_may_not_be_read_is_no_removal(place: Place) -> None:
    """A Kerberos ticket that has run out looks so: a chain must not end with that."""
    Path(place.folder).chmod(0)
    mount = mount_of(place.folder)
    child = os.fork()
    if not child:
        os.setuid(NOBODY)
        os._exit(place.taken_away(mount))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_file_in_place_of_the_folder_is_a_removal(tmp_path: Path) -> None:
    """Nothing of the chain is left below it."""
    (tmp_path / "chain").write_text("")
    assert Place(str(tmp_path / "chain")).taken_away(mount_of(str(tmp_path)))


@pytest.mark.parametrize(("every", "kept"), [(600, 1), (900, 0)])
def test_a_journal_is_of_one_spacing(place: Place, every: int, kept: int) -> None:
    """Installed anew it goes on; with another `--every` it begins again."""
    place.note(Entry(slot=600, what="ran", at=601.0))
    place.install(replace(CHAIN, every=every), "")
    assert len(place.entries()) == kept
