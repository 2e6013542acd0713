"""Alerts of one incident, and alike ones, as one line with their count: three hundred rows are not
read at 3 a.m. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sentinel.alerting.incidents import stands_still
from sentinel.core.model import Status, worst
from sentinel.core.text import gist
from sentinel.status.types import AlertFact


class Fold(Struct, frozen=True, kw_only=True):
    """Alerts that one line stands for: those of an incident, and those of incidents that say the same
    but for names and numbers. `first`: the cause of the incident that matters most; `alike`: how many
    say the same as it; `nodes`: how many nodes these name."""

    first: AlertFact
    rows: tuple[AlertFact, ...]
    alike: int = 1
    nodes: int = 0

    @property
    def count(self) -> int:
        """How many alerts it stands for."""
        return len(self.rows)

    @property
    def tone(self) -> Status:
        """As bad as the worst of them."""
        return worst(a.tone for a in self.rows)

    @property
    def more(self) -> str:
        """What stands beside the first; empty where it is alone."""
        on = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        like = f"and {self.alike - 1} more like it{on}" if self.alike > 1 else ""
        caused = self.count - self.alike
        of = f"and {caused} more of {'these incidents' if like else 'this incident'}"
        return ", ".join(filter(None, (like, of if caused else "")))

    @property
    def incidents(self) -> Sequence[str]:
        """Those that its alerts belong to."""
        return [*dict.fromkeys(a.incident or a.id for a in self.rows)]

    @property
    def stands_still(self) -> bool:
        """Whether it is a training that is dead or hangs: of these each has a line of its own."""
        return _still(self.first)


def folded(alerts: Sequence[AlertFact]) -> list[Fold]:
    """In the order of the most important alert of each. What somebody has, or what is silenced, stands
    apart from the rest of its incident."""
    heads: dict[tuple[object, ...], AlertFact] = {}
    for a in alerts:
        if not _still(a) and (_place(a) not in heads or a.id == a.incident):
            heads[_place(a)] = a
    groups: dict[tuple[object, ...], list[tuple[AlertFact, AlertFact]]] = {}
    for a in alerts:
        head = heads.get(_place(a), a) if not _still(a) else a
        groups.setdefault(_words(head), []).append((head, a))
    return [_fold(members) for members in groups.values()]


def single(alerts: Sequence[AlertFact]) -> list[Fold]:
    """Each by itself."""
    return [Fold(first=a, rows=(a,)) for a in alerts]


def _fold(members: Sequence[tuple[AlertFact, AlertFact]]) -> Fold:
    first = members[0][0]
    alike = [a for _, a in members if _words(a) == _words(first)]
    nodes = {a.labels["node"] for a in alike if a.labels.get("node")}
    rows = (first, *(a for _, a in members if a.id != first.id))
    return Fold(first=first, rows=rows, alike=len(alike), nodes=len(nodes))


def _still(a: AlertFact) -> bool:
    return stands_still(a.kind, a.subject, a.severity)


def _place(a: AlertFact) -> tuple[object, ...]:
    return a.incident or a.id, a.state, a.quiet


def _words(a: AlertFact) -> tuple[object, ...]:
    """What alike ones have in common: the summary without what differs from one subject to the next."""
    alone = a.subject if _still(a) else ""
    words = gist(a.summary, [a.subject, *a.labels.values()])
    return a.check, a.tone, a.state, a.quiet, alone, words
