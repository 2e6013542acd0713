"""`sentinel alerts ack|silence|unsilence`: what people tell sentinel by hand."""

import argparse
import os
import secrets
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.cli import USAGE
from sentinel.cli.state import State
from sentinel.core.clock import SECOND
from sentinel.core.digest import iso
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.mute import Ack, Silence, exactly
from sentinel.core.settings import Match
from sentinel.core.text import visible
from sentinel.core.values import Duration


class BadOrder(SentinelError):
    """The order makes no sense; nothing was written."""

    exit_code = USAGE


def add(actions: Any) -> None:
    """Add the parsers below `alerts`."""
    ack = _parser(actions, "ack", "you have it: no repeats, no escalation, until it ends", call_ack)
    ack.add_argument("alert", metavar="ALERT")
    ack.add_argument("--note", default="", metavar="TEXT")
    silence = _parser(actions, "silence", "tell nobody of what matches, for a while", call_silence)
    silence.add_argument(
        "what", nargs="+", metavar="ALERT|KEY=VALUE", help="an alert's id, or check=, kind=, subject=, "
        "severity=, node=, user=, partition=, job=, or a label; values may hold * and ?"
    )  # fmt: skip
    silence.add_argument("--for", dest="length", metavar="TIME", help="e.g. 2h; it always ends")
    silence.add_argument("--until", metavar="MOMENT", help="e.g. 2026-12-24T18:00")
    silence.add_argument("--reason", default="", metavar="TEXT")
    end = _parser(actions, "unsilence", "end a silence now", call_unsilence)
    end.add_argument("silence", metavar="SILENCE")


def call_ack(args: argparse.Namespace) -> int:
    """0 when written; the running sentinel knows it within seconds."""
    with State(args.config, writing=True) as state:
        alert = state.find(args.alert)
        if not any(a.id == alert and a.firing for a in state.store.alerts()):
            raise BadOrder(f"alert {alert} does not fire now: there is nothing to acknowledge")
        who = args.who or _me()
        state.store.acknowledge(Ack(alert=alert, at=state.now, who=who, note=args.note))
    print(f"{alert}: acknowledged by {visible(who)}; it is told again only when worse or over")
    return 0


def call_silence(args: argparse.Namespace) -> int:
    """0 when written; prints the id that ends it."""
    with State(args.config, writing=True) as state:
        ends = _end(args, state)
        silence = Silence(
            id=secrets.token_hex(4),
            match=_match(args.what, state),
            starts=state.now.wall,
            ends=ends,
            who=args.who or _me(),
            reason=args.reason,
        )
        state.store.silence(silence)
        until = iso(replace(state.now, wall=ends), state.zone)
    print(f"silenced until {until}; end it with: sentinel alerts unsilence {silence.id}")
    return 0


def call_unsilence(args: argparse.Namespace) -> int:
    """0 when ended."""
    with State(args.config, writing=True) as state:
        known = {s.id: s for s in state.silences()}
        silence = known.get(args.silence)
        if silence is None:
            have = ", ".join(known) or "none"
            raise BadOrder(f"no silence {args.silence!r} is in force; there are: {have}")
        state.store.silence(replace(silence, ends=state.now.wall))
    print(f"{silence.id}: ended; what still fires is told")
    return 0


def _parser(actions: Any, name: str, text: str, function: Any) -> Any:
    parser = actions.add_parser(name, help=text)
    parser.add_argument("-c", "--config", metavar="FILE")
    parser.add_argument("--who", default="", metavar="NAME", help="default: you")
    parser.set_defaults(call=function)
    return parser


def _end(args: argparse.Namespace, state: State) -> int:
    if bool(args.length) == bool(args.until):
        raise BadOrder("a silence always ends: give --for 2h or --until 2026-12-24T18:00")
    try:
        ends = _moment(args, state)
    except Invalid as error:
        raise BadOrder(str(error)) from error
    if ends <= state.now.wall:
        raise BadOrder("the end of the silence lies in the past")
    return ends


def _moment(args: argparse.Namespace, state: State) -> int:
    if args.length:
        return state.now.wall + int(Duration.parse(args.length) * SECOND)
    from sentinel.core.windows import moment

    return int(moment(args.until, state.zone, "until").timestamp()) * SECOND


def _match(words: Sequence[str], state: State) -> Match:
    if len(words) == 1 and "=" not in words[0]:
        return _exactly(state.find(words[0]), state)
    keys: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise BadOrder(f"{word!r} is neither an alert's id nor KEY=VALUE such as check=scratch")
        keys[key] = value
    own = {k: v for k, v in keys.items() if k in Match.__struct_fields__ and k != "labels"}
    return Match(**own, labels={k: v for k, v in keys.items() if k not in own})


def _exactly(alert: str, state: State) -> Match:
    for a in state.store.alerts():
        if a.id == alert:
            return exactly(a.key)
    raise BadOrder(f"alert {alert} is over: name what to silence, e.g. check=scratch")


def _me() -> str:
    import getpass

    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
