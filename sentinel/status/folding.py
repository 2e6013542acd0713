"""Alike alerts as one line with their count: three hundred rows are not read at 3 a.m. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from sentinel.alerting.incidents import stands_still
from sentinel.status.types import AlertFact

_NUMBERS = re.compile(r"[0-9]+")


class Fold(Struct, frozen=True, kw_only=True):
    """Alerts of one check that say the same but for names and numbers. `first`: the one that matters
    most; `nodes`: how many nodes they name."""

    first: AlertFact
    count: int = 1
    nodes: int = 0

    @property
    def more(self) -> str:
        """What stands beside the first; empty where it is alone."""
        on = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        return f"and {self.count - 1} more like it{on}" if self.count > 1 else ""

    @property
    def stands_still(self) -> bool:
        """Whether it is a training that is dead or hangs: of these each has a line of its own."""
        return stands_still(self.first.kind, self.first.subject, self.first.severity)


def folded(alerts: Sequence[AlertFact]) -> list[Fold]:
    """In the order of the first of each."""
    groups: dict[tuple[object, ...], list[AlertFact]] = {}
    for a in alerts:
        alone = a.subject if stands_still(a.kind, a.subject, a.severity) else ""
        groups.setdefault((a.check, a.tone, a.state, a.quiet, alone, _gist(a)), []).append(a)
    return [_fold(alike) for alike in groups.values()]


def _fold(alike: Sequence[AlertFact]) -> Fold:
    nodes = {a.labels["node"] for a in alike if a.labels.get("node")}
    return Fold(first=alike[0], count=len(alike), nodes=len(nodes))


def _gist(a: AlertFact) -> str:
    """The summary without what differs from one subject to the next."""
    text = a.summary
    for name in sorted({a.subject, *a.labels.values()} - {""}, key=len, reverse=True):
        text = text.replace(name, "")
    return _NUMBERS.sub("0", text)
