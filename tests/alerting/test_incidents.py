"""Alerts of one cause are one story: what joins, what is told all the same, and what ends it."""

from collections.abc import Sequence
from datetime import timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from sentinel.actions.announcements import ActionBulletin
from sentinel.alerting.batch_builder import FIRST_LOOK, GATHER, SETTLE_S
from sentinel.alerting.incidents import JOIN_WINDOW_S, CauseRule, Causes, rank_importance
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.orders import Author, acknowledge_alert, make_remark, silence_alerts
from sentinel.alerting.pending_checks import PendingChecks
from sentinel.alerting.processor import announce_actions, process_outcomes, review_alerts
from sentinel.alerting.settings import Inhibit, Match
from sentinel.alerting.silences import Ack, Orders
from sentinel.alerting.slurm_maintenance import maintenance_changes as maintenances
from sentinel.alerting.state_machine import AlertPolicy, FlapPolicy
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import Reservation
from sentinel.core.guidance import look
from sentinel.core.holds import Held, HeldKind
from sentinel.core.model import Alert, Coverage, Finding, Key, Outgoing, Report, Status
from sentinel.status.incidents import IncidentInputs, describe_incident, group_open_incidents
from sentinel.store.rows import decode_stored, encode_stored
from sentinel.testing import START

KINDS = {
    "slurm": "slurm", "nodes": "nodes", "fs": "fs", "gpus": "gpu", "mounts": "fs", "log": "log", "log2": "log",
    "train": "job", "ckpt": "checkpoint", "drained": "drained", "diag": "diag", **{f"c{n}": "job" for n in range(11)},
}  # fmt: skip
PLAN = NotificationPlan(
    cluster="c",
    channels=["mail"],
    policies={n: AlertPolicy(kind=k, blind_after=1) for n, k in KINDS.items()},
)
OK, WARNING, CRITICAL, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN
BLIND = "squeue: slurmctld cannot be reached: no answer within {}s"


def saw(check: str, subject: str = "", status: Status = CRITICAL, words: str = "bad", **more: Any) -> RunOutcome:  # fmt: skip
    """A run that saw one thing; about an empty subject it is the check that cannot see."""
    if not subject:
        return RunOutcome(
            check=check, kind=KINDS[check], seconds=0.1, report=None,
            itself=Finding(subject="", status=status, summary=words),
        )  # fmt: skip
    found = Finding(subject=subject, status=status, summary=words, **more)
    report = Report(findings=(found,), coverage=Coverage(of="things", meant=1))
    fine = Finding(subject="", status=OK, summary="")
    return RunOutcome(check=check, kind=KINDS[check], seconds=0.1, report=report, itself=fine)


def blind(check: str, seconds: int = 5) -> RunOutcome:
    return saw(check, status=UNKNOWN, words=BLIND.format(seconds))


def sees(check: str) -> RunOutcome:
    return saw(check, "x", OK)


class Night:
    """The alerts of one channel over time."""

    def __init__(self, plan: NotificationPlan = PLAN) -> None:
        self.alerts: dict[Key, Alert] = {}
        self.plan, self.now, self.pending = plan, START, PendingChecks()
        self.orders = Orders()

    def pass_(self, *outcomes: RunOutcome, after: float = 60) -> list[Outgoing]:
        """What is told of these runs."""
        self.now = shift_instant(self.now, after)
        return self._kept(
            process_outcomes(
                outcomes, self.alerts, self.plan, self.now, self.orders, pending=self.pending
            )
        )

    def later(self, seconds: float) -> list[Outgoing]:
        self.now = shift_instant(self.now, seconds)
        return self._kept(
            review_alerts(self.alerts, self.plan, self.now, self.orders, pending=self.pending)
        )

    def acted(self, *deeds: ActionBulletin) -> list[Outgoing]:
        return self._kept(announce_actions(deeds, self.alerts, self.plan, self.now, self.orders))

    def _kept(self, batch: Any) -> list[Outgoing]:
        self.alerts |= {a.key: a for a in batch.alerts}
        for key in batch.closed:
            self.alerts.pop(key, None)
        return list(batch.outbox)


def said(rows: Sequence[Outgoing]) -> list[tuple[str, str, str]]:
    return [(r.notification.check, r.notification.subject, r.notification.reason) for r in rows]


