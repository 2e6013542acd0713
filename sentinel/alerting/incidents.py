"""Incidents: alerts of one cause are one story. Pure.

An incident is the alerts that bear the same `incident`, the id of the alert that is its cause. It
has no state of its own, so it lives and ends with them. What joins what is data, RULES: a cause that
fires now, and something that both name (Slurm, a node, a path). A maintenance that Slurm has a
reservation for is a cause without an alert: its silence. Nothing is joined by a guess.

A training that is dead or hangs joins, and is told as if it had not: to its own people, at once.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.silences import Silence, find_causing_maintenance
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.model import Alert, Key, Status

JOIN_WINDOW_S = 1800.0
"""Seconds after a cause began to fire, or before, within which others join it. What happens later
is news of its own, even where the cause still lasts."""

TRAINING_KINDS = ("job", "log")
"""Kinds whose critical alerts say that a training is dead or stands still."""

_SLURM_PATTERN = re.compile(
    r"\b(?:slurm\w*|squeue|sinfo|scontrol|sacct|sdiag|munge)\b", re.IGNORECASE
)
_XID_PATTERN = re.compile(r"\bS?X[iI][dD]\b")
_DIGITS_PATTERN = re.compile(r"\d+(?:[.:]\d+)*\s?(?:ms|[smhdw]\b)?")


class CauseRule(Struct, frozen=True, kw_only=True):
    """Alerts of kinds `causes` explain those of kinds `effects` (empty: all) that share a link.

    blind: the cause is Slurm's own trouble, the effect a check that cannot see and names Slurm.
    words: both are checks that cannot see, for the same reason; the oldest stands for all.
    node: the cause is about the node that the effect bears as its label.
    rack: the cause is about the rack of which all nodes are out, which the effect bears as its label.
    storm: both tell of Xids on one node; the oldest stands for all.
    path: the cause is about a file system or directory in which the effect's file lies.
    mount: both are paths of one check on the same file system, with one limit, and equally bad.
    """

    link: Literal["blind", "words", "rack", "node", "storm", "path", "mount"]
    causes: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


CAUSE_RULES = (
    CauseRule(link="blind", causes=("slurm",)),
    CauseRule(link="rack", causes=("nodes",), effects=("nodes",)),
    CauseRule(
        link="node",
        causes=("nodes",),
        effects=(
            "gpu",
            "fs",
            "memory",
            "service",
            "network",
            "sensors",
            "diag",
            "drained",
            "job",
            "log",
        ),
    ),
    CauseRule(
        link="path",
        causes=("fs", "quota"),
        effects=("job", "log", "checkpoint", "du", "clean", "cron", "chain"),
    ),
    CauseRule(link="storm", causes=("gpu",), effects=("gpu",)),
    CauseRule(link="words"),
    CauseRule(link="mount", causes=("fs",), effects=("fs",)),
)
"""Sorted by how much they explain: the first that fits decides. A rack and its nodes: topology.conf(5), or `slurm: {racks}`.
A GPU that falls off the bus takes others of its host along, by NVLink and by their common job:
https://docs.nvidia.com/deploy/xid-errors/ (74 and 45 beside 79)."""


ALWAYS_NOTIFIED_KINDS = (*TRAINING_KINDS, "drained", "diag")
"""Kinds that join, and are told all the same: of a drained node they say what keeps it."""


def is_always_notified(alert: Alert) -> bool:
    """Whether its cause does not mute it: it says more than that, or wakes others."""
    return bool(alert.key.subject) and alert.kind in ALWAYS_NOTIFIED_KINDS


def is_standstill(kind: str, subject: str, severity: Status) -> bool:
    """Whether a training is dead or hangs."""
    return kind in TRAINING_KINDS and bool(subject) and severity is Status.CRITICAL


def rank_importance(
    kind: str, subject: str, severity: Status, status: Status, gpus: float = 0, hours: float = 0
) -> tuple[int, float]:
    """Smaller comes first: trainings that stand still, by GPU-hours at risk; then what is critical,
    what cannot be seen, and what may become worse."""
    if is_standstill(kind, subject, severity):
        return 0, -max(gpus, 1.0) * max(hours, 0.0)
    if status is Status.UNKNOWN:
        return 2, 0.0
    return (1 if severity is Status.CRITICAL else 3), 0.0


def rank_alert(alert: Alert, now: Instant) -> tuple[int, float]:
    """The importance of an alert now."""
    gpus = alert.values.get("gpus")
    return rank_importance(
        alert.kind,
        alert.key.subject,
        alert.severity,
        alert.status,
        float(gpus) if isinstance(gpus, (int, float)) else 0.0,
        get_elapsed_s(alert.since, now) / 3600,
    )


class Causes:
    """Which of these alerts explain which, found once for many questions."""

    def __init__(
        self,
        alerts: Iterable[Alert],
        rules: Iterable[CauseRule] = CAUSE_RULES,
        split: Container[str] = (),
    ) -> None:
        """`split`: ids of alerts that a person took out of their incident: nothing explains them."""
        self._rules, self.split = tuple(rules), split
        self._found: dict[tuple[int, str, str], Alert] = {}
        for alert in sorted((a for a in alerts if a.firing), key=lambda a: (a.since.wall, a.key)):
            for number, rule in enumerate(self._rules):
                if not rule.causes or alert.kind in rule.causes:
                    for link in _links_as_cause(rule, alert):
                        self._found.setdefault((number, _link_scope(rule, alert), link), alert)

    def find_cause(self, alert: Alert) -> Alert | None:
        """The firing alert that explains this one; None where none does."""
        if alert.id in self.split:
            return None
        for number, rule in enumerate(self._rules):
            if rule.effects and alert.kind not in rule.effects:
                continue
            for link in _links_as_effect(rule, alert):
                cause = self._found.get((number, _link_scope(rule, alert), link))
                if cause is not None and cause.key != alert.key and _began_together(cause, alert):
                    return cause
        return None

    def find_root_cause(self, alert: Alert) -> Alert:
        """The last cause of the chain; the alert itself where nothing explains it, or where the
        chain leads round in a circle."""
        seen, at = {alert.key}, alert
        while (cause := self.find_cause(at)) is not None:
            if cause.key in seen:
                return alert
            seen.add(cause.key)
            at = cause
        return at


