"""What commands write in folders that others may write: no link of theirs is followed, no byte is lent."""

import io
import os
import stat
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sentinel.cli import gpu_bundle
from sentinel.core.clock import Instant
from sentinel.init.record import RECORD_FILE, InitRecord, read_record, write_record
from sentinel.proc.whole_files import ForeignLink, replace_whole_file, write_output_file
from tests.cli.test_state import said
from tests.cli.test_state_files import configured
from tests.user_files.places import MALLORY, folder_of, shared_folder

VICTIM = "of root\n"


def lay_link(path: Path, target: Path, owner: int = MALLORY) -> None:
    path.symlink_to(target)
    os.lchown(path, owner, owner)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text(VICTIM)
    return path


@pytest.mark.root
def test_another_s_link_is_not_followed(victim: Path) -> None:
    with shared_folder() as folder:
        folder.chmod(0o1777)
        lay_link(folder / "file", victim)
        with pytest.raises(ForeignLink, match="somebody else's link"):
            write_output_file(str(folder / "file"), b"x")
        replace_whole_file(str(folder / "file"), b"x")
        assert (folder / "file").read_bytes() == b"x"
        assert victim.read_text() == VICTIM


@pytest.mark.root
def test_another_s_pipe_is_told_nothing() -> None:
    """It waits under the name that root writes to in a folder of all; some kernels refuse it
    (fs.protected_fifos of proc_sys_fs(5))."""
    with shared_folder() as folder:
        folder.chmod(0o1777)
        os.mkfifo(folder / "pipe", 0o666)
        os.chown(folder / "pipe", MALLORY, MALLORY)
        reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        with pytest.raises(ForeignLink, match="somebody else's pipe"):
            write_output_file(str(folder / "pipe"), b"x")
        assert os.read(reader, 10) == b""
        os.close(reader)


def test_one_s_own_link_and_a_pipe_are_written_to(tmp_path: Path, victim: Path) -> None:
    """As /dev/stdout is; a file keeps none of its former mode, and nothing is left beside it."""
    (tmp_path / "own").symlink_to(victim)
    write_output_file(str(tmp_path / "own"), b"new")
    assert victim.read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_output_file(str(tmp_path / "pipe"), b"said")
    assert os.read(reader, 10) == b"said"
    os.close(reader)
    mask = os.umask(0o027)
    try:
        write_output_file(str(tmp_path / "file"), b"x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "own", "pipe", "victim"]


@pytest.mark.root
def test_the_record_of_init_follows_no_link(victim: Path) -> None:
    with shared_folder() as folder:
        folder.chmod(0o1777)
        lay_link(folder / RECORD_FILE, victim)
        made = InitRecord(
            config="c", digest="d", folders=(), state=str(folder), by="cron", chain=""
        )
        write_record(made)
        assert read_record(str(folder)) == made
        assert victim.read_text() == VICTIM


@pytest.mark.root
def test_an_archive_for_a_vendor_follows_no_link(victim: Path) -> None:
    ledger = cast(Any, SimpleNamespace(now=Instant(0)))
    with shared_folder() as folder:
        folder.chmod(0o1777)
        lay_link(folder / "rma.tar.gz", victim)
        with pytest.raises(OSError, match="somebody else's link"):
            gpu_bundle._write_archive(str(folder / "rma.tar.gz"), {"a": b"b"}, ledger)
        assert victim.read_text() == VICTIM
        gpu_bundle._write_archive(str(folder / "own.tar.gz"), {"a": b"b"}, ledger)
        with tarfile.open(fileobj=io.BytesIO((folder / "own.tar.gz").read_bytes())) as archive:
            assert archive.getnames() == ["a"]


@pytest.mark.root
def test_a_copy_of_the_state_in_a_shared_folder_is_its_owner_s(
    tmp_path: Path, victim: Path
) -> None:
    """Under every name that SQLite or sentinel would open, a link of mallory's lies already."""
    config = configured(tmp_path)
    assert said(tmp_path, "tick", "-c", config).returncode == 0
    with shared_folder() as folder:
        folder.chmod(0o1777)
        ends = (".part", ".part-journal", ".part-wal", "-wal", "-shm")
        for end in ends:
            lay_link(folder / f"copy.db{end}", victim)
        copy = folder / "copy.db"
        done = said(tmp_path, "state", "backup", str(copy), "-c", config)
        assert done.returncode == 0, done.stderr
        assert victim.read_text() == VICTIM
        assert (stat.S_IMODE(copy.stat().st_mode), copy.stat().st_uid) == (0o600, os.geteuid())
        assert {path.name for path in folder.iterdir()} == {
            "copy.db",
            *(f"copy.db{end}" for end in ends),
        }
        lay_link(folder / "linked.db", victim)
        assert (
            said(tmp_path, "state", "backup", str(folder / "linked.db"), "-c", config).returncode
            == 73
        )


@pytest.mark.root
@pytest.mark.parametrize("whose", ["everybody's", "mallory's"])
def test_no_copy_is_made_where_others_could_take_it(tmp_path: Path, whose: str) -> None:
    config = configured(tmp_path)
    assert said(tmp_path, "tick", "-c", config).returncode == 0
    with shared_folder() as folder:
        place = folder_of(0 if whose == "everybody's" else MALLORY, folder / "place", 0o777)
        done = said(tmp_path, "state", "backup", str(place / "copy.db"), "-c", config)
        assert done.returncode == 73
        assert "others could read or replace a copy there" in done.stderr
        assert "in a directory of your own" in done.stderr
        assert not [*place.iterdir()]