def test_a_slurmctld_that_hangs_is_one_message_and_one_end() -> None:
    """Twelve checks cannot see; they see again one after the other, a while after it is back."""
    night, checks = Night(), [f"c{n}" for n in range(11)]
    began = night.pass_(saw("slurm", "ctl", words="no answer"), *map(blind, checks))
    assert said(began) == [("slurm", "ctl", "firing")]
    assert (
        "same incident: check c0, check c1, check c2, check c3, check c4 and 6 more"
        in began[0].notification.note
    )
    assert len({a.incident for a in night.alerts.values()}) == 1
    over = night.pass_(saw("slurm", "ctl", OK))
    assert said(over) == [("slurm", "ctl", "resolved")]
    assert said(night.later(30)) == []
    assert [said(night.pass_(sees(check), after=5)) for check in checks] == [[]] * 11


def test_blindness_that_came_first_is_told_once() -> None:
    """Before Slurm's own check has run, or where there is none: for one reason, with other times."""
    night = Night()
    rows = night.pass_(*(blind(f"c{n}", seconds=n) for n in range(11)))
    assert said(rows) == [("c0", "", "firing")]
    assert len(said(night.pass_(saw("slurm", "ctl")))) == 1


def test_what_is_blind_for_another_reason_is_told() -> None:
    """And what stays blind when its cause is over, after it has had time to look again."""
    night = Night()
    other = saw("gpus", status=UNKNOWN, words="ssh: no route")
    assert len(said(night.pass_(saw("slurm", "ctl"), blind("c0"), other))) == 2
    assert said(night.pass_(saw("slurm", "ctl", OK), blind("c0"))) == [("slurm", "ctl", "resolved")]
    assert said(night.later(SETTLE_S + 1)) == [("c0", "", "firing")]


def test_what_was_blind_before_the_end_of_its_cause_is_looked_at_again() -> None:
    """The third blind run comes a moment after slurmctld is back, with an answer from before. What is
    blind for good is told all the same."""
    policies = {**PLAN.policies, "c0": AlertPolicy(kind="job", blind_after=3)}
    night = Night(replace(PLAN, policies=policies))
    night.pass_(saw("slurm", "ctl"), blind("c0"))
    night.pass_(blind("c0"))
    assert said(night.pass_(saw("slurm", "ctl", OK))) == [("slurm", "ctl", "resolved")]
    assert said(night.pass_(blind("c0"), after=0.1)) == []
    assert said(night.later(SETTLE_S + 1)) == [("c0", "", "firing")]


def test_a_node_that_dies_under_a_training() -> None:
    """One incident, one thread; the training is told, GPUs and mounts are not."""
    night, on = Night(), {"labels": {"node": "n3"}}
    rows = night.pass_(
        saw("nodes", "n3", words="DOWN"), saw("gpus", "GPU-1", **on), saw("mounts", "n3:/s", **on),
        saw("train", "llm", words="NODE_FAIL on n3", **on),
    )  # fmt: skip
    assert sorted(said(rows)) == [("nodes", "n3", "firing"), ("train", "llm", "firing")]
    assert len({r.notification.incident for r in rows}) == len({r.bundle for r in rows}) == 1
    by_check = {r.notification.check: r.notification.note for r in rows}
    assert by_check["nodes"].startswith("same incident: train llm, ")
    assert by_check["train"] == "same incident as nodes n3: DOWN"


def test_a_full_file_system_under_trainings() -> None:
    """By the path in which their files lie."""
    night = Night()
    rows = night.pass_(
        saw("fs", "/scratch"), saw("log", "llm", values={"path": "/scratch/a/log"}),
        saw("ckpt", "/scratch/a", WARNING), saw("log2", "other", values={"path": "/home/b/log"}),
    )  # fmt: skip
    assert ("ckpt", "/scratch/a", "firing") not in said(rows)
    assert len(rows) == 3
    alerts = {k.subject: a.incident for k, a in night.alerts.items()}
    assert alerts["/scratch"] == alerts["llm"] == alerts["/scratch/a"] != alerts["other"]


