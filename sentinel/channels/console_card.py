"""Draws the card of an alert for a terminal with rich. It is imported only when something is
printed."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

from rich.console import Console as Paper
from rich.text import Text

from sentinel.channels.format.text import AlertCard, card_facts, more_commands
from sentinel.core.command_places import comment_places

_LINES = 6
_STYLES = {
    "critical": "bold white on red",
    "warning": "bold black on yellow",
    "unknown": "bold white on magenta",
    "ok": "bold white on green",
    "info": "bold white on blue",
}


def paint_card(c: AlertCard, colour: bool, width: int = 80) -> str:
    """The card in a few lines. Only commands, and where they are run, may be longer than `width`, so
    that they can be copied whole."""
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
    kept = c.lines[-_LINES:]
    for tail in kept if len(kept) == len(c.lines) else ("…", *kept):
        paper.print(Text(f"  | {tail}", style="dim"), no_wrap=True, overflow="ellipsis")
    acts = list(comment_places(c.act_groups, "$ "))
    for command in (
        *comment_places((*c.command_groups, *more_commands(c)), "$ "),
        *(["to act on it:", *acts] if acts else []),
    ):
        paper.print(Text(f"  {command}"), soft_wrap=True)
    return paper.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def _card_heading(c: AlertCard) -> Text:
    dry = Text(" [dry run]") if c.dry_run else Text()
    where = Text(f" ({c.cluster})" if c.cluster else "", style="dim")
    word = Text(c.word, style=_STYLES.get(c.tone, "bold"))
    return Text.assemble(f"{c.told} " if c.told else "", word, f" {c.title}", where, dry)


def _card_body(c: AlertCard) -> Iterator[Text]:
    yield Text(c.summary, style="bold")
    if c.impact:
        yield Text(f"if nobody acts: {c.impact}")
    if c.note:
        yield Text(f"note: {c.note}")
    for step in c.steps:
        yield Text(step)
    rows = [f"{name}: {value}" for name, value in card_facts(c) if name != "cluster"]
    yield Text(" · ".join(rows), style="dim")
    if c.runbook:
        yield Text(f"runbook: {c.runbook}")
    for word, address in c.links:
        yield Text(f"{word.lower()}: {address}")
