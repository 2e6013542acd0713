"""Whose outputs of diagnostics are believed where everybody may put files."""

from pathlib import Path

import pytest

from sentinel.checks.diag import archive
from sentinel.core.errors import CannotTell
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder

pytestmark = pytest.mark.root

NAME = "dcgmi-r2-node-0-20261120T211500Z.json"


@pytest.mark.parametrize(("mode", "believed"), [(0o1777, False), (0o1775, False), (0o755, True)])
def test_another_user_s_output_counts_only_where_others_may_not_write(
    mode: int, believed: bool
) -> None:
    """A forged failure could drain a node, and a forged pass return one."""
    with shared_folder() as folder:
        folder.chmod(mode)
        for name, text in ((NAME, "{}"), (f"{NAME}.rc", "226\n"), (f"{NAME}.err", "forged\n")):
            file_of(MALLORY, folder / name, text, 0o644)
        path = str(folder / NAME)
        assert bool(archive.list_outputs(str(folder))) is believed
        assert archive.find_finished_runs([path]) == ({path} if believed else set())
        assert archive._read_output(f"{path}.err") == ("forged\n" if believed else "")


def test_one_s_own_outputs_are_believed_there(tmp_path: Path) -> None:
    with shared_folder() as folder:
        folder.chmod(0o1777)
        for name in (NAME, f"{NAME}.rc"):
            (folder / name).write_text("0\n")
        path = str(folder / NAME)
        assert [one.node for one in archive.list_outputs(str(folder))] == ["node-0"]
        assert archive.find_finished_runs([path]) == {path}
        assert archive._read_output(f"{path}.rc") == "0\n"


def test_a_link_to_one_s_own_file_is_none_there(tmp_path: Path) -> None:
    with shared_folder() as folder:
        folder.chmod(0o1777)
        (tmp_path / "own").write_text("226\n")
        (folder / f"{NAME}.rc").symlink_to(tmp_path / "own")
        path = str(folder / NAME)
        assert archive.find_finished_runs([path]) == set()
        assert archive._read_output(f"{path}.rc") == ""


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_nothing_counts_where_others_may_rename_it(mode: int) -> None:
    """An old failure of node-1, which is root's own file, would be one of node-0 by its name."""
    with shared_folder() as folder:
        (folder / NAME).write_text("{}")
        folder.chmod(mode)
        with pytest.raises(CannotTell, match="chmod go-w, or chmod \\+t"):
            archive.require_closed_archive(str(folder))
        verdict, gpus = archive.read_diag_verdict(str(folder / NAME), 2)
        assert (verdict.outcome, gpus) == ("inconclusive", None)
        assert "prove nothing" in verdict.why
        assert archive.read_test_verdict(str(folder / NAME)).outcome == "inconclusive"
        file_of(MALLORY, folder / NAME.replace("node-0", "node-2"), "{}", 0o644)
        assert [one.node for one in archive.list_outputs(str(folder))] == ["node-0"]


def test_the_directory_s_owner_counts() -> None:
    """It is theirs to say: they could remove the others' files too."""
    with shared_folder() as folder:
        place = folder_of(MALLORY, folder / "place", 0o1777)
        file_of(MALLORY, place / NAME, "{}", 0o644)
        file_of(ALICE, place / NAME.replace("node-0", "node-1"), "{}", 0o644)
        assert [one.node for one in archive.list_outputs(str(place))] == ["node-0"]
