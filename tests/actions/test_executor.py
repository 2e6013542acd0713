"""An action's way: judged, written down, looked at again, done, looked at again."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sentinel.actions.action_rules import ActionRequester, ActionRules, UnknownActionError
from sentinel.actions.executor import ActionExecutor
from sentinel.actions.undrain import UndrainAction
from sentinel.core.action_limits import BreakerSettings, GuardSettings, Limits
from sentinel.core.actions import ActionOutcome, ActionRecord, Answer, Reply
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.values import Duration, Share
from tests.actions.model import EPOCH, Change, Fault
from tests.actions.world import DRAINED, KINDS, LIMITS, NEVER, SERVICE, SETTINGS, World, node
from tests.store.book_memory import BookState, MemoryBooks

HAND = ActionRequester(name="alice by hand", consent=True, by_hand=True)
FORCED = ActionRequester(name="alice by hand", consent=True, by_hand=True, forced=True)
MARKS = GuardSettings(mark=True, breaker=BreakerSettings(nodes=1000, share=Share(100)))
BREAKER = GuardSettings(breaker=BreakerSettings(nodes=2, share=Share(100)))


def world(*nodes: Node, guard: GuardSettings | None = None) -> World:
    state = BookState()
    found = nodes or tuple(node(f"n{i}") for i in range(1, 6))
    if guard is None:
        return World(lambda: MemoryBooks(state), found)
    return World(lambda: MemoryBooks(state), found, guard=guard)


def act(
    w: World, action: str = "undrain", target: str = "n1", asker: ActionRequester = SERVICE
) -> ActionRecord:
    record = w.ask(0, action, target, asker=asker)
    assert record is not None
    return record


def test_what_is_done_is_written_with_its_evidence() -> None:
    """Intent, command, what was seen before and after, when it ended."""
    w = world()
    record = act(w)
    assert record.outcome is ActionOutcome.DONE
    assert record.evidence["seen"].startswith("IDLE+DRAIN, reason 'Kill task failed' by root at ")
    assert record.commands == (("scontrol", "update", "NodeName=n1", "State=UNDRAIN"),)
    assert (record.detail, record.by) == ("now IDLE", "drained")
    assert record.ended is not None
    assert w.records() == [record]


def test_what_replaces_no_reason_has_no_window() -> None:
    """As what is done to a job; its end is written all the same."""

    class Plain(UndrainAction):
        replaces_reason = False

    w = world()
    actor = ActionExecutor(
        ActionRules(kinds={"undrain": Plain()}, actions=SETTINGS, guard=w.guard),
        w.books, w.slurm, w.hosts[0],
    )  # fmt: skip
    record = actor.execute_request(
        ActionRequest(action="undrain", target="n1", reason="x"), SERVICE
    )
    assert (record.outcome, w.records()) == (ActionOutcome.DONE, [record])
    assert record.evidence.keys() == {"seen"}


@pytest.mark.parametrize(
    ("text", "detail"), [("2 processes ended", "2 processes ended"), ("", "now IDLE+DRAIN, reason")]
)
def test_of_what_leaves_no_trace_the_reply_counts(text: str, detail: str) -> None:
    """A test of a node, or a signal to a job: the node looks afterwards as it did before."""

    class Traceless(UndrainAction):
        replaces_reason, leaves_no_trace = False, True

        def perform(self, request: ActionRequest, hands: object) -> Reply:
            return Reply(Answer.ACCEPTED, text)

    w = world()
    rules = ActionRules(kinds={"undrain": Traceless()}, actions=SETTINGS, guard=w.guard)
    wish = ActionRequest(action="undrain", target="n1", reason="x")
    record = ActionExecutor(rules, w.books, w.slurm, w.hosts[0]).execute_request(wish, SERVICE)
    assert record.outcome is ActionOutcome.DONE
    assert record.detail.startswith(detail)


FAULTS = [
    (Fault.REFUSED, ActionOutcome.ERROR, "Invalid node state specified"),
    (Fault.DEAF, ActionOutcome.NO_EFFECT, "Slurm accepted it, and yet it is IDLE+DRAIN"),
    (Fault.LOST, ActionOutcome.UNKNOWN, "Socket timed out"),
    (Fault.LATE, ActionOutcome.UNKNOWN, "send/recv operation; it could not be read afterwards: "),
    (Fault.BLIND, ActionOutcome.UNKNOWN, "Slurm accepted it; it could not be read afterwards"),
]


@pytest.mark.parametrize(("fault", "outcome", "says"), FAULTS)
def test_the_log_tells_which(fault: Fault, outcome: ActionOutcome, says: str) -> None:
    """An error, success without effect, a time-out: three different outcomes, in Slurm's words."""
    w = world()
    w.slurm.fault = fault
    record = act(w)
    assert (record.outcome, w.records()) == (outcome, [record])
    assert says in record.detail
    assert (record.ended is None) is outcome.is_open


