"""The ledger of GPUs: what every kind of state keeps its word about."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sentinel.core.clock import Instant
from sentinel.core.gpu_ledger import GpuEvent, GpuLedger, GpuSighting
from sentinel.core.lemon_policy import DAY_S, DEFAULT_POLICY, LemonPolicy
from sentinel.store.gpu_ledger import SqlGpuLedger
from sentinel.store.postgres import PostgresBackend
from sentinel.store.sqlite import SqliteBackend
from tests.store.gpu_memory import GpuState, MemoryGpus
from tests.store.nouns import HOSTILE, at

Open = Callable[..., GpuLedger]
A, B = "GPU-aaaa", "GPU-bbbb"


def seen(
    uuid: str = A, node: str = "n1", slot: str = "00000000:18:00.0", **more: str
) -> GpuSighting:
    return GpuSighting(uuid=uuid, node=node, slot=slot, **more)


def event(
    name: str, what: str = "xid 48", subject: str = A, when: Instant | None = None
) -> GpuEvent:
    return GpuEvent(id=name, subject=subject, what=what, at=when or at(), node="n1")


class GpusContract:
    """One rule, one test. Subclasses bring `open_gpus`, which opens the same state each time."""

    @pytest.fixture
    def gpus(self, open_gpus: Open) -> Iterator[GpuLedger]:
        gpus = open_gpus()
        yield gpus
        gpus.close()

    def test_a_new_state_knows_of_nothing(self, gpus: GpuLedger) -> None:
        """No entries, stays, events, scores."""
        assert gpus.read_entry(A) is None
        assert list(gpus.read_entries()) == []
        assert (list(gpus.read_stays(A)), list(gpus.read_events(A))) == ([], [])
        assert gpus.read_standings(at()) == {}

    def test_a_gpu_is_known_from_its_first_sight(self, gpus: GpuLedger, open_gpus: Open) -> None:
        """With serial, model and place; another handle, as another process has, sees it."""
        assert list(gpus.record_sightings([seen(serial="165", model="H100")], at())) == []
        other = open_gpus()
        (entry,) = other.read_entries()
        assert (entry.subject, entry.serial, entry.model) == (A, "165", "H100")
        assert (entry.node, entry.slot, entry.first.wall) == ("n1", "00000000:18:00.0", at().wall)
        assert [e.subject for e in other.read_entries("n1")] == [A]
        assert list(other.read_entries("n2")) == []
        other.close()

    def test_seen_again_it_stays(self, gpus: GpuLedger) -> None:
        """One stay, however often; the last sight moves on; what is hidden now is not forgotten."""
        gpus.record_sightings([seen(serial="165")], at())
        for second in range(1, 4):
            assert list(gpus.record_sightings([seen()], at(second))) == []
        (stay,) = gpus.read_stays(A)
        assert (stay.began.wall, stay.ended.wall) == (at().wall, at(3).wall)
        entry = gpus.read_entry(A)
        assert entry is not None
        assert (entry.serial, entry.seen.wall, entry.first.wall) == ("165", at(3).wall, at().wall)

    @pytest.mark.parametrize(
        "there", [seen(node="n9"), seen(slot="00000000:2A:00.0")], ids=["node", "slot"]
    )
    def test_a_gpu_that_moved_is_told_once(self, gpus: GpuLedger, there: GpuSighting) -> None:
        """Where it was, from when to when, where it is; after that it is at home there."""
        gpus.record_sightings([seen(), seen(B)], at())
        gpus.record_sightings([seen(), seen(B)], at(5))
        (move,) = gpus.record_sightings([there, seen(B)], at(9))
        assert (move.uuid, move.now) == (A, there)
        assert (move.was.node, move.was.began.wall, move.was.ended.wall) == (
            "n1",
            at().wall,
            at(5).wall,
        )
        assert list(gpus.record_sightings([there, seen(B)], at(10))) == []
        stays = [(s.node, s.slot, s.began.wall, s.ended.wall) for s in gpus.read_stays(A)]
        assert stays == [
            ("n1", "00000000:18:00.0", at().wall, at(5).wall),
            (there.node, there.slot, at(9).wall, at(10).wall),
        ]

    def test_a_move_tells_what_is_held_of_the_gpu(self, gpus: GpuLedger) -> None:
        """A lemon is recognised in the very pass that sees it elsewhere."""
        gpus.record_sightings([seen()], at())
        gpus.add_events([event("1"), event("2", "diag fail")])
        (move,) = gpus.record_sightings([seen(node="n9")], at(1))
        assert move.standing.judged == "lemon"

    def test_events_are_recorded_once(self, gpus: GpuLedger) -> None:
        """By their id, within a call and over calls; the newest come first."""
        one, two = event("1"), event("2", when=at(5))
        assert [e.id for e in gpus.add_events([one, two, one])] == ["1", "2"]
        assert list(gpus.add_events([two])) == []
        assert [e.id for e in gpus.read_events(A)] == ["2", "1"]
        assert [e.id for e in gpus.read_events(A, 1)] == ["2"]
        assert list(gpus.read_events(B)) == []

    def test_an_event_makes_a_gpu_known(self, gpus: GpuLedger) -> None:
        """One that fell off before anybody saw it, and a node."""
        gpus.add_events([event("1"), event("2", "node fail", "node:n7")])
        assert {e.subject: e.is_node for e in gpus.read_entries()} == {A: False, "node:n7": True}
        assert list(gpus.record_sightings([seen()], at(1))) == []
        assert len(gpus.read_stays(A)) == 1

    def test_scores_halve(self, gpus: GpuLedger) -> None:
        """3 at first, 1.5 after a half-life; what weighs nothing has no score."""
        gpus.add_events([event("1"), event("2", "xid 31", B)])
        assert gpus.read_standings(at())[A].score == pytest.approx(3)
        half = gpus.read_standings(at(28 * DAY_S))
        assert half[A].score == pytest.approx(1.5)
        assert (half[A].judged, B in half) == ("good", False)

    def test_of_each_day_the_heaviest_event_counts(self, gpus: GpuLedger) -> None:
        """A flood, and all that one incident makes, are one; another day and GPU are others."""
        flood = [event(f"f{n}", when=at(n)) for n in range(50)]
        gpus.add_events([*flood, event("x", "xid 63"), event("y", subject=B)])
        standings = gpus.read_standings(at(49))
        assert standings[A].score == pytest.approx(3, abs=1e-3)
        assert standings[B].score == pytest.approx(3, abs=1e-3)
        gpus.add_events([event("z", when=at(DAY_S))])
        assert gpus.read_standings(at(DAY_S))[A].score == pytest.approx(5.93, abs=0.01)

    @pytest.mark.parametrize(("mark", "judged"), [("lemon", "lemon"), ("good", "good")])
    def test_a_persons_mark_counts_more_than_the_sum(
        self, gpus: GpuLedger, mark: str, judged: str
    ) -> None:
        """Whatever happened; with who said it, why, and an event of its own."""
        gpus.record_sightings([seen(), seen(B)], at())
        gpus.add_events([event("1"), event("2", "xid 64")])
        for uuid in (A, B):
            gpus.set_mark(uuid, mark, "RMA 4711", "root", at(1))  # type: ignore[arg-type]
        standings = gpus.read_standings(at(2))
        assert [(standings[u].judged, standings[u].marked) for u in (A, B)] == [(judged, True)] * 2
        entry = gpus.read_entry(A)
        assert entry is not None
        assert (entry.mark, entry.reason, entry.by) == (mark, "RMA 4711", "root")
        assert gpus.read_events(A)[0].what == f"marked {mark}"

    def test_cleared_it_begins_anew(self, gpus: GpuLedger) -> None:
        """What happened before is history, and counts no more; what comes later counts."""
        gpus.add_events([event("1"), event("2", "xid 64")])
        gpus.set_mark(A, "lemon", "", "root", at(1))
        gpus.set_mark(A, "", "replaced its cable", "root", at(2))
        assert A not in gpus.read_standings(at(3))
        assert len(gpus.read_events(A)) == 4
        gpus.add_events([event("3", when=at(10))])
        assert gpus.read_standings(at(10))[A].score == pytest.approx(3)

    def test_what_never_happened_is_forgotten(self, gpus: GpuLedger, open_gpus: Open) -> None:
        """The named kinds alone, from a moment on; the score is counted anew, and a note says who
        said so and why. What came before that moment stays."""
        gpus.record_sightings([seen()], at())
        gpus.add_events(
            [event("0"), event("1", when=at(3 * DAY_S)), event("2", "xid 64", when=at(DAY_S))]
        )
        gpus.add_events([event("3", subject=B, when=at(3 * DAY_S))])
        since = at(2 * DAY_S).wall
        assert (
            gpus.forget_events(A, {"xid 48"}, since, "a program's name", "root", at(4 * DAY_S)) == 1
        )
        note, *others = gpus.read_events(A)
        assert (note.what, note.text, note.by, note.count) == (
            "forgot xid 48", "a program's name", "root", 1,
        )  # fmt: skip
        assert [e.id for e in others] == ["2", "0"]
        other = open_gpus()
        assert other.read_standings(at(4 * DAY_S))[A].score == pytest.approx(6, abs=0.6)
        assert [e.id for e in other.read_events(B)] == ["3"]
        other.close()
        assert gpus.forget_events(A, {"xid 48", "xid 64"}, 0, "", "root", at(5 * DAY_S)) == 2
        assert A not in gpus.read_standings(at(5 * DAY_S))
        assert gpus.forget_events(A, {"xid 48"}, 0, "", "root", at(5 * DAY_S)) == 0
        assert gpus.forget_events("GPU-none", {"xid 48"}, 0, "", "root", at()) == 0

    def test_a_gpu_that_only_false_events_spoke_of_is_gone(self, gpus: GpuLedger) -> None:
        """No driver ever showed it, so it would be missed for ever; one that somebody marked or that
        was seen stays."""
        gpus.record_sightings([seen(B)], at())
        gpus.set_mark("GPU-cccc", "lemon", "by mail", "ops", at())
        for subject in (A, B, "GPU-cccc", "node:n7"):
            gpus.add_events([event(f"1 {subject}", subject=subject)])
            assert gpus.forget_events(subject, {"xid 48"}, 0, "forged", "root", at(1)) == 1
        assert {e.subject for e in gpus.read_entries()} == {B, "GPU-cccc"}
        assert list(gpus.read_events(A)) == []
        gpus.add_events([event("2")])
        assert gpus.read_entry(A) is not None

    def test_a_gpu_nobody_saw_can_be_marked(self, gpus: GpuLedger) -> None:
        """From another cluster's list."""
        gpus.set_mark(B, "lemon", "returned by the provider", "ops", at())
        assert gpus.read_standings(at())[B].judged == "lemon"
        assert list(gpus.record_sightings([seen(B)], at(1))) == []

    def test_another_policy_counts_anew(self, open_gpus: Open) -> None:
        """Weights and half-life come from the file, and may change with it."""
        first = open_gpus()
        first.add_events([event("1"), event("2", "xid 13")])
        assert first.read_standings(at())[A].score == pytest.approx(3)
        first.close()
        other = open_gpus(policy=LemonPolicy(weights={"xid 48": 0.5, "xid 13": 9}))
        assert other.read_standings(at())[A].score == pytest.approx(9)
        assert other.read_standings(at())[A].judged == "lemon"
        other.close()

    def test_any_text_comes_back(self, gpus: GpuLedger) -> None:
        """NUL, lone surrogates, quotes, long ones."""
        odd = GpuEvent(id=HOSTILE, subject=HOSTILE, what=HOSTILE, at=at(), text=HOSTILE * 50)
        gpus.record_sightings([seen(HOSTILE, HOSTILE, HOSTILE, model=HOSTILE)], at())
        gpus.add_events([odd])
        assert list(gpus.read_events(HOSTILE)) == [odd]
        assert [e.subject for e in gpus.read_entries(HOSTILE)] == [HOSTILE]

    def test_pruning(self, gpus: GpuLedger) -> None:
        """Old events and ended stays go; entries, marks and the stay that lasts remain."""
        gpus.record_sightings([seen()], at())
        gpus.record_sightings([seen(node="n2")], at(1))
        gpus.add_events([event("1")])
        gpus.set_mark(A, "lemon", "", "root", at(2))
        gpus.prune(at(400 * DAY_S - 1))
        assert (len(gpus.read_events(A)), len(gpus.read_stays(A))) == (2, 2)
        gpus.prune(at(400 * DAY_S + 10))
        assert (len(gpus.read_events(A)), [s.node for s in gpus.read_stays(A)]) == (0, ["n2"])
        assert gpus.read_standings(at(400 * DAY_S))[A].judged == "lemon"

    def test_more_than_one_question_can_hold(self, gpus: GpuLedger) -> None:
        """Thousands of GPUs in one pass: all are known afterwards, and one that moved is found."""
        many = [seen(f"GPU-{n}", f"n{n // 8}") for n in range(5200)]
        gpus.record_sightings(many, at())
        moved = [*many[:-1], seen("GPU-5199", "elsewhere")]
        assert [m.uuid for m in gpus.record_sightings(moved, at(1))] == ["GPU-5199"]
        assert len(gpus.read_entries()) == 5200


class TestMemory(GpusContract):
    """In memory."""

    @pytest.fixture
    def open_gpus(self) -> Open:
        state = GpuState()
        return lambda policy=DEFAULT_POLICY: MemoryGpus(state, policy)


class TestSqlite(GpusContract):
    """In a state directory."""

    @pytest.fixture
    def open_gpus(self, tmp_path: Path) -> Open:
        return lambda policy=DEFAULT_POLICY: SqlGpuLedger(SqliteBackend(str(tmp_path)), policy)


class TestPostgres(GpusContract):
    """In PostgreSQL."""

    @pytest.fixture
    def open_gpus(self, postgres_url: str) -> Open:
        return lambda policy=DEFAULT_POLICY: SqlGpuLedger(PostgresBackend(postgres_url), policy)
