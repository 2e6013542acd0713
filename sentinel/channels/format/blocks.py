"""Formats notifications as short messages for chats and phones: blocks in reading order.

If the message is too long, the blocks with the least weight are left out. Of a log, the first lines
go first. Severity, place and problem always stay.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.channels.format.text import (
    ACTS_HEADING,
    AlertCard,
    card_facts,
    list_turns,
    more_commands,
    overview_line,
    rank_cards,
)
from sentinel.core.command_places import comment_places
from sentinel.core.guidance import name_config
from sentinel.core.model import Notification
from sentinel.core.text import shortened

LISTED = 100
_ICONS = {"critical": "🔴", "unknown": "🟣", "warning": "🟠", "info": "🔵", "ok": "🟢"}
_ITEM, _FACTS, _TITLE = 240, 900, 240
_LOG, _PLACE = 1, 2  # the weights of a log, which is cut first, and of where commands are run

Role = Literal["line", "strong", "dim", "code"]


class MessageBlock(Struct, frozen=True):
    """A paragraph without control characters. A block with less `weight` is cut earlier. With a
    `url`, the text is a link. `count` is how many alerts the block is about."""

    role: Role  # What the block is.
    text: str  # Its text.
    weight: int = 9
    url: str = ""
    count: int = 1


class ChatContent(Struct, frozen=True, kw_only=True):
    """A message: a line with severity and place, then the blocks.

    `items` is the number of alerts if the blocks are about several, `config` the file that commands
    of sentinel name. `runbook` is a page that they all share.
    """

    title: str  # The first line.
    tone: str  # Its colour.
    blocks: tuple[MessageBlock, ...]  # The paragraphs.
    items: int = 0
    config: str = ""
    runbook: str = ""

    @property
    def tone_icon(self) -> str:
        """A circle in the colour of the tone."""
        return _ICONS.get(self.tone, "🔵")


def make_chat(notifications: Sequence[Notification]) -> ChatContent:
    """The message about one alert in full, or about several with one line each, the worst first."""
    cards = rank_cards(notifications)
    return _chat_of_one(cards[0]) if len(cards) == 1 else _chat_of_several(cards)


def _chat_of_one(c: AlertCard) -> ChatContent:
    title = " ".join(part for part in (c.word, c.cluster, c.title) if part)
    return ChatContent(title=shortened(title, _TITLE), tone=c.tone, blocks=tuple(_card_blocks(c)))


def _chat_of_several(cards: Sequence[AlertCard]) -> ChatContent:
    title = ("[dry run] " if cards[0].dry_run else "") + overview_line(cards)
    items = tuple(
        MessageBlock("line", _list_item(c), -turn, count=c.count)
        for c, turn in zip(cards, list_turns(cards), strict=True)
        if turn < LISTED
    )
    runbooks = {c.runbook for c in cards if not c.ended}
    runbook = runbooks.pop() if len(runbooks) == 1 else ""
    return ChatContent(
        title=title,
        tone=cards[0].tone,
        blocks=items,
        items=sum(c.count for c in cards),
        config=cards[0].config,
        runbook=runbook,
    )


def fit_blocks(
    message: ChatContent,
    room: int,
    size: Callable[[MessageBlock], int] = lambda b: len(b.text + b.url) + 1,
) -> tuple[MessageBlock, ...]:
    """The blocks that fit into the limit. A last line counts the alerts that did not fit."""
    below = [MessageBlock("line", f"Runbook: {message.runbook}")] if message.runbook else []
    below = below if sum(map(size, below)) <= room // 5 else []
    kept = list(message.blocks)
    rest = f" more: {name_config('sentinel alerts list', message.config)}"
    longest = MessageBlock("line", f"and {message.items}{rest}")
    left = room - sum(map(size, [*kept, *below])) - (size(longest) if message.items else 0)
    while left < 0 and len(kept) > 1:
        least = min(range(len(kept)), key=lambda i: _weigh_block(kept[i]))
        shorter = _shorten_block(kept[least])
        left += size(kept[least]) - sum(map(size, shorter))
        kept[least : least + 1] = shorter
    lost = message.items - sum(block.count for block in kept)
    tail = [replace(longest, text=f"and {lost}{rest}")] if lost > 0 else []
    return (*kept, *tail, *below)


def _weigh_block(block: MessageBlock) -> int:
    """How much its next part weighs: where commands are run goes before any command."""
    return min(block.weight, _PLACE) if _is_commented(block) else block.weight


def _is_commented(block: MessageBlock) -> bool:
    return block.role == "code" and any(line.startswith("# ") for line in block.text.split("\n"))


def _shorten_block(block: MessageBlock) -> list[MessageBlock]:
    """A log without its first line, with a mark in its place; commands without where they are run.
    For any other block, none."""
    if block.weight == _LOG:
        _, _, rest = block.text.removeprefix("…\n").partition("\n")
        return [replace(block, text=f"…\n{rest}")] if rest else []
    if not _is_commented(block):
        return []
    bare = (line for line in block.text.split("\n") if not line.startswith("# "))
    return [replace(block, text="\n".join(bare))]


def _card_blocks(c: AlertCard) -> Iterator[MessageBlock]:
    if c.dry_run:
        yield MessageBlock("strong", "Dry run: nothing was acted upon.", 8)
    yield MessageBlock("line", c.summary)
    if c.impact:
        yield MessageBlock("line", f"If nobody acts: {c.impact}", 8)
    if c.note:
        yield MessageBlock("line", shortened(c.note, _ITEM), 7)
    for word, url in c.links:
        yield MessageBlock("line", word, 6, url)
    for step in c.steps:
        yield MessageBlock("line", step, 7)
    rows = (f"{name}: {value}" for name, value in card_facts(c) if name != "cluster")
    yield MessageBlock("dim", shortened(" · ".join(rows), _FACTS), 5)
    if c.runbook:
        yield MessageBlock("line", f"Runbook: {c.runbook}", 6)
    yield from _command_blocks(c)
    if c.lines:
        yield MessageBlock("code", _mark_lines(c.lines), _LOG)
    if c.more:
        yield MessageBlock("code", "\n".join(comment_places(more_commands(c), "$ ")), 4)


def _command_blocks(c: AlertCard) -> Iterator[MessageBlock]:
    """What looks, and, set off from it, what acts."""
    if c.commands:
        yield MessageBlock("code", "\n".join(comment_places(c.command_groups, "$ ")), 3)
    if c.act_groups:
        yield MessageBlock("line", f"{ACTS_HEADING}:", 3)
        yield MessageBlock("code", "\n".join(comment_places(c.act_groups, "$ ")), 3)


def _mark_lines(lines: Sequence[str]) -> str:
    """Mark findings differently from commands to run, as on a terminal."""
    return "\n".join(line if line == "…" else f"| {line}" for line in lines)


def _list_item(c: AlertCard) -> str:
    end = f" (after {c.age})" if c.ended and c.age else f" (since {c.clock})" if c.clock else ""
    icon = _ICONS.get(c.tone, "🔵")
    return shortened(f"{icon} {c.word} {c.title}: {c.summary}", _ITEM) + end
