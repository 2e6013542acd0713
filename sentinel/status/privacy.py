"""Decides who may see what, if people have names. Everybody sees their own jobs completely. Of
other people's jobs they see neither log, path nor stacks, and nothing at all if Slurm hides them.
Pure.

Something is left out unless it is known to be one's own, or is only about disks, nodes and GPUs.
Slurm's setting: https://slurm.schedmd.com/slurm.conf.html#OPT_PrivateData
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.owners import OWNER_LABEL
from sentinel.core.guidance import NO_GUIDANCE
from sentinel.core.model import get_worst_status
from sentinel.status.detail import AlertChange
from sentinel.status.types import ActionFact, AlertFact, Facts, IncidentFact, JobFact, RunFact

HIDDEN_TEXT = "shown to its owner and to administrators"
OPEN_PANELS = frozenset({"disks", "nodes", "gpus"})
"""Panels whose findings name no job, unless a label says otherwise."""

_PERSONAL_QUOTA_PATTERN = re.compile(r" (?:user|command):(?:user:)?(.*)$", re.DOTALL)
"""How a quota with a name ends: `/home user:ann`."""


class Viewer(Struct, frozen=True):
    """The person who looks. `all` means that they see everything: an administrator, or everybody if
    people have no names."""

    name: str = ""
    all: bool = True

    def filter_facts(self, f: Facts) -> Facts:
        """The part of the facts that they may see."""
        return f if self.all else _UserFilter(self.name, f).filter_facts()

    def is_owner_of(self, f: Facts, alert: str) -> bool:
        """Whether the alert with this id is about their own jobs."""
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
    """The filter for one user. `own` are the ids of alerts about their jobs."""

    def __init__(self, name: str, f: Facts) -> None:
        self.f, self.name = f, name
        self.panels = {c.name: c.panel for c in f.checks}
        self.quotas = {c.name for c in f.checks if c.kind == "quota"}
        self.elsewhere = {
            c.name for c in f.checks if c.elsewhere
        }  # values that Slurm hides from this user are not known
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
            checks=tuple(
                c if c.panel in OPEN_PANELS and c.name not in self.quotas else replace(c, summary="")
                for c in f.checks
            ),
            disks=tuple(
                replace(d, parts={}) for d in f.disks if not self._is_foreign_quota(d.check, d.path)
            ),
            jobs=tuple(self._filter_job(j) for j in f.jobs if j in self.mine or not self._is_hidden_check(j.check)),
            runs=tuple(r for r in f.runs if self._owns_run(r)),
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
            if self._is_foreign_quota(t.check, t.subject):
                continue
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

    def _owns_run(self, run: RunFact) -> bool:
        """Whether every job that is known of the training is this user's."""
        of = [j for j in self.f.jobs if (j.elsewhere, j.subject) == (run.elsewhere, run.run)]
        return bool(self.name) and {j.user for j in of if j.user} == {self.name}

    def _is_own_alert(self, a: AlertFact) -> bool:
        if OWNER_LABEL in a.labels:
            return bool(self.name) and a.labels[OWNER_LABEL] == self.name
        return any(j.check == a.check and j.subject == a.subject for j in self.mine)

    def _filter_alert(self, a: AlertFact) -> AlertFact | None:
        """The alert as they may see it. None if they may not know of it."""
        if a.id in self.own:
            return a
        of_job = bool({OWNER_LABEL, "job"} & a.labels.keys())
        if self._is_foreign_quota(a.check, a.subject):
            return None
        if self._is_hidden_check(a.check) or (of_job and self.jobs_hidden):
            return None
        bare = replace(
            a, details="", commands=(), acts=(), guidance=NO_GUIDANCE, told={}, held="", ack_note="", silence_reason="",
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

    def _is_foreign_quota(self, check: str, subject: str) -> bool:
        """Whether it is a quota of a person, or of a name that only a site's own tool knows, and not of
        this one."""
        found = _PERSONAL_QUOTA_PATTERN.search(subject) if check in self.quotas else None
        return found is not None and found[1] != self.name

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
