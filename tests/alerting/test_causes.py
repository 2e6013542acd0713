"""Which alert explains which, rule by rule: what mutes others must be bad enough, and theirs."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.incidents import (
    JOIN_WINDOW_S,
    TRAINING_KINDS,
    Causes,
    assign_incidents,
    is_always_notified,
    is_standstill,
    may_be_explained,
    rank_alert,
    rank_importance,
)
from sentinel.checks import KINDS
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Alert, Key, Status

OK, WARNING, CRITICAL, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN
BELOW_A_PATH = {"job", "log", "checkpoint", "du", "clean", "cron", "chain"}
ON_A_NODE = {
    *(
        "gpu",
        "fs",
        "memory",
        "service",
        "network",
        "sensors",
        "host",
        "diag",
        "drained",
        "job",
        "log",
    ),
}


def alert(kind: str, subject: str, severity: Status = CRITICAL, at: float = 0.0, **more: Any) -> Alert:  # fmt: skip
    moment = Instant(wall=int(at * SECOND))
    values: dict[str, Any] = {
        "key": Key(more.pop("cluster", "c"), more.pop("check", kind), subject),
        "id": f"{kind} {subject}", "kind": kind, "status": severity, "severity": severity,
        "summary": "bad", "since": moment, "last": moment, "fired": moment, "firing": True,
    }  # fmt: skip
    return Alert(**{**values, **more})


def explains(cause: Alert, effect: Alert) -> bool:
    return Causes([cause, effect]).find_cause(effect) is cause


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("cause", ["fs", "quota"])
def test_a_critical_file_system_explains_what_lies_in_it(cause: str, kind: str) -> None:
    """A warning explains nothing, whatever the kind: it would keep the checkpoint, the cleaning and
    the cron job that fail there silent. Other kinds are not about files."""
    effect = alert(kind, "/gpfs/work/run", WARNING, check="other")
    assert explains(alert(cause, "/gpfs"), effect) is (kind in BELOW_A_PATH)
    for mild in (WARNING, UNKNOWN):
        assert not explains(alert(cause, "/gpfs", mild), effect)
    assert may_be_explained(effect, {cause}) is (kind in BELOW_A_PATH)


@pytest.mark.parametrize(
    ("cause", "subject", "path", "is_below"),
    [
        ("/gpfs/work", "/gpfs/work/run", None, True),
        ("/gpfs/work", "/gpfs/work", None, True),
        ("/gpfs/work/", "/gpfs/work/", None, True),
        ("/gpfs/work", "/gpfs/workers/run", None, False),
        ("/gpfs/work/run", "/gpfs/work", None, False),
        ("/", "/home", None, True),
        ("/", "/", None, True),
        ("/gpfs", "llm", "/gpfs/logs/llm.log", True),
        ("/gpfs", "llm", "/home/llm.log", False),
        ("/gpfs", "llm", None, False),
        ("/gpfs", "gpfs/work", None, False),
    ],
)
def test_which_paths_lie_in_a_file_system(
    cause: str, subject: str, path: str | None, is_below: bool
) -> None:
    """By whole names, of the alert's subject or of its file."""
    effect = alert("checkpoint", subject, values={"path": path} if path else {})
    assert explains(alert("fs", cause), effect) is is_below


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_node_explains_what_is_on_it(kind: str) -> None:
    """By its label, and only kinds that look into nodes; a check that is blind has no node."""
    node = alert("nodes", "n3", WARNING)
    effect = alert(kind, "x", labels={"node": "n3"}, check="other")
    assert explains(node, effect) is (kind in ON_A_NODE)
    assert may_be_explained(effect, {"nodes"}) is (kind in ON_A_NODE)
    assert not explains(node, alert(kind, "x", labels={"node": "n4"}))
    assert not explains(node, alert(kind, "n3", check="other"))
    assert not explains(alert("nodes", "", UNKNOWN), alert(kind, "x", labels={"node": ""}))
    assert not explains(node, alert(kind, "x", labels={"node": "n3"}, cluster="d"))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_rack_explains_its_nodes(kind: str) -> None:
    """Of the same kind alone; what has a rack but no node is the rack itself."""
    rack = alert("nodes", "rack r1", labels={"rack": "r1"})
    effect = alert(kind, "n3", labels={"rack": "r1", "node": "n3"}, check="other")
    assert explains(rack, effect) is (kind == "nodes")
    assert not explains(rack, alert("nodes", "n3", labels={"rack": "r2", "node": "n3"}))
    assert not explains(effect, alert("nodes", "n4", labels={"rack": "r1", "node": "n4"}))
    assert not explains(alert("nodes", "x"), alert("nodes", "n3", labels={"node": "n3"}))


