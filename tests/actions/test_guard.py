"""The guard's rules, each on both sides of its boundary."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.guard import (
    GUARD_RULES,
    LATE_SIGHTING_S,
    OTHERS_WAIT_S,
    UNFORCEABLE_RULES,
    GuardCase,
    explain_breaker_trip,
    explain_full_caps,
    find_newest_record,
    judge_request,
)
from sentinel.core.action_limits import BreakerSettings, Limits
from sentinel.core.actions import (
    ActionHistory,
    ActionOutcome,
    ActionRecord,
    ActionSwitch,
    GuardVerdict,
    NodeReading,
    Situation,
)
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.model import ActionRequest
from sentinel.core.values import Duration, Rate, Share
from sentinel.testing import START

REQUEST = ActionRequest(action="undrain", target="n1", reason="clean again")
NODES = frozenset(f"n{i}" for i in range(1, 41))
CALM = Situation(
    enabled=True,
    nodes=40,
    partitions={"prod": NODES},
    returning=frozenset({"undrain"}),
    waits=True,
)
LIMITS = Limits(per_hour=3, share=Share(10), per_node=Rate("2 in 7d"), cooldown=Duration(600))
DAY = 86_400.0


def before(seconds: float, target: str = "n9", **more: Any) -> ActionRecord:
    """A record of so many seconds ago."""
    return ActionRecord(
        **{
            "id": f"{target}-{seconds}",
            "action": "undrain",
            "target": target,
            "reason": "",
            "by": "drained",
            "at": shift_instant(START, -seconds),
            "outcome": ActionOutcome.DONE,
            **more,
        }
    )


def left(node: str, seconds: float) -> NodeReading:
    at = shift_instant(START, -seconds)
    return NodeReading(
        node=node, state="DOWN", reason="", user="", reason_time=None, out=True, seen=at, left=at
    )


def returned(node: str, seconds: float) -> NodeReading:
    at = shift_instant(START, -seconds)
    back = left(node, seconds)
    return replace(back, state="IDLE", out=False, left=None, returned=at)


def verdict(*records: ActionRecord, now: Instant = START, **seen: Any) -> GuardVerdict:
    """`seen` are fields of the situation."""
    return judge_request(
        REQUEST, ActionHistory(records=records), LIMITS, replace(CALM, **seen), now
    )


@pytest.mark.parametrize("action", ["clean_up", "test"])
def test_what_only_prepares_an_action_makes_it_wait_for_nothing(action: str) -> None:
    """A node that was cleaned up or tested may go back at once; cleaning up again may not."""
    prepared = before(60, "n1", action=action)
    assert verdict(prepared).allowed
    again = replace(REQUEST, action=action)
    assert (
        judge_request(again, ActionHistory(records=(prepared,)), LIMITS, CALM, START).rule
        == "cooldown"
    )


def test_calm_and_enabled_it_is_allowed() -> None:
    """Nothing objects, and the verdict says how much room is left."""
    assert verdict() == GuardVerdict(True, "1 of 3 in this hour")


OPEN = ActionSwitch(since=shift_instant(START, -100), seconds=1800.0, why="9 nodes left service")

ROWS: list[tuple[str, tuple[ActionRecord, ...], Mapping[str, Any], str]] = [
    ("disabled", (), {"enabled": False}, "undrain is not switched on"),
    ("maintenance", (), {"maintenance": True}, "maintenance (guard:"),
    ("breaker", (), {"breaker": OPEN}, "open for 28m 20s: 9 nodes left service"),
    ("breaker", (), {"left": tuple(left(f"n{i}", 599) for i in range(9))}, "9 of 40 nodes left"),
    ("slurm", (), {"unwell": "slurmctld on ctl is down"}, "slurmctld on ctl is down"),
    ("unresolved", (before(9999, "n1", outcome=ActionOutcome.UNKNOWN),), {}, "is unknown"),
    ("unresolved", (before(1, "n1", outcome=ActionOutcome.INTENDED),), {}, "is intended"),
    (
        "unresolved",
        (before(1, "n1", outcome=ActionOutcome.UNKNOWN, action="drain"),),
        {},
        "drain of n1",
    ),
    ("state", (), {"not_ready": "it is DOWN"}, "it is DOWN"),
    ("suspect", (before(6 * DAY, "n1"), before(5 * DAY, "n1")), {}, "2 times within 7d"),
    ("cooldown", (before(599, "n1"),), {}, "cooldown of 10m: undrain 9m 59s ago"),
    ("cooldown", (before(599, "n1", action="drain"),), {}, "drain 9m 59s ago"),
    ("cooldown", (before(599, "n1", outcome=ActionOutcome.ERROR),), {}, "cooldown"),
    ("others", (), {"returned": (returned("n7", 599),)}, "n7: returned to service"),
    (
        "others",
        (before(700, "n7"),),
        {"returned": (returned("n7", 690), returned("n7", 5))},
        "n7: returned to service",
    ),
    (
        "others",
        (before(700, "n7", action="drain"),),
        {"returned": (returned("n7", 5),)},
        "n7: returned to service",
    ),
    ("per_hour", tuple(before(3599 - i) for i in range(3)), {}, "3 within the last hour"),
    (
        "per_hour",
        (before(3599, "n9"),),
        {"returned": (returned("n9", 3590), returned("n7", 3599), returned("n8", 601))},
        "3 within the last hour, at most 3; 2 of them not by this sentinel: n[7-8]",
    ),
    (
        "per_hour",
        (before(3, "n9"),),
        {"waits": False, "returned": (returned("n8", 1),), "marked": frozenset({"n7", "n8", "n1"})},
        "2 of them not by this sentinel: n[7-8]",
    ),
    (
        "share",
        (),
        {
            "returned": (returned("n2", 3599),),
            "partitions": {"debug": frozenset({"n1", "n2", "n3"})},
        },
        "1 of 3 nodes of partition debug within the last hour, at most 1 (10%); 1 of them not by",
    ),
    (
        "share",
        tuple(before(3599 - i, f"n{i + 2}") for i in range(2)),
        {"partitions": {"big": NODES, "debug": frozenset({"n1", "n2", "n3"})}},
        "2 of 3 nodes of partition debug",
    ),
    (
        "share",
        (before(3599, "n2"),),
        {"partitions": {"debug": frozenset({"n1", "n2", "n3"})}},
        "1 of 3 nodes of partition debug",
    ),
    ("share", (before(3599, "n2"),), {"partitions": {}, "nodes": 10}, "1 of all 10 nodes"),
]


@pytest.mark.parametrize(("rule", "records", "facts", "says"), ROWS)
def test_each_rule_objects_by_its_name(
    rule: str, records: tuple[ActionRecord, ...], facts: Mapping[str, Any], says: str
) -> None:
    """Refused, by that rule, in words that name the numbers."""
    found = _with(records, facts)
    assert (found.allowed, found.rule) == (False, rule)
    assert says in found.why


BOUNDARIES: list[tuple[str, tuple[ActionRecord, ...], Mapping[str, Any]]] = [
    ("a breaker that has cooled down", (), {"breaker": replace(OPEN, seconds=100.0)}),
    ("8 of 40 nodes left", (), {"left": tuple(left(f"n{i}", 1) for i in range(8))}),
    ("one node left nine times", (), {"left": tuple(left("n5", i) for i in range(9))}),
    ("9 nodes left long ago", (), {"left": tuple(left(f"n{i}", 600) for i in range(9))}),
    ("another target is open", (before(9999, "n2", outcome=ActionOutcome.UNKNOWN),), {}),
    (
        "what was refused counts for nothing",
        (before(1, "n1", outcome=ActionOutcome.REFUSED),) * 9,
        {},
    ),
    ("nor what was withdrawn", (before(1, "n1", outcome=ActionOutcome.WITHDRAWN),) * 9, {}),
    ("once in the window", (before(7 * DAY, "n1"), before(5 * DAY, "n1")), {}),
    (
        "what had no effect is no recovery",
        (before(DAY, "n1", outcome=ActionOutcome.NO_EFFECT),) * 9,
        {},
    ),
    ("another action is no recovery", (before(DAY, "n1", action="drain"),) * 9, {}),
    ("cooled down", (before(600, "n1"),), {}),
    ("two within the hour", (before(1), before(2), before(3600)), {}),
    ("other actions have caps of their own", (before(1, action="drain"),) * 9, {}),
    ("our own return", (before(700, "n7"),), {"returned": (returned("n7", 1),)}),
    (
        "our own returns that were seen late",
        tuple(before(3700, n) for n in ("n6", "n7", "n8")),
        {"returned": tuple(returned(n, 3300) for n in ("n6", "n7", "n8"))},
    ),
    (
        "our own return, and another's before anything that is remembered",
        (before(700, "n7"),),
        {"returned": (returned("n7", 3600 + LATE_SIGHTING_S), returned("n7", 1))},
    ),
    ("others' returns of an hour ago", (), {"returned": tuple([returned("n7", 3600)] * 9)}),
    ("one node that came back nine times", (), {"returned": (returned("n7", 700),) * 9}),
    ("by hand nobody waits", (), {"waits": False, "returned": (returned("n7", 1),)}),
    (
        "a share of a small partition is at least one",
        (before(1, "n7"),),
        {"partitions": {"debug": frozenset({"n1", "n2", "n3"})}},
    ),
    (
        "what was done elsewhere in a small cluster",
        (before(1, "n7"), before(2, "n8")),
        {"nodes": 10},
    ),
]


@pytest.mark.parametrize(("what", "records", "facts"), BOUNDARIES)
def test_the_other_side_of_each_boundary(
    what: str, records: tuple[ActionRecord, ...], facts: Mapping[str, Any]
) -> None:
    """Allowed."""
    assert _with(records, facts).allowed, what


def _with(records: tuple[ActionRecord, ...], facts: Mapping[str, Any]) -> GuardVerdict:
    """A `breaker` that is a Switch is stored; settings of it are the situation's."""
    ledger = ("left", "returned")
    stored = {k: v for k, v in facts.items() if isinstance(v, ActionSwitch) or k in ledger}
    seen = {k: v for k, v in facts.items() if k not in stored}
    past = ActionHistory(records=records, **stored)
    return judge_request(REQUEST, past, LIMITS, replace(CALM, **seen), START)