def test_a_change_that_timed_out_is_read_again_before_anything_is_repeated() -> None:
    """It happens a minute later: the log says done, and Slurm was told once."""
    w = world()
    w.slurm.fault = Fault.LATE
    act(w)
    assert act(w, asker=FORCED).rule == "unresolved"
    w.time.now += 60
    w.slurm.wake()
    [resolved] = w.actors[1].resolve_open_records()
    assert (resolved.outcome, resolved.detail) == (ActionOutcome.DONE, "when read again: IDLE")
    assert len(w.slurm.changes) == 1


def test_a_change_that_never_came_is_given_up_when_it_cannot_come_any_more() -> None:
    """After twice the life of the credential it carried, and not a second earlier."""
    w = world()
    w.slurm.fault = Fault.LOST
    act(w)
    w.time.now += 599
    assert [r.outcome for r in w.actors[0].resolve_open_records()] == [ActionOutcome.UNKNOWN]
    w.time.now += 1
    assert [r.outcome for r in w.actors[0].resolve_open_records()] == [ActionOutcome.NO_EFFECT]
    assert w.actors[0].resolve_open_records() == []


def test_what_something_else_has_covered_is_unclear() -> None:
    """It happened, and then Slurm drained the node again: "no effect" would be a lie."""
    for fault in (Fault.LATE, Fault.LOST):
        w = world()
        w.slurm.fault = fault
        act(w)
        w.slurm.wake()
        w.slurm.set("n1", flags=DRAINED, reason="Kill task failed", reason_time=1_800_000_001)
        w.time.now += 600
        assert [r.outcome for r in w.actors[0].resolve_open_records()] == [ActionOutcome.UNCLEAR]


def test_what_no_installed_kind_can_read_again_is_given_up_too() -> None:
    """A plugin that was removed: its open record must not close the node to everybody for ever."""
    w = world()
    w.slurm.fault = Fault.LOST
    act(w)
    without = ActionExecutor(ActionRules(kinds={}), w.books, w.slurm, w.hosts[0])
    w.time.now += 599
    assert [r.outcome for r in without.resolve_open_records()] == [ActionOutcome.UNKNOWN]
    w.time.now += 1
    [given_up] = without.resolve_open_records()
    assert given_up.outcome is ActionOutcome.UNCLEAR
    assert "no action undrain is installed" in given_up.detail
    assert act(w, asker=FORCED).outcome is not ActionOutcome.REFUSED


def test_an_intent_without_an_end_is_looked_at_after_two_minutes() -> None:
    """Its process died after the change; until then it may live, and nobody takes it for given up."""
    w = world()
    w.ask(0, "undrain", "n1", crash="after")
    w.time.now += 119
    assert w.actors[1].resolve_open_records() == []
    w.time.now += 1
    assert [r.outcome for r in w.actors[1].resolve_open_records()] == [ActionOutcome.DONE]


