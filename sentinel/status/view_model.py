"""What there is to see, from what is stored. Pure: the page, the API, the metrics, `status` and
`top` show the same facts, so that none of them can say what another does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from msgspec.structs import astuple, replace

from sentinel.alerting.incidents import rank_alert
from sentinel.alerting.notifications import advance_age, describe_alert, describe_hold
from sentinel.alerting.outbox import find_next_attempt
from sentinel.alerting.silences import Silence, find_silence, window_silences
from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.declared import Panel
from sentinel.core.guidance import Guidance, name_config, quote_command
from sentinel.core.model import Alert, Outgoing, Status, Value, get_worst_status
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible, visible_lines
from sentinel.slurm.drain_reasons import classify_reason
from sentinel.status import freshness, incidents, metrics, silences
from sentinel.status.collect import StatusInputs
from sentinel.status.last_seen import CheckLook, NodeGroup, ShownFinding
from sentinel.status.node_states import get_state_word, rank_state
from sentinel.status.types import (
    ActionFact,
    AlertFact,
    CheckFact,
    DiskFact,
    Facts,
    GpuFact,
    IncidentFact,
    JobFact,
    NodesFact,
    Numbers,
    UnsentFact,
    Vitals,
    WorkFact,
)


def build_facts(material: StatusInputs, vitals: Vitals | None = None) -> Facts:
    """All facts to show. `vitals` are those of a running service about itself."""
    m = material
    quiet = _collect_silences(m)
    alerts = _build_alerts(m, quiet)
    nodes = sorted(_build_node_groups(m), key=lambda g: (rank_state(g.state), -g.count))
    return Facts(
        at=m.now.wall / SECOND,
        cluster=visible(m.around.cluster),
        status=get_worst_status(a.tone for a in alerts if a.state == "firing"),
        leader=visible(m.leader),
        config=m.around.config,
        pass_every=m.around.pass_every,
        notices=tuple(visible(n) for n in m.notices),
        alerts=alerts,
        incidents=tuple(_build_incidents(m)),
        checks=tuple(_build_checks(m)),
        disks=tuple(sorted(_build_disks(m), key=lambda d: -d.status.rank)),
        jobs=tuple(sorted(_build_jobs(m), key=lambda j: -j.status.rank)),
        runs=m.ledger,
        metrics=metrics.collect_metrics(m),
        queue=dict(m.nodes.jobs) if m.nodes else {},
        nodes=tuple(nodes),
        nodes_seen=m.nodes.at.wall / SECOND if m.nodes else None,
        nodes_trouble=freshness.explain_stale_nodes(m),
        private=m.nodes.private if m.nodes else None,
        node_gpus=m.nodes.gpus if m.nodes else {},
        work=tuple(_build_work(m)),
        racks=m.nodes.racks if m.nodes else {},
        gpus=tuple(sorted(_build_gpus(m), key=lambda g: -g.score)),
        gpu_standings=dict(Counter(held.judged for held in m.standings.values())),
        actions=tuple(make_action_fact(r) for r in m.records),
        unsent=tuple(_make_unsent_fact(row, m.now) for row in m.outbox),
        silences=tuple(silences.make_silence_fact(s) for s in quiet),
        clusters=m.around.clusters,
        vitals=vitals,
    )


def _collect_silences(m: StatusInputs) -> tuple[Silence, ...]:
    windows = window_silences(m.around.windows, m.now, m.around.zone)
    return (*silences.select_manual_silences(m.orders, m.now), *windows)


def _build_alerts(m: StatusInputs, quiet: Sequence[Silence]) -> tuple[AlertFact, ...]:
    """Those that fire and nobody has yet first; of these what matters most, the oldest first."""
    alerts = sorted((a for a in m.alerts if a.is_bad), key=lambda a: (a.since.wall, a.key))
    alerts.sort(key=lambda a: rank_alert(a, m.now))
    checks = {check.name: check for check in m.around.checks}
    told = [_build_alert(a, checks.get(a.key.check), m, quiet) for a in alerts]
    return tuple(sorted(told, key=lambda a: (a.state != "firing", a.quiet)))


def _build_incidents(m: StatusInputs) -> Iterator[IncidentFact]:
    known = incidents.IncidentInputs(
        alerts=m.alerts, history=(), orders=m.orders, now=m.now, zone=m.around.zone
    )
    return (
        incidents.make_incident_fact(name, members, known)
        for name, members in incidents.group_open_incidents(known)
    )


def _build_alert(
    alert: Alert, check: CheckConfig | None, m: StatusInputs, quiet: Sequence[Silence]
) -> AlertFact:
    ack, silence = m.orders.acks.get(alert.id), find_silence(alert, quiet, m.now)
    return AlertFact(
        id=alert.id,
        incident=alert.incident or alert.id,
        cluster=visible(alert.key.cluster),
        elsewhere=visible(check.common.cluster) if check else "",
        check=visible(alert.key.check),
        kind=alert.kind,
        subject=visible(alert.key.subject),
        status=alert.status,
        severity=alert.severity,
        state="firing" if alert.firing else "pending",
        since=alert.shown_since.wall / SECOND,
        for_s=round(get_elapsed_s(alert.shown_since, m.now), 1),
        summary=describe_alert(alert, m.now),
        seen=alert.last.wall / SECOND,
        stale=freshness.explain_stale_look(check, alert.last, m) if check else "",
        details=visible_lines(alert.details),
        commands=tuple(name_config(visible(c), m.around.config) for c in alert.commands),
        acts=tuple(name_config(visible(c), m.around.config) for c in alert.acts),
        guidance=Guidance(*map(visible, astuple(alert.guidance))),
        labels={visible(k): visible(v) for k, v in alert.labels.items()},
        host=visible(str(alert.values.get("host") or "")),
        runbook=visible(alert.runbook),
        told={name: t.at.wall / SECOND for name, t in alert.told.items()},
        held=visible(describe_hold(alert.on_hold, m.around.zone)),
        acknowledged_by=visible(ack.who or "somebody") if ack else "",
        ack_note=visible(ack.note) if ack else "",
        silenced_until=silence.ends / SECOND if silence else None,
        silenced_by=visible(silence.who or "somebody") if silence else "",
        silence_reason=visible(silence.reason) if silence else "",
        flapping=alert.flapping,
    )


def _build_checks(m: StatusInputs) -> Iterator[CheckFact]:
    blind = {a.key.check: a.since for a in m.alerts if not a.key.subject and not a.over}
    for check in m.around.checks:
        run, look = m.runs.get(check.name), m.looks.get(check.name)
        next_run = freshness.get_next_run_at(check, run.at if run else None, m)
        fact = CheckFact(
            name=visible(check.name),
            kind=check.common.kind,
            elsewhere=visible(check.common.cluster),
            panel=check.plugin.PANEL,
            # none for a moment that will never come: a cron line that fits no day
            next=next_run if next_run < 250_000_000_000 else None,
            seen=look.at.wall / SECOND if look else None,
        )
        if run is not None:
            since, stale = (
                blind.get(check.name, run.at),
                freshness.explain_overdue_run(check, run.at, m),
            )
            fact = replace(
                fact,
                status=Status.UNKNOWN if stale else run.status,
                stale=stale,
                summary=visible(run.summary),
                ran=run.at.wall / SECOND,
                duration_s=round(run.duration, 4),
                blind=run.blind,
                blind_s=round(get_elapsed_s(since, m.now), 1) if run.blind else 0.0,
            )
        yield fact


def _list_panel_findings(
    m: StatusInputs, panel: Panel
) -> Iterator[tuple[CheckConfig, str, CheckLook, ShownFinding]]:
    """Every finding of that panel that was seen last: its check, why it is not current, when,
    itself."""
    for check in m.around.checks:
        look = m.looks.get(check.name)
        if look is not None and panel == check.plugin.PANEL:
            stale = freshness.explain_stale_look(check, look.at, m)
            for finding in look.findings:
                yield check, stale, look, finding


def _build_disks(m: StatusInputs) -> Iterator[DiskFact]:
    for check, stale, look, f in _list_panel_findings(m, "disks"):
        names = [n for n in DiskFact.__struct_fields__ if n.endswith(("_percent", "_bytes", "_s"))]
        numbers = {name: get_number(f.values, name) for name in names}
        age = get_elapsed_s(look.at, m.now)
        for name in ("full_in_s", "full_in_early_s", "full_in_late_s"):
            left = numbers[name]
            numbers[name] = None if left is None else max(0.0, left - age)
        yield DiskFact(
            check=visible(check.name),
            path=visible(f.subject),
            status=Status.UNKNOWN if stale else f.status,
            summary=visible(f.summary),
            seen=look.at.wall / SECOND,
            stale=stale,
            parts={visible(name): size for name, size in f.parts.items()},
            **numbers,
        )


def _build_jobs(m: StatusInputs) -> Iterator[JobFact]:
    for check, stale, look, f in _list_panel_findings(m, "jobs"):
        quiet = None if stale else get_number(f.values, "quiet_seconds")
        limit, still = get_number(f.values, "limit_seconds"), quiet or 0.0
        moved = still + get_elapsed_s(look.at, m.now)
        paces = () if stale else m.paces.get((check.name, f.subject, "progress"), ())
        hangs = None not in (quiet, limit) and still >= (limit or 0.0)
        yield JobFact(
            check=visible(check.name),
            elsewhere=visible(check.common.cluster),
            kind=check.common.kind,
            subject=visible(f.subject),
            status=Status.UNKNOWN if stale else f.status,
            summary=advance_age(visible(f.summary), still, moved if quiet else still),
            seen=look.at.wall / SECOND - (get_number(f.values, "unseen_seconds") or 0.0),
            stale=stale,
            job=visible(str(f.values.get("job") or f.labels.get("job", ""))),
            running=get_number(f.values, "running"),
            queued=get_number(f.values, "queued"),
            progress=_get_progress(f.values),
            rate=0.0 if hangs else metrics.compute_pace(paces),
            quiet_s=None if quiet is None else moved,
            limit_s=limit,
            phase=visible(str(f.values.get("phase") or "")),
            user=visible(f.labels.get("user", "")),
            nodes=visible(str(f.values.get("nodes") or "")),
        )


def _get_progress(values: Mapping[str, Value]) -> float | None:
    """The step; of a training that died, the last one of its output (`iteration 79400`)."""
    last = str(values.get("last_step") or "").rpartition(" ")[2].replace(",", "")
    found = get_number(values, "progress")
    return float(last) if found is None and last.isdecimal() and last.isascii() else found


def _build_node_groups(m: StatusInputs) -> Iterator[NodesFact]:
    for group in m.nodes.groups if m.nodes else ():
        yield _build_node_group(group)


def _build_work(m: StatusInputs) -> Iterator[WorkFact]:
    for job in m.nodes.work if m.nodes else ():
        yield WorkFact(
            id=visible(job.id), name=visible(job.name), user=visible(job.user), nodes=job.nodes
        )


def _build_node_group(group: NodeGroup) -> NodesFact:
    return NodesFact(
        state=get_state_word(group.state, group.flags),
        slurm_state="+".join((group.state, *group.flags)),
        nodes=visible(group.nodes),
        count=group.count,
        reason=visible(group.reason),
        reason_class=classify_reason(group.reason),
        by=visible(group.by),
        since=group.since,
    )


def _build_gpus(m: StatusInputs) -> Iterator[GpuFact]:
    for subject, held in m.standings.items():
        entry = m.entries.get(subject)
        if entry is None or (held.judged == "good" and not held.marked):
            continue
        yield GpuFact(
            subject=visible(subject),
            node=visible(entry.node),
            judged=held.judged,
            score=round(held.score, 2),
            mark=entry.mark,
            reason=visible(entry.reason),
            serial=visible(entry.serial),
            model=visible(entry.model),
            slot=visible(entry.slot),
            seen=entry.seen.wall / SECOND,
        )


def make_action_fact(r: ActionRecord) -> ActionFact:
    """An entry of the audit log, its text inert."""
    return ActionFact(
        id=r.id,
        at=r.at.wall / SECOND,
        action=r.action,
        target=visible(r.target),
        by=visible(r.by),
        outcome=r.outcome.value,
        reason=visible(r.reason),
        rule=r.rule,
        why=visible(r.why),
        detail=visible(r.detail),
        commands=tuple(quote_command(*argv) for argv in r.commands),
        evidence={visible(k): visible_lines(v) for k, v in r.evidence.items()},
        forced=r.forced,
    )


def _make_unsent_fact(row: Outgoing, now: Instant) -> UnsentFact:
    wait = find_next_attempt(row, now)
    return UnsentFact(
        channel=visible(row.channel),
        alert=row.notification.alert,
        reason=row.notification.reason,
        attempts=row.attempts,
        waiting_s=round(get_elapsed_s(row.created, now), 1),
        error=visible(row.error),
        next_attempt=None if wait is None else round(now.wall / SECOND + wait, 1),
    )


def get_number(values: Numbers, name: str) -> float | None:
    """The number with that name. None if it is not a finite number."""
    found = values.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if isfinite(found) else None