def test_a_rack_explains_its_nodes_and_all_on_them() -> None:
    """One message for the rack; the training on it is told too."""
    night, checks = Night(), {f"c{n}": f"n{n}" for n in range(3)}
    nodes = {name: replace(PLAN.policies["nodes"]) for name in checks}
    night.plan = replace(PLAN, policies={**PLAN.policies, **nodes})
    rack = [
        replace(saw(check, node, WARNING, labels={"node": node, "rack": "s0"}), kind="nodes")
        for check, node in checks.items()
    ]
    switch = saw("nodes", "rack s0", labels={"rack": "s0"})
    on = {"labels": {"node": "n1"}}
    rows = night.pass_(*rack, saw("gpus", "GPU-1", **on), saw("train", "llm", **on), switch)
    assert sorted(said(rows)) == [("nodes", "rack s0", "firing"), ("train", "llm", "firing")]
    assert len({a.incident for a in night.alerts.values()}) == 1


def test_a_topology_that_changes_under_way_loses_nothing() -> None:
    """A node that is behind another switch now is told when it was looked at again."""
    night = Night()
    gone = replace(PLAN.policies["nodes"])
    night.plan = replace(PLAN, policies={**PLAN.policies, "c1": gone})
    node = saw("c1", "n1", WARNING, labels={"node": "n1", "rack": "s0"})
    switch = saw("nodes", "rack s0", labels={"rack": "s0"})
    assert said(night.pass_(node, switch)) == [("nodes", "rack s0", "firing")]
    moved = saw("c1", "n1", WARNING, labels={"node": "n1", "rack": "s1"})
    assert said(night.pass_(moved, switch)) == []
    assert said(night.later(SETTLE_S + 1)) == [("c1", "n1", "firing")]


def test_what_begins_in_a_maintenance_is_told_as_one_when_that_is_over() -> None:
    """Nodes that do not come back, with all that they explain: one incident, one thread. What began
    before it or on another node stands alone, and so does what somebody takes out."""
    night, at = Night(), START.wall // SECOND
    reserved = Reservation(
        name="firmware", starts=at + 90, ends=at + 7200, nodes=frozenset({"n1", "n2", "n3"}),
        flags=frozenset({"MAINT"}),
    )  # fmt: skip
    quiet = maintenances([reserved], (), ["n1", "n2", "n3", "n4"], START)
    night.orders = Orders(silences=tuple(quiet))
    early = night.pass_(saw("gpus", "GPU-3", labels={"node": "n3"}))
    assert said(early) == [("gpus", "GPU-3", "firing")]
    nodes = {"c1": "n1", "c2": "n2", "c3": "n4"}
    more = {name: replace(PLAN.policies["nodes"]) for name in nodes}
    night.plan = replace(PLAN, policies={**PLAN.policies, **more})
    down = [replace(saw(c, n, labels={"node": n}), kind="nodes") for c, n in nodes.items()]
    rows = night.pass_(*down, saw("mounts", "n1:/s", labels={"node": "n1"}), after=3600)
    assert said(rows) == [("c3", "n4", "firing")]
    of = {k.subject: a.incident for k, a in night.alerts.items()}
    assert of["n1"] == of["n2"] == of["n1:/s"] == quiet[0].id
    assert len({of["GPU-3"], of["n4"], of["n1"]}) == 3
    over = night.later(3600)
    assert sorted(said(over)) == [("c1", "n1", "firing"), ("c2", "n2", "firing")]
    assert len({row.bundle for row in over}) == 1
    assert "began in maintenance reservation firmware" in over[0].notification.note
    known = IncidentInputs(
        alerts=list(night.alerts.values()), history=(), orders=night.orders, now=night.now,
        zone=timezone.utc,
    )  # fmt: skip
    told = describe_incident(quiet[0].id, known)
    assert told["title"] == "maintenance reservation firmware"
    assert [row["reason"] for row in told["timeline"]] == ["begins", "ends"]
    taken = next(a for a in night.alerts.values() if a.key.subject == "n2")
    said_by = Author("ann", "cli", "")
    apart = make_remark(quiet[0].id, "split", said_by, night.now, alert=taken.id)
    night.orders = replace(night.orders, remarks=(apart,))
    night.later(60)
    assert night.alerts[taken.key].incident == taken.id