def test_what_is_about_no_node_neither_trips_the_breaker_nor_waits_for_it_to_trip() -> None:
    """Nobody has looked at the nodes then: 9 of 0 are no catastrophe."""
    nowhere = replace(CALM, nodes=0, partitions={})
    past = ActionHistory(left=tuple(left(f"n{i}", 1) for i in range(9)))
    assert explain_breaker_trip(nowhere, past, START) == ""
    assert judge_request(REQUEST, past, LIMITS, nowhere, START).allowed


def test_the_cooldown_counts_from_the_last_action() -> None:
    """Else whoever reads it waits too short."""
    assert "drain 10s ago" in verdict(before(590, "n1"), before(10, "n1", action="drain")).why


def test_what_returns_no_node_does_not_count_those_that_came_back() -> None:
    """Draining goes on while people return nodes."""
    past = ActionHistory(returned=tuple(returned(f"n{i}", 1) for i in range(9)))
    assert judge_request(replace(REQUEST, action="drain"), past, LIMITS, CALM, START).allowed


def test_every_rule_is_in_the_table() -> None:
    """A rule that nobody tests does not exist."""
    assert {row[0] for row in ROWS} == set(GUARD_RULES)


def test_the_first_rule_decides() -> None:
    """In their fixed order: switches before caps."""
    assert verdict(*(before(i) for i in range(3)), enabled=False).rule == "disabled"