def test_another_host_waits_by_its_own_clock() -> None:
    """It cannot date the first one's record: it counts from when it first looked itself."""
    w = world()
    w.slurm.fault = Fault.LOST
    act(w)
    w.hosts[1].skew = 1e9
    for seconds, outcome in (
        (1, ActionOutcome.UNKNOWN),
        (599, ActionOutcome.UNKNOWN),
        (1, ActionOutcome.NO_EFFECT),
    ):
        w.time.now += seconds
        assert [r.outcome for r in w.actors[1].resolve_open_records()] == [outcome]


def test_a_blind_resolver_changes_nothing() -> None:
    """As long as Slurm does not answer the outcome stays unknown, however long."""
    w = world()
    w.slurm.fault = Fault.LOST
    act(w)
    w.time.now += 10_000
    w.slurm.up = False
    assert [r.outcome for r in w.actors[0].resolve_open_records()] == [ActionOutcome.UNKNOWN]


def meanwhile(change: Callable[[World], object]) -> ActionRecord:
    """The change happens between proof and action."""
    w = world()

    def once() -> None:
        w.slurm.on_read = lambda: None
        change(w)

    w.slurm.on_read = once
    record = act(w)
    assert w.slurm.changes == []
    return record


CHANGES: list[tuple[Callable[[World], object], str]] = [
    (lambda w: w.slurm.set("n1", reason="RMA 4711"), "it changed meanwhile: was IDLE+DRAIN"),
    (lambda w: w.slurm.set("n1", reason_time=1_700_000_009), "it changed meanwhile"),
    (lambda w: w.slurm.set("n1", state="DOWN"), "meanwhile it is DOWN"),
    (lambda w: w.slurm.set("n1", flags=frozenset()), "meanwhile it is not drained"),
    (lambda w: w.slurm.by_name.pop("n1"), "meanwhile Slurm knows no such node"),
    (lambda w: setattr(w.slurm, "up", False), "it could not be read again"),
    (lambda w: setattr(w.time, "now", 120.0), "this process was held up"),
]


@pytest.mark.parametrize(("change", "says"), CHANGES)
def test_what_changed_after_the_proof_is_not_touched(
    change: Callable[[World], object], says: str
) -> None:
    """Withdrawn, with what was different; Slurm is not told anything."""
    record = meanwhile(change)
    assert record.outcome is ActionOutcome.WITHDRAWN
    assert says in record.detail


def test_a_last_look_that_took_long_counts_no_more() -> None:
    """A slurmctld that answers slowly, or a process that stood still: what a person did with the
    node meanwhile was not seen."""

    def slow(w: World) -> None:
        w.time.now += 6.0

    record = meanwhile(slow)
    assert record.outcome is ActionOutcome.WITHDRAWN
    assert "the last look was held up for 6s" in record.detail


def test_nothing_stands_between_the_last_look_and_the_change() -> None:
    """A state that takes its time is asked before: what a person does while it does is seen."""
    w = world()

    class Slow(MemoryBooks):
        def read_unresolved(self) -> list[ActionRecord]:
            w.slurm.set("n1", reason="RMA 4711")
            return super().read_unresolved()

    w.actors[0] = ActionExecutor(
        ActionRules(kinds=KINDS, actions=SETTINGS, guard=w.guard),
        Slow(w.books._state),  # type: ignore[attr-defined]
        w.slurm,
        w.hosts[0],
    )
    record = act(w)
    assert (record.outcome, w.slurm.changes) == (ActionOutcome.WITHDRAWN, [])
    assert "RMA 4711" in record.detail


def overtaking(*reasons: str, log: bool = True) -> World:
    """An administrator drains the node between the last look and the first change."""
    w = world()
    w.slurm.log = [] if log else None
    doubts = w.slurm.before

    def race(change: Change) -> None:
        w.slurm.before = doubts
        w.time.now += 0.25
        for reason in reasons:
            w.slurm.set(change.node, flags=DRAINED, reason=reason, reason_time=1_800_000_001)

    w.slurm.before = race
    return w


