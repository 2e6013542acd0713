"""What every store keeps its word about. Subclasses bring a `place` fixture."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Remark, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND
from sentinel.core.errors import Fenced, StoreBusy
from sentinel.core.holds import MessageGroup
from sentinel.core.model import Batch, LastNotified, Outgoing, Receipt, Sample, Status
from sentinel.core.run_ledger import LedgerRow
from sentinel.store.errors import Unstorable
from sentinel.store.retention import DAY_S
from tests.store.nouns import (
    HOSTILE,
    alert,
    at,
    key,
    measured,
    outgoing,
    remembered,
    run,
    summaries,
    told,
    transition,
)

OK = Receipt("250 ok")


class Place(Protocol):
    """Where a state lives, as several processes would meet it."""

    def open(self) -> Store:
        """Another handle to the same state."""

    def usurp(self) -> None:
        """Another sentinel takes over although the first still runs."""

    def close(self) -> None: ...


WRITES: dict[str, Callable[[Store, list[Outgoing]], object]] = {
    "commit": lambda store, rows: store.commit(remembered("late")),
    "sent": lambda store, rows: store.sent(rows, at(), OK),
    "failed": lambda store, rows: store.failed([replace(r, attempts=9) for r in rows]),
    "dropped": lambda store, rows: store.dropped(rows, at(), "no such user"),
    "prune": lambda store, rows: store.prune(at(400 * DAY_S)),
}


class OrderContract:
    """Silences and acknowledgements, which people write while a sentinel leads."""

    def test_people_write_without_leading(self, place: Place, store: Store) -> None:
        """Another handle, as the command line has it; the leader reads it at once."""
        silence = Silence(
            id="s1", match=Match(check=["fs", "job"], labels={"team": HOSTILE}), starts=1,
            ends=at(100).wall, who="alice", reason=HOSTILE,
        )  # fmt: skip
        ack = Ack(alert="a1", at=at(1), who="bob")
        by_hand = place.open()
        by_hand.put_silence(silence)
        by_hand.put_ack(ack)
        assert store.read_orders().silences == (silence,)
        assert store.read_orders().acks == {"a1": ack}
        remarks = tuple(
            Remark(incident="a1", deed="comment", at=at(n), who="bob", text=HOSTILE) for n in (2, 1)
        )
        for remark in remarks:
            by_hand.put_remark(remark)
        assert store.read_orders().remarks == remarks[::-1]

    def test_a_later_order_of_the_same_name_replaces(self, store: Store) -> None:
        """So a silence is ended early, and an alert has one who has it."""
        for ends in (100, 50):
            store.put_silence(Silence(id="s1", match=Match(), starts=0, ends=at(ends).wall))
        for who in ("alice", "bob"):
            store.put_ack(Ack(alert="a1", at=at(1), who=who))
        orders = store.read_orders()
        assert [s.ends for s in orders.silences] == [at(50).wall]
        assert [a.who for a in orders.acks.values()] == ["bob"]

    def test_ended_silences_are_forgotten_when_pruned(self, store: Store) -> None:
        """Not before they have ended."""
        for name, ends in (("past", 10), ("now", 20)):
            store.put_silence(Silence(id=name, match=Match(), starts=0, ends=at(ends).wall))
        store.prune(at(20))
        assert [s.id for s in store.read_orders().silences] == ["now"]


class StoreContract(OrderContract):
    """One rule, one test."""

    @pytest.fixture
    def store(self, place: Place) -> Iterator[Store]:
        """A leading store."""
        store = place.open()
        store.take_lead("sentinel run, pid 1 on login1", at())
        yield store
        store.close()

    def test_a_new_state_is_empty(self, place: Place) -> None:
        """Nothing is known before anything was written."""
        store = place.open()
        read = (
            store.read_alerts(),
            store.read_runs(),
            store.read_outbox(),
            store.read_transitions(),
            store.read_leader(),
        )
        assert read == ([], [], [], [], "")
        assert store.read_memory("fs") == {}
        assert store.read_samples("fs", "/scratch", "used", 0) == []
        assert store.read_deliveries("alert") == []

    def test_what_is_committed_is_what_others_read(self, place: Place, store: Store) -> None:
        """Every field of every noun comes back, in another process too."""
        rich = alert(
            firing=True,
            fired=at(2),
            labels={"node": "n1"},
            values={"used": 96.5, "free": 12, "read_only": False, "mount": "x", "none": None},
            commands=("df -h", "lfs quota"),
            told={"mail": LastNotified(at(3), Status.CRITICAL)},
        )
        batch = Batch(
            at=at(),
            alerts=(rich,),
            runs=(run(),),
            transitions=(transition(),),
            outbox=(outgoing(),),
            memory={"fs": {"seen": [1, {"deep": True}]}},
        )
        store.commit(batch)
        other = place.open()
        assert other.read_alerts() == [rich]
        assert other.read_runs() == [run()]
        assert other.read_transitions() == [transition()]
        assert [replace(row, seq=0) for row in other.read_outbox()] == [outgoing()]
        assert other.read_memory("fs") == {"seen": [1, {"deep": True}]}

    def test_an_alert_is_one_row_per_key(self, store: Store) -> None:
        """A later alert of a key replaces the earlier one; others stay."""
        store.commit(Batch(at=at(), alerts=(alert("/a"), alert("/b"))))
        later = alert("/a", id="another", summary="fuller")
        store.commit(Batch(at=at(), alerts=(later,)))
        assert sorted(store.read_alerts(), key=lambda a: a.key) == [later, alert("/b")]

    def test_what_was_sent_is_known_by_its_messages(self, place: Place, store: Store) -> None:
        """From a moment on, oldest first; what was given up was not sent."""
        rows = tuple(replace(outgoing(f"{n}"), bundle=MessageGroup(f"g{n % 2}")) for n in range(5))
        store.commit(Batch(at=at(), outbox=rows))
        one, two, three, four, five = store.read_outbox()
        store.sent([one], at(10), OK)
        store.sent([two, three], at(20), OK)
        store.sent([four], at(30), OK)
        store.dropped([five], at(30), "overtaken")
        told = place.open().read_sendings(at(20).wall)
        assert [(s.channel, s.bundle.route, s.at) for s in told] == [
            ("mail", "g1", at(20)), ("mail", "g0", at(20)), ("mail", "g1", at(30)),
        ]  # fmt: skip
        assert [s.message for s in told] == [two.seq, two.seq, four.seq]

    def test_closed_alerts_are_gone_and_their_history_is_not(self, store: Store) -> None:
        """Closing comes before opening, so that a key may do both in one batch."""
        store.commit(Batch(at=at(), alerts=(alert("/a"), alert("/b")), transitions=(transition(),)))
        again = alert("/b", id="again")
        store.commit(Batch(at=at(), closed=(key("/a"), key("/b"), key("/c")), alerts=(again,)))
        assert store.read_alerts() == [again]
        assert store.read_transitions() == [transition()]

    def test_the_last_run_of_each_check_is_kept(self, store: Store) -> None:
        """One row a check."""
        store.commit(Batch(at=at(), runs=(run("fs"), run("job"))))
        store.commit(Batch(at=at(), runs=(run("fs", Status.CRITICAL),)))
        assert sorted(store.read_runs(), key=lambda r: r.check) == [
            run("fs", Status.CRITICAL),
            run("job"),
        ]

    # All or nothing

    @pytest.mark.parametrize("bad", [{"x": object()}, {"x": {(1, 2): 3}}], ids=["object", "key"])
    def test_a_batch_that_cannot_be_stored_leaves_nothing(self, store: Store, bad: Any) -> None:
        """All of a batch or nothing."""
        batch = Batch(
            at=at(),
            alerts=(alert(),),
            runs=(run(),),
            outbox=(outgoing(),),
            memory={"good": {}, "bad": bad},
            samples={"fs": (Sample("/", "used", 1.0),)},
        )
        with pytest.raises(Unstorable):
            store.commit(batch)
        assert (store.read_alerts(), store.read_runs(), store.read_outbox()) == ([], [], [])
        assert store.read_samples("fs", "/", "used", 0) == []
        store.commit(told("after"))
        assert summaries(store.read_outbox()) == ["after"]

    # Outbox

    def test_the_outbox_keeps_the_order_of_commits(self, store: Store) -> None:
        """Rows are told in the order in which they were written, each with a number."""
        store.commit(told("a", "b"))
        store.commit(told("c"))
        rows = store.read_outbox()
        assert summaries(rows) == ["a", "b", "c"]
        assert [row.seq for row in rows] == sorted({row.seq for row in rows})

    def test_a_given_number_is_kept_and_repeating_it_changes_nothing(self, store: Store) -> None:
        """A batch that is written twice is told once; later numbers come after it."""
        batch = Batch(at=at(), outbox=(replace(outgoing("a"), seq=7),), transitions=(transition(),))
        store.commit(batch)
        store.commit(batch)
        store.commit(told("b"))
        assert [(r.seq, r.notification.summary) for r in store.read_outbox()] == [
            (7, "a"),
            (8, "b"),
        ]
        assert store.read_transitions() == [transition()]

    def test_numbers_are_never_used_again(self, store: Store) -> None:
        """Not even when all earlier rows are forgotten."""
        store.commit(told("a"))
        first = store.read_outbox()
        store.sent(first, at(), OK)
        store.prune(at(400 * DAY_S))
        store.commit(told("b"))
        assert store.read_outbox()[0].seq > first[0].seq

    def test_sent_rows_are_not_sent_again(self, store: Store) -> None:
        """They leave the outbox and keep when and with which answer, refusals named."""
        store.commit(told("a", "b"))
        first, second = store.read_outbox()
        store.sent([first], at(5), Receipt("250 queued", ("x@example.org",)))
        assert store.read_outbox() == [second]
        assert store.read_deliveries("alert-/scratch") == [
            (first, at(5), "250 queued; refused: x@example.org"),
            (second, None, ""),
        ]

    def test_failed_rows_stay_with_what_was_tried(self, store: Store) -> None:
        """Attempts, times and errors of a row survive; its place in the order too."""
        store.commit(told("a", "b"))
        first, second = store.read_outbox()
        tried = replace(first, attempts=3, tried=at(9), wait=30.0, error=HOSTILE)
        store.failed([tried])
        assert store.read_outbox() == [tried, second]

    def test_dropped_rows_stay_visible(self, store: Store) -> None:
        """They leave the outbox and say why."""
        store.commit(told("a"))
        rows = store.read_outbox()
        store.dropped(rows, at(5), "no such user")
        assert store.read_outbox() == []
        given_up = replace(rows[0], permanent=True, error="no such user")
        assert store.read_deliveries("alert-/scratch") == [(given_up, None, "no such user")]

    @pytest.mark.parametrize("late", ["sent", "failed", "dropped"])
    def test_what_is_done_stays_done(self, store: Store, late: str) -> None:
        """A slow answer about a row that is done changes nothing."""
        store.commit(told("a"))
        rows = store.read_outbox()
        store.sent(rows, at(5), OK)
        WRITES[late](store, rows)
        assert store.read_outbox() == []
        assert store.read_deliveries("alert-/scratch") == [(rows[0], at(5), "250 ok")]

    def test_deliveries_are_those_of_one_alert(self, store: Store) -> None:
        """By the alert's id, whatever text that is."""
        store.commit(
            Batch(at=at(), outbox=(outgoing("a", about="one"), outgoing("b", about="two")))
        )
        assert summaries([row for row, _, _ in store.read_deliveries("two")]) == ["b"]
        assert store.read_deliveries(HOSTILE) == []

    def test_writing_nothing_is_allowed(self, store: Store) -> None:
        """Empty sequences and batches are no error."""
        store.commit(Batch(at=at()))
        store.sent([], at(), OK)
        store.failed([])
        store.dropped([], at(), "")
        assert store.read_outbox() == []

    # Leading

    def test_two_do_not_lead_at_once(self, place: Place, store: Store) -> None:
        """The second is told who leads, on which host and since when."""
        with pytest.raises(StoreBusy, match=r"sentinel run, pid 1 on login1 since 2027-01-15T08"):
            place.open().take_lead("sentinel tick", at(1))

    def test_the_next_leads_after_release(self, place: Place, store: Store) -> None:
        """Tokens only grow, and who no longer leads no longer writes."""
        old = store.take_lead("again", at(1))
        store.release_lead()
        store.release_lead()
        other = place.open()
        assert other.take_lead("other", at(2)) > old
        with pytest.raises(Fenced):
            store.commit(Batch(at=at()))
        other.close()

    def test_the_leader_is_named_while_it_leads(self, place: Place, store: Store) -> None:
        """By itself and by others; nobody leads after release."""
        other = place.open()
        assert (
            other.read_leader()
            == store.read_leader()
            == ("sentinel run, pid 1 on login1 since 2027-01-15T08:00:00Z")
        )
        store.release_lead()
        assert other.read_leader() == store.read_leader() == ""

    @pytest.mark.parametrize("write", WRITES)
    def test_only_the_leader_writes(self, place: Place, store: Store, write: str) -> None:
        """A store that never led is refused, and nothing changes."""
        store.commit(told("a"))
        with pytest.raises(Fenced):
            WRITES[write](place.open(), store.read_outbox())
        assert summaries(store.read_outbox()) == ["a"]

    @pytest.mark.parametrize("write", WRITES)
    def test_an_old_token_writes_nothing(self, place: Place, store: Store, write: str) -> None:
        """Whoever was overtaken learns it from the write itself, each time."""
        store.commit(Batch(at=at(), outbox=(outgoing(),), transitions=(transition(),)))
        place.usurp()
        for _ in range(2):
            with pytest.raises(Fenced):
                WRITES[write](store, store.read_outbox())
        other = place.open()
        assert [row.attempts for row in other.read_outbox()] == [0]
        assert other.read_memory("fs") == {}
        assert other.read_transitions() == [transition()]

    # Texts and numbers

    @pytest.mark.parametrize(
        "value",
        [
            [[], {}, {"a": [{"b": [None, True, False, -1, 2**62, 1.5e300]}]}],
            HOSTILE,
            {HOSTILE: [HOSTILE]},
            "\x00",
            "\ud800",
            "x" * 2_000_000,
            2**80,
        ],
        ids=["nested", "hostile", "hostile key", "NUL", "lone surrogate", "2 MB", "big number"],
    )
    def test_memory_comes_back(self, place: Place, store: Store, value: Any) -> None:
        """Nested JSON and every text, in another process too."""
        store.commit(remembered(value))
        assert place.open().read_memory("fs") == {"value": value}

    def test_memory_is_a_copy(self, store: Store) -> None:
        """A check that changes what it was given changes nothing stored."""
        mine = {"seen": [1]}
        store.commit(Batch(at=at(), memory={"fs": mine}))
        mine["seen"].append(2)
        read: Any = store.read_memory("fs")
        read["seen"].append(3)
        assert store.read_memory("fs") == {"seen": [1]}

    def test_memory_of_other_checks_is_kept(self, store: Store) -> None:
        """A batch replaces the memory of the checks it names, as a whole."""
        store.commit(Batch(at=at(), memory={"a": {"x": 1, "y": 2}, "b": {"x": 1}}))
        store.commit(Batch(at=at(), memory={"a": {"y": 3}}))
        assert (store.read_memory("a"), store.read_memory("b")) == ({"y": 3}, {"x": 1})

    def test_hostile_text_is_only_text(self, place: Place, store: Store) -> None:
        """NUL, lone surrogates, emoji, quotes and great length in any field of any noun."""
        hostile = alert(HOSTILE, id=HOSTILE, summary=HOSTILE, labels={HOSTILE: HOSTILE})
        row = outgoing(HOSTILE, HOSTILE, HOSTILE)
        moved = replace(transition(about=HOSTILE), id=HOSTILE)
        sample = Sample(HOSTILE, HOSTILE, 1.0)
        batch = Batch(
            at=at(),
            alerts=(hostile,),
            outbox=(row,),
            transitions=(moved,),
            runs=(run(HOSTILE),),
            memory={HOSTILE: {}},
            samples={HOSTILE: (sample,)},
        )
        store.commit(batch)
        store.commit(batch)
        other = place.open()
        assert other.read_alerts() == [hostile]
        assert other.read_transitions(alert=HOSTILE) == [moved]
        assert other.read_runs() == [run(HOSTILE)]
        assert other.read_samples(HOSTILE, HOSTILE, HOSTILE, 0) == [(at(), 1.0)]
        assert [replace(r, seq=0) for r, _, _ in other.read_deliveries(HOSTILE)] == [row, row]

    # History

    def test_history_is_newest_first_and_bounded(self, store: Store) -> None:
        """By commit, not by clock; of one alert where asked."""
        store.commit(Batch(at=at(), transitions=(transition(1), transition(2, "other"))))
        store.commit(Batch(at=at(), transitions=(transition(3, moment=at(-60)),)))
        assert [t.summary for t in store.read_transitions()] == ["number 3", "number 2", "number 1"]
        assert [t.summary for t in store.read_transitions(2)] == ["number 3", "number 2"]
        assert [t.summary for t in store.read_transitions(alert="alert-/scratch")] == [
            "number 3",
            "number 1",
        ]

    # Samples

    def test_the_ledger_of_runs_is_told_from_a_moment_on(self, store: Store) -> None:
        """A row that grows is one row, and an older form of it changes nothing."""
        row = LedgerRow(
            run=HOSTILE, kind="steps", began=1, ended=at(60).wall, job="7", first_step=1.5,
            last_step=2.0, cluster="c",
        )  # fmt: skip
        longer = replace(row, ended=at(120).wall, last_step=9.0)
        other = replace(row, kind="hung", ended=at(30).wall, cause="gpu")
        for one in (row, longer, row, other):
            store.commit(Batch(at=at(), ledger=(one,)))
        assert store.read_ledger(0) == [other, longer]
        assert store.read_ledger(at(120).wall) == [longer]
        assert store.read_ledger(at(120).wall + 1) == []

    def test_a_job_has_one_row_of_what_it_held(self, store: Store) -> None:
        """Whichever check saw it first."""
        held = LedgerRow(run="r", kind="held", began=1, ended=2, job="7", attempt=5, gpus=8)
        store.commit(Batch(at=at(), ledger=(held,)))
        store.commit(Batch(at=at(), ledger=(replace(held, began=3, ended=4, cause="gpu"),)))
        assert [r.cause for r in store.read_ledger(0)] == ["gpu"]

    def test_how_a_job_ended_is_kept_though_its_row_had_a_later_time(self, store: Store) -> None:
        """The clock was ahead when that row was written."""
        held = LedgerRow(
            run="r", kind="held", began=1, ended=at(9000).wall, job="7", attempt=5, gpus=8
        )
        end = replace(held, ended=at(60).wall, cause="completed")
        shorter = replace(held, ended=at(30).wall)
        for one in (held, shorter, end, shorter):
            store.commit(Batch(at=at(), ledger=(one,)))
        assert store.read_ledger(0) == [end]

    def test_the_ledger_of_runs_is_kept_for_two_years(self, store: Store) -> None:
        """Then the rows that have ended are forgotten."""
        rows = [
            LedgerRow(run="r", kind="saved", began=at(n).wall, ended=at(n).wall) for n in (0, DAY_S)
        ]
        store.commit(Batch(at=at(), ledger=tuple(rows)))
        store.prune(at(730 * DAY_S))
        assert store.read_ledger(0) == rows
        store.prune(at(730 * DAY_S + 1))
        assert store.read_ledger(0) == rows[1:]

    def test_samples_are_told_from_a_moment_on(self, store: Store) -> None:
        """Oldest first, that moment included, with both clocks; each series by itself."""
        for minute in range(4):
            store.commit(measured(float(minute), at(60 * minute)))
        store.commit(measured(9.0, at(300), name="inodes"))
        told = store.read_samples("fs", "/scratch", "used", at(60).wall)
        assert told == [(at(60), 1.0), (at(120), 2.0), (at(180), 3.0)]
        assert store.read_samples("fs", "/scratch", "used", at(180).wall + 1) == []
        assert store.read_samples("fs", "/other", "used", 0) == []

    def test_samples_are_ordered_by_commit_when_the_clock_jumps_back(self, store: Store) -> None:
        """The wall clock of a host may be set back an hour."""
        store.commit(measured(1.0, at(3600)))
        store.commit(measured(2.0, at(60)))
        assert [value for _, value in store.read_samples("fs", "/scratch", "used", 0)] == [1.0, 2.0]

    def test_of_one_moment_the_last_value_counts(self, store: Store) -> None:
        """Within a batch and by a repeated batch."""
        twice = (Sample("/scratch", "used", 1.0), Sample("/scratch", "used", 2.0))
        store.commit(Batch(at=at(), samples={"fs": twice}))
        assert store.read_samples("fs", "/scratch", "used", 0) == [(at(), 2.0)]
        store.commit(measured(3.0))
        assert store.read_samples("fs", "/scratch", "used", 0) == [(at(), 3.0)]

    @pytest.mark.parametrize("value", [math.inf, -math.inf, 0.0, 1e-300, float(2**60)])
    def test_every_number_is_a_sample(self, store: Store, value: float) -> None:
        """Infinite ones too."""
        store.commit(measured(value))
        assert store.read_samples("fs", "/scratch", "used", 0) == [(at(), value)]

    def test_not_a_number_is_no_sample(self, store: Store) -> None:
        """And costs nothing else of its batch."""
        store.commit(replace(measured(math.nan), runs=(run(),)))
        assert store.read_samples("fs", "/scratch", "used", 0) == []
        assert store.read_runs() == [run()]

    # Prune

    @pytest.mark.parametrize(
        ("days", "samples", "moved", "sent"),
        [(89, 1, 1, 1), (91, 1, 0, 0), (179, 1, 0, 0), (181, 0, 0, 0)],
    )
    def test_old_things_are_forgotten(
        self, store: Store, days: int, samples: int, moved: int, sent: int
    ) -> None:
        """Transitions and sent rows after 90 days, samples after 180."""
        store.commit(replace(measured(1.0), outbox=(outgoing(),), transitions=(transition(),)))
        store.sent(store.read_outbox(), at(), OK)
        store.prune(at(days * DAY_S))
        assert len(store.read_samples("fs", "/scratch", "used", 0)) == samples
        assert len(store.read_transitions()) == moved
        assert len(store.read_deliveries("alert-/scratch")) == sent

    def test_what_is_open_or_unsent_is_never_forgotten(self, store: Store) -> None:
        """However old it is."""
        store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing(),), runs=(run(),)))
        store.commit(remembered(1))
        store.prune(at(4000 * DAY_S))
        assert (store.read_alerts(), store.read_runs()) == ([alert()], [run()])
        assert summaries(store.read_outbox()) == ["full"]
        assert store.read_memory("fs") == {"value": 1}

    def test_a_series_goes_on_after_prune(self, store: Store) -> None:
        """Of each series only what is old goes; one that was forgotten may begin again."""
        store.commit(measured(1.0, name="old"))
        store.commit(measured(2.0, at(100 * DAY_S)))
        store.commit(measured(3.0, at(190 * DAY_S)))
        store.prune(at(190 * DAY_S))
        store.commit(measured(4.0, at(191 * DAY_S), name="old"))
        assert [v for _, v in store.read_samples("fs", "/scratch", "used", 0)] == [2.0, 3.0]
        assert [v for _, v in store.read_samples("fs", "/scratch", "old", 0)] == [4.0]

    @pytest.mark.parametrize(
        ("hours", "kept"),
        [
            pytest.param(168 + 0.99, [0, 1, 2, 3, 4, 5], id="a week is kept as it was measured"),
            pytest.param(168 + 1, [1, 2, 3, 4, 5], id="an hour that is over is one sample"),
            pytest.param(168 + 1.99, [1, 2, 3, 4, 5], id="a part of an hour is not touched"),
            pytest.param(168 + 2, [1, 4, 5], id="each hour by itself"),
            pytest.param(168 + 30, [1, 4, 5], id="the hours between may be empty"),
        ],
    )
    def test_of_old_hours_the_last_sample_is_kept(
        self, store: Store, hours: float, kept: list[int]
    ) -> None:
        """And pruning again changes nothing; the hours are those of UTC."""
        for number, minute in enumerate((0, 59, 60, 90, 119, 121)):
            store.commit(measured(float(number), at(60 * minute)))
        for _ in range(2):
            store.prune(at(3600 * hours))
            told = store.read_samples("fs", "/scratch", "used", 0)
            assert [int(value) for _, value in told] == kept

    def test_thinning_leaves_the_last_of_every_series(self, store: Store) -> None:
        """One that was measured early in the hour keeps its own last, with its own moment."""
        store.commit(measured(1.0, at(), name="early"))
        for minute in (10, 20, 30):
            store.commit(measured(float(minute), at(60 * minute)))
        store.prune(at(8 * DAY_S))
        early, late = (store.read_samples("fs", "/scratch", n, 0) for n in ("early", "used"))
        assert early == [(at(), 1.0)]
        assert late == [(at(1800), 30.0)]

    def test_daily_pruning_thins_months(self, store: Store) -> None:
        """However long nobody pruned: the history goes back, a sample an hour."""
        for hour in range(0, 20 * 24, 6):
            for quarter in (0, 900):
                moment = at(3600 * hour + quarter)
                store.commit(measured(hour + quarter / 3600, moment))
        for _ in range(20):
            store.prune(at(20 * DAY_S))
        told = store.read_samples("fs", "/scratch", "used", 0)
        old = 13 * 24
        assert [v for _, v in told[: old // 6]] == [hour + 0.25 for hour in range(0, old, 6)]
        assert len(told) == old // 6 + 2 * 7 * 4

    def test_times_are_microseconds(self, store: Store) -> None:
        """A moment comes back as it was, to the microsecond."""
        odd = replace(at(), wall=at().wall + 1, mono=at().mono + 1)
        store.commit(measured(1.0, odd))
        assert store.read_samples("fs", "/scratch", "used", odd.wall) == [(odd, 1.0)]
        assert odd.wall % SECOND == 1
