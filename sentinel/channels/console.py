"""Alerts on standard output, for a person who watches and for the journal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, ClassVar, TextIO

from sentinel.channels.aside import StillOccupied, run_aside
from sentinel.channels.format.text import AlertCard, card_facts, make_card
from sentinel.channels.settings import check_timeout
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.values import Duration
from sentinel.plugin import Channel

if TYPE_CHECKING:
    from rich.text import Text

_COLUMNS = 80
_LINES = 5
_STYLES = {
    "critical": "bold white on red",
    "warning": "bold black on yellow",
    "unknown": "bold white on magenta",
    "ok": "bold white on green",
    "info": "bold white on blue",
}


PRINTED: set[str] = set()
"""The checks whose alerts this process has printed: `tick` says nothing of them a second time."""


class Console(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prints each alert on standard output, in colour on a terminal (NO_COLOR is honoured).

    A terminal that is held (Ctrl-S) or a pipe that nobody empties is given up in time.
    """

    groups: ClassVar[bool] = False

    timeout: Duration = Duration(10)

    def __post_init__(self) -> None:
        check_timeout(self.timeout)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Print them."""
        import asyncio
        from shutil import get_terminal_size

        stream = sys.stdout
        if stream is None or stream.closed or getattr(stream, "stands_in", False):
            raise ChannelError("there is no standard output", permanent=True, reason="server")
        colour = wants_colour(stream, os.environ)
        width = max(40, min(get_terminal_size().columns, 120)) if colour else _COLUMNS
        text = "".join(paint_card(make_card(n), colour, width) for n in notifications)
        try:
            await run_aside(id(stream), lambda: _write_stream(stream, text), self.timeout)
            PRINTED.update(n.check for n in notifications)
        except (asyncio.TimeoutError, TimeoutError, StillOccupied):
            why = "takes nothing more: a terminal held with Ctrl-S, or a full pipe?"
            raise ChannelError(f"standard output {why}", reason="timeout") from None
        except (OSError, ValueError) as error:
            gone = isinstance(error, BrokenPipeError)
            why = getattr(error, "strerror", "") or str(error)
            raise ChannelError(f"standard output: {why}", permanent=gone, reason="server") from None
        return Receipt("printed")

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """What it would print, without colour."""
        return [("text", "".join(paint_card(make_card(n), colour=False) for n in notifications))]


def wants_colour(stream: TextIO, env: Mapping[str, str]) -> bool:
    """On a terminal that can, unless NO_COLOR says otherwise (https://no-color.org)."""
    plain = env.get("NO_COLOR") or env.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not plain


def paint_card(c: AlertCard, colour: bool, width: int = _COLUMNS) -> str:
    """The card in a few lines; only commands may be longer than `width`, to be copied whole."""
    from rich.console import Console as Paper
    from rich.text import Text

    paper = Paper(
        file=StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        emoji=False,
        highlight=False,
    )
    paper.print(_card_heading(c))
    for paragraph in _card_body(c):
        for line in paragraph.wrap(paper, width - 2):
            line.rstrip()
            paper.print(Text.assemble("  ", line))
    for tail in c.lines[-_LINES:]:
        paper.print(Text(f"  | {tail}", style="dim"), no_wrap=True, overflow="ellipsis")
    for command in (*c.commands, *c.more[:1]):
        paper.print(Text(f"  $ {command}"), soft_wrap=True)
    return paper.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def _card_heading(c: AlertCard) -> Text:
    from rich.text import Text

    dry = Text(" [dry run]") if c.dry_run else Text()
    where = Text(f" ({c.cluster})" if c.cluster else "", style="dim")
    word = Text(c.word, style=_STYLES.get(c.tone, "bold"))
    return Text.assemble(f"{c.told} " if c.told else "", word, f" {c.title}", where, dry)


def _card_body(c: AlertCard) -> Iterator[Text]:
    from rich.text import Text

    yield Text(c.summary, style="bold")
    rows = [f"{name} {value}" for name, value in card_facts(c) if name != "cluster"]
    yield Text(" · ".join(rows), style="dim")
    if c.note:
        yield Text(f"note: {c.note}")
    if c.runbook:
        yield Text(f"runbook: {c.runbook}")
    for word, address in c.links:
        yield Text(f"{word.lower()}: {address}")


def _write_stream(stream: TextIO, text: str) -> None:
    """Past the stream's buffer: a thread left behind in it would hold its lock at exit."""
    data = text.encode(stream.encoding or "utf-8", "backslashreplace")
    fd = _stream_descriptor(stream)
    while fd >= 0 and data:
        data = data[os.write(fd, data) :]
    if fd < 0:
        stream.write(text)


def _stream_descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return -1