def test_a_drain_that_was_overtaken_is_back_and_told() -> None:
    """The erased reason stands in the new one; the outcome is not "done"."""
    w = overtaking("RMA 4711")
    record = act(w)
    node = w.slurm.by_name["n1"]
    assert "DRAIN" in node.flags
    assert "RMA 4711 (by author not known)" in node.reason
    assert record.outcome is ActionOutcome.UNCLEAR
    assert "it replaced 'RMA 4711' by author not known" in record.detail
    assert record.evidence["window"].startswith("watched, 250 ms: drained meanwhile: RMA 4711")
    assert record.commands[-1][3] == "State=DRAIN"
    assert w.records() == [record]


def test_a_log_without_our_change_was_not_read() -> None:
    """Unwatched, and for how long; nobody says that nothing came between."""
    silent, elsewhere = overtaking("RMA 4711", log=False), overtaking()
    elsewhere.slurm.after = lambda: elsewhere.slurm.log.clear()  # type: ignore[union-attr]
    for w, why in ((silent, "no such file"), (elsewhere, "does not show this change")):
        if w is elsewhere:
            actor, request = w.actors[0], ActionRequest(action="undrain", target="n1", reason="x")
            record = actor.execute_request(request, SERVICE)
        else:
            record = act(w)
        assert record.outcome is ActionOutcome.DONE
        assert record.evidence["window"].startswith("unwatched, 250 ms: ")
        assert why in record.evidence["window"]


def test_a_quiet_window_is_said_to_have_been_watched() -> None:
    """With its length."""
    w = overtaking()
    assert act(w).evidence["window"].startswith("watched, 250 ms: nothing came between")


def test_a_drain_keeps_the_reason_that_it_replaced() -> None:
    """Ours came second: both reasons stand there."""
    w = overtaking("RMA 4711")
    w.slurm.set("n1", flags=frozenset(), reason="")
    record = act(w, "drain")
    assert "RMA 4711" in w.slurm.by_name["n1"].reason
    assert record.outcome is ActionOutcome.UNCLEAR


def test_who_drained_it_after_us_is_left_alone() -> None:
    """That reason is newer than the one which was erased; both are told."""
    w = overtaking("RMA 4711")

    def later() -> None:
        w.slurm.after = lambda: None
        w.slurm.set("n1", flags=DRAINED, reason="bad fan", reason_time=1_800_000_002)

    request = ActionRequest(action="undrain", target="n1", reason="x")
    w.slurm.after = later
    record = w.actors[0].execute_request(request, SERVICE)
    assert w.slurm.by_name["n1"].reason == "bad fan"
    assert record.outcome is ActionOutcome.UNCLEAR
    assert "RMA 4711" in record.detail


def test_a_change_that_timed_out_overtakes_nobody_unseen() -> None:
    """slurmctld hangs, a person drains, both happen when it wakes: read again, it is drained."""
    w = world()
    w.slurm.log = []
    w.slurm.fault = Fault.LATE
    assert act(w).outcome is ActionOutcome.UNKNOWN
    w.time.now += 60
    w.slurm.set("n1", reason="RMA 4711", flags=DRAINED, reason_time=1_800_000_001)
    w.slurm.wake()
    [resolved] = w.actors[1].resolve_open_records()
    assert resolved.outcome is ActionOutcome.UNCLEAR
    assert "RMA 4711" in w.slurm.by_name["n1"].reason
    assert resolved.evidence["window"].startswith("watched, nobody knows how long")


def marked_meanwhile(*others: str, asker: ActionRequester = SERVICE) -> tuple[World, ActionRecord]:
    """A sentinel without a common state returns these nodes while this one writes its mark on n1."""
    w = world(guard=MARKS)

    def others_return() -> None:
        w.slurm.after = lambda: None
        for name in others:
            w.slurm.set(name, comment=f"sentinel:returned:{EPOCH}:0123456789ab")

    request = ActionRequest(action="undrain", target="n1", reason="x")
    w.slurm.after = others_return
    return w, w.actors[0].execute_request(request, asker)


def states(w: World) -> list[str | None]:
    return [change.state for change in w.slurm.changes]


