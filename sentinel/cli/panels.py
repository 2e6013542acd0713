"""Renders facts with rich, for `status` and `top`: one table for each subject, with all text
escaped."""

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo

from rich.console import Group, RenderableType
from rich.text import Text

from sentinel.cli.plain_rows import shorten_gpu
from sentinel.cli.tables import (
    STATUS_COLOURS,
    FittedTable,
    make_plain_table,
    render_check_subject,
    render_share_bar,
)
from sentinel.core.due import PASS_LATE_S, describe_pace, get_next_pass
from sentinel.core.guidance import name_config
from sentinel.core.model import Status
from sentinel.core.text import shortened
from sentinel.core.time_text import format_clock
from sentinel.core.values import age_text, duration_text, size_text
from sentinel.homes import describe_setup_place
from sentinel.status import folding
from sentinel.status.folding import AlertFold
from sentinel.status.node_states import OUT_OF_SERVICE_STATES
from sentinel.status.types import (
    AlertFact,
    CheckFact,
    DiskFact,
    Facts,
    JobFact,
    NodesFact,
    UnsentFact,
)

WIDE, SAID = 260, 160
TRAININGS, UNSENT, OTHERS = 20, 5, 10
"""Rows of trainings that stand still, of unsent messages, and of other alerts of an incident, if
there is no room for all."""

STATE_STYLES = {"down": "bold red", "fail": "bold red", "drained": "yellow", "draining": "yellow"}


def render_headline(f: Facts) -> Text:
    """One line: how many alerts fire, how many nodes are out, and who runs the checks."""
    text = Text(f"sentinel {f.cluster} ".rstrip() + "  ")
    for status in sorted(Status, key=lambda s: -s.rank):
        count = sum(a.tone is status for a in f.firing)
        if count:
            text.append(f"{count} {status.value}  ", style=STATUS_COLOURS[status])
    if not f.firing:
        words, sure = f.calm_summary
        text.append(f"{words}  ", style=STATUS_COLOURS[Status.OK] if sure else "yellow")
    out = sum(n for state, n in f.node_states.items() if state in OUT_OF_SERVICE_STATES)
    if f.nodes:
        total = sum(f.node_states.values())
        text.append(f"{out} of {total} nodes out  ", style="yellow" if out else "")
    if f.unsent:
        text.append(f"{len(f.unsent)} unsent  ", style="yellow")
    return text


def render_watcher(f: Facts, zone: tzinfo | None = None) -> Text:
    """Who runs the checks now. If passes do, the times of the last one and the next."""
    if f.leader:
        return Text(f.leader, style="dim")
    last, every = f.last_pass_at, f.pass_every
    clock = format_clock(last or 0.0, zone, every or 60.0)
    before = "no pass yet" if last is None else f"last pass {clock}"
    if not every:
        return Text(f"nothing runs sentinel now; {before}", style="bold yellow")
    following = format_clock(get_next_pass(last, f.at, every), zone, every)
    late = last is None or f.at - last > 2 * every + PASS_LATE_S
    return Text(
        f"{before}, next {following} ({describe_pace(every)})",
        style="bold yellow" if late else "dim",
    )


def render_alerts(
    folds: Sequence[AlertFold], now: float, chosen: int | None = None
) -> RenderableType:
    """A row for each alert, in their order. If one is `chosen`, it is marked, and every alert has
    one line only, so that the chosen one stays on the screen."""
    if not folds:
        return Text("no alerts", style=STATUS_COLOURS[Status.OK])
    table = make_plain_table("alert", "", "check", "for", "summary")
    for place in (0, 1, 3):
        table.columns[place].no_wrap = True
    if chosen is not None:
        table.columns[2].no_wrap, table.columns[2].max_width = True, 30
        table.columns[2].overflow = "ellipsis"
    for number, fold in enumerate(folds):
        a = fold.first
        pending = a.state == "pending"
        word = (
            Text("pending") if pending else Text(fold.tone.value, style=STATUS_COLOURS[fold.tone])
        )
        more = (f"[{fold.more}] ", "bold") if fold.more else ""
        said = Text.assemble(more, _render_alert_summary(a, now))
        if chosen is not None:
            said.no_wrap, said.overflow = True, "ellipsis"
        elif fold.more:
            said.truncate(SAID, overflow="ellipsis")
        table.add_row(
            Text(a.id, style="dim"),
            word,
            render_check_subject(a.check, shorten_gpu(a.subject, a.labels), a.elsewhere),
            Text(age_text(a.for_s)),
            said,
            style="reverse" if number == chosen else "",
        )
    return FittedTable(table, "alert")