def test_a_person_may_set_caps_aside_but_not_doubt() -> None:
    """--force: every rule yields but those that say nobody knows what would happen."""
    for rule, records, facts, _ in ROWS:
        found = _with(records, {**facts, "forced": True})
        assert (found.allowed, found.rule) == (
            (False, rule) if rule in UNFORCEABLE_RULES else (True, "")
        ), rule


@pytest.mark.parametrize("jump", [-400 * DAY, 400 * DAY])
def test_a_wall_clock_that_jumps_changes_nothing(jump: float) -> None:
    """Within one boot the boot's own clock counts."""
    jumped = Instant(wall=START.wall + int(jump * 1_000_000), boot=START.boot, mono=START.mono)
    assert verdict(before(599, "n1"), now=jumped).rule == "cooldown"
    assert verdict(before(600, "n1"), now=jumped).allowed


def test_a_record_of_the_future_is_of_this_moment() -> None:
    """After a reboot with the clock set back nobody knows how old it is: it counts."""
    other = replace(shift_instant(START, 30 * DAY), boot="boot-0")
    assert verdict(before(0, "n1", at=other)).rule == "cooldown"


def test_maintenance_by_hand_ends() -> None:
    """By itself where it was given an end, else when it is switched off."""
    begun = ActionSwitch(
        since=shift_instant(START, -7200), seconds=7200.0, why="cooling", by="root"
    )
    for seconds, rule in ((7200.0, ""), (7201.0, "maintenance"), (None, "maintenance")):
        past = ActionHistory(maintenance=replace(begun, seconds=seconds))
        assert judge_request(REQUEST, past, LIMITS, CALM, START).rule == rule


