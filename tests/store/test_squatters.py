"""Who takes the name of the directory for the spare journal keeps nobody from writing it. A database of
somebody else in the place of the own one is not used."""

import os
import pwd
from contextlib import nullcontext
from pathlib import Path

import pytest

from sentinel.store.errors import StateRefused
from sentinel.store.spare_journals import JournalDir
from sentinel.store.sqlite import DATABASE_FILE, SqliteBackend
from tests.user_files.places import MALLORY, folder_of, shared_folder

pytestmark = pytest.mark.root


def usual(folder: Path) -> Path:
    return folder / f"sentinel-{os.geteuid()}"


def test_another_name_is_used_and_who_sits_there_is_named() -> None:
    """The next process finds what this one wrote, and nothing that the squatter put beside it."""
    with shared_folder() as folder:
        folder_of(MALLORY, usual(folder))
        folder_of(MALLORY, folder / f"{usual(folder).name}.{0:020d}-00", 0o777)
        (folder / "another program's").mkdir()
        one = JournalDir(str(folder), "journal", shared=True)
        one.require_folder()
        one.journal.restart_with(b"what was known")
        assert one.squatter.startswith(f"{usual(folder)} belongs to uid {MALLORY}; ")
        assert Path(one.folder).stat().st_mode & 0o777 == 0o700
        later = JournalDir(str(folder), "journal", shared=True)
        later.find_earlier_folder()
        assert (later.folder, later.journal.read_records()) == (one.folder, [b"what was known"])
        later.require_folder()
        assert later.folder == one.folder
        assert len([*folder.iterdir()]) == 4


@pytest.mark.parametrize("what", ["file", "link"])
def test_what_is_no_directory_is_not_followed(what: str) -> None:
    with shared_folder() as folder:
        away = folder_of(MALLORY, folder / "away")
        usual(folder).symlink_to(away) if what == "link" else usual(folder).touch()
        os.lchown(usual(folder), MALLORY, MALLORY)
        one = JournalDir(str(folder), "journal", shared=True)
        one.require_folder()
        one.journal.restart_with(b"x")
        assert Path(one.folder).parent == folder
        assert not [*away.iterdir()]


def test_where_nobody_sits_nothing_changes() -> None:
    """Also where somebody sat there once, and the directory of that time is left."""
    with shared_folder() as folder:
        (folder / f"{usual(folder).name}.{1:020d}-00").mkdir(0o700)
        one = JournalDir(str(folder), "journal", shared=True)
        one.find_earlier_folder()
        one.require_folder()
        assert (one.folder, one.squatter) == (str(usual(folder)), "")


def open_once(folder: Path) -> None:
    SqliteBackend(str(folder)).open_connection().driver.close()


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_database_of_somebody_else_is_not_used(suffix: str, is_link: bool) -> None:
    """Where everybody may write, its alerts, silences and actions would be theirs."""
    with shared_folder() as folder:
        state = folder / "state"
        state.mkdir(mode=0o777)
        open_once(state)
        placed = Path(f"{state / DATABASE_FILE}{suffix}")
        placed.unlink(missing_ok=True)
        placed.symlink_to(folder / "elsewhere") if is_link else placed.touch()
        os.lchown(placed, MALLORY, MALLORY)
        with pytest.raises(
            StateRefused, match=f"{placed}: (belongs to uid {MALLORY}|is a link of)"
        ):
            open_once(state)
        assert not (folder / "elsewhere").exists()


def test_root_reads_the_state_of_the_user_whose_directory_it_is() -> None:
    """As `sudo sentinel status` does where a service runs as a user of its own."""
    with shared_folder() as folder:
        open_once(folder / "state")
        for path in (folder / "state", *(folder / "state").iterdir()):
            os.chown(path, MALLORY, MALLORY)
        open_once(folder / "state")


@pytest.mark.parametrize(("mode", "refused"), [(0o2775, False), (0o2777, True), (0o755, True)])
def test_a_database_of_a_member_of_the_only_group_that_may_write_is_warned_of(
    mode: int, refused: bool
) -> None:
    """An earlier sentinel used it: refused at once, it would leave everything unwatched."""
    bin_user = pwd.getpwnam("bin")
    with shared_folder() as folder:
        state = folder / "state"
        open_once(state)
        os.chown(state, -1, bin_user.pw_gid)
        os.chown(state / DATABASE_FILE, bin_user.pw_uid, -1)
        state.chmod(mode)
        with pytest.raises(StateRefused, match="in `trust`") if refused else nullcontext():
            open_once(state)