def test_slurms_trouble_explains_who_cannot_see_for_it() -> None:
    """A check that is unknown as a whole and names Slurm; no subject, no other status, no other
    words; of another cluster nothing."""
    slurm = alert("slurm", "ctl")
    words = "squeue: no answer within 5s"
    assert explains(slurm, alert("job", "", UNKNOWN, summary=words))
    assert may_be_explained(alert("job", "", UNKNOWN, summary=words), {"slurm"})
    assert not may_be_explained(alert("job", "", UNKNOWN, summary="ssh: no route"), {"slurm"})
    assert not explains(slurm, alert("job", "", UNKNOWN, summary="ssh: no route"))
    assert not explains(slurm, alert("job", "llm", UNKNOWN, summary=words))
    assert not explains(slurm, alert("job", "", WARNING, summary=words))
    assert not explains(slurm, alert("job", "", UNKNOWN, summary=words, cluster="d"))
    assert not explains(alert("nodes", "n1"), alert("job", "", UNKNOWN, summary=words))


def test_a_training_that_hangs_explains_its_unused_gpus() -> None:
    """Whichever began first. By user and name; another alert about the log, or a mild one, says
    nothing of a standstill."""
    labels = {"job": "llm", "user": "alice"}
    hung = alert("log", "llm", labels=labels, values={"quiet_seconds": 1800.0})
    idle = alert("idle", "alice/llm", WARNING, labels=labels, at=9 * JOIN_WINDOW_S)
    assert explains(hung, idle)
    assert not is_always_notified(idle)
    assert not explains(hung, replace(idle, kind="memory"))
    assert not explains(hung, replace(idle, labels={**labels, "user": "bob"}))
    assert not explains(hung, replace(idle, labels={"user": "alice"}))
    assert not explains(replace(hung, severity=WARNING), idle)
    assert not explains(replace(hung, values={}), idle)
    assert not explains(idle, hung)


def test_blindness_for_one_reason_is_one_story() -> None:
    """Whatever its numbers; other words, or a subject, are another."""
    first = alert("job", "", UNKNOWN, summary="no route to n1 within 5.2 s")
    again = alert("log", "", UNKNOWN, summary="no route to n1 within 17 s", at=1)
    assert explains(first, again)
    assert not explains(again, first)  # the oldest stands for all
    assert not explains(first, alert("log", "", UNKNOWN, summary="denied", at=1))
    assert not explains(first, alert("log", "x", UNKNOWN, summary=first.summary, at=1))
    assert not explains(first, alert("log", "", WARNING, summary=first.summary, at=1))


def test_a_storm_is_of_one_node_and_no_worse() -> None:
    """Both tell of Xids on GPUs of it, and what is worse is not explained by what is less."""
    on = {"labels": {"node": "n1"}, "summary": "Xid 79 3s ago"}
    first, mild = alert("gpu", "GPU-1", **on), alert("gpu", "GPU-1", WARNING, **on)
    assert explains(first, alert("gpu", "GPU-2", at=1, **on))
    assert explains(first, alert("gpu", "GPU-2", WARNING, at=1, **on))
    assert explains(mild, alert("gpu", "GPU-2", WARNING, at=1, **on))
    assert not explains(mild, alert("gpu", "GPU-2", CRITICAL, at=1, **on))
    assert not explains(first, alert("gpu", "", at=1, **on))
    assert not explains(first, alert("gpu", "GPU-2", at=1, labels=on["labels"], summary="hot"))
    other = {"labels": {"node": "n2"}, "summary": "Xid 79"}
    assert not explains(first, alert("gpu", "GPU-2", at=1, **other))
    assert not explains(first, alert("gpu", "GPU-2", at=1, labels={}, summary="Xid 79"))
    assert not explains(first, alert("sensors", "GPU-2", at=1, **on))
    nowhere = {"labels": {}, "summary": "Xid 79"}
    assert not explains(alert("gpu", "GPU-1", **nowhere), alert("gpu", "GPU-2", at=1, **nowhere))
    assert explains(first, alert("gpu", "GPU-2", at=1, labels=on["labels"], summary="SXid 20034"))


def test_paths_of_one_mount_are_one_story() -> None:
    """Of one check, equally bad, on one node; a limit of its own, or no mount, is another."""
    on = {"values": {"mount": "/gpfs"}, "check": "fs"}
    first = alert("fs", "/gpfs/a", **on)
    assert explains(first, alert("fs", "/gpfs/b", at=1, **on))
    for other in (
        {"check": "fs2"},
        {"severity": WARNING},
        {"values": {"mount": "/home"}},
        {"values": {"mount": "/gpfs", "own_limit": True}},
        {"values": {}},
        {"labels": {"node": "n1"}},
    ):
        assert not explains(first, alert("fs", "/gpfs/b", at=1, **{**on, **other}))
    assert not explains(first, alert("quota", "/gpfs/b", at=1, **on))


