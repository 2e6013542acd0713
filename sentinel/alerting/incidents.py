"""Groups alerts with the same cause into an incident. Pure.

All alerts of an incident have the same `incident`, the id of the alert that is the cause. An
incident has no state of its own, so it begins and ends with its alerts. CAUSE_RULES says which
alerts are joined: the cause must fire now, and both alerts must name the same thing (Slurm, a node,
a path). A maintenance reservation of Slurm is a cause without an alert: its silence takes that place.
Alerts are never joined by a guess.

The alert of a dead or hanging training joins an incident, but its message is sent at once all the
same.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.silences import Silence, find_causing_maintenance
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.model import Alert, Key, Status

JOIN_WINDOW_S = 1800.0
"""Others join a cause only if they begin within this many seconds of it. A later alert is reported
separately, even while the cause lasts."""

TRAINING_KINDS = ("job", "log")
"""Kinds whose critical alerts mean that a training is dead or hangs."""

_SLURM_PATTERN = lazy_pattern(
    r"\b(?:slurm\w*|squeue|sinfo|scontrol|sacct|sdiag|munge)\b", re.IGNORECASE
)
_XID_PATTERN = lazy_pattern(r"\bS?X[iI][dD]\b|\bmissing: [0-9]+ of [0-9]+ GPUs\b")
_DIGITS_PATTERN = lazy_pattern(r"\d+(?:[.:]\d+)*\s?(?:ms|[smhdw]\b)?")


class CauseRule(Struct, frozen=True, kw_only=True):
    """Alerts of kinds `causes` explain alerts of kinds `effects` (empty: all kinds) with a common
    link.

    The links are:

        blind: the cause is a problem of Slurm, the effect a check that cannot see and names Slurm.
        words: both are checks that cannot see, for the same reason. The oldest stands for all.
        node: the cause is about the node in the effect's label.
        rack: the cause is about a rack whose nodes are all out. The effect names it in its label.
        storm: both are about Xids or a missing GPU on one node. The oldest stands for all.
        path: the cause is about a file system or directory that contains the effect's file.
        mount: both are paths of one check on one file system, with one limit, and equally bad.
        training: the cause is a standstill of the training in the effect's labels. It does not matter
            which of them began first, because they wait for different times.
    """

    link: Literal["blind", "words", "rack", "node", "storm", "path", "mount", "training"]
    """How cause and effect are linked, see above."""
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
            "host",
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
    CauseRule(link="training", causes=("log",), effects=("idle",)),
    CauseRule(link="storm", causes=("gpu",), effects=("gpu",)),
    CauseRule(link="words"),
    CauseRule(link="mount", causes=("fs",), effects=("fs",)),
)
"""Sorted by how much they explain, because the first matching rule decides. Racks come from
topology.conf(5), or from `slurm: {racks}`. A GPU that falls off the bus causes errors on other GPUs
of its host, by NVLink and by their common job: https://docs.nvidia.com/deploy/xid-errors/ (74 and
45 beside 79)."""


ALWAYS_NOTIFIED_KINDS = (*TRAINING_KINDS, "drained", "diag")
"""Kinds whose alerts join an incident and are still sent. A dead training is too important to wait,
and `drained` and `diag` say what keeps a node out of service."""


def is_always_notified(alert: Alert) -> bool:
    """Whether the alert is sent although its cause is known: it says more than the cause, or is for
    other people."""
    return bool(alert.key.subject) and alert.kind in ALWAYS_NOTIFIED_KINDS


def is_standstill(kind: str, subject: str, severity: Status) -> bool:
    """Whether the alert means that a training is dead or hangs."""
    return kind in TRAINING_KINDS and bool(subject) and severity is Status.CRITICAL


def rank_importance(
    kind: str, subject: str, severity: Status, status: Status, gpus: float = 0, hours: float = 0
) -> tuple[int, float]:
    """A sort key. The smallest value is the most important.

    Dead and hanging trainings come first, sorted by GPU-hours at risk. Then come critical alerts,
    unknown ones, and those that may become worse.
    """
    if is_standstill(kind, subject, severity):
        return 0, -max(gpus, 1.0) * max(hours, 0.0)
    if status is Status.UNKNOWN:
        return 2, 0.0
    return (1 if severity is Status.CRITICAL else 3), 0.0


def rank_alert(alert: Alert, now: Instant) -> tuple[int, float]:
    """The current importance of an alert."""
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
    """Finds which of these alerts explain which. It is computed once and asked often."""

    def __init__(
        self,
        alerts: Iterable[Alert],
        rules: Iterable[CauseRule] = CAUSE_RULES,
        split: Container[str] = (),
    ) -> None:
        """`split` are ids of alerts that a person took out of their incident. No other alert
        explains them."""
        self._rules, self.split = tuple(rules), split
        self._found: dict[tuple[int, str, str], Alert] = {}
        for alert in sorted((a for a in alerts if a.firing), key=lambda a: (a.since.wall, a.key)):
            for number, rule in enumerate(self._rules):
                if not rule.causes or alert.kind in rule.causes:
                    for link in _links_as_cause(rule, alert):
                        self._found.setdefault((number, _link_scope(rule, alert), link), alert)

    def find_cause(self, alert: Alert) -> Alert | None:
        """The firing alert that explains this one. None if there is none."""
        if alert.id in self.split:
            return None
        for number, rule in enumerate(self._rules):
            if rule.effects and alert.kind not in rule.effects:
                continue
            for link in _links_as_effect(rule, alert):
                cause = self._found.get((number, _link_scope(rule, alert), link))
                if cause is None or cause.key == alert.key:
                    continue
                if rule.link == "training" or _began_together(cause, alert):
                    return cause
        return None

    def find_root_cause(self, alert: Alert) -> Alert:
        """The last cause in the chain of causes. If there is no cause, or the chain is a circle,
        the alert itself."""
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
    """The firing alerts whose incident has to change, with the new incident.

    An alert that has joined a cause stays with it. An alert without a cause may join one later. If
    no other alert explains an alert, it and its effects join the maintenance in which it began.
    """
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
    """Whether a check of one of these kinds may find the cause of this alert."""
    return any(
        any(kind in kinds for kind in rule.causes)
        and (not rule.effects or alert.kind in rule.effects)
        and any(True for _ in _links_as_effect(rule, alert))
        for rule in rules
    )


def _link_scope(rule: CauseRule, alert: Alert) -> str:
    """The scope of a link. Each cluster has its own Slurm and its own node-0. File systems belong
    to this host."""
    return "" if rule.link in ("path", "mount") else alert.key.cluster


def _links_as_cause(rule: CauseRule, alert: Alert) -> Iterator[str]:
    if rule.link == "blind":
        yield ""
    elif rule.link in _EQUAL_LINKS:
        yield from _EQUAL_LINKS[rule.link](alert)
    elif rule.link == "rack":
        yield from _rack_links(alert)
    elif rule.link == "storm":
        for status in Status:
            if status.rank <= alert.severity.rank:
                yield from _xid_storm_links(alert, status)
    elif rule.link == "training":
        # Other alerts about a log, such as one about its loss, say nothing of a standstill.
        is_hang = alert.severity is Status.CRITICAL and "quiet_seconds" in alert.values
        yield from _training_links(alert) if is_hang else ()
    elif alert.key.subject and rule.link == "node":
        yield alert.key.subject
    elif rule.link == "path" and alert.severity is Status.CRITICAL:
        yield alert.key.subject.rstrip("/") or "/"


def _links_as_effect(rule: CauseRule, alert: Alert) -> Iterator[str]:
    node = alert.labels.get("node", "")
    if rule.link == "blind":
        yield from [""] if _is_blind_check(alert) and _SLURM_PATTERN.search(alert.summary) else []
    elif rule.link in _EQUAL_LINKS:
        yield from _EQUAL_LINKS[rule.link](alert)
    elif rule.link == "storm":
        yield from _xid_storm_links(alert, alert.severity)
    elif rule.link == "training":
        yield from _training_links(alert)
    elif rule.link == "path":
        yield from _path_and_parents(alert)
    elif node:
        link = alert.labels.get("rack", "") if rule.link == "rack" else node
        yield from [link] if link else []


def _path_and_parents(alert: Alert) -> Iterator[str]:
    """The file or directory of the alert, and all its parent directories."""
    for path in (alert.key.subject, str(alert.values.get("path") or "")):
        while path.startswith("/"):
            yield path.rstrip("/") or "/"
            path = "" if path == "/" else path.rpartition("/")[0] or "/"


def _rack_links(alert: Alert) -> Iterator[str]:
    rack = alert.labels.get("rack", "")
    if rack and not alert.labels.get("node"):
        yield rack


def _training_links(alert: Alert) -> Iterator[str]:
    """The user and the name of the job."""
    job, user = alert.labels.get("job", ""), alert.labels.get("user", "")
    if job and user and alert.key.subject:
        yield f"{user}\0{job}"


def _xid_storm_links(alert: Alert, severity: Status) -> Iterator[str]:
    """The node of a missing GPU or an Xid. Only the node counts, because the line about a GPU that
    fell off the bus may not name the GPU. A milder problem does not explain a worse one."""
    node = alert.labels.get("node", "")
    if node and alert.key.subject and _XID_PATTERN.search(alert.summary):
        yield f"{node} {severity.value}"


def _is_blind_check(alert: Alert) -> bool:
    return not alert.key.subject and alert.status is Status.UNKNOWN


def _blindness_reasons(alert: Alert) -> Iterator[str]:
    """Why a check cannot see, without numbers, because times and counts differ from check to check."""
    if _is_blind_check(alert):
        yield _DIGITS_PATTERN.sub("", alert.summary)


def _mount_links(alert: Alert) -> Iterator[str]:
    """The mount point of the path's file system.

    A directory with its own quota (`own_limit`) fills up alone. If the file system hangs,
    `own_limit` is not known. Then the whole file system counts, because it hangs as a whole.
    """
    mount = alert.values.get("mount")
    if mount and not alert.values.get("own_limit"):
        node = alert.labels.get("node", "")
        yield "\0".join([alert.key.check, alert.severity.value, node, str(mount)])


_EQUAL_LINKS = {"words": _blindness_reasons, "mount": _mount_links}
"""Links that cause and effect have in the same way."""


def _began_together(cause: Alert, effect: Alert) -> bool:
    began = cause.fired or cause.since
    return abs((effect.fired or effect.since).wall - began.wall) <= JOIN_WINDOW_S * SECOND
