"""`sentinel alerts ack|silence|unsilence`: stores people's orders."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.alerting.matchers import (
    ALERT_FACTS,
    Matcher,
    is_matcher,
    is_wide,
    parse_matchers,
    parse_word,
)
from sentinel.alerting.notifications import format_iso
from sentinel.alerting.orders import (
    Author,
    acknowledge_alert,
    find_alert,
    make_silence,
    silence_end,
)
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Silence, find_silence, match_exactly, parse_moment
from sentinel.cli import add_config_option
from sentinel.cli.state import OpenState, select_named_alerts
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid
from sentinel.homes import get_invoking_user
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
        "alert",
        nargs="+",
        metavar="ALERT",
        help="the alert's id, or the name of its check or subject, or both: disks /scratch",
    )
    ack.add_argument("--note", default="", metavar="TEXT", help="a note that others see")
    quiet = _add_order_parser(
        actions, "silence", "send nothing about matching alerts until a given time", call_silence
    )
    quiet.add_argument(
        "what", nargs="+", metavar="ALERT|KEY=VALUE", help="an alert's id, a check's name, alone or with a subject "
        "(drained node-2), or check=, kind=, subject=, "
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
        "silence",
        nargs="+",
        metavar="SILENCE",
        help="the id of the silence, as `alerts silences` shows it, or the name of the check or alert "
        "that it silences",
    )


def call_ack(args: argparse.Namespace) -> int:
    """Acknowledge an alert. Returns 0 if it is stored; the running sentinel knows it within
    seconds."""
    with OpenState(args.config, writing=True) as state:
        alert = state.resolve_alert_id(" ".join(args.alert))
        said = Author(args.who or get_invoking_user(), "cli", args.note)
        ack = acknowledge_alert(state.store.read_alerts(), alert, said, state.now)
        state.store.put_ack(ack)
    print(f"{alert}: acknowledged by {ack.who}; the next message comes when it is worse or over")
    return 0


def call_silence(args: argparse.Namespace) -> int:
    """Silence alerts. Returns 0 if it is stored, and prints the id that ends the silence."""
    with OpenState(args.config, writing=True) as state:
        ends, match = _parse_silence_end(args, state), _parse_silence_match(args.what, state)
        said = Author(args.who or get_invoking_user(), "cli", args.reason)
        order = make_silence(match, ends, said, state.now)
        state.store.put_silence(order)
        fits = sum(bool(find_silence(a, [order], state.now)) for a in state.store.read_alerts())
    until = format_iso(Instant(wall=ends), state.zone)
    end = state.name_config(f"sentinel alerts unsilence {order.id}")
    print(f"silenced until {until}; end it with: {end}")
    if is_wide(order.match):
        print("sentinel: it also matches alerts that do not have this label", file=sys.stderr)
    if not fits:
        print(
            "sentinel: silence set; no current alert matches it"
            f" ({state.name_config('sentinel alerts list')})",
            file=sys.stderr,
        )
    return 0


def call_unsilence(args: argparse.Namespace) -> int:
    """End one silence by its id, or all silences about a check or an alert by its name. Returns 0
    if they are ended."""
    with OpenState(args.config, writing=True) as state:
        name = " ".join(args.silence)
        known = {s.id: s for s in state.list_manual_silences()}
        one = known.get(name)
        orders = [one] if one else _select_named_silences(name, known.values())
        if not orders:
            if name in {s.id for s in state.list_silences()}:
                raise UsageError(f"silence {name} stands in the file: silences; end it there")
            have = ", ".join(known) or "none"
            raise UsageError(f"no silence {name!r} is in force; there are: {have}")
        for order in orders:
            # Slurm's reservation would create its silence again, if nobody had ended it.
            who = args.who or (get_invoking_user() if order.is_planned else order.who)
            state.store.put_silence(replace(order, ends=state.now.wall, who=who))
    print(f"{', '.join(s.id for s in orders)}: ended; alerts that still fire are sent again")
    return 0


def _select_named_silences(name: str, known: Iterable[Silence]) -> list[Silence]:
    """Silences that name this check, or an alert by its subject."""

    def is_about(silence: Silence) -> bool:
        match = silence.match
        checks, subjects = (
            [w] if isinstance(w, str) else w or [] for w in (match.check, match.subject)
        )
        return name in {*checks, *subjects, *(f"{c} {s}" for c in checks for s in subjects)}

    return [s for s in known if is_about(s)]


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
    try:
        return int(parse_moment(args.until, state.zone, "until").timestamp()) * SECOND
    except Invalid as error:
        raise UsageError(str(error)) from error


def _parse_silence_match(words: Sequence[str], state: OpenState) -> Match:
    if not any(map(is_matcher, words)):
        return _match_named(words, state)
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


def _match_named(words: Sequence[str], state: OpenState) -> Match:
    """The match for an alert's id or name, a check's name or kind, or a check and a subject, which
    need have no alert now."""
    name, head, subject = " ".join(words), words[0], " ".join(words[1:])
    kinds = {c.name: c.common.kind for c in state.settings.checks}
    is_check = head in kinds or head in kinds.values()
    has_alert = bool(subject and select_named_alerts(state.list_current_alerts(), name))
    if has_alert or not is_check:
        found = state.resolve_alert_id(name)
        return match_exactly(find_alert(state.store.read_alerts(), found).key)
    try:
        about = [subject] if subject and parse_word("subject", subject) else None
    except Invalid as error:
        raise UsageError(str(error)) from None
    if head in kinds:
        return Match(check=[head], subject=about)
    return Match(kind=[head], subject=about)


def _parse_matcher_words(text: str) -> list[Matcher]:
    if not is_matcher(text) or text.endswith("="):
        raise UsageError(
            f"{text!r} is neither an alert's id or name nor KEY=VALUE such as check=scratch"
        )
    try:
        return parse_matchers(text)
    except Invalid as error:
        raise UsageError(str(error)) from None
