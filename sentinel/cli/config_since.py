"""`sentinel config check --since 30d`: what this file would have told, beside the present one."""

import json
from datetime import tzinfo
from textwrap import fill
from typing import Any

from sentinel.alerting.notifications import format_iso
from sentinel.cli.common import parse_seconds
from sentinel.cli.plain_rows import is_piped, print_rows
from sentinel.cli.state import StateMissing
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND, Instant
from sentinel.core.due import get_interval_s
from sentinel.core.text import visible
from sentinel.engine.pipeline import CLUSTER_KEY
from sentinel.replay.comparison import (
    ComparedRecipient,
    ComparedRule,
    ComparedSide,
    Comparison,
    compare_configurations,
)
from sentinel.replay.player import ReplayedWorld
from sentinel.store.kept_history import open_kept_history
from sentinel.wiring import app, last_good
from sentinel.wiring.runtime import build_notification_plan

NOTE_COLUMNS = 80
UNKNOWN = "cannot be known from history"


def print_comparison(wanted: Settings, since: str, *, as_json: bool) -> int:
    """Play the past of so long through this file and the present one. Returns 0."""
    seconds = parse_seconds(since, "--since")
    present, clock = last_good.load_present_settings(wanted.path), SystemClock()
    place = _find_state(present, wanted)
    until = clock.now().wall
    with app.guard_state_reads(place), open_kept_history(app.get_state_location(place)) as reader:
        history = reader.read_history(CLUSTER_KEY)
        sides = [make_side(s, s.cluster or history.cluster) for s in (present, wanted)]
        asked = until - int(seconds * SECOND)
        done = compare_configurations(reader, history, sides[0], sides[1], asked, until)
    zone = app.get_time_zone(wanted)
    if as_json:
        print(json.dumps(_make_document(done, present, wanted, zone), indent=1))
        return 0
    _print_tables(done, present, zone, is_late=done.since > asked, is_empty=history.first is None)
    return 0


def _find_state(present: Settings, wanted: Settings) -> Settings:
    """The settings whose state is read. Raises StateMissing if there is none."""
    for settings in (present, wanted):
        if app.has_state(settings):
            return settings
    raise StateMissing(
        f"{app.describe_state_location(present)}: there is no state yet, so nothing can be played; "
        "`sentinel run` or `sentinel tick` makes one"
    )


def make_side(settings: Settings, cluster: str) -> ComparedSide:
    """What a replay needs of a configuration."""
    world = ReplayedWorld(
        plan=build_notification_plan(settings, cluster),
        checks={check.name: check for check in settings.checks},
        channels={channel.name: channel.plugin for channel in settings.channels},
        common={channel.name: channel.common for channel in settings.channels},
        intervals={check.name: get_interval_s(check) for check in settings.checks},
    )
    return ComparedSide(settings, world)


def _make_document(
    done: Comparison, present: Settings, wanted: Settings, zone: tzinfo
) -> dict[str, Any]:
    return {
        "since": format_iso(Instant(done.since), zone),
        "until": format_iso(Instant(done.until), zone),
        "present": visible(present.path),
        "file": visible(wanted.path),
        "rules": [
            {
                "rule": visible(r.rule),
                "now": r.present,
                "with_this_file": r.wanted,
                "at_least": r.at_least,
                "reasons": [visible(why) for why in r.reasons],
            }
            for r in done.rules
        ],
        "recipients": [
            {
                "channel": visible(r.channel),
                "user": visible(r.user),
                "sent": r.sent,
                "now": r.present,
                "with_this_file": r.wanted,
                "at_least": not done.is_whole,
            }
            for r in done.recipients
        ],
        "notes": [visible(note) for note in done.notes],
    }


def _print_tables(
    done: Comparison, present: Settings, zone: tzinfo, *, is_late: bool, is_empty: bool
) -> None:
    if is_empty:
        print("the state keeps no alert and no number yet, so nothing can be played")
        return
    since = format_iso(Instant(done.since), zone)
    print(f"what the state keeps since {since}, played; nothing is sent")
    if is_late:
        print("nothing is kept from before that")
    print(f"now: {visible(app.describe_config_source(present))} as it is in use")
    _print_table(("rule", "now", "with this file"), [_make_rule_cells(rule) for rule in done.rules])
    print()
    rows = [_make_recipient_cells(r, done.is_whole) for r in done.recipients]
    _print_table(("who gets messages", "sent", "now", "with this file"), rows)
    for note in done.notes:
        line = f"note: {visible(note)}"
        print(line if is_piped() else fill(line, NOTE_COLUMNS))


def _make_rule_cells(rule: ComparedRule) -> tuple[str, ...]:
    before = "" if rule.present is None else str(rule.present)
    own = rule.reasons if rule.rule.startswith("checks.") else ()
    reasons = f" ({'; '.join(own)})" if own else ""
    after = UNKNOWN if rule.wanted is None else _format_number(rule.wanted, rule.at_least)
    return visible(rule.rule), before, visible(after + reasons)


def _make_recipient_cells(who: ComparedRecipient, is_whole: bool) -> tuple[str, ...]:
    name = f"{who.channel} ({who.user})" if who.user else who.channel
    after = _format_number(who.wanted, not is_whole)
    return visible(name), str(who.sent), str(who.present), after


def _format_number(number: int, at_least: bool) -> str:
    return f"at least {number}" if at_least else str(number)


def _print_table(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> None:
    if is_piped():
        print_rows(header, lines)
        return
    from sentinel.cli.tables import Text, make_console, make_plain_table

    table = make_plain_table(*header)
    for line in lines:
        table.add_row(*map(Text, line))
    make_console().print(table)
