"""`sentinel explain CHECK`: what a check found last, its limits, and why it notifies nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sentinel.alerting.notifications import format_iso
from sentinel.cli.state import OpenState, select_named_alerts
from sentinel.config.display import ShownSettings
from sentinel.config.route_preview import preview_routes
from sentinel.config.yamltext import yaml_text
from sentinel.core.clock import get_elapsed_s
from sentinel.core.due import describe_pace, get_seen_interval_s
from sentinel.core.model import CheckRun
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.core.values import age_text, duration_text
from sentinel.status.last_seen import decode_check_look, make_check_key
from sentinel.wiring.status import read_pass_interval


def explain_check(check: CheckConfig, state: OpenState, *, as_json: bool) -> int:
    """Print the explanation. Returns 0."""
    facts = _collect_check_facts(check, state)
    print(json.dumps(facts, indent=1) if as_json else "\n".join(_render_check_story(facts, state)))
    return 0


def _collect_check_facts(check: CheckConfig, state: OpenState) -> dict[str, Any]:
    run = next((r for r in state.store.read_runs() if r.check == check.name), None)
    look = decode_check_look(state.store.read_memory(make_check_key(check.name)))
    alerts = select_named_alerts(state.list_current_alerts(), check.name)
    return {
        "check": check.name,
        "kind": check.common.kind,
        "status": run.status.value if run else None,
        "ran": format_iso(run.at, state.zone) if run else None,
        "ago": age_text(get_elapsed_s(run.at, state.now)) if run else None,
        "every": _describe_schedule(check, state),
        "summary": visible(run.summary) if run else "",
        "seen": [
            {"subject": visible(f.subject), "status": f.status.value, "summary": visible(f.summary)}
            for f in (look.findings if look else ())
        ],
        "seen_at": format_iso(look.at, state.zone) if look else None,
        "settings": _list_check_settings(check),
        "alerts": [
            {"alert": a.id, "subject": visible(a.key.subject), "firing": a.firing} for a in alerts
        ],
        "told": _list_receivers(check, state),
        "held_back": _list_silence_reasons(check, state, run),
    }


def _describe_schedule(check: CheckConfig, state: OpenState) -> str:
    """How often the check runs: not more often than the passes of a chain, if there is one."""
    if check.common.cron is not None:
        return f"cron: {check.common.cron}"
    passes = read_pass_interval(state.settings)
    every = get_seen_interval_s(check, passes)
    return describe_pace(every) if passes else f"every {duration_text(every)}"


def _list_check_settings(check: CheckConfig) -> dict[str, Any]:
    """The keys of the check as in `config show`, including the limits by which it judges."""
    shown = ShownSettings({})
    own, common = shown.plain_value(check.plugin, ()), shown.plain_value(check.common, ())
    return {**own, **{k: common[k] for k in ("for", "keep_firing_for", "severity") if k in common}}


def _list_receivers(check: CheckConfig, state: OpenState) -> list[str]:
    """The channels that are notified of the check's alerts at any severity, at once or later."""
    settings = state.load_channel_settings()
    rows = [row for row in preview_routes(settings, state.now) if row.check == check.name]
    return list(dict.fromkeys(c for row in rows for c in (*row.channels, *row.later)))


def _list_silence_reasons(check: CheckConfig, state: OpenState, run: CheckRun | None) -> list[str]:
    """Why the check notifies nobody, other than that all is well."""
    found = []
    if run is None:
        see = state.name_config("sentinel status")
        found.append(f"it has not run yet; {see} says what calls it")
    elif run.blind:
        found.append("it could not see everything when it ran last")
    for silence in state.list_silences():
        if not silence.match.check or check.name in silence.match.check:
            until = format_iso(state.now.__class__(wall=silence.ends), state.zone)
            found.append(f"silence {silence.id} may hold it back until {until}: {silence.reason}")
    return [visible(line) for line in found]


def _render_check_story(facts: dict[str, Any], state: OpenState) -> Iterator[str]:
    if facts["ran"]:
        yield (
            f"{facts['check']} ({facts['kind']}) is {facts['status']}: last run {facts['ago']} ago, "
            f"{facts['every']}"
        )
    else:
        yield f"{facts['check']} ({facts['kind']}): never run, {facts['every']}"
    if facts["seen_at"]:
        yield f"what was seen at {facts['seen_at']}:"
        yield from (f"  {f['status']}: {f['subject']}: {f['summary']}" for f in facts["seen"])
    yield "with these limits and settings:"
    yield from (f"  {line}" for line in yaml_text(facts["settings"]).splitlines())
    for alert in facts["alerts"]:
        fires = "fires" if alert["firing"] else "is pending"
        see = state.name_config(f"sentinel explain {alert['alert']}")
        yield f"alert {alert['alert']} {fires}: {alert['subject']}; see: {see}"
    if not facts["alerts"] and facts["ran"]:
        yield "no alert: nothing is wrong, so nobody is told"
    told = ", ".join(map(visible, facts["told"])) or "NOBODY"
    yield f"told when something is wrong: {told}"
    yield from (f"note: {line}" for line in facts["held_back"])