def test_what_returns_a_node_is_marked_before_and_counts_with_others_marks() -> None:
    """Two of five may return within an hour. Who marked too many takes the mark back."""
    w, record = marked_meanwhile("n2")
    assert (record.outcome, states(w)) == (ActionOutcome.DONE, [None, "UNDRAIN"])
    assert record.evidence["mark"] == w.slurm.by_name["n1"].comment
    w, record = marked_meanwhile("n2", "n3")
    assert (record.outcome, states(w)) == (ActionOutcome.WITHDRAWN, [None, None])
    assert record.detail.startswith("2 within the last hour, at most 2")
    assert w.slurm.by_name["n1"].comment == ""


def test_the_requests_own_limits_count_after_the_mark_too() -> None:
    """One of five, where the configuration allows two."""
    asker = replace(SERVICE, limits=replace(LIMITS, per_hour=1))
    w, record = marked_meanwhile("n2", asker=asker)
    assert (record.outcome, states(w)) == (ActionOutcome.WITHDRAWN, [None, None])


def test_a_slurm_that_is_ill_after_the_mark_gets_no_return() -> None:
    """Nobody can count the marks then."""
    w = world(guard=MARKS)
    w.slurm.after = lambda: setattr(w.slurm, "up", False)
    request = ActionRequest(action="undrain", target="n1", reason="x")
    record = w.actors[0].execute_request(request, SERVICE)
    assert (record.outcome, states(w)) == (ActionOutcome.WITHDRAWN, [None])
    assert record.detail.startswith("it was marked, and then Slurm had trouble")


def test_only_a_return_is_marked_and_none_that_is_forced() -> None:
    """A drain and a person's own decision leave the Comment as it is."""
    w = world(node("n1", drained=False), node("n2"), guard=MARKS)
    assert act(w, "drain").outcome is ActionOutcome.DONE
    assert act(w, target="n2", asker=FORCED).outcome is ActionOutcome.DONE
    assert states(w) == ["DRAIN", "UNDRAIN"]


def test_a_change_that_timed_out_and_is_not_seen_may_still_come() -> None:
    """slurmctld answers again, and the node is as it was: unknown, and not without effect."""
    w = world()
    w.slurm.fault = Fault.LOST
    w.slurm.after = lambda: setattr(w.slurm, "_blind", False)
    request = ActionRequest(action="undrain", target="n1", reason="x")
    record = w.actors[0].execute_request(request, SERVICE)
    assert record.outcome is ActionOutcome.UNKNOWN
    assert "still IDLE+DRAIN" in record.detail
    assert "it may happen later" in record.detail


def test_a_target_that_is_asked_for_and_cannot_be_seen_is_left_alone() -> None:
    """Refused by its state, with the reason."""

    class Asking(UndrainAction):
        asks_anew = True

    w = world()
    rules = ActionRules(kinds={"undrain": Asking()}, actions=SETTINGS, guard=w.guard)

    def silent() -> None:
        raise CannotTell("slurmctld does not answer")

    w.slurm.on_read = silent
    actor = ActionExecutor(rules, w.books, w.slurm, w.hosts[0])
    request = ActionRequest(action="undrain", target="n1", reason="x")
    record = actor.execute_request(request, SERVICE)
    assert (record.rule, w.slurm.changes) == ("state", [])
    assert "it cannot be seen: slurmctld does not answer" in record.why


def returned_by_others(guard: GuardSettings, comment: str = "") -> World:
    """A minute ago n2 came back, and no record here tells of it."""
    w = world(guard=guard)
    w.slurm.set("n1", comment=comment)
    for flags in (DRAINED, frozenset[str]()):
        w.slurm.set("n2", flags=flags)
        w.books.record_readings(w.slurm.nodes(), w.hosts[0].now())
        w.time.now += 60
    return w


@pytest.mark.parametrize(
    ("guard", "comment", "outcome"),
    [
        (NEVER, "", ActionOutcome.REFUSED),
        (MARKS, "", ActionOutcome.DONE),
        (MARKS, "fan replaced", ActionOutcome.WITHDRAWN),
    ],
)
def test_who_cannot_mark_waits_after_a_return_by_others(
    guard: GuardSettings, comment: str, outcome: ActionOutcome
) -> None:
    """Both could return the last node that the caps allow. A person does not wait."""
    assert act(returned_by_others(guard, comment)).outcome is outcome
    by_hand = act(returned_by_others(guard, comment), asker=HAND)
    assert by_hand.outcome is ActionOutcome.DONE


