"""`sentinel alerts ack|silence|unsilence`: what people tell sentinel by hand."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.alerting.matchers import ALERT_FACTS, Matcher, is_matcher, is_wide, parse_matchers
from sentinel.alerting.orders import (
    Author,
    acknowledge_alert,
    find_alert,
    make_silence,
    silence_end,
)
from sentinel.alerting.processor import format_iso
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import find_silence, match_exactly
from sentinel.cli import add_config_option
from sentinel.cli.common import get_invoking_user
from sentinel.cli.state import OpenState
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid
from sentinel.wiring.app import UsageError


def register_orders(actions: Any) -> None:
    """Add the parsers below `alerts`."""
    ack = _add_order_parser(
        actions,
        "ack",
        "say that you take care of it: no repeats and no escalation until it is over",
        call_ack,
    )
    ack.add_argument(
        "alert", metavar="ALERT", help="the alert's id, or the name of its check or subject"
    )
    ack.add_argument("--note", default="", metavar="TEXT", help="a note that others see")
    quiet = _add_order_parser(
        actions, "silence", "send nothing about matching alerts until a given time", call_silence
    )
    quiet.add_argument(
        "what", nargs="+", metavar="ALERT|KEY=VALUE", help="an alert's id, a check's name, or check=, kind=, subject=, "
        "severity=, node= (a host list), user=, partition=, job=, or a label; values may hold * and ?; "
        "!=, =~ and !~ as in Alertmanager"
    )  # fmt: skip
    quiet.add_argument(
        "--for", dest="length", metavar="TIME", help="how long, for example 2h; every silence ends"
    )
    quiet.add_argument(
        "--until", metavar="MOMENT", help="when it ends, for example 2026-12-24T18:00"
    )
    quiet.add_argument("--reason", default="", metavar="TEXT", help="the reason; others see it")
    over = _add_order_parser(actions, "unsilence", "end a silence now", call_unsilence)
    over.add_argument(
        "silence", metavar="SILENCE", help="the id of the silence, as `alerts list` shows it"
    )


def call_ack(args: argparse.Namespace) -> int:
    """0 when written; the running sentinel knows it within seconds."""
    with OpenState(args.config, writing=True) as state:
        alert = state.resolve_alert_id(args.alert)
        said = Author(args.who or get_invoking_user(), "cli", args.note)
        ack = acknowledge_alert(state.store.read_alerts(), alert, said, state.now)
        state.store.put_ack(ack)
    print(f"{alert}: acknowledged by {ack.who}; it is told again only when worse or over")
    return 0


def call_silence(args: argparse.Namespace) -> int:
    """0 when written; prints the id that ends it."""
    with OpenState(args.config, writing=True) as state:
        ends, match = _parse_silence_end(args, state), _parse_silence_match(args.what, state)
        said = Author(args.who or get_invoking_user(), "cli", args.reason)
        order = make_silence(match, ends, said, state.now)
        state.store.put_silence(order)
        fits = sum(bool(find_silence(a, [order], state.now)) for a in state.store.read_alerts())
    until = format_iso(Instant(wall=ends), state.zone)
    print(f"silenced until {until}; end it with: sentinel alerts unsilence {order.id}")
    if is_wide(order.match):
        print("sentinel: it fits alerts without such a label too", file=sys.stderr)
    if not fits:
        print("sentinel: no alert of now fits it; see: sentinel alerts list", file=sys.stderr)
    return 0


def call_unsilence(args: argparse.Namespace) -> int:
    """0 when ended."""
    with OpenState(args.config, writing=True) as state:
        known = {s.id: s for s in state.list_manual_silences()}
        order = known.get(args.silence)
        if order is None:
            if args.silence in {s.id for s in state.list_silences()}:
                raise UsageError(
                    f"silence {args.silence} stands in the file: silences; end it there"
                )
            have = ", ".join(known) or "none"
            raise UsageError(f"no silence {args.silence!r} is in force; there are: {have}")
        who = (
            (args.who or get_invoking_user()) if order.is_planned else order.who
        )  # so that Slurm does not renew it
        state.store.put_silence(replace(order, ends=state.now.wall, who=who))
    print(f"{order.id}: ended; what still fires is told")
    return 0


def _add_order_parser(actions: Any, name: str, text: str, function: Any) -> Any:
    parser = actions.add_parser(name, help=text)
    add_config_option(parser)
    parser.add_argument(
        "--who", default="", metavar="NAME", help="the name that others see; default: yours"
    )
    parser.set_defaults(call=function)
    return parser


def _parse_silence_end(args: argparse.Namespace, state: OpenState) -> int:
    if bool(args.length) == bool(args.until):
        raise UsageError("a silence always ends: give --for 2h or --until 2026-12-24T18:00")
    if args.length:
        return silence_end(args.length, state.now)
    from sentinel.alerting.silences import parse_moment

    try:
        return int(parse_moment(args.until, state.zone, "until").timestamp()) * SECOND
    except Invalid as error:
        raise UsageError(str(error)) from error


def _parse_silence_match(words: Sequence[str], state: OpenState) -> Match:
    if len(words) == 1 and not is_matcher(words[0]):
        if words[0] in {c.name for c in state.settings.checks}:
            return Match(check=[words[0]])
        return match_exactly(
            find_alert(state.store.read_alerts(), state.resolve_alert_id(words[0])).key
        )
    found = [one for text in words for one in _parse_matcher_words(text)]
    keys: dict[str, list[str]] = {}
    others = []
    for one in found:
        if one.word.startswith("=") and not one.word.startswith("=~"):
            keys.setdefault(one.name, []).append(one.word[1:].lstrip())
        else:
            others.append(f"{one.name}{one.word}")
    own = {k: v for k, v in keys.items() if k in ALERT_FACTS}
    labels = {k: v for k, v in keys.items() if k not in own}
    if twice := [k for k, v in labels.items() if len(v) > 1]:
        raise UsageError(
            f"{twice[0]}= is given twice; write {twice[0]}=~'this|that' for alternatives"
        )
    return Match(**own, labels={k: v[0] for k, v in labels.items()}, matchers=others)


def _parse_matcher_words(text: str) -> list[Matcher]:
    if not is_matcher(text) or text.endswith("="):
        raise UsageError(
            f"{text!r} is neither an alert's id or name nor KEY=VALUE such as check=scratch"
        )
    try:
        return parse_matchers(text)
    except Invalid as error:
        raise UsageError(str(error)) from None