def render_folded_alerts(f: Facts, limit: int) -> RenderableType:
    """Alerts of one incident, and alike ones, as one row with their count; at most `limit` rows
    beside trainings that stand still."""
    folds = folding.fold_alerts(f.alerts)
    trainings = [fold for fold in folds if fold.is_standstill][:TRAININGS]
    others = [fold for fold in folds if not fold.is_standstill][:limit]
    shown = [fold for fold in folds if fold in trainings or fold in others]
    rest = sum(fold.count for fold in folds) - sum(fold.count for fold in shown)
    every = name_config("sentinel alerts list", f.config)
    more = [Text(f"and {rest} more: {every}", style="dim")] if rest else []
    return Group(render_alerts(shown, f.at), *more)


def _render_alert_summary(a: AlertFact, now: float) -> Text:
    """The summary of an alert. Whether somebody takes care of it comes first, since the end may be
    cut off."""
    text = Text()
    if a.acknowledged_by:
        note = f": {shortened(a.ack_note, 60)}" if a.ack_note else ""
        text.append(f"[{a.acknowledged_by} has it{note}] ", style="cyan")
    if a.silenced_until is not None:
        text.append("[silenced] ", style="cyan")
    if a.stale:
        text.append(f"[{describe_staleness(a, now)}] ", style="dim")
    return text.append(shortened(a.summary, WIDE), style="default")


def describe_staleness(row: AlertFact | DiskFact | JobFact, now: float) -> str:
    """How old a row is that is not current, and why."""
    return f"seen {age_text(now - row.seen)} ago: {shortened(row.stale, 120)}"


def render_one_alert(a: AlertFact, f: Facts, zone: tzinfo) -> RenderableType:
    """Everything about one alert, and the others of its incident."""
    lines = [
        Text.assemble(
            (a.tone.value, STATUS_COLOURS[a.tone]),
            f"  {a.check} {a.subject}{f' on {a.elsewhere}' if a.elsewhere else ''}  for {age_text(a.for_s)}",
        ),
        Text(a.summary, style="bold"),
        Text(f"alert {a.id}, kind {a.kind}, since {format_moment(a.since, zone)}", style="dim"),
    ]
    told = ", ".join(f"{name} {format_moment(at, zone)}" for name, at in a.told.items())
    lines.append(Text(f"told: {told or 'nobody'}", style="dim"))
    if a.acknowledged_by:
        note = f": {a.ack_note}" if a.ack_note else ""
        lines.append(Text(f"acknowledged by {a.acknowledged_by}{note}", style="cyan"))
    if a.held:
        lines.append(Text(f"not told just now: {a.held}", style="cyan"))
    lines += [Text(f"| {line}", style="dim") for line in a.details.splitlines()]
    lines += [Text(line) for line in a.guidance.list_lines()]
    if a.commands or a.acts:
        from sentinel.alerting.owners import OWNER_LABEL  # only top shows commands
        from sentinel.core.command_places import comment_places, group_by_place

        owner = a.labels.get(OWNER_LABEL, "")
        for heading, commands in (("look closer:", a.commands), ("to act on it:", a.acts)):
            groups = group_by_place(commands, a.host, owner, describe_setup_place())
            lines += [Text(heading)] if groups else []
            lines += [Text(f"  {c}") for c in comment_places(groups)]
    if a.runbook:
        lines.append(Text(f"runbook: {a.runbook}"))
    others = [o for o in f.alerts if o.incident == a.incident and o.id != a.id]
    if others:
        lines.append(Text(f"same incident, {a.incident}:"))
    lines += [Text(f"  {o.tone.value} {o.check} {o.subject}: {o.summary}") for o in others[:OTHERS]]
    if len(others) > OTHERS:
        lines.append(Text(f"  and {len(others) - OTHERS} more", style="dim"))
    return Group(*lines)


