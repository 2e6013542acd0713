"""Alerts of one incident, and alike ones, as one line with their count: three hundred rows are not
read at 3 a.m. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sentinel.alerting.incidents import is_standstill
from sentinel.core.model import Status, get_worst_status
from sentinel.core.text import strip_names
from sentinel.status.types import AlertFact


class AlertFold(Struct, frozen=True, kw_only=True):
    """Alerts that one line stands for: those of an incident, and those of incidents that say the same
    but for names and numbers. `first`: the cause of the incident that matters most; `alike`: how many
    say the same as it; `nodes`: how many nodes these name."""

    first: AlertFact
    rows: tuple[AlertFact, ...]
    alike: int = 1
    nodes: int = 0

    @property
    def count(self) -> int:
        """The number of its alerts."""
        return len(self.rows)

    @property
    def tone(self) -> Status:
        """The tone of its worst alert."""
        return get_worst_status(a.tone for a in self.rows)

    @property
    def more(self) -> str:
        """The alerts beside the first. Empty if there is only one."""
        on = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        like = f"and {self.alike - 1} more like it{on}" if self.alike > 1 else ""
        caused = self.count - self.alike
        of = f"and {caused} more of {'these incidents' if like else 'this incident'}"
        return ", ".join(filter(None, (like, of if caused else "")))

    @property
    def incidents(self) -> Sequence[str]:
        """The incidents of its alerts."""
        return [*dict.fromkeys(a.incident or a.id for a in self.rows)]

    @property
    def is_standstill(self) -> bool:
        """Whether it is a training that is dead or hangs: of these each has a line of its own."""
        return _is_still(self.first)


def fold_alerts(alerts: Sequence[AlertFact]) -> list[AlertFold]:
    """The rows, sorted by their most important alert. Acknowledged and silenced alerts are separate
    from the rest of their incident."""
    heads: dict[tuple[object, ...], AlertFact] = {}
    for a in alerts:
        if not _is_still(a) and (_get_incident_key(a) not in heads or a.id == a.incident):
            heads[_get_incident_key(a)] = a
    groups: dict[tuple[object, ...], list[tuple[AlertFact, AlertFact]]] = {}
    for a in alerts:
        head = heads.get(_get_incident_key(a), a) if not _is_still(a) else a
        groups.setdefault(_get_likeness_key(head), []).append((head, a))
    return [_make_fold(members) for members in groups.values()]


def fold_singly(alerts: Sequence[AlertFact]) -> list[AlertFold]:
    """Each by itself."""
    return [AlertFold(first=a, rows=(a,)) for a in alerts]


def _make_fold(members: Sequence[tuple[AlertFact, AlertFact]]) -> AlertFold:
    first = members[0][0]
    alike = [a for _, a in members if _get_likeness_key(a) == _get_likeness_key(first)]
    nodes = {a.labels["node"] for a in alike if a.labels.get("node")}
    rows = (first, *(a for _, a in members if a.id != first.id))
    return AlertFold(first=first, rows=rows, alike=len(alike), nodes=len(nodes))


def _is_still(a: AlertFact) -> bool:
    return is_standstill(a.kind, a.subject, a.severity)


def _get_incident_key(a: AlertFact) -> tuple[object, ...]:
    return a.incident or a.id, a.state, a.quiet


def _get_likeness_key(a: AlertFact) -> tuple[object, ...]:
    """What alike ones have in common: the summary without what differs from one subject to the next."""
    alone = a.subject if _is_still(a) else ""
    words = strip_names(a.summary, [a.subject, *a.labels.values()])
    return a.check, a.tone, a.state, a.quiet, alone, words
