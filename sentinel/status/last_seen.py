"""The last observations, as the state stores them for the page, the metrics and `top`. Pure.

Alerts contain only problems. A good disk, a running job and an idle node are stored here. Their
number is limited, so that the state stays small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from sentinel.core import stored_memory
from sentinel.core.clock import Instant
from sentinel.core.hostlist import fold_for_people
from sentinel.core.model import Status, Value
from sentinel.core.text import shortened

if TYPE_CHECKING:
    from sentinel.alerting.observations import RunOutcome
    from sentinel.core.cluster import Node

MAX_FINDINGS = 200
"""Findings of one check that are kept: the worst of them."""

MAX_SUMMARY_CHARS = 300
NODES_KEY = "sentinel/nodes"
"""Under this name the state remembers the nodes that were seen last."""

_CHECK_KEY_PREFIX = "sentinel/looks/"


class ShownFinding(Struct, frozen=True, kw_only=True):
    """A finding, without what only its alert needs. `parts`: bytes of the largest directories and owners
    of a tree, by the name under which the history has them (`dir /x/y`, `owner ann`)."""

    subject: str
    status: Status
    summary: str
    values: Mapping[str, Value] = {}
    labels: Mapping[str, str] = {}
    parts: Mapping[str, float] = {}


class CheckLook(Struct, frozen=True, kw_only=True):
    """The last run of a check that could see. `left_out`: findings beyond MOST."""

    at: Instant
    findings: tuple[ShownFinding, ...] = ()
    left_out: int = 0


class NodeGroup(Struct, frozen=True, kw_only=True):
    """Nodes in the same state for the same reason; `nodes` is a hostlist."""

    state: str
    nodes: str
    count: int
    flags: tuple[str, ...] = ()
    reason: str = ""
    by: str = ""
    since: int | None = None


class PlacedJob(Struct, frozen=True, kw_only=True):
    """A job that runs, and where: `nodes` is a hostlist."""

    id: str
    name: str
    user: str
    nodes: str


class NodeLook(Struct, frozen=True, kw_only=True):
    """All nodes as Slurm showed them, and the requested jobs by state.

    `gpus`: host lists by the number of GPUs of each node. `work`: the largest running jobs.
    `racks`: leaf switches or blocks with their host lists. `private`: the words of PrivateData.
    None: not known. `trouble`: why there is no newer observation.
    """

    at: Instant
    groups: tuple[NodeGroup, ...] = ()
    jobs: Mapping[str, int] = {}
    gpus: Mapping[str, str] = {}
    work: tuple[PlacedJob, ...] = ()
    racks: Mapping[str, str] = {}
    private: tuple[str, ...] | None = None
    trouble: str = ""


def make_check_key(check: str) -> str:
    """The key in the state for a check's observations."""
    return _CHECK_KEY_PREFIX + check


def encode_looks(outcomes: Iterable[RunOutcome], now: Instant) -> dict[str, Mapping[str, Any]]:
    """What to write of these runs; nothing of a blind one, so that the last sight stays."""
    return {
        make_check_key(o.check): _encode_check_look(o, now)
        for o in outcomes
        if o.report is not None
    }


def decode_check_look(memory: Mapping[str, Any]) -> CheckLook | None:
    """The stored observation. None if there is none, or if another version wrote it in another
    form."""
    return stored_memory.decode_memory(memory, CheckLook)


def decode_node_look(memory: Mapping[str, Any]) -> NodeLook | None:
    """Like `decode_check_look`, for the key NODES."""
    return stored_memory.decode_memory(memory, NodeLook)


def group_nodes(nodes: Iterable[Node]) -> tuple[NodeGroup, ...]:
    """Nodes with the same state, flags and reason together, the largest group first."""
    groups: dict[Any, list[str]] = defaultdict(list)
    for node in nodes:
        since = node.reason_time if node.reason else None
        flags = tuple(sorted(node.flags))
        groups[(node.state, flags, node.reason, node.reason_user, since)].append(node.name)
    told = (_make_node_group(*seen, names=names) for seen, names in groups.items())
    return tuple(sorted(told, key=lambda g: (-g.count, g.state, g.flags, g.reason)))


def _make_node_group(
    state: str, flags: tuple[str, ...], reason: str, by: str, since: int | None, *, names: list[str]
) -> NodeGroup:
    return NodeGroup(
        state=state,
        flags=flags,
        reason=shortened(reason, MAX_SUMMARY_CHARS),
        by=by,
        since=since,
        nodes=fold_for_people(names),
        count=len(names),
    )


def _encode_check_look(outcome: RunOutcome, now: Instant) -> Mapping[str, Any]:
    seen = outcome.report.findings if outcome.report else ()
    findings = sorted(seen or (outcome.itself,), key=lambda f: -f.status.rank)
    parts = defaultdict[str, dict[str, float]](dict)
    for sample in outcome.report.samples if outcome.report else ():
        if sample.name.startswith(("dir ", "owner ")):
            parts[sample.subject][sample.name] = sample.value
    shown = [
        ShownFinding(
            subject=f.subject,
            status=f.status,
            summary=shortened(f.summary, MAX_SUMMARY_CHARS),
            values={k: v for k, v in f.values.items() if _is_storable(v)},
            labels=f.labels,
            parts=parts.get(f.subject, {}),
        )
        for f in findings[:MAX_FINDINGS]
    ]
    look = CheckLook(at=now, findings=tuple(shown), left_out=max(0, len(findings) - MAX_FINDINGS))
    told: Mapping[str, Any] = to_builtins(look)
    return told


def _is_storable(value: object) -> bool:
    """Whether every store can keep it: a plugin's odd value must not keep alerts from theirs."""
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or isinstance(value, str | float)
