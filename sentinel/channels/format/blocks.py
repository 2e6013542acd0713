"""Notifications as a short message for chats and phones: blocks in the order of reading.

What does not fit is left out by weight, the log's first lines before its last ones; how bad,
where and what always stay.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.channels.format.text import AlertCard, card_facts, overview_line, rank_cards
from sentinel.core.model import Notification
from sentinel.core.text import shortened

LISTED = 100
_ICONS = {"critical": "🔴", "unknown": "🟣", "warning": "🟠", "info": "🔵", "ok": "🟢"}
_ITEM, _FACTS, _TITLE, _TAIL = 240, 900, 240, 50
_LOG = 1  # its weight: the first to be cut

Role = Literal["line", "strong", "dim", "code"]


class MessageBlock(Struct, frozen=True):
    """A paragraph of inert text; `weight` says how long it stays when the room is small. With a
    `url` the text is the word for it. `count`: how many alerts it tells of."""

    role: Role
    text: str
    weight: int = 9
    url: str = ""
    count: int = 1


class ChatContent(Struct, frozen=True, kw_only=True):
    """A message: one line that says how bad and where, then the blocks; `items` is how many
    alerts there are where blocks tell of several, and `runbook` what they share."""

    title: str
    tone: str
    blocks: tuple[MessageBlock, ...]
    items: int = 0
    runbook: str = ""

    @property
    def tone_icon(self) -> str:
        """A circle in the colour of the tone."""
        return _ICONS.get(self.tone, "🔵")


def make_chat(notifications: Sequence[Notification]) -> ChatContent:
    """The message about one alert, or about several in a line each, the worst first."""
    cards = rank_cards(notifications)
    return _chat_of_one(cards[0]) if len(cards) == 1 else _chat_of_several(cards)


def _chat_of_one(c: AlertCard) -> ChatContent:
    title = " ".join(part for part in (c.word, c.cluster, c.title) if part)
    return ChatContent(title=shortened(title, _TITLE), tone=c.tone, blocks=tuple(_card_blocks(c)))


def _chat_of_several(cards: Sequence[AlertCard]) -> ChatContent:
    title = ("[dry run] " if cards[0].dry_run else "") + overview_line(cards)
    items = tuple(
        MessageBlock("line", _list_item(c), -n, count=c.count) for n, c in enumerate(cards[:LISTED])
    )
    runbooks = {c.runbook for c in cards if not c.ended}
    runbook = runbooks.pop() if len(runbooks) == 1 else ""
    return ChatContent(
        title=title,
        tone=cards[0].tone,
        blocks=items,
        items=sum(c.count for c in cards),
        runbook=runbook,
    )


def fit_blocks(
    message: ChatContent,
    room: int,
    size: Callable[[MessageBlock], int] = lambda b: len(b.text + b.url) + 1,
) -> tuple[MessageBlock, ...]:
    """The blocks that fit into the room; a line counts the alerts that did not."""
    below = [MessageBlock("line", f"Runbook: {message.runbook}")] if message.runbook else []
    below = below if sum(map(size, below)) <= room // 5 else []
    kept = list(message.blocks)
    left = room - sum(map(size, [*kept, *below])) - (_TAIL if message.items else 0)
    while left < 0 and len(kept) > 1:
        least = min(range(len(kept)), key=lambda i: kept[i].weight)
        shorter = _shorten_block(kept[least])
        left += size(kept[least]) - sum(map(size, shorter))
        kept[least : least + 1] = shorter
    lost = message.items - sum(block.count for block in kept)
    tail = [MessageBlock("line", f"and {lost} more: sentinel alerts list")] if lost > 0 else []
    return (*kept, *tail, *below)


def _shorten_block(block: MessageBlock) -> list[MessageBlock]:
    """A log without its first line; of anything else, nothing."""
    _, _, rest = block.text.partition("\n")
    return [replace(block, text=rest)] if rest and block.weight == _LOG else []


def _card_blocks(c: AlertCard) -> Iterator[MessageBlock]:
    if c.dry_run:
        yield MessageBlock("strong", "Dry run: nothing was acted upon.", 8)
    yield MessageBlock("line", c.summary)
    if c.note:
        yield MessageBlock("line", shortened(c.note, _ITEM), 7)
    for word, url in c.links:
        yield MessageBlock("line", word, 6, url)
    rows = (f"{name} {value}" for name, value in card_facts(c) if name != "cluster")
    yield MessageBlock("dim", shortened(" · ".join(rows), _FACTS), 5)
    if c.runbook:
        yield MessageBlock("line", f"Runbook: {c.runbook}", 6)
    if c.commands:
        yield MessageBlock("code", "\n".join(c.commands), 3)
    if c.lines:
        yield MessageBlock("code", "\n".join(c.lines), _LOG)
    if c.more:
        yield MessageBlock("code", "\n".join(c.more), 4)


def _list_item(c: AlertCard) -> str:
    end = f" (after {c.age})" if c.ended and c.age else f" (since {c.clock})" if c.clock else ""
    icon = _ICONS.get(c.tone, "🔵")
    return shortened(f"{icon} {c.word} {c.title}: {c.summary}", _ITEM) + end
