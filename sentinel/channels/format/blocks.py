"""Notifications as a short message for chats and phones: blocks in the order of reading.

What does not fit is left out by weight, the log's first lines before its last ones; how bad,
where and what always stay.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.channels.format.text import Card, facts, overview, ranked
from sentinel.core.model import Notification
from sentinel.core.text import shortened

LISTED = 100
_ICONS = {"critical": "🔴", "unknown": "🟣", "warning": "🟠", "info": "🔵", "ok": "🟢"}
_ITEM, _FACTS, _TITLE, _TAIL = 240, 900, 240, 50
_LOG = 1  # its weight: the first to be cut

Role = Literal["line", "strong", "dim", "code"]


class Block(Struct, frozen=True):
    """A paragraph of inert text; `weight` says how long it stays when the room is small. With a
    `url` the text is the word for it. `count`: how many alerts it tells of."""

    role: Role
    text: str
    weight: int = 9
    url: str = ""
    count: int = 1


class Chat(Struct, frozen=True, kw_only=True):
    """A message: one line that says how bad and where, then the blocks; `items` is how many
    alerts there are where blocks tell of several, and `runbook` what they share."""

    title: str
    tone: str
    blocks: tuple[Block, ...]
    items: int = 0
    runbook: str = ""

    @property
    def icon(self) -> str:
        """A circle in the colour of the tone."""
        return _ICONS.get(self.tone, "🔵")


def chat(notifications: Sequence[Notification]) -> Chat:
    """The message about one alert, or about several in a line each, the worst first."""
    cards = ranked(notifications)
    return _one(cards[0]) if len(cards) == 1 else _several(cards)


def _one(c: Card) -> Chat:
    title = " ".join(part for part in (c.word, c.cluster, c.title) if part)
    return Chat(title=shortened(title, _TITLE), tone=c.tone, blocks=tuple(_blocks(c)))


def _several(cards: Sequence[Card]) -> Chat:
    title = ("[dry run] " if cards[0].dry_run else "") + overview(cards)
    items = tuple(Block("line", _item(c), -n, count=c.count) for n, c in enumerate(cards[:LISTED]))
    runbooks = {c.runbook for c in cards if not c.ended}
    runbook = runbooks.pop() if len(runbooks) == 1 else ""
    return Chat(
        title=title,
        tone=cards[0].tone,
        blocks=items,
        items=sum(c.count for c in cards),
        runbook=runbook,
    )


def fitted(
    message: Chat, room: int, size: Callable[[Block], int] = lambda b: len(b.text + b.url) + 1
) -> tuple[Block, ...]:
    """The blocks that fit into the room; a line counts the alerts that did not."""
    below = [Block("line", f"Runbook: {message.runbook}")] if message.runbook else []
    below = below if sum(map(size, below)) <= room // 5 else []
    kept = list(message.blocks)
    left = room - sum(map(size, [*kept, *below])) - (_TAIL if message.items else 0)
    while left < 0 and len(kept) > 1:
        least = min(range(len(kept)), key=lambda i: kept[i].weight)
        shorter = _shorter(kept[least])
        left += size(kept[least]) - sum(map(size, shorter))
        kept[least : least + 1] = shorter
    lost = message.items - sum(block.count for block in kept)
    tail = [Block("line", f"and {lost} more: sentinel alerts list")] if lost > 0 else []
    return (*kept, *tail, *below)


def _shorter(block: Block) -> list[Block]:
    """A log without its first line; of anything else, nothing."""
    _, _, rest = block.text.partition("\n")
    return [replace(block, text=rest)] if rest and block.weight == _LOG else []


def _blocks(c: Card) -> Iterator[Block]:
    if c.dry_run:
        yield Block("strong", "Dry run: nothing was acted upon.", 8)
    yield Block("line", c.summary)
    if c.note:
        yield Block("line", shortened(c.note, _ITEM), 7)
    for word, url in c.links:
        yield Block("line", word, 6, url)
    rows = (f"{name} {value}" for name, value in facts(c) if name != "cluster")
    yield Block("dim", shortened(" · ".join(rows), _FACTS), 5)
    if c.runbook:
        yield Block("line", f"Runbook: {c.runbook}", 6)
    if c.commands:
        yield Block("code", "\n".join(c.commands), 3)
    if c.lines:
        yield Block("code", "\n".join(c.lines), _LOG)
    if c.more:
        yield Block("code", "\n".join(c.more), 4)


def _item(c: Card) -> str:
    end = f" (after {c.age})" if c.ended and c.age else f" (since {c.clock})" if c.clock else ""
    icon = _ICONS.get(c.tone, "🔵")
    return shortened(f"{icon} {c.word} {c.title}: {c.summary}", _ITEM) + end
