"""The journal of what cannot be written: cut anywhere, planted, of a newer version, full."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.store import journal as format_
from sentinel.store.errors import StateRefused
from sentinel.store.journal import BLOCK_BYTES, MAX_JOURNAL_BYTES, RESERVED_BYTES, Journal


def written(folder: Path, *records: bytes) -> Path:
    path = folder / "journal"
    journal = Journal(str(path))
    journal.restart_with(records[0])
    for record in records[1:]:
        journal.append_record(record)
    return path


RECORDS = st.lists(st.binary(min_size=1, max_size=3 * BLOCK_BYTES), min_size=1, max_size=5)


@given(
    records=RECORDS,
    more=RECORDS,
    cut=st.integers(0, 20 * BLOCK_BYTES),
    noise=st.binary(max_size=40),
)
@example(records=[b"a", b"b", b"c"], more=[b"d"], cut=2 * BLOCK_BYTES + 16, noise=b"")
@example(records=[b"a", b"b", b"c"], more=[b"d"], cut=2 * BLOCK_BYTES + 16, noise=b"\2")
def test_cut_at_any_byte(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[bytes],
    more: list[bytes],
    cut: int,
    noise: bytes,
) -> None:
    """What is whole before the cut is read, nothing else is, and what is appended then is read."""
    path = written(tmp_path_factory.mktemp("cut"), *records)
    data = path.read_bytes()
    cut = min(cut, len(data))
    path.write_bytes(data[:cut] + noise if cut < len(data) else data)
    left = Journal(str(path))
    read = left.read_records()
    assert read == records[: len(read)]
    sizes = [-(-(len(r) + 60) // BLOCK_BYTES) * BLOCK_BYTES for r in records]
    whole = sum(cut >= sum(sizes[:n]) + len(r) + 60 for n, r in enumerate(records))
    assert len(read) == whole
    if read:
        for record in more:
            left.append_record(record)
        assert Journal(str(path)).read_records() == read + more


def test_no_block_is_written_twice(tmp_path: Path) -> None:
    """Also not where a record was torn: on a full Btrfs the second write to a block fails."""
    path = written(tmp_path, b"first", b"torn")
    before = bytearray(path.read_bytes())
    before[-1] ^= 1
    path.write_bytes(before)
    again = Journal(str(path))
    assert again.read_records() == [b"first"]
    again.append_record(b"second")
    assert path.read_bytes()[: len(before)] == bytes(before)
    assert Journal(str(path)).read_records() == [b"first", b"second"]


def test_what_is_reserved_is_empty_and_private(tmp_path: Path) -> None:
    """Room is taken while there is some; a pass without trouble reads nothing from it."""
    journal = Journal(str(tmp_path / "journal"))
    journal.reserve_space()
    seen = (tmp_path / "journal").stat()
    assert (seen.st_size, seen.st_mode & 0o777) == (RESERVED_BYTES, 0o600)
    assert journal.read_records() == []
    journal.restart_with(b"first")
    assert (tmp_path / "journal").stat().st_ino == seen.st_ino  # what was reserved is used
    assert Journal(journal.path).read_records() == [b"first"]


def test_a_new_one_takes_the_place_of_a_used_one_whole(tmp_path: Path) -> None:
    """A kill in between leaves the old one; what it left of the new one is no obstacle."""
    path = written(tmp_path, b"old", b"old too")
    left = tmp_path / "journal.new"
    left.write_bytes(path.read_bytes()[:BLOCK_BYTES])
    left.chmod(0o600)
    assert Journal(str(path)).read_records() == [b"old", b"old too"]
    journal = Journal(str(path))
    journal.restart_with(b"new")
    journal.append_record(b"more")
    assert Journal(str(path)).read_records() == [b"new", b"more"]
    assert not left.exists()
    left.write_bytes(b"")
    journal.remove_files()
    assert [path.exists(), left.exists()] == [False, False]


def test_it_is_bounded(tmp_path: Path) -> None:
    """The next place is tried then."""
    journal = Journal(str(tmp_path / "journal"))
    journal.restart_with(b"x")
    journal.append_record(b"x" * (MAX_JOURNAL_BYTES - 3 * BLOCK_BYTES))
    with pytest.raises(OSError, match="holds 8 MB already"):
        journal.append_record(b"x" * BLOCK_BYTES)
    assert (tmp_path / "journal").stat().st_size <= MAX_JOURNAL_BYTES


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """Nor is what it leads to read or written."""
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "journal").symlink_to(tmp_path / "victim")
    journal = Journal(str(tmp_path / "journal"))
    for deed in (
        journal.read_records,
        lambda: journal.restart_with(b"x"),
        lambda: journal.append_record(b"x"),
    ):
        with pytest.raises(StateRefused, match="journal: is a link and not followed; remove it"):
            deed()
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.root
def test_a_journal_of_another_user(tmp_path: Path) -> None:
    """Named, with whose it is."""
    path = written(tmp_path, b"forged")
    os.chown(path, 65534, 65534)
    with pytest.raises(StateRefused, match="journal: belongs to uid 65534, so it is not used"):
        Journal(str(path)).read_records()


@pytest.mark.parametrize(
    ("how", "why"), [("open", "is open to others"), ("twice", "has a second name")]
)
def test_a_journal_that_others_could_have_written(tmp_path: Path, how: str, why: str) -> None:
    """What it says would be done and told."""
    path = written(tmp_path, b"x")
    if how == "open":
        path.chmod(0o620)
    else:
        os.link(path, tmp_path / "other")
    with pytest.raises(StateRefused, match=why):
        Journal(str(path)).read_records()


def test_a_pipe_does_not_hold_it_up(tmp_path: Path) -> None:
    """Opening one waits for a writer, for ever."""
    os.mkfifo(tmp_path / "journal", 0o600)
    with pytest.raises(StateRefused, match="is no regular file"):
        Journal(str(tmp_path / "journal")).read_records()


def test_a_journal_of_a_newer_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left to whoever wrote it."""
    with monkeypatch.context() as newer:
        newer.setattr(format_, "_VERSION", 2)
        path = written(tmp_path, b"of the future")
    with pytest.raises(StateRefused, match="journal: a journal of a newer sentinel: version 2"):
        Journal(str(path)).read_records()