def render_checks(rows: Sequence[CheckFact], f: Facts, zone: tzinfo) -> RenderableType:
    """A row for each check, with its last and next run."""
    table = make_plain_table("check", "", "ran", "next", "summary")
    table.columns[1].no_wrap = True
    for c in rows:
        ran = f"{age_text(f.at - c.ran)} ago" if c.ran is not None else "never"
        following = format_moment(c.next, zone)[-8:] if c.next is not None else "never"
        status = Text(c.status.value, style=STATUS_COLOURS[c.status]) if c.status else Text("–")
        summary = Text(shortened(c.summary, WIDE), style="dim" if c.stale else "")
        if c.stale:
            summary.append(f" [{c.stale}]", style=STATUS_COLOURS[Status.UNKNOWN])
        if c.blind:
            summary.append(
                f" [blind for {age_text(c.blind_s)}]", style=STATUS_COLOURS[Status.UNKNOWN]
            )
        table.add_row(Text(c.name), status, Text(ran), Text(following), summary)
    return FittedTable(table, "next", "ran")


def render_disks(rows: Sequence[DiskFact], now: float) -> RenderableType:
    """A row for each file system, with bars, and the time until it is full, if it is foreseen."""
    if not rows:
        return Text("no check has looked at a file system yet", style="dim")
    table = make_plain_table("file system", "space", "size", "free", "inodes", "full in", "")
    table.columns[0].min_width = 8
    for column in table.columns[1:6]:
        column.no_wrap = True
    for d in rows:
        space, no = Text("–", style="dim"), "" if d.is_tree else "–"
        if d.is_tree:
            space = Text(f"{size_text(d.used_bytes or 0)} used")
        if d.used_percent is not None:
            space = render_share_bar(d.used_percent, d.status).append(
                f" {d.used_percent:3.0f}%", style="default"
            )
        inodes = f"{d.inodes_used_percent:.0f}%" if d.inodes_used_percent is not None else no
        table.add_row(
            Text(d.path),
            space,
            Text(size_text(d.size_bytes) if d.size_bytes is not None else no),
            Text(size_text(d.free_bytes) if d.free_bytes is not None else no),
            Text(inodes),
            Text(duration_text(d.full_in_s) if d.full_in_s is not None else no),
            Text(d.status.value, style=STATUS_COLOURS[d.status]).append(
                _describe_disk(d, now), style="dim"
            ),
            style="dim" if d.stale else "",
        )
    return FittedTable(table, "size", "inodes", "free", "full in")


def _describe_disk(d: DiskFact, now: float) -> str:
    """Why a row is not current; for one without a limit, such as a tree, its size."""
    if d.stale:
        return f" {describe_staleness(d, now)}"
    return f" {shortened(d.summary, 80)}" if d.used_percent is None else ""


def render_jobs(rows: Sequence[JobFact], f: Facts) -> RenderableType:
    """A row for each training, with its step, rate, and the time since the last step."""
    queue = ", ".join(f"{n} {state.lower()}" for state, n in sorted(f.queue.items()))
    queue += f", {_describe_nodes_age(f)}, not current" if f.nodes_trouble and queue else ""
    parts: list[RenderableType] = [Text(f"queue: {queue}", style="dim")] if queue else []
    if not rows:
        parts.append(Text("no check has looked at a job yet", style="dim"))
        return Group(*parts)
    table = make_plain_table("training", "step", "a minute", "moved", "", "summary")
    for column in table.columns[1:5]:
        column.no_wrap = True
    for j in rows:
        moved = f"{age_text(j.quiet_s)} ago" if j.quiet_s is not None else "–"
        table.add_row(
            render_check_subject(j.check, j.subject, j.elsewhere),
            Text(f"{j.progress:,.0f}" if j.progress is not None else "–"),
            Text(j.pace),
            Text(moved),
            Text("quiet") if j.is_quiet else Text(j.status.value, style=STATUS_COLOURS[j.status]),
            Text(_describe_age(j, f.at)).append(shortened(j.summary, WIDE)),
            style="dim" if j.stale else "",
        )
    return Group(*parts, FittedTable(table, "a minute", "step", "moved"))