def test_a_storm_of_xids_on_one_host() -> None:
    """The first stands for all that are no worse; another host's is told."""
    night, on = Night(), {"labels": {"node": "n1"}}
    plan = dict.fromkeys(("c1", "c2", "c3"), PLAN.policies["gpus"])
    night.plan = replace(PLAN, policies={**PLAN.policies, **plan})
    rows = night.pass_(
        saw("c1", "GPU-1", WARNING, "Xid 63", **on), saw("c2", "GPU-2", words="Xid 79", **on)
    )  # fmt: skip
    assert sorted(said(rows)) == [("c1", "GPU-1", "firing"), ("c2", "GPU-2", "firing")]
    other = saw("gpus", "GPU-9", words="Xid 79", labels={"node": "n2"})
    rows = night.pass_(saw("c3", "GPU-3", words="Xid 74", **on), other)
    assert said(rows) == [("gpus", "GPU-9", "firing")]


def paths(check: str, *seen: tuple[str, Status], **values: str | bool) -> RunOutcome:
    """A look of one check at several paths below one mount point."""
    values = {"mount": "/gpfs", **values}
    found = [Finding(subject=p, status=s, summary="full", values=values) for p, s in seen]
    one = saw(check, "x", OK)
    report = Report(findings=tuple(found), coverage=Coverage(of="paths", meant=len(found)))
    return replace(one, report=report)


def count_messages(*passes: list[Outgoing]) -> int:
    """Mails: rows of one pass that share a bundle go out as one."""
    return sum(len({row.bundle for row in rows}) for rows in passes)


def test_a_node_that_is_drained_and_repaired_is_one_message_and_its_end() -> None:
    """The drain and what keeps the node out of service, and later the end of both. Machines keep
    every alert and its key; a node beside it has messages of its own."""
    night, on, other = Night(), {"labels": {"node": "n1"}}, {"labels": {"node": "n2"}}
    out = saw("nodes", "n1", WARNING, "is out of service", **on)
    kept = saw("drained", "n1", WARNING, "not clean", **on)
    began = night.pass_(out, kept)
    assert said(began) == [("nodes", "n1", "firing"), ("drained", "n1", "firing")]
    assert len(night.alerts) == len({row.notification.key for row in began}) == 2
    same = night.pass_(out, saw("drained", "n1", WARNING, "clean by 10 proofs", **on), after=600)
    over = night.pass_(saw("nodes", "n1", OK), saw("drained", "n1", OK))
    assert sorted(said(over)) == [("drained", "n1", "resolved"), ("nodes", "n1", "resolved")]
    assert (count_messages(began), count_messages(same), count_messages(over)) == (1, 0, 1)
    assert night.later(600) == []
    two = night.pass_(saw("nodes", "n1", WARNING, **on), saw("drained", "n2", WARNING, **other))
    assert count_messages(two) == 2
    ends = night.pass_(saw("nodes", "n1", OK), saw("drained", "n2", OK))
    assert count_messages(ends) == 2


def test_a_missing_gpu_and_the_xid_of_its_slot_are_one_message() -> None:
    """The driver's line does not name a GPU that nvidia-smi no longer shows, so it is about the node.
    The API keeps both alerts; a GPU that is missing on another node is told."""
    night, on = Night(), {"labels": {"node": "n1"}}
    night.plan = replace(PLAN, policies={**PLAN.policies, "c1": PLAN.policies["gpus"]})
    words = (
        "GPU missing: 7 of 8 GPUs on n1 are there (slot 00000000:50:00.0, last seen at 08:05 UTC)"
    )
    lost, xid = saw("gpus", "GPU-7", words=words, **on), saw("c1", "n1", words="Xid 79", **on)
    rows = night.pass_(lost, xid)
    assert len(rows) == 1
    assert len(night.alerts) == 2
    assert len({alert.incident for alert in night.alerts.values()}) == 1
    over = night.pass_(saw("gpus", "GPU-7", OK), saw("c1", "n1", OK))
    assert len(over) == 1
    rows = night.pass_(lost, saw("c1", "n2", words="Xid 79", labels={"node": "n2"}), after=7200)
    assert len(rows) == 2