@pytest.mark.root
@pytest.mark.parametrize(("asker", "rule"), [(SERVICE, "per_hour"), (HAND, "")])
def test_one_user_has_half_of_what_a_service_of_roots_does(
    asker: ActionRequester, rule: str
) -> None:
    """And all of what a person does."""
    w, params = world(), {"user": "alice"}
    done = [
        w.actors[0].execute_request(
            ActionRequest(action="undrain", target=target, reason="x", params=params), asker
        )
        for target in ("n1", "n2")
    ]
    assert [record.rule for record in done] == ["", rule]


def test_an_intent_that_others_took_for_given_up_is_not_carried_out() -> None:
    """Somebody else may act by now."""
    w = world()

    class GivenUp(MemoryBooks):
        def read_unresolved(self) -> list[ActionRecord]:
            return []

    books = GivenUp(w.books._state)  # type: ignore[attr-defined]
    rules = ActionRules(kinds=KINDS, actions=SETTINGS, guard=w.guard)
    request = ActionRequest(action="undrain", target="n1", reason="x")
    record = ActionExecutor(rules, books, w.slurm, w.hosts[0]).execute_request(request, SERVICE)
    assert (record.outcome, w.slurm.changes) == (ActionOutcome.WITHDRAWN, [])
    assert record.detail == "another process had counted it as given up"


def test_after_a_refusal_no_further_command_runs() -> None:
    class Twice(UndrainAction):
        def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
            return super().commands(request) * 2

    w = world()
    rules = ActionRules(kinds={"undrain": Twice()}, actions=SETTINGS, guard=w.guard)
    actor = ActionExecutor(rules, w.books, w.slurm, w.hosts[0])
    request = ActionRequest(action="undrain", target="n1", reason="x")
    w.slurm.fault, w.slurm.before = Fault.REFUSED, lambda _: None
    assert actor.execute_request(request, SERVICE).outcome is ActionOutcome.ERROR
    assert len(w.slurm.changes) == 1
    assert actor.execute_request(replace(request, target="n2"), SERVICE).outcome.is_attempted
    assert len(w.slurm.changes) == 3


def test_what_was_refused_and_is_so_all_the_same_is_done() -> None:
    """Somebody was faster."""
    w = world()
    w.slurm.fault = Fault.REFUSED
    w.slurm.after = lambda: w.slurm.set("n1", flags=frozenset(), reason="")
    request = ActionRequest(action="undrain", target="n1", reason="x")
    record = w.actors[0].execute_request(request, SERVICE)
    assert record.outcome is ActionOutcome.DONE
    assert record.detail == "now IDLE; slurm_update error: Invalid node state specified"


def test_unneeded_is_neither_done_nor_written() -> None:
    """A node that is as wished costs no cap."""
    w = world(node("n1", drained=False))
    assert act(w).outcome is ActionOutcome.UNNEEDED
    assert (w.records(), w.slurm.changes) == ([], [])


def test_a_refusal_is_written_once_until_something_else_happens() -> None:
    """A check that asks every minute does not fill the log."""
    w = world()
    w.slurm.set("n1", state="DOWN")
    for _ in range(3):
        assert act(w).rule == "state"
    w.slurm.set("n1", state="IDLE")
    act(w)
    assert [r.outcome.value for r in w.records()] == ["refused", "done"]


def test_the_requests_own_limits_count_before_the_configured_ones() -> None:
    """Those of the check that asks."""
    w = world()
    none = Limits(per_hour=0)
    assert act(w, asker=ActionRequester(name="drained", limits=none)).rule == "per_hour"