def _describe_age(j: JobFact, now: float) -> str:
    """Why a row is not current, or how long a training without steps may be silent."""
    if j.stale:
        return f"[{describe_staleness(j, now)}] "
    return f"[limit {age_text(j.limit_s or 0)}] " if j.is_quiet else ""


def render_nodes(f: Facts, rows: Sequence[NodesFact]) -> RenderableType:
    """The numbers of nodes by state, and the nodes that are out with their reasons."""
    if f.nodes_seen is None:
        return Text(f.nodes_trouble or "nobody has asked Slurm for its nodes yet", style="dim")
    line, total = Text(), sum(f.node_states.values())
    line.append(f"{total} node{'s' * (total != 1)}:  ")
    for state, count in f.node_states.items():
        line.append(f"{count} {state}  ", style=STATE_STYLES.get(state, ""))
    line.append(
        f"{_describe_nodes_age(f)}{', not current' if f.nodes_trouble else ''}", style="dim"
    )
    parts: list[RenderableType] = [line]
    if f.nodes_trouble:
        parts.append(Text(f.nodes_trouble, style=STATUS_COLOURS[Status.UNKNOWN]))
    out = [g for g in rows if g.state in OUT_OF_SERVICE_STATES or g.reason]
    if out:
        table = make_plain_table("state", "nodes", "which", "reason", "for")
        for g in out:
            since = age_text(f.at - g.since) if g.since else "–"
            style = STATE_STYLES.get(g.state, "")
            which = Text(shortened(g.nodes, 120))
            reason = f"{g.reason} ({g.by})" if g.by else g.reason
            table.add_row(Text(g.state, style=style), str(g.count), which, Text(reason), since)
        parts.append(FittedTable(table, "for", "nodes"))
    return Group(*parts)


def _describe_nodes_age(f: Facts) -> str:
    return f"as of {age_text(f.at - (f.nodes_seen or f.at))} ago"


def render_gpus(f: Facts) -> RenderableType:
    """A row for each suspect or lemon."""
    table = make_plain_table("gpu", "", "node", "score")
    for g in f.gpus:
        style = STATUS_COLOURS[Status.CRITICAL if g.judged == "lemon" else Status.WARNING]
        table.add_row(Text(g.subject), Text(g.judged, style=style), Text(g.node), f"{g.score:g}")
    return FittedTable(table, "score")


def render_actions(f: Facts, zone: tzinfo, limit: int) -> RenderableType:
    """A row for each action, the newest first."""
    if not f.actions:
        return Text("nothing was done", style="dim")
    table = make_plain_table("when", "action", "target", "outcome", "why")
    for a in f.actions[:limit]:
        why = f"{a.reason} ({a.why})" if a.why else a.reason
        when = format_moment(a.at, zone)
        table.add_row(when, a.action, Text(a.target), a.outcome, Text(shortened(why, WIDE)))
    return FittedTable(table, "target", "outcome")


def render_unsent(f: Facts) -> Iterable[Text]:
    """A line for each unsent message, and how many more there are."""
    if len(f.unsent) > UNSENT:
        yield Text(f"{len(f.unsent)} messages are unsent; the oldest:")
    for u in f.unsent[:UNSENT]:
        tried = "not tried yet"
        if u.attempts:
            times = "1 attempt" if u.attempts == 1 else f"{u.attempts} attempts"
            tried = f"{times}, {_describe_next_attempt(u, f)}: {u.error}"
        yield Text(
            f"unsent for {age_text(u.waiting_s)}: {u.reason} {u.alert} to {u.channel} ({tried})"
        )


def _describe_next_attempt(u: UnsentFact, f: Facts) -> str:
    if u.next_attempt is None or u.next_attempt <= f.at:
        return "due now"
    return f"next in {duration_text(u.next_attempt - f.at)}"


def format_moment(seconds: float, zone: tzinfo) -> str:
    """A moment in the configured zone."""
    return datetime.fromtimestamp(seconds, zone).strftime("%m-%d %H:%M:%S")