def test_paths_of_one_file_system_are_told_once() -> None:
    """By one check, as long as they are equally bad; the end is told once, too."""
    night = Night()
    work, home = "/gpfs/work", "/gpfs/home"
    rows = night.pass_(paths("fs", (work, CRITICAL), (home, CRITICAL)))
    assert len(rows) == 1
    assert "same incident: fs /gpfs/" in rows[0].notification.note
    over = night.pass_(paths("fs", (work, OK), (home, OK)))
    assert [r.notification.reason for r in over] == ["resolved"]
    night = Night()
    assert len(night.pass_(paths("fs", (work, CRITICAL)), paths("mounts", (home, CRITICAL)))) == 2
    assert len(Night().pass_(paths("fs", (work, CRITICAL), (home, WARNING)))) == 2
    worse = Night()
    assert len(worse.pass_(paths("fs", (work, WARNING), (home, WARNING)))) == 1
    assert len(worse.pass_(paths("fs", (work, CRITICAL), (home, CRITICAL)))) == 1


def test_quotas_below_one_mount_are_causes_of_their_own() -> None:
    """A project that is full says nothing of the next one; that all of it hangs is one alert."""
    one, two = "/gpfs/one", "/gpfs/two"
    assert len(Night().pass_(paths("fs", (one, CRITICAL), (two, CRITICAL), own_limit=True))) == 2
    assert len(Night().pass_(paths("fs", (one, CRITICAL), (two, CRITICAL)))) == 1


def test_nothing_joins_what_was_told_long_ago() -> None:
    """A node that was acknowledged yesterday explains nothing of today."""
    night, on = Night(), {"labels": {"node": "n3"}}
    night.pass_(saw("nodes", "n3"))
    rows = night.pass_(saw("gpus", "GPU-1", **on), after=JOIN_WINDOW_S + 61)
    assert said(rows) == [("gpus", "GPU-1", "firing")]
    assert len({a.incident for a in night.alerts.values()}) == 2


def test_a_training_that_dies_on_a_node_acknowledged_yesterday() -> None:
    """One message, which wakes: as new, critical, and with no word that somebody has it."""
    night, on = Night(), {"labels": {"node": "n3"}}
    night.pass_(saw("nodes", "n3"), saw("gpus", "GPU-1", **on))
    acks = {a.id: Ack(alert=a.id, at=night.now, who="ann") for a in night.alerts.values()}
    night.orders = Orders(acks=acks)
    night.later(86_400 - 600)
    rows = night.pass_(
        saw("train", "llm", words="NODE_FAIL on n3", **on), saw("nodes", "n3"), saw("gpus", "GPU-1", **on)
    )  # fmt: skip
    assert said(rows) == [("train", "llm", "firing")]
    assert rows[0].notification.severity is CRITICAL
    assert "ann" not in rows[0].notification.note


def test_what_began_a_little_before_its_cause_joins_it() -> None:
    """The GPUs were seen to be gone before Slurm gave the node up."""
    night, on = Night(), {"labels": {"node": "n3"}}
    first = night.pass_(saw("train", "llm", **on))
    night.pass_(saw("nodes", "n3"))
    assert len({a.incident for a in night.alerts.values()}) == 1
    over = night.pass_(saw("train", "llm", OK, **on))
    assert over[0].notification.alert == first[0].notification.alert  # machines keep their object


def alert(check: str, subject: str, status: Status, at: float, **labels: str) -> Alert:
    moment = Instant(wall=int(at * SECOND))
    return Alert(
        key=Key("c", check, subject), id=f"{check}{subject}", kind=KINDS[check], status=status,
        severity=status, summary="slurmctld", since=moment, last=moment, fired=moment, firing=True,
        labels=labels,
    )  # fmt: skip


ALERTS = some.lists(
    some.builds(
        alert,
        some.sampled_from(sorted(KINDS)),
        some.sampled_from(["", "n1", "n2", "/", "/s", "/s/a", "llm"]),
        some.sampled_from([WARNING, CRITICAL, UNKNOWN]),
        some.floats(0, 4 * JOIN_WINDOW_S),
        node=some.sampled_from(["", "n1", "n2"]),
    ),
    unique_by=lambda a: a.key,
)
CIRCLE = (
    CauseRule(link="node", causes=("nodes", "gpu", "job"), effects=("nodes", "gpu", "job")),
    CauseRule(link="path", causes=("fs", "checkpoint"), effects=("fs", "checkpoint")),
    CauseRule(link="words"),
)