@pytest.mark.parametrize(
    ("settings", "gone", "trips"),
    [
        (BreakerSettings(nodes=3, share=Share(100)), 3, False),
        (BreakerSettings(nodes=3, share=Share(100)), 4, True),
        (BreakerSettings(nodes=50, share=Share(1)), 1, False),
        (BreakerSettings(nodes=50, share=Share(1)), 2, True),
    ],
)
def test_the_breaker_has_an_absolute_and_a_relative_bound(
    settings: BreakerSettings, gone: int, trips: bool
) -> None:
    """Whichever is smaller; a share of few nodes is at least one."""
    past = ActionHistory(left=tuple(left(f"n{i}", 1) for i in range(gone)))
    assert bool(explain_breaker_trip(replace(CALM, breaker=settings), past, START)) is trips


def test_without_partitions_the_share_is_of_all_nodes() -> None:
    """Up to it there is room, and where no node is known there is no share."""
    three = [before(900 + n, f"n{n}") for n in range(3)]
    roomy = replace(LIMITS, per_hour=100)

    def asked(*records: ActionRecord, nodes: int) -> GuardVerdict:
        seen = replace(CALM, partitions={}, nodes=nodes)
        return judge_request(REQUEST, ActionHistory(records=records), roomy, seen, START)

    assert asked(*three, nodes=40).allowed
    assert asked(*three, nodes=30).why == "3 of all 30 nodes within the last hour, at most 3"
    assert asked(*three, nodes=0).allowed


def test_what_is_looked_at_once_more_before_a_change_are_all_caps_on_others() -> None:
    """This hour's number, the partition's share, and whoever else gives nodes back."""

    def said(*records: ActionRecord, back: tuple[NodeReading, ...] = (), **limits: Any) -> str:
        past = ActionHistory(records=records, returned=back)
        return explain_full_caps(GuardCase(REQUEST, past, replace(LIMITS, **limits), CALM, START))

    two = [before(900 + n, f"n{n}") for n in (2, 3)]
    assert said(*two) == ""
    assert said(*two, per_hour=2) == "2 within the last hour, at most 2"
    assert said(*two, share=Share(5)).startswith("2 of 40 nodes of partition prod")
    assert "not by this sentinel" in said(back=(returned("n5", 10),))


def test_the_newest_record_of_a_wish() -> None:
    """The last begun of that action on that target, or none."""
    old, new, other = before(90), before(30), before(10, "n8")
    assert find_newest_record([old, new, other], "undrain", "n9") == new
    assert find_newest_record([old, new, other], "drain", "n9") is None
    assert find_newest_record([], "undrain", "n9") is None


def test_how_long_others_are_waited_for() -> None:
    """Ten minutes, to the second: what the docs promise to who returns nodes by hand."""
    assert (OTHERS_WAIT_S, LATE_SIGHTING_S) == (600.0, 600.0)
    for seconds, allowed in ((599.9, False), (600.0, True)):
        past = ActionHistory(returned=(returned("n7", seconds),))
        assert judge_request(REQUEST, past, LIMITS, CALM, START).allowed is allowed


@pytest.mark.parametrize(
    ("user", "shared", "rule"),
    [
        ("mallory", True, "per_hour"),
        ("alice", True, ""),  # who has the other half
        ("mallory", False, ""),  # one's own sentinel has no other user
        ("", True, ""),  # a node belongs to nobody
    ],
)
def test_jobs_of_one_user_take_at_most_half_of_the_hour(user: str, shared: bool, rule: str) -> None:
    """Anybody can submit jobs that hang: what is done about them must not use up the cap."""
    request = ActionRequest(action="cancel", target="77", reason="hang", params={"user": user})
    done = [before(60, f"job{n}", action="cancel", params={"user": "mallory"}) for n in range(2)]
    limits = Limits(per_hour=4, share=Share(100), cooldown=Duration(0))
    told = judge_request(
        request, ActionHistory(records=tuple(done)), limits, replace(CALM, shared=shared), START
    )
    assert told.rule == rule
    assert told.allowed is (not rule)
    if rule:
        assert told.why == (
            "2 for jobs of mallory within the last hour, at most 2 for one user (half of per_hour: 4)"
        )
