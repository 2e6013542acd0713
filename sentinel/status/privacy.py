"""Who may see what, where people have names: all of one's own jobs; of other people's neither log, path
nor stacks, and nothing at all where Slurm hides them. Pure.

What is not known to be one's own, and not only of disks, nodes and GPUs, is left out. What Slurm
hides: https://slurm.schedmd.com/slurm.conf.html#OPT_PrivateData
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.owners import OWNER_LABEL
from sentinel.core.model import get_worst_status
from sentinel.status.detail import AlertChange
from sentinel.status.types import ActionFact, AlertFact, Facts, IncidentFact, JobFact

HIDDEN_TEXT = "shown to its owner and to administrators"
OPEN_PANELS = frozenset({"disks", "nodes", "gpus"})
"""Panels whose findings name no job, unless a label says otherwise."""


class Viewer(Struct, frozen=True):
    """Whose they are. `all`: an administrator's, or everybody's where people have no names."""

    name: str = ""
    all: bool = True

    def filter_facts(self, f: Facts) -> Facts:
        """What they may see of it."""
        return f if self.all else _UserFilter(self.name, f).filter_facts()

    def is_owner_of(self, f: Facts, alert: str) -> bool:
        """Whether the alert of this id is of one's own jobs."""
        return self.all or alert in _UserFilter(self.name, f).own

    def filter_changes(self, f: Facts, told: Sequence[AlertChange]) -> list[AlertChange]:
        """Changes of alerts; `f` is all there is."""
        return list(told) if self.all else _UserFilter(self.name, f).filter_changes(told)

    def filter_actions(self, f: Facts, told: Sequence[ActionFact]) -> list[ActionFact]:
        """Entries of the audit log; `f` is all there is."""
        return list(told) if self.all else _UserFilter(self.name, f).filter_actions(told)


def is_hidden(what: str, f: Facts) -> bool:
    """Whether Slurm hides `jobs` or `nodes` from ordinary users. Where it did not say, it may."""
    return what in f.private if f.private is not None else f.nodes_seen is not None


class _UserFilter:
    """One user's; `own` are the ids of the alerts of their jobs."""

    def __init__(self, name: str, f: Facts) -> None:
        self.f, self.name = f, name
        self.panels = {c.name: c.panel for c in f.checks}
        self.elsewhere = {
            c.name for c in f.checks if c.elsewhere
        }  # what Slurm hides there: not known
        self.jobs_hidden, self.nodes_hidden = is_hidden("jobs", f), is_hidden("nodes", f)
        self.mine = [j for j in f.jobs if name and j.user == name]
        self.own = {a.id for a in f.alerts if self._is_own_alert(a)}

    def filter_facts(self) -> Facts:
        f = self.f
        alerts = tuple(shown for a in f.alerts if (shown := self._filter_alert(a)) is not None)
        known = {a.id: a for a in alerts}
        nodes_gone: dict[str, Any] = {
            "nodes": (),
            "racks": {},
            "node_gpus": {},
            "gpus": (),
            "gpu_standings": {},
        }
        return replace(
            f,
            status=get_worst_status(a.tone for a in alerts if a.state == "firing"),
            alerts=alerts,
            incidents=tuple(self._filter_incident(i, known[i.incident]) for i in f.incidents if i.incident in known),
            checks=tuple(c if c.panel in OPEN_PANELS else replace(c, summary="") for c in f.checks),
            disks=tuple(replace(d, parts={}) for d in f.disks),
            jobs=tuple(self._filter_job(j) for j in f.jobs if j in self.mine or not self._is_hidden_check(j.check)),
            work=tuple(w for w in f.work if w.user == self.name or not self.jobs_hidden),
            queue={} if self.jobs_hidden else f.queue,
            actions=tuple(self.filter_actions(f.actions)),
            unsent=tuple(replace(u, error="") for u in f.unsent if u.alert in known),
            silences=(),
            metrics=(),
            **(nodes_gone if self.nodes_hidden else {}),
        )  # fmt: skip

    def filter_changes(self, told: Sequence[AlertChange]) -> list[AlertChange]:
        mine = {(j.check, j.subject) for j in self.mine}
        found = list[AlertChange]()
        for t in told:
            if t.alert in self.own or (t.check, t.subject) in mine:
                found.append(t)
            elif not self._is_hidden_check(t.check):
                found.append(t if self._is_open_check(t.check) else replace(t, summary=HIDDEN_TEXT))
        return found

    def filter_actions(self, told: Sequence[ActionFact]) -> list[ActionFact]:
        jobs = {j.job for j in self.mine if j.job}
        found = list[ActionFact]()
        for a in told:
            if a.target in jobs:
                found.append(a)
            elif not self._is_hidden_check(a.by):
                bare = replace(a, why="", detail="", commands=(), evidence={})
                found.append(
                    bare if self._is_open_check(a.by) else replace(bare, reason=HIDDEN_TEXT)
                )
        return found

    def _is_own_alert(self, a: AlertFact) -> bool:
        if OWNER_LABEL in a.labels:
            return bool(self.name) and a.labels[OWNER_LABEL] == self.name
        return any(j.check == a.check and j.subject == a.subject for j in self.mine)

    def _filter_alert(self, a: AlertFact) -> AlertFact | None:
        """As they may see it; None where they may not know that it is there."""
        if a.id in self.own:
            return a
        of_job = bool({OWNER_LABEL, "job"} & a.labels.keys())
        if self._is_hidden_check(a.check) or (of_job and self.jobs_hidden):
            return None
        bare = replace(
            a, details="", commands=(), told={}, held="", ack_note="", silence_reason="",
            labels={k: v for k, v in a.labels.items() if k == "node"},
        )  # fmt: skip
        return (
            bare
            if self._is_open_check(a.check) and not of_job
            else replace(bare, summary=HIDDEN_TEXT)
        )

    def _filter_incident(self, i: IncidentFact, cause: AlertFact) -> IncidentFact:
        own = cause.id in self.own
        return replace(
            i,
            title=i.title if own or cause.summary != HIDDEN_TEXT else HIDDEN_TEXT,
            trainings=() if self.jobs_hidden and not own else i.trainings,
            users=tuple(u for u in i.users if u == self.name),
            comment=i.comment if own else "",
        )

    def _filter_job(self, j: JobFact) -> JobFact:
        return j if j in self.mine else replace(j, summary=HIDDEN_TEXT)

    def _is_open_check(self, check: str) -> bool:
        return self.panels.get(check) in OPEN_PANELS

    def _is_hidden_check(self, check: str) -> bool:
        """Whether Slurm hides what this check finds."""
        panel = self.panels.get(check)
        if check in self.elsewhere:
            return panel != "disks"
        if panel in ("nodes", "gpus"):
            return self.nodes_hidden
        return panel != "disks" and self.jobs_hidden