@given(ALERTS, some.booleans())
def test_a_root_is_its_own_cause_whatever_the_rules(alerts: list[Alert], circle: bool) -> None:
    """Rules in a circle explain nothing away: every alert has a root among those that fire, and not
    all of them are muted."""
    causes = Causes(alerts, CIRCLE) if circle else Causes(alerts)
    roots = {a.key: causes.find_root_cause(a) for a in alerts}
    assert {r.key for r in roots.values()} <= set(roots)
    if alerts:
        assert any(root.key == key for key, root in roots.items())
    assert all(causes.find_root_cause(root).key == root.key for root in roots.values())


@given(some.lists(some.sampled_from(sorted(KINDS)), min_size=1, max_size=12), some.data())
def test_a_dead_training_is_always_told(checks: list[str], data: Any) -> None:
    """Whatever else fires before, with or after it."""
    night = Night()
    for check in checks:
        subject = data.draw(some.sampled_from(["n1", "/s", "llm"]))
        status = data.draw(some.sampled_from([WARNING, CRITICAL, UNKNOWN]))
        night.pass_(
            saw(check, subject, status, labels={"node": "n1"}),
            after=data.draw(some.floats(0, 3600)),
        )
    dead = saw("train", "the one", labels={"node": "n1"}, values={"path": "/s/x"})
    assert ("train", "the one", "firing") in said(night.pass_(dead))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("job", "llm", CRITICAL, CRITICAL, 64, 2), ("job", "llm", CRITICAL, CRITICAL, 8, 2)),
        (("job", "llm", CRITICAL, CRITICAL, 1, 0), ("gpu", "GPU", CRITICAL, CRITICAL, 0, 0)),
        (("gpu", "GPU", CRITICAL, CRITICAL, 0, 0), ("job", "", WARNING, UNKNOWN, 0, 0)),
        (("fs", "/", WARNING, UNKNOWN, 0, 0), ("job", "llm", WARNING, WARNING, 64, 9)),
    ],
)
def test_trainings_that_stand_still_come_first(first: Any, then: Any) -> None:
    """Then what is critical, what cannot be seen, and the rest."""
    assert rank_importance(*first) < rank_importance(*then)


def test_an_effect_that_was_seen_before_its_cause_waits_for_it() -> None:
    """Within one pass: while a check is at work that may find the cause, and no longer."""
    night, on = Night(), {"labels": {"node": "n3"}}
    night.pending = PendingChecks(checks={"nodes": "nodes"})
    assert said(night.pass_(saw("gpus", "GPU-1", **on))) == []
    assert said(night.pass_(saw("mounts", "/m"), after=1)) == [("mounts", "/m", "firing")]
    dead = night.pass_(saw("train", "llm", **on), after=1)
    assert said(dead) == [("train", "llm", "firing")]
    night.pending = PendingChecks()
    assert said(night.pass_(saw("nodes", "n3"), after=1)) == [("nodes", "n3", "firing")]
    assert night.alerts[Key("c", "gpus", "GPU-1")].on_hold == Held(HeldKind.EXPLAINED, "nodes n3")


def test_an_effect_without_its_cause_is_told_when_the_pass_is_over() -> None:
    """By whichever check ends last; also when that hangs, after a bound."""
    night, on = Night(), {"labels": {"node": "n3"}}
    night.pending = PendingChecks(checks={"nodes": "nodes"})
    assert said(night.pass_(saw("gpus", "GPU-1", **on))) == []
    assert said(night.later(GATHER)) == [("gpus", "GPU-1", "firing")]
    assert said(night.pass_(saw("mounts", "/m", **on), after=1)) == []
    night.pending = PendingChecks()
    assert said(night.pass_(sees("c1"), after=1)) == [("mounts", "/m", "firing")]