@pytest.mark.parametrize(
    ("seconds", "is_joined"), [(JOIN_WINDOW_S, True), (JOIN_WINDOW_S + 1, False)]
)
def test_only_what_begins_near_its_cause_joins_it(seconds: float, is_joined: bool) -> None:
    """Before it or after it, half an hour; by when both fired, else by when they began."""
    assert JOIN_WINDOW_S == 30 * 60
    node, on = alert("nodes", "n3", at=10_000), {"labels": {"node": "n3"}}
    for at in (10_000 + seconds, 10_000 - seconds):
        assert explains(node, alert("gpu", "GPU-1", at=at, **on)) is is_joined
        assert explains(node, alert("gpu", "GPU-1", at=at, fired=None, **on)) is is_joined
        early = Instant(wall=0)
        assert explains(node, alert("gpu", "GPU-1", at=at, since=early, **on)) is is_joined
        slow = alert("nodes", "n3", at=10_000, since=early)
        assert explains(slow, alert("gpu", "GPU-1", at=at, **on)) is is_joined
        late = alert("nodes", "n3", at=10_000, fired=None)
        assert explains(late, alert("gpu", "GPU-1", at=at, **on)) is is_joined


def test_nothing_explains_what_somebody_took_out() -> None:
    """Nor does what does not fire; and no alert explains itself."""
    node = alert("nodes", "n3")
    gpu = alert("gpu", "GPU-1", labels={"node": "n3"})
    assert Causes([node, gpu], split={gpu.id}).find_cause(gpu) is None
    assert Causes([node, gpu], split={node.id}).find_cause(gpu) is node
    quiet = alert("nodes", "n3", firing=False)
    assert Causes([quiet, gpu]).find_cause(gpu) is None
    assert Causes([node]).find_cause(node) is None
    assert Causes([node]).find_root_cause(node) is node
    assert Causes([node, gpu]).find_root_cause(gpu) is node


def test_the_last_cause_of_a_chain_names_the_incident() -> None:
    """A rack explains a node, which explains a GPU; who stands alone bears his own id, and who has
    joined an incident stays with it."""
    rack = alert("nodes", "rack r1", labels={"rack": "r1"})
    node = alert("nodes", "n3", labels={"rack": "r1", "node": "n3"})
    gpu = alert("gpu", "GPU-1", labels={"node": "n3"})
    other = alert("gpu", "GPU-2", labels={"node": "n9"}, incident="gpu GPU-2")
    quiet = alert("gpu", "GPU-3", labels={"node": "n3"}, firing=False)
    old = alert("gpu", "GPU-4", labels={"node": "n3"}, incident="of yesterday")
    alerts = {a.key: a for a in (rack, node, gpu, other, quiet, old)}
    causes = Causes(alerts.values())
    assert causes.find_root_cause(gpu) is rack
    found = {a.key.subject: a.incident for a in assign_incidents(alerts, causes)}
    assert found == {"rack r1": rack.id, "n3": rack.id, "GPU-1": rack.id}


def test_what_is_told_with_its_cause() -> None:
    """Trainings, drained nodes and diagnoses; not the check itself, and no other kind."""
    told = {kind for kind in KINDS if is_always_notified(alert(kind, "x"))}
    assert told == {"job", "log", "drained", "diag"}
    assert not any(is_always_notified(alert(kind, "")) for kind in KINDS)


def test_a_training_stands_still() -> None:
    """A critical alert of a job or a log about a training, and no other."""
    for kind in KINDS:
        assert is_standstill(kind, "llm", CRITICAL) is (kind in TRAINING_KINDS)
        assert not is_standstill(kind, "", CRITICAL)
        assert not is_standstill(kind, "llm", WARNING)


def test_what_comes_first_in_a_message() -> None:
    """Trainings by GPU-hours at risk, at least one GPU's; then critical, unknown, and warnings."""
    now = Instant(wall=7200 * SECOND)
    assert rank_alert(alert("job", "llm", values={"gpus": 64}), now) == (0, -128.0)
    assert rank_alert(alert("job", "llm", values={"gpus": 0.5}), now) == (0, -2.0)
    assert rank_alert(alert("job", "llm", values={"gpus": "64"}), now) == (0, -2.0)
    assert rank_alert(alert("job", "llm", at=9000), now) == (0, 0.0)
    assert rank_alert(alert("gpu", "GPU-1"), now) == (1, 0.0)
    assert rank_alert(alert("gpu", "GPU-1", UNKNOWN), now) == (2, 0.0)
    assert rank_alert(alert("gpu", "GPU-1", WARNING), now) == (3, 0.0)
    blind = alert("job", "llm", WARNING, status=UNKNOWN)
    assert rank_alert(blind, now) == (2, 0.0)
    assert rank_importance("job", "llm", CRITICAL, UNKNOWN, 8, 2) == (0, -16.0)
    assert rank_importance("job", "llm", CRITICAL, CRITICAL) == (0, 0.0)
