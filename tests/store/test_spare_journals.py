"""Which journal is believed, where it may lie, and which of several is the newest."""

import os
import resource
from pathlib import Path

import pytest

from sentinel.core.clock import shift_instant
from sentinel.core.errors import StoreBusy, StoreError
from sentinel.core.model import CheckRun, Status
from sentinel.store.backlog import PendingWrite
from sentinel.store.errors import StateRefused
from sentinel.store.journal import MAX_JOURNAL_BYTES
from sentinel.store.lease import Lease
from sentinel.store.rows import StateSnapshot, encode_stored
from sentinel.store.spare_journals import (
    INLINE_WORKER,
    REPEAT_AFTER_S,
    JournalContents,
    JournalDir,
    JournalHead,
    SpareJournals,
    is_recent_repeat,
    make_spare_journals,
    make_volatile_dirs,
)
from sentinel.testing import START

WRITE = PendingWrite(method="dropped", at=shift_instant(START, 60))


def head(**more: object) -> JournalHead:
    return JournalHead(**{"at": START, "snapshot": StateSnapshot(), **more})  # type: ignore[arg-type]


def contents(*writes: PendingWrite, token: int = 0, **more: object) -> JournalContents:
    return JournalContents("id", head(**more), writes, token)


def there(token: int = 0, ran: float | None = None) -> StateSnapshot:
    """A state that was led under this number, and whose last check ran so long after the start."""
    at = shift_instant(START, ran or 0)
    run = CheckRun(check="a", kind="fs", at=at, status=Status.OK, summary="", duration=0)
    return StateSnapshot(token=token, runs=() if ran is None else (run,))


def folder(path: Path, **more: bool) -> JournalDir:
    path.mkdir(exist_ok=True)
    return JournalDir(str(path), "journal", shared=more.get("shared", False))


@pytest.mark.parametrize(
    ("mine", "theirs", "newer"),
    [(5, 5, True), (5, 4, True), (5, 3, False), (5, 6, False)],
)
def test_a_later_leader_knows_more(mine: int, theirs: int, newer: bool) -> None:
    """The number is noted before leading: the state may have it or not yet, and no other."""
    assert contents(token=mine).is_newer_than(there(theirs)) is newer
    assert contents(token=mine).has_no_later_leader(there(theirs)) is newer


@pytest.mark.parametrize(
    ("ran", "newer"), [(None, True), (0.0, True), (60.0, True), (60.1, False), (3600.0, False)]
)
def test_without_a_number_any_later_run_knows_more(ran: float | None, newer: bool) -> None:
    """Than the last write, which came a minute after the journal was begun."""
    assert contents(WRITE).is_newer_than(there(ran=ran)) is newer


def test_a_copy_knows_more_than_nothing_alone() -> None:
    """It is what was known while the state worked."""
    assert contents(token=5).is_newer_than(None)
    assert contents(token=5, shadow=True).is_newer_than(None)
    assert not contents(token=5, shadow=True).is_newer_than(there(5))