def test_what_the_file_mutes_waits_for_its_cause_too() -> None:
    """`inhibit` has the same race as the causes of incidents."""
    rule = Inhibit(when=Match(check="slurm"), mute=Match(kind="checkpoint"))
    night = Night(replace(PLAN, inhibit=[rule]))
    night.pending = PendingChecks(checks={"slurm": "slurm"})
    assert said(night.pass_(saw("ckpt", "/a"))) == []
    night.pending = PendingChecks(checks={"nodes": "nodes"})
    assert said(night.later(1)) == [("ckpt", "/a", "firing")]


def test_a_first_look_is_one_message() -> None:
    """All that is wrong already, the training that stands still first, and what is watched."""
    night = Night()
    night.pending = PendingChecks(checks={"fs": "fs"}, first=True)
    assert said(night.pass_(saw("gpus", "GPU-1"), saw("train", "llm"), saw("ckpt", "/c"))) == []
    night.pending = PendingChecks()
    rows = night.pass_(saw("fs", "/scratch"), after=5)
    assert said(rows)[0] == ("train", "llm", "firing")
    assert len(rows) == 4
    assert len({row.bundle for row in rows}) == 1
    first, *others = (row.notification.note for row in rows)
    assert "first pass (" in first
    assert not any("first pass" in note for note in others)
    later = night.pass_(saw("mounts", "/m"))
    assert "first look" not in later[0].notification.note
    assert later[0].bundle != rows[0].bundle


@pytest.mark.parametrize(
    ("set_up", "words"),
    [
        ({"train": START.wall}, ": it ran when you set this up at 08:00 UTC"),
        ({"other": START.wall}, ": this problem may be older"),
    ],
)
def test_a_first_look_knows_what_init_saw(set_up: dict[str, int], words: str) -> None:
    night = Night()
    night.pending = PendingChecks(set_up=set_up, first=True)
    night.pass_(saw("train", "llm"))
    night.pending = replace(night.pending, first=False)
    (row,) = night.pass_(saw("train", "llm"), after=FIRST_LOOK)
    assert row.notification.note.endswith(words)


def test_a_first_look_waits_for_no_check_that_hangs() -> None:
    """After a bound what is known is told."""
    night = Night()
    night.pending = PendingChecks(checks={"fs": "fs"}, first=True)
    assert night.pass_(saw("train", "llm")) == []
    assert said(night.later(FIRST_LOOK)) == [("train", "llm", "firing")]


def done(check: str, subject: str) -> ActionBulletin:
    return ActionBulletin(
        id="1", check=check, subject=subject, status=OK, summary="done", command=look("id")
    )


def test_what_was_done_about_an_alert_that_is_explained_does_not_tell_it() -> None:
    night = Night()
    assert said(night.pass_(saw("slurm", "ctl"), blind("c0"))) == [("slurm", "ctl", "firing")]
    assert said(night.acted(done("c0", ""))) == [("c0", "", "action")]


@pytest.mark.parametrize("waits", [{"first": True}, {"checks": {"fs": "fs"}}])
@pytest.mark.parametrize("is_silenced", [False, True])
def test_an_alert_that_waits_is_told_before_what_was_done_about_it(
    waits: dict[str, Any], is_silenced: bool
) -> None:
    """Once; not that of another check, and none that is silenced."""
    night = Night(replace(PLAN, inhibit=[Inhibit(when=Match(check="fs"), mute=Match())]))
    night.pending = PendingChecks(**waits)
    assert night.pass_(saw("drained", "n1"), saw("ckpt", "/c")) == []
    if is_silenced:
        mine = [alert for alert in night.alerts.values() if alert.key.check == "drained"]
        quiet = silence_alerts(mine, night.now.wall + 60 * SECOND, Author("ann", "cli"), night.now)
        night.orders = Orders(silences=(quiet,))
    deed = done("drained", "n1")
    firing, action = ("drained", "n1", "firing"), ("drained", "n1", "action")
    assert said(night.acted(deed)) == ([] if is_silenced else [firing, action])
    assert said(night.acted(deed)) == ([] if is_silenced else [action])
    night.pending = PendingChecks()
    assert said(night.later(1)) == [("ckpt", "/c", "firing")]


