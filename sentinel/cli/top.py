"""`sentinel top`: what `status` shows, live, with keys; from the state, so also without a service."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from sentinel.cli import config_option
from sentinel.cli.state import State
from sentinel.core.errors import StoreError
from sentinel.core.values import Duration

INTERVAL = Duration(2)
FOOT = 1


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "top", help="the status as a live screen: sort, filter, open, acknowledge"
    )
    config_option(parser)
    parser.add_argument(
        "--every",
        type=_seconds,
        default=INTERVAL,
        metavar="TIME",
        help="time between two updates of the screen; default 2s",
    )
    parser.add_argument("--once", action="store_true", help="print once and exit")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0 when it was left; where there is no terminal it prints once."""
    with State(args.config) as state:
        if args.once or not _can_draw():
            from sentinel.cli import status

            status.show(status.look(state), state)
            return 0
        _watch(state, float(args.every))
    return 0


def _can_draw() -> bool:
    both = sys.stdin.isatty() and sys.stdout.isatty()
    return both and os.environ.get("TERM", "dumb") != "dumb"


def _watch(state: State, every: float) -> None:
    from msgspec.structs import replace

    from sentinel.cli.screen import Screen
    from sentinel.cli.top_view import View, press

    eye = _Eye(state)
    view, found = View(), eye.look()
    due = time.monotonic() + every
    with Screen() as screen:
        while not view.done:
            width, height = screen.size
            screen.draw(_lines(view, found, state, width, height))
            still = view.held or view.asking
            key = screen.key(1.0 if still else max(0.05, min(due - time.monotonic(), 1.0)))
            if key:
                view = press(view, key, found)
            if view.ack:
                said = _acknowledge(state, view.ack)
                view, due = replace(view, ack=(), said=said), 0.0
            if time.monotonic() >= due and not still:
                found, due = eye.look(), time.monotonic() + every


class _Eye:
    """Looks at the state again and again, over the same connections."""

    def __init__(self, state: State) -> None:
        from sentinel.clock import SystemClock
        from sentinel.wiring import status as show

        self._state, self._clock = state, SystemClock()
        self._around = show.of_settings(state.settings)
        self._before: Any = None

    def look(self) -> Any:
        """The facts; those of before, with why, while the state cannot be read."""
        from msgspec.structs import replace

        from sentinel.wiring import status as show

        try:
            self._before = show.seen(self._state.store, self._around, self._clock.now(), ())
        except StoreError as error:
            if self._before is None:
                raise
            return replace(self._before, notices=(f"the state cannot be read: {error}",))
        return self._before


def _lines(view: Any, found: Any, state: State, width: int, height: int) -> list[str]:
    from rich.text import Text

    from sentinel.cli.screen import rendered
    from sentinel.cli.top_view import body, foot, head

    colour = "NO_COLOR" not in os.environ
    notices = [Text(n, style="bold red") for n in found.notices]
    top = [rendered(line, width, colour)[0] for line in (*head(view, found, state.zone), *notices)]
    room = height - len(top) - FOOT - 1
    middle = rendered(body(view, found, state.zone, room - 1), width, colour)[:room]
    empty = [""] * (room - len(middle))
    return [*top, "", *middle, *empty, rendered(foot(view), width, colour)[0]]


def _acknowledge(state: State, alerts: Sequence[str]) -> str:
    from sentinel.alerting.orders import Said, Wrong, acknowledge
    from sentinel.cli.common import user
    from sentinel.clock import SystemClock

    said, now = Said(user(), "top"), SystemClock().now()
    try:
        known = state.store.alerts()
        for alert in alerts:
            state.store.acknowledge(acknowledge(known, alert, said, now))
    except (StoreError, Wrong) as error:
        return f"not acknowledged: {error}"
    return f"{', '.join(alerts[:3])}{' …' if len(alerts) > 3 else ''}: acknowledged"


def _seconds(text: str) -> Duration:
    from sentinel.core.errors import Invalid

    try:
        found = Duration.parse(text)
    except Invalid as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0.5 <= found <= 3600:
        raise argparse.ArgumentTypeError("from 500ms to 1h")
    return found