def test_when_a_journal_was_written_last() -> None:
    """By its latest write; by its beginning where none has a time."""
    late = PendingWrite(method="dropped", at=shift_instant(START, 90))
    assert contents().last_written_at == START
    assert contents(PendingWrite(method="dropped")).last_written_at == START
    assert contents(WRITE, late, WRITE).last_written_at == late.at


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o702])
def test_a_folder_where_others_write_is_refused(tmp_path: Path, mode: int) -> None:
    """In a shared directory alone: whose own it is decides that by himself."""
    mine = tmp_path / f"sentinel-{os.geteuid()}"
    mine.mkdir()
    mine.chmod(mode)
    writable = bool(mode & 0o022)
    shared = folder(tmp_path, shared=True)
    if writable:
        with pytest.raises(StateRefused, match="others can write there; chmod go-w"):
            shared.require_folder()
    folder(mine).require_folder()
    mine.chmod(0o755)
    shared.require_folder()


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Where its parent is missing nothing is made; a file in its place is refused."""
    place = folder(tmp_path, shared=True)
    place.require_folder()
    assert (tmp_path / f"sentinel-{os.geteuid()}").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError, match="that stays"):
        JournalDir(str(tmp_path / "none"), "journal", shared=True).require_folder()
    (tmp_path / "file").touch()
    with pytest.raises(StateRefused, match="is no directory; remove it"):
        JournalDir(str(tmp_path / "file"), "journal", shared=False).require_folder()


def test_a_file_of_ones_own_in_its_place_makes_another(tmp_path: Path) -> None:
    """The next process finds it by its name."""
    (tmp_path / f"sentinel-{os.geteuid()}").touch()
    one, later = folder(tmp_path, shared=True), folder(tmp_path, shared=True)
    one.require_folder()
    assert "and is no directory" in one.squatter
    assert Path(one.folder).name.startswith(f"sentinel-{os.geteuid()}.")
    later.find_earlier_folder()
    assert later.folder == one.folder


def test_the_newest_journal_is_read(tmp_path: Path) -> None:
    """By the order in the outage, then by when it was written; a copy is not gone on with. One without
    an order comes after any journal."""
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    one.journal.restart_with(_record(head(order=1)))
    two.journal.restart_with(_record(head(at=shift_instant(START, 99), shadow=True)))
    kept = SpareJournals(None, [one, two]).read_newest()
    assert kept is not None
    assert not kept.begin.shadow
    one.journal.restart_with(_record(head(order=2)))
    two.journal.restart_with(_record(head(order=1, at=shift_instant(START, 99))))
    places = SpareJournals(None, [one, two])
    kept = places.read_newest()
    assert kept is not None
    assert (kept.begin.order, places.journal_path) == (2, one.journal.path)
    two.journal.restart_with(_record(head(order=2, at=shift_instant(START, 99))))
    assert places.read_newest() is not None
    assert places.journal_path == two.journal.path
    two.journal.restart_with(_record(head(order=3, shadow=True)))
    kept = places.read_newest()
    assert kept is not None
    assert (kept.begin.shadow, places.journal_path, places.journal_id) == (True, "", "")
    assert places.append_write(WRITE) is False
    places.remove_journals()
    assert places.read_newest() is None


def test_a_new_journal_goes_on_counting(tmp_path: Path) -> None:
    """So that whoever reads them later knows which is the last; the number of a leader too."""
    one = folder(tmp_path / "one")
    places = SpareJournals(None, [one])
    assert places.begin_journal(head())
    assert places.begin_journal(head())
    assert places.append_write(WRITE)
    assert places.append_token(7)
    assert places.journal_id == one.journal.id != ""
    kept = SpareJournals(None, [one]).read_newest()
    assert kept is not None
    assert (kept.begin.order, kept.token, kept.writes[0]) == (2, 7, WRITE)
    places.leave_journal()
    assert (places.append_token(8), places.journal_path) == (False, "")


def test_a_place_that_fails_comes_last(tmp_path: Path) -> None:
    """It holds everything so far; where no other takes it, that one is begun anew."""
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    places = SpareJournals(None, [one, two])
    assert places.begin_journal(head())
    os.unlink(one.journal.path)
    os.mkdir(one.journal.path)
    assert not places.append_write(WRITE)
    assert places.journal_path == ""
    assert places.begin_journal(head())
    assert places.journal_path == two.journal.path


def test_what_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    """Of one's own places; what others plant in a shared one is named when it is in the way."""
    own, shared = folder(tmp_path / "own"), folder(tmp_path / "shared", shared=True)
    shared.require_folder()
    for place in (own, shared):
        place.journal.restart_with(b"{")
    places = SpareJournals(own, [own, shared])
    for _ in range(2):
        assert places.read_newest() is None
        assert len(places.refused) == 1
        assert places.refused[0].startswith(f"{own.journal.path}: not read: ")


def test_beside_the_state_room_is_kept(tmp_path: Path) -> None:
    """While there is any; elsewhere nothing is written while the state works."""
    own, away = folder(tmp_path / "own"), folder(tmp_path / "away")
    places = SpareJournals(own, [away])
    assert places.read_newest() is None
    assert os.path.exists(own.journal.path)
    assert not os.path.exists(away.journal.path)
    places.write_standby_copy(head(shadow=True))
    assert os.path.exists(away.journal.path)
    places.remove_journals()
    assert os.path.exists(own.journal.path)
    assert not os.path.exists(away.journal.path)


