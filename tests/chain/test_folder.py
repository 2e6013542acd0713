"""The folder of a chain."""

import fcntl
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder, mount_point
from sentinel.chain.journal import JournalEntry
from sentinel.chain.model import Chain
from sentinel.trust import SiteTrust, UntrustedFile, set_site_trust
from tests.user_files.places import shared_folder

CHAIN = Chain(name="s", every=600, command=("sentinel",))
NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path) -> ChainFolder:
    made = ChainFolder(str(tmp_path / "chain"))
    made.install_files(CHAIN, "")
    return made


@pytest.mark.root
def test_a_folder_that_may_not_be_read_is_no_removal(place: ChainFolder) -> None:
    """A Kerberos ticket that has run out looks so: a chain must not end with that."""
    Path(place.folder).chmod(0)
    mount = mount_point(place.folder)
    child = os.fork()
    if not child:
        os.setuid(NOBODY)
        os._exit(place.was_removed(mount))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_whoever_may_open_the_folder_holds_no_lock_of_a_chain(place: ChainFolder) -> None:
    """flock(2) needs no right to write: held for ever on the folder, it kept a chain from being mended."""
    Path(place.folder).chmod(0o755)
    folder = os.open(place.folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with place.lock_install() as alone, place.lock_install() as second:
        assert (alone, second) == (True, False)
    os.close(folder)
    locks = [path for path in Path(place.folder).iterdir() if path.suffix == ".lock"]
    assert [path.stat().st_mode & 0o077 for path in locks] == [0]
    place.remove_files()
    assert not Path(place.folder).exists()


@pytest.mark.root
def test_roots_chain_in_a_folder_of_a_group_is_used_where_the_group_is_trusted() -> None:
    with shared_folder() as folder:
        place = ChainFolder(str(folder / "chain"))
        place.install_files(CHAIN, "")
        os.chown(place.folder, -1, 100)
        Path(place.folder).chmod(0o775)
        with pytest.raises(UntrustedFile, match="chain may be written by its group"):
            place.read_chain()
        set_site_trust(SiteTrust(gids=frozenset({100})))
        try:
            assert place.read_chain() == CHAIN
        finally:
            set_site_trust(SiteTrust())


def test_a_file_in_place_of_the_folder_is_a_removal(tmp_path: Path) -> None:
    """Nothing of the chain is left below it."""
    (tmp_path / "chain").write_text("")
    assert ChainFolder(str(tmp_path / "chain")).was_removed(mount_point(str(tmp_path)))


@pytest.mark.parametrize(("every", "kept"), [(600, 1), (900, 0)])
def test_a_journal_is_of_one_spacing(place: ChainFolder, every: int, kept: int) -> None:
    """Installed anew it goes on; with another `--every` it begins again."""
    place.append_entry(JournalEntry(slot=600, what="ran", at=601.0))
    place.install_files(replace(CHAIN, every=every), "")
    assert len(place.read_journal()) == kept