def assign_incidents(
    alerts: Mapping[Key, Alert], causes: Causes, silences: Sequence[Silence] = ()
) -> Iterator[Alert]:
    """The firing alerts that have to bear another incident than they do. One that has joined a
    cause stays with it; one that stood alone may still join. What nothing else explains, and what
    that explains, joins the maintenance in which it began."""
    for alert in alerts.values():
        if alert.firing and (alert.incident in ("", alert.id) or alert.id in causes.split):
            root = causes.find_root_cause(alert)
            alone = root.key == alert.key or root.incident in ("", root.id)
            planned = (
                find_causing_maintenance(root, silences)
                if alone and alert.id not in causes.split
                else None
            )
            incident = planned.id if planned else root.id if alone else root.incident
            if incident != alert.incident:
                yield replace(alert, incident=incident)


def may_be_explained(
    alert: Alert, kinds: Container[str], rules: Iterable[CauseRule] = CAUSE_RULES
) -> bool:
    """Whether a check of these kinds, if it finds its trouble, would be the cause of this alert."""
    return any(
        any(kind in kinds for kind in rule.causes)
        and (not rule.effects or alert.kind in rule.effects)
        and any(True for _ in _links_as_effect(rule, alert))
        for rule in rules
    )


def _link_scope(rule: CauseRule, alert: Alert) -> str:
    """Whose link it is: each cluster has its own Slurm and a node-0 of its own; file systems are this
    host's."""
    return "" if rule.link in ("path", "mount") else alert.key.cluster


def _links_as_cause(rule: CauseRule, alert: Alert) -> Iterator[str]:
    if rule.link == "blind":
        yield ""
    elif rule.link == "words":
        yield from _blindness_reasons(alert)
    elif rule.link == "rack":
        yield from _rack_links(alert)
    elif rule.link == "storm":
        for status in Status:
            if status.rank <= alert.severity.rank:
                yield from _xid_storm_links(alert, status)
    elif rule.link == "mount":
        yield from _mount_links(alert)
    elif alert.key.subject and rule.link == "node":
        yield alert.key.subject
    elif rule.link == "path" and alert.severity is Status.CRITICAL:
        yield alert.key.subject.rstrip("/") or "/"


def _links_as_effect(rule: CauseRule, alert: Alert) -> Iterator[str]:
    node = alert.labels.get("node", "")
    if rule.link == "blind":
        yield from [""] if _is_blind_check(alert) and _SLURM_PATTERN.search(alert.summary) else []
    elif rule.link == "words":
        yield from _blindness_reasons(alert)
    elif rule.link == "mount":
        yield from _mount_links(alert)
    elif rule.link == "storm":
        yield from _xid_storm_links(alert, alert.severity)
    elif rule.link == "path":
        yield from _path_and_parents(alert)
    elif node:
        link = alert.labels.get("rack", "") if rule.link == "rack" else node
        yield from [link] if link else []


def _path_and_parents(alert: Alert) -> Iterator[str]:
    """The file or directory that it is about, and all above it."""
    for path in (alert.key.subject, str(alert.values.get("path") or "")):
        while path.startswith("/"):
            yield path.rstrip("/") or "/"
            path = "" if path == "/" else path.rpartition("/")[0] or "/"


def _rack_links(alert: Alert) -> Iterator[str]:
    rack = alert.labels.get("rack", "")
    if rack and not alert.labels.get("node"):
        yield rack


def _xid_storm_links(alert: Alert, severity: Status) -> Iterator[str]:
    """The node of a GPU of which an Xid is told; what is worse is not explained by what is less."""
    node = alert.labels.get("node", "")
    if node and alert.key.subject and _XID_PATTERN.search(alert.summary):
        yield f"{node} {severity.value}"


def _is_blind_check(alert: Alert) -> bool:
    return not alert.key.subject and alert.status is Status.UNKNOWN


def _blindness_reasons(alert: Alert) -> Iterator[str]:
    """Why a check cannot see, without its numbers: times and counts differ from check to check."""
    if _is_blind_check(alert):
        yield _DIGITS_PATTERN.sub("", alert.summary)


def _mount_links(alert: Alert) -> Iterator[str]:
    """Where the path's file system is mounted. A directory with a quota of its own fills by itself;
    without an answer there is no `own_limit`: what hangs, hangs as a whole."""
    mount = alert.values.get("mount")
    if mount and not alert.values.get("own_limit"):
        node = alert.labels.get("node", "")
        yield "\0".join([alert.key.check, alert.severity.value, node, str(mount)])


def _began_together(cause: Alert, effect: Alert) -> bool:
    began = cause.fired or cause.since
    return abs((effect.fired or effect.since).wall - began.wall) <= JOIN_WINDOW_S * SECOND
