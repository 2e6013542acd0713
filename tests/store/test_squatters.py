"""Who takes the name of the directory for the spare journal keeps nobody from writing it."""

import os
from pathlib import Path

import pytest

from sentinel.store.spare_journals import JournalDir
from tests.user_files.places import MALLORY, folder_of, shared_folder

pytestmark = pytest.mark.root


def usual(folder: Path) -> Path:
    return folder / f"sentinel-{os.geteuid()}"


def test_another_name_is_used_and_who_sits_there_is_named() -> None:
    """The next process finds what this one wrote, and nothing that the squatter put beside it."""
    with shared_folder() as folder:
        folder_of(MALLORY, usual(folder))
        folder_of(MALLORY, folder / f"{usual(folder).name}.{0:020d}-00", 0o777)
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
        assert len([*folder.iterdir()]) == 3


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
    with shared_folder() as folder:
        one = JournalDir(str(folder), "journal", shared=True)
        one.find_earlier_folder()
        one.require_folder()
        assert (one.folder, one.squatter) == (str(usual(folder)), "")