class Life(Night):
    """As Night, beside what people have done to it; what flaps would be told otherwise."""

    def do(self, deed: str) -> None:
        """An order about every incident of now, as `sentinel incidents` gives it, or a restart."""
        firing = [alert for alert in self.alerts.values() if alert.firing]
        orders, said_by = self.orders, Author("ann", "cli", "mine")
        if deed == "ack":
            acks = {a.id: acknowledge_alert(firing, a.id, said_by, self.now) for a in firing}
            self.orders = replace(orders, acks={**orders.acks, **acks})
        elif deed == "silence":
            quiet = silence_alerts(firing, self.now.wall + 7200 * SECOND, said_by, self.now)
            self.orders = replace(orders, silences=(*orders.silences, quiet))
        elif deed == "split" and firing:
            apart = make_remark(firing[0].incident, "split", said_by, self.now, alert=firing[-1].id)
            self.orders = replace(orders, remarks=(*orders.remarks, apart))
        elif deed == "restart":
            stored = [decode_stored(encode_stored(alert), Alert) for alert in self.alerts.values()]
            self.alerts = {alert.key: alert for alert in stored}


STEADY = replace(
    PLAN,
    policies={n: replace(p, flap=FlapPolicy(changes=0)) for n, p in PLAN.policies.items()},
)
SEEN = some.tuples(
    some.sampled_from(sorted(KINDS)),
    some.sampled_from(["", "n1", "n2", "/s", "/s/a"]),
    some.sampled_from([OK, WARNING, CRITICAL, UNKNOWN]),
    some.sampled_from(["", "n1", "n2"]),
)
STEPS = some.lists(
    some.tuples(
        some.sampled_from(["", "", "ack", "silence", "split", "restart"]),
        some.lists(SEEN, max_size=4, unique_by=lambda seen: seen[0]),
        some.dictionaries(some.sampled_from(["train", "log"]), some.booleans()),
        some.sampled_from([(), ("nodes",), ("fs", "slurm")]),
        some.sampled_from([1, 60, 600, 3 * JOIN_WINDOW_S]),
    ),
    max_size=12,
)


@given(STEPS)
def test_no_message_about_a_dead_training_is_ever_missing(steps: Any) -> None:
    """Whatever fires, joins, is split, acknowledged, silenced by incident, or restarted in between:
    a training that was well and is dead is told in that pass, as new. And nothing is lost: each alert
    that fires is in one incident, and what nobody was told says why."""
    night, dead = Life(STEADY), {"train": False, "log": False}
    for deed, seen, trainings, at_work, after in steps:
        night.do(deed)
        night.pending = PendingChecks(checks={name: KINDS[name] for name in at_work})
        outcomes = [
            saw(check, subject, status, labels={"node": node})
            for check, subject, status, node in seen
            if check not in trainings and check not in at_work
        ]
        for name, died in trainings.items():
            status, where = (CRITICAL if died else OK), {"labels": {"node": "n1"}}
            outcomes.append(saw(name, "llm", status, values={"path": "/s/a/log"}, **where))
        rows = said(night.pass_(*outcomes, after=after))
        others = {check for check, *_ in seen if check not in trainings}
        for name, died in trainings.items():
            if died and not dead[name]:
                assert (name, "llm", "firing") in rows
            dead[name] = died
        for name in others & dead.keys():
            dead[name] = any(
                a.key.subject == "llm"
                for a in night.alerts.values()
                if a.key.check == name and a.firing
            )
        firing = [a for a in night.alerts.values() if a.firing]
        known = IncidentInputs(
            alerts=firing, history=(), orders=night.orders, now=night.now, zone=timezone.utc
        )
        assert sum(len(members) for _, members in group_open_incidents(known)) == len(firing)
        assert all(a.told or a.on_hold for a in firing)


def test_one_clusters_trouble_explains_nothing_of_another() -> None:
    """Each has a slurmctld and a node-0 of its own."""
    there = {
        n: replace(p, cluster="west") for n, p in PLAN.policies.items() if n in ("slurm", "nodes")
    }
    night = Night(replace(PLAN, policies={**PLAN.policies, **there}))
    night.pass_(saw("slurm", "controller"), saw("nodes", "node-0"))
    night.pass_(blind("log"), saw("gpus", "gpu 3", labels={"node": "node-0"}))
    incidents = {a.key.check: a.incident for a in night.alerts.values() if a.firing}
    assert len(set(incidents.values())) == 4
    assert {k.cluster for k in night.alerts if k.check in there} == {"west"}
