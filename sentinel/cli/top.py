"""`sentinel top`: shows `status` live, with keys. It reads the state, so it works without a
service."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from rich.text import Text

from sentinel.alerting.orders import Author, WrongOrder, acknowledge_alert
from sentinel.cli import add_config_option, status
from sentinel.cli.screen import TerminalScreen, render_to_lines
from sentinel.cli.state import OpenState
from sentinel.cli.top_view import TopView, apply_key, render_body, render_foot, render_head
from sentinel.clock import SystemClock
from sentinel.core.errors import Invalid, StoreError
from sentinel.core.values import Duration
from sentinel.homes import get_invoking_user
from sentinel.status.run_reader import RunReader
from sentinel.wiring import status as show

DEFAULT_INTERVAL_S = Duration(2)
FOOTER_LINES = 1


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "top", help="the status as a live screen: sort, filter, open, acknowledge"
    )
    add_config_option(parser)
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument(
        "--every",
        type=_parse_refresh_interval,
        default=DEFAULT_INTERVAL_S,
        metavar="TIME",
        help="time between two updates of the screen; default 2s",
    )
    pace.add_argument("--once", action="store_true", help="print once and exit")
    parser.set_defaults(call=call_top)


def call_top(args: argparse.Namespace) -> int:
    """Show the view. Returns 0 when the person leaves; without a terminal it prints once."""
    with OpenState(args.config) as state:
        if args.once or not _can_draw():
            status.print_status(status.read_status_facts(state), state)
            return 0
        _run_screen(state, float(args.every))
    return 0


def _can_draw() -> bool:
    both = sys.stdin.isatty() and sys.stdout.isatty()
    return both and os.environ.get("TERM", "dumb") != "dumb"


def _run_screen(state: OpenState, every: float) -> None:
    eye = _StatePoller(state)
    view, found = TopView(), eye.poll_facts()
    due = time.monotonic() + every
    with TerminalScreen() as screen:
        while not view.done:
            width, height = screen.columns_and_lines
            screen.draw_lines(_render_screen(view, found, state, width, height))
            still = view.held or view.asking
            key = screen.read_key(1.0 if still else max(0.05, min(due - time.monotonic(), 1.0)))
            if key:
                view = apply_key(view, key, found)
            if view.ack:
                said = _acknowledge_alerts(state, view.ack)
                view, due = replace(view, ack=(), said=said), 0.0
            if time.monotonic() >= due and not still:
                found, due = eye.poll_facts(), time.monotonic() + every


class _StatePoller:
    """Reads the state again and again, over the same connections."""

    def __init__(self, state: OpenState) -> None:
        self._state, self._clock = state, SystemClock()
        self._around = show.build_file_surroundings(state.settings)
        self._before: Any = None
        self._runs = RunReader()

    def poll_facts(self) -> Any:
        """The facts; those of before, with why, while the state cannot be read."""
        try:
            self._before = show.read_state_facts(
                self._state.store, self._around, self._clock.now(), (), self._runs
            )
        except StoreError as error:
            if self._before is None:
                raise
            return replace(self._before, notices=(f"the state cannot be read: {error}",))
        return self._before


def _render_screen(view: Any, found: Any, state: OpenState, width: int, height: int) -> list[str]:
    colour = "NO_COLOR" not in os.environ
    notices = [Text(n, style="bold red") for n in found.notices]
    top = [
        render_to_lines(line, width, colour)[0]
        for line in (*render_head(view, found, state.zone), *notices)
    ]
    room = height - len(top) - FOOTER_LINES - 1
    middle = render_to_lines(render_body(view, found, state.zone, room - 1), width, colour)[:room]
    empty = [""] * (room - len(middle))
    return [*top, "", *middle, *empty, render_to_lines(render_foot(view), width, colour)[0]]


def _acknowledge_alerts(state: OpenState, alerts: Sequence[str]) -> str:
    said, now = Author(get_invoking_user(), "top"), SystemClock().now()
    try:
        known = state.store.read_alerts()
        for alert in alerts:
            state.store.put_ack(acknowledge_alert(known, alert, said, now))
    except (StoreError, WrongOrder) as error:
        return f"not acknowledged: {error}"
    return f"{', '.join(alerts[:3])}{' …' if len(alerts) > 3 else ''}: acknowledged"


def _parse_refresh_interval(text: str) -> Duration:
    try:
        found = Duration.parse(text)
    except Invalid as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0.5 <= found <= 3600:
        raise argparse.ArgumentTypeError("from 500ms to 1h")
    return found
