"""A damaged, removed or replaced state file: kept aside, told, and watching goes on."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.core.errors import Fenced, StoreBusy
from sentinel.core.model import Batch, Receipt
from sentinel.store.errors import StateDamaged
from sentinel.store.opening import open_store
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import alert, at, outgoing, summaries, told, transition

STAMP = "20270115T080000Z"


def filled(state: Path, rows: int = 200) -> None:
    """A state of many pages, closed."""
    store = open_store(str(state), at()).store
    store.take_lead("test", at())
    for number in range(rows):
        store.commit(Batch(at=at(), alerts=(alert(f"/{number}"),), outbox=(outgoing(str(number)),)))
    store.close()


def long_ago(state: Path) -> None:
    """A state with a long history of what is closed."""
    store = open_store(str(state), at()).store
    store.take_lead("earlier", at())
    moved = tuple(replace(transition(n, f"old-{n}"), id=f"old-{n}") for n in range(3000))
    store.commit(Batch(at=at(), transitions=moved))
    store.close()


def header(data: bytearray) -> None:
    data[:100] = b"this is no database".ljust(100)


def cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


def garbage(data: bytearray) -> None:
    middle = len(data) // 2
    data[4096 : middle + 4096] = random.Random(3).randbytes(middle)


def one_byte(data: bytearray) -> None:
    data[:] = b"x"


def empty(data: bytearray) -> None:
    data.clear()


DAMAGES = [header, cut, garbage, one_byte, empty]


def damage(state: Path, how: Callable[[bytearray], None]) -> bytes:
    file = state / "sentinel.db"
    data = bytearray(file.read_bytes())
    how(data)
    file.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_is_kept_aside(tmp_path: Path, how: Callable[[bytearray], None]) -> None:
    """As it was, under a name with the time; the new state works."""
    filled(tmp_path)
    damaged = damage(tmp_path, how)
    opened = open_store(str(tmp_path), at())
    aside = tmp_path / f"sentinel.db.damaged-{STAMP}"
    assert aside.read_bytes() == damaged
    assert opened.notices == (
        f"the state {tmp_path}/sentinel.db was damaged; it is kept as {aside}",
    )
    opened.store.take_lead("test", at())
    opened.store.commit(told("after"))
    assert summaries(opened.store.read_outbox())[-1] == "after"
    opened.store.close()
    assert open_store(str(tmp_path), at()).notices == ()


def test_a_second_damage_in_the_same_second_keeps_both(tmp_path: Path) -> None:
    """No file that was kept is overwritten."""
    for content in (b"first", b"second"):
        (tmp_path / "sentinel.db").write_bytes(content)
        open_store(str(tmp_path), at()).store.close()
    kept = sorted(tmp_path.glob("sentinel.db.damaged-*"))
    assert [file.read_bytes() for file in kept] == [b"first", b"second"]


def test_the_log_of_a_damaged_file_goes_with_it(tmp_path: Path) -> None:
    """Else SQLite would play it into the new file."""
    names = ["sentinel.db", "sentinel.db-journal", "sentinel.db-shm", "sentinel.db-wal"]
    for name in names:
        (tmp_path / name).write_text(name)
    SqliteBackend(str(tmp_path)).move_damaged_aside("now")
    moved = {f"sentinel.db.damaged-now{n.removeprefix('sentinel.db')}": n for n in names}
    kept = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name != "lock"}
    assert kept == moved


@pytest.mark.parametrize("torn", [None, b"", b"\0" * 8192], ids=["whole", "cut", "zeros"])
def test_a_power_cut_loses_nothing_that_was_committed_before(
    tmp_path: Path, torn: bytes | None
) -> None:
    """What a disk has then: the file and its log, whose end may be cut or not written yet."""
    state, drawn = tmp_path / "state", random.Random(7)
    store = open_store(str(state), at()).store
    store.take_lead("test", at())
    told_before: list[str] = []
    for number in range(20):
        log = state / "sentinel.db-wal"
        before = log.stat().st_size
        store.commit(told(f"message {number}"))
        copy = tmp_path / str(number)
        shutil.copytree(state, copy)
        kept = [*told_before, f"message {number}"]
        if torn is not None:
            length = drawn.randrange(before, log.stat().st_size)
            (copy / log.name).write_bytes(log.read_bytes()[:length] + torn)
            kept = told_before
        opened = open_store(str(copy), at())
        assert (summaries(opened.store.read_outbox()), opened.notices) == (kept, ()), number
        opened.store.close()
        told_before = [*told_before, f"message {number}"]
    store.close()


def test_a_command_leaves_the_file_to_the_service(tmp_path: Path) -> None:
    """Only who may lead moves it; the error names the leader."""
    filled(tmp_path)
    service = open_store(str(tmp_path), at()).store
    service.take_lead("sentinel run", at())
    damage(tmp_path, header)
    with pytest.raises(StoreBusy, match="damaged; left to its leader: sentinel run since"):
        open_store(str(tmp_path), at())
    assert not list(tmp_path.glob("*damaged*"))
    service.close()


def overwrite(state: Path) -> None:
    """In place; SQLite meets it where it has to read what it has not in its cache."""
    size = (state / "sentinel.db").stat().st_size
    with (state / "sentinel.db").open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(3).randbytes(size - 4096))


def replace_file(state: Path) -> None:
    (state / "sentinel.db").unlink()
    (state / "sentinel.db").write_bytes(b"")


def cut_to_nothing(state: Path) -> None:
    with (state / "sentinel.db").open("r+b") as file:
        file.truncate(0)
    (state / "sentinel.db-wal").unlink(missing_ok=True)


def drop_a_table(state: Path) -> None:
    with sqlite3.connect(state / "sentinel.db") as connection:
        connection.execute("DROP TABLE memory")
    connection.close()


LOSSES = [
    overwrite,
    drop_a_table,
    cut_to_nothing,
    replace_file,
    lambda state: (state / "sentinel.db").unlink(),
    lambda state: shutil.rmtree(state),
]


@pytest.mark.parametrize(
    "lose", LOSSES, ids=["overwritten", "dropped", "cut", "replaced", "removed", "no directory"]
)
def test_damage_while_running_loses_no_alert(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """What must not be lost is written to a new file at once, and a person is told."""
    state = tmp_path / "state"
    long_ago(state)
    store = open_store(str(state), at()).store
    store.take_lead("test", at())
    batch = Batch(
        at=at(), alerts=(alert(),), outbox=(outgoing("a"), outgoing("b")), memory={"m": {"x": 1}}
    )
    store.commit(batch)
    store.commit(Batch(at=at(), transitions=(transition(),)))
    store.sent(store.read_outbox()[:1], at(1), Receipt("250"))
    lose(state)
    again_and_again = tuple(transition(n, str(n), at(n)) for n in range(2, 60))
    store.commit(Batch(at=at(2), transitions=again_and_again, memory={"fs": {"value": "after"}}))
    notices = store.take_notices()
    assert store.trouble is None
    assert len(notices) == 1
    assert str(state / "sentinel.db") in notices[0]
    assert store.take_notices() == ()
    store.close()
    again = open_store(str(state), at()).store
    assert again.read_alerts() == [alert()]
    assert summaries(again.read_outbox()) == ["b"]
    assert again.read_transitions(1, transition().alert) == [transition()]
    assert (again.read_memory("m"), again.read_memory("fs")) == ({"x": 1}, {"value": "after"})


@pytest.mark.parametrize("how", DAMAGES)
def test_damage_found_at_a_start_loses_no_alert(
    tmp_path: Path, how: Callable[[bytearray], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy that is kept elsewhere is put back: ids stay, and what waits is sent."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    state = tmp_path / "state"
    store = open_store(str(state), at()).store
    store.take_lead("test", at())
    batch = Batch(
        at=at(), alerts=(alert(),), outbox=(outgoing("a"), outgoing("b")), memory={"m": {"x": 1}}
    )
    store.commit(batch)
    store.sent(store.read_outbox()[:1], at(1), Receipt("250"))
    store.close()
    damage(state, how)
    again = open_store(str(state), at(2)).store
    again.take_lead("test", at(2))
    assert again.trouble is None
    assert again.read_alerts() == [alert()]
    assert summaries(again.read_outbox()) == ["b"]
    assert again.read_memory("m") == {"x": 1}
    again.commit(Batch(at=at(3), closed=(alert().key,)))
    again.close()
    last = open_store(str(state), at(4)).store
    last.take_lead("test", at(4))  # the copy is put back once
    assert (last.read_alerts(), summaries(last.read_outbox())) == ([], ["b"])
    last.close()


def test_who_lost_lock_and_file_to_another_stops(tmp_path: Path) -> None:
    """A directory that was removed may be another's by now."""
    state = tmp_path / "state"
    first = open_store(str(state), at()).store
    first.take_lead("first", at())
    first.commit(told("a"))
    shutil.rmtree(state)
    second = open_store(str(state), at()).store
    second.take_lead("second", at())
    second.commit(told("b"))
    with pytest.raises(Fenced, match="second"):
        first.commit(told("c"))
    assert summaries(second.read_outbox()) == ["b"]
    assert not list(state.glob("*damaged*"))
    first.close()
    second.close()


def test_damage_is_its_own_error(tmp_path: Path) -> None:
    """Found by a read, with the place; `reopen` goes on and says where the old file is."""
    filled(tmp_path)
    store = SqlStore(SqliteBackend(str(tmp_path)))
    damage(tmp_path, garbage)
    with pytest.raises(StateDamaged, match=r"sentinel\.db: damaged: "):
        store.read_alerts()
    assert "damaged-" in store.replace_damaged(at())
    assert store.read_alerts() == []
    store.close()