def test_only_consent_stands_in_for_enabled() -> None:
    """Off by default: a check that nobody switched on changes nothing."""
    w = world()
    actor = ActionExecutor(ActionRules(kinds=KINDS), w.books, w.slurm, w.hosts[0])
    request = ActionRequest(action="undrain", target="n1", reason="x")
    refused = actor.execute_request(request, SERVICE)
    assert (refused.rule, refused.outcome) == ("disabled", ActionOutcome.REFUSED)
    assert actor.execute_request(request, HAND).outcome is ActionOutcome.DONE


def test_an_action_that_is_not_installed() -> None:
    """One error that names those that are."""
    w = world()
    with pytest.raises(UnknownActionError, match=r"no action 'explode'; known: drain, undrain"):
        w.ask(0, "explode", "n1")


def test_a_dry_run_says_what_a_real_run_does() -> None:
    """Node for node the same verdicts, rules and commands; nothing written, nothing changed."""
    real, dry = world(), world()
    names = ["n1", "n2", "n3", "n1", "nosuch"]
    done = [act(real, "undrain", name, HAND) for name in names]
    imaginary = dry.dry()
    would = [
        imaginary.execute_request(
            ActionRequest(action="undrain", target=n, reason=f"number {i}"), HAND
        )
        for i, n in enumerate(names, 1)
    ]
    assert (dry.records(), dry.slurm.changes) == ([], [])
    readings = [w.books._state.readings for w in (real, dry)]  # type: ignore[attr-defined]
    assert [bool(found) for found in readings] == [True, False]
    assert [(w.rule, w.why, w.commands) for w in would[:3]] == [
        (d.rule, d.why, d.commands) for d in done[:3]
    ]
    assert [w.rule for w in would] == ["", "", "per_hour", "cooldown", "state"]
    assert [w.outcome.value for w in would[:2]] == ["intended", "intended"]
    assert [d.outcome.value for d in done[:2]] == ["done", "done"]


def test_many_nodes_at_once_open_the_breaker_and_time_closes_it() -> None:
    """200 nodes drained within minutes: not one is touched until it has been calm for a while."""
    healthy = [node(f"n{i}", drained=False) for i in range(200)]
    w = world(*healthy, guard=BREAKER)
    w.books.record_readings(w.slurm.nodes(), w.hosts[0].now())
    w.time.now += 30
    for name in [n.name for n in healthy]:
        w.slurm.set(name, flags=DRAINED, reason="Kill task failed", reason_time=1_800_000_030)
    w.books.record_readings(w.slurm.nodes(), w.hosts[0].now())
    first = act(w)
    assert first.rule == "breaker"
    assert "200 of 200 nodes left service within 10m" in first.why
    w.time.now += 1799
    assert act(w, target="n2").rule == "breaker"
    w.time.now += 1
    assert act(w, target="n3").outcome is ActionOutcome.DONE


def test_a_slurm_that_is_ill_opens_the_breaker_for_services_only() -> None:
    """A person on a host without Slurm must not stop everybody else's sentinel."""
    w = world()
    w.slurm.up = False
    assert act(w, asker=HAND).rule == "slurm"
    assert w.books.read_past_actions("n1").breaker is None
    assert w.books._state.looked is None  # type: ignore[attr-defined]
    assert act(w).rule == "slurm"
    w.slurm.up = True
    assert act(w, target="n2").rule == "breaker"
    w.time.now += Duration(1800)
    assert act(w, target="n2").outcome is ActionOutcome.DONE


def test_evidence_is_bounded() -> None:
    """A log line, not a log; nothing in it that a terminal would obey."""
    w = world()
    request = ActionRequest(
        action="undrain",
        target="n1",
        reason="y" * 10_000,
        evidence={f"line {i}": "\x1b[31m" + "x" * 10_000 for i in range(100)},
    )
    record = w.actors[0].execute_request(request, SERVICE)
    assert len(record.evidence) == 51
    assert record.evidence["left out"] == "52 more"  # of 102: two of its own, 100 lines
    assert max(len(v) for v in record.evidence.values()) == 4000
    assert "\x1b" not in str(record.evidence)
    assert len(record.reason) == 1000