def test_one_leads_by_the_second_place(tmp_path: Path) -> None:
    """Whoever comes second is told who; given back it is free, and no file stays."""
    one, two = (SpareJournals(None, [folder(tmp_path / "one")]) for _ in range(2))
    one.lock_spare(Lease("one"))
    with pytest.raises(StoreBusy, match="another sentinel leads: one"):
        two.lock_spare(Lease("two"))
    one.unlock_spare()
    one.unlock_spare()
    assert not [*(tmp_path / "one").iterdir()]
    two.lock_spare(Lease("two"))
    two.unlock_spare()
    with pytest.raises(StoreError, match="spare_state: is not set"):
        SpareJournals(None, []).lock_spare(Lease("one"))


def test_a_place_that_is_none_is_passed_over(tmp_path: Path) -> None:
    """Also for the lock; why it was refused is said."""
    (tmp_path / "file").touch()
    bad = JournalDir(str(tmp_path / "file"), "journal", shared=False)
    gone = JournalDir(str(tmp_path / "no" / "way"), "journal", shared=False)
    good = folder(tmp_path / "good")
    places = SpareJournals(None, [gone, bad, good])
    assert places.begin_journal(head())
    assert places.journal_path == good.journal.path
    places.lock_spare(Lease("one"))
    assert os.path.exists(good.journal.path + ".lock")
    assert [why.partition(":")[2] for why in places.refused] == [" is no directory; remove it"]
    places.unlock_spare()


def test_a_journal_too_large_for_its_file_leaves_out_memories(tmp_path: Path) -> None:
    """What checks remember is learnt again, alerts are not."""
    big = StateSnapshot(memory={"a": {"x": "x" * (MAX_JOURNAL_BYTES // 2)}}, seq=3)
    place = folder(tmp_path / "one")
    places = SpareJournals(None, [place])
    for snapshot, memory in ((big, {}), (StateSnapshot(memory={"a": {"x": 1}}), {"a": {"x": 1}})):
        assert places.begin_journal(head(snapshot=snapshot))
        kept = places.read_newest()
        assert kept is not None
        assert kept.begin.snapshot.memory == memory


@pytest.mark.parametrize(
    ("later", "repeats"),
    [(0.0, True), (REPEAT_AFTER_S - 0.1, True), (REPEAT_AFTER_S, False), (-0.1, False)],
)
def test_the_same_is_said_once_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: float, repeats: bool
) -> None:
    """By any process of this user; a clock set back repeats it, and other words are said."""
    assert REPEAT_AFTER_S == 3600
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert not is_recent_repeat("what", 1000.0)
    assert not is_recent_repeat("other", 1000.0)
    assert is_recent_repeat("what", 1000.0 + later) is repeats


def test_where_nothing_can_be_stored_nothing_is_a_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said twice is better than never."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        found = [is_recent_repeat("never stored", 1000.0) for _ in range(2)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert found == [False, False]


@pytest.mark.root
@pytest.mark.parametrize("own", ["", "/somewhere"])
def test_where_a_journal_may_lie_that_nobody_configured(
    monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    """/run is root's alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", own)
    others = ([own] if own else [], ["/dev/shm", "/tmp"])
    for uid, runs in ((0, ["/run"]), (1, [])):
        os.seteuid(uid)
        try:
            found = [place.folder for place in make_volatile_dirs("journal")]
        finally:
            os.seteuid(0)
        wanted = [*others[0], *runs, *others[1]]
        assert found == [f"{folder}/sentinel-{uid}" for folder in wanted]


def test_where_the_journals_of_a_state_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configured place first; each state has a name of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    paths = []
    for identity in ("one", "two"):
        places = make_spare_journals(identity, str(tmp_path / "s"), beside=None, patience=5)
        assert places.begin_journal(head())
        paths.append(Path(places.journal_path))
        places.remove_journals()
    assert {path.parent for path in paths} == {tmp_path / "s"}
    assert len({path.name for path in paths}) == 2
    places = make_spare_journals("one", beside=None, patience=5)
    assert places.begin_journal(head())
    assert Path(places.journal_path).parent.parent == tmp_path / "run"
    places.remove_journals()
    (state := tmp_path / "state").mkdir()
    places = make_spare_journals(str(state), beside=INLINE_WORKER, patience=5)
    assert places.begin_journal(head())
    assert Path(places.journal_path) == state / "journal"


def _record(begin: JournalHead) -> bytes:
    return encode_stored(begin).encode()
