"""Which trainer wrote a log, and which number in it advances. Pure.

Only lines of a shape that one trainer alone prints count; of a log that nobody in the table wrote
the number is looked for, and used only where there is one.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.bars import (
    NO_TRAINING,
    SCALES,
    find_bars,
    scaled,
    training_bar,
    without_bars,
)
from sentinel.checks.log.language_trainers import BARE_BAR, Trainer
from sentinel.checks.log.losses import tells_loss
from sentinel.checks.log.trainers import TRAINERS

MOST = 2**19
"""Characters that are looked at: the newest of a text, and as many of the log's beginning."""

NEWEST = 2**17
"""Characters of its end in which it is looked for what its lines tell."""

LINES, FEW_LINES = 5, 2
"""Of one shape, before a number is found by looking; and where the number before it has ended."""

MARK = re.compile(
    r"^wandb: (?:Tracking run|Currently logged in|Syncing run|Run |🚀|⭐|View )", re.M
)


class Number(Struct, frozen=True):
    """A number that advances: what people call it, and a pattern whose group captures it."""

    name: str
    pattern: str


class Recognised(Struct, frozen=True, kw_only=True):
    """What a log is.

    trainers: Who wrote it, the one that trains first, then libraries and bars; none: unknown.
    number: What advances, where that is beyond doubt.
    offered: What may advance, for people to choose from: nothing relies on it.
    changed: The trainer that wrote the lines before.
    mixed: Two training loops write at once, so that no number stands for the log.
    loss, norm, seconds: Whether its lines tell the loss, a gradient norm, the time of a step.
    size: Bytes of the file when that was found out.
    last: Bytes of the file when the number was found last.
    """

    trainers: tuple[str, ...] = ()
    number: Number | None = None
    offered: tuple[Number, ...] = ()
    changed: str = ""
    mixed: tuple[str, ...] = ()
    loss: bool = False
    norm: bool = False
    seconds: bool = False
    size: int = 0
    last: int = 0

    @property
    def sure(self) -> bool:
        """Whether the number is one of a trainer's own lines: no bar, and not found by looking."""
        return self.number is not None and self.trainer not in ("", "tqdm") and not self._looked

    @property
    def trainer(self) -> str:
        """The first name, or empty."""
        return self.trainers[0] if self.trainers else ""

    @property
    def blind(self) -> tuple[str, ...]:
        """What cannot be seen in this log, for people."""
        lacking = {
            "no number that advances": self.number,
            "no loss": self.loss,
            "no gradient norm": self.norm,
            "no step time": self.seconds,
        }
        return tuple(words for words, there in lacking.items() if not there)

    @property
    def words(self) -> str:
        """One sentence: `log of Megatron-LM, iteration advances; no gradient norm in it`."""
        who = " and ".join(self.trainers)
        told = f"log of {who}" if who else "log of an unknown trainer"
        if self.mixed:
            told += f", where {' and '.join(self.mixed)} write at once"
        if self.changed:
            told += f", before that of {self.changed}"
        if self.number:
            found = "" if self.trainers and not self._looked else " (found by looking)"
            told += f", {self.number.name} advances{found}"
        elif self.offered:
            told += f"; {self.offered[0].name} may advance: `progress: '{self.offered[0].pattern}'`"
        lacks = [words for words in self.blind if self.number or words != "no number that advances"]
        return f"{told}; {', '.join(lacks)} in it" if lacks else told

    @property
    def _looked(self) -> bool:
        return self.number in self.offered


class _Found(Struct):
    """A row whose lines are there: from where to where, and by which of its numbers."""

    row: Trainer
    number: Number | None
    first: int
    last: int


def recognise(text: str, head: str = "", lines: int = LINES) -> Recognised:
    """What wrote this text, `head` being the beginning of the log where the text is its end.
    `lines`: how many of one shape it takes to find a number by looking.

    Both are text as `core.logtext.decoded` gives it. Never raises; for a text that fits no row of
    the table `trainers` is empty, and `number` is one that was seen to advance, if only one was.
    """
    text, head = text[-MOST:], head[:MOST]
    found = [*_found(text, head)]
    loops = [one for one in found if one.row.tier == "trainer"]
    order = sorted(loops or found[:1], key=lambda one: one.last, reverse=True)
    mixed = _mixed(order)
    first = order[0] if order else None
    known = Recognised(
        trainers=tuple(_names(first, found, f"{head}\n{text}")) if first else (),
        number=first.number if first and not mixed else None,
        changed=order[1].row.name if len(order) > 1 and not mixed else "",
        mixed=tuple(one.row.name for one in order) if mixed else (),
    )
    known = _what_else(known, text[-NEWEST:], first.row if first else None)
    if first and first.row.name == "tqdm" and find_bars(text):
        return _of_bars(known, text, lines)
    return known if known.number or mixed else _looked_for(known, text, lines)


def followed(known: Recognised | None, text: str, head: str = "") -> Recognised:
    """What a log is after these further lines of it: asked anew where they do not hold its number.

    A log that goes back and forth between two trainers is mixed, and stays it. A number is given up
    here for one of a trainer's own lines only: for others see `reconsidered`.
    """
    if known is None or not text:
        return recognise(text, head) if text else known or Recognised()
    if known.mixed or (known.sure and found_in(known, text)):
        return known
    now = recognise(text, head)
    if known.number and not (now.sure and found_in(now, text)):
        return known
    if not now.number or now.number == known.number:
        return known if known.number or not now.trainers else now
    if now.trainer and now.trainer == known.changed:
        return replace(known, number=None, changed="", mixed=(known.trainer, now.trainer))
    return replace(now, changed=known.trainer if known.trainer != now.trainer else known.changed)


def found_in(known: Recognised, text: str) -> bool:
    """Whether the text tells its number, and is not the end of a bar."""
    last = _last(known, text)
    return last is not None and not _ends_a_bar(last)


def reconsidered(known: Recognised, text: str) -> Recognised:
    """What a log is whose number has not come for a while though it goes on, by its newest `text`.

    A bar that has reached its total is given up, whatever else there is. What was only found by
    looking, or is a bar, is given up for a number that advances since. A trainer's own number
    stays: a training that hangs may write other lines.
    """
    last = _last(known, text)
    ended = last is not None and _ends_a_bar(last)
    if known.number is None or (known.sure and not ended):
        return known
    now = recognise(text[last.end() if last else 0 :], lines=FEW_LINES)
    if ended and not now.number:
        now = recognise(text)
    if now.number and now.number != known.number:
        return replace(now, changed=known.trainer if known.sure else "")
    return replace(known, number=None) if ended else known


def _last(known: Recognised, text: str) -> "re.Match[str] | None":
    matches = re.finditer(known.number.pattern, text, re.M) if known.number else ()
    return next(iter(deque(matches, maxlen=1)), None)


def _ends_a_bar(match: "re.Match[str]") -> bool:
    total = re.search(r"/([\d.]+[kMGT]?) \[$", match[0])
    return total is not None and scaled(match[1]) >= scaled(total[1])


def _found(text: str, head: str) -> Iterator[_Found]:
    covered: set[str] = set()
    for row in TRAINERS:
        if row.name in covered or not any(word in text for word in row.words):
            continue
        if row.needs and not re.search(row.needs, text, re.M) and not _in(row.needs, head):
            continue
        one = _lines(row, text)
        if one:
            covered.update(row.covers)
            yield one


def _in(pattern: str, head: str) -> bool:
    return bool(head) and re.search(pattern, head, re.M) is not None


def _lines(row: Trainer, text: str) -> _Found | None:
    """By the number that is found most often; a bar that stands still counts as well."""
    best: tuple[int, Number, int, int] | None = None
    for name, pattern in row.numbers.items():
        at = [match.start() for match in re.finditer(pattern, text, re.M)]
        if at and (best is None or len(at) > 2 * best[0]):
            best = (len(at), Number(name, _of_one_bar(pattern, text)), at[0], at[-1])
    if best:
        return _Found(row, best[1], best[2], best[3])
    mark = re.search(MARK, text) if row.name == "W&B" else None
    only = mark.start() if mark else text.find(row.words[0]) if row.tier == "library" else -1
    return _Found(row, None, only, only) if only >= 0 else None


def _of_one_bar(pattern: str, text: str) -> str:
    """Where a trainer's bar has no words before it, its total tells it from an evaluation's."""
    if pattern != BARE_BAR:
        return pattern
    bare = [bar for bar in find_bars(text) if not bar.description]
    main = training_bar(bare) or max(bare, key=lambda bar: scaled(bar.total), default=None)
    return main.pattern if main else pattern


def _of_bars(known: Recognised, text: str, lines: int) -> Recognised:
    """The bar that counts steps, else a number in other lines, else whichever bar goes on."""
    bars = find_bars(text)
    if bar := training_bar(bars):
        return replace(known, number=Number("count", bar.pattern))
    looked = _looked_for(replace(known, number=None), without_bars(text), lines)
    going_on = any(not bar.finished for bar in bars)
    return looked if looked.number or not going_on else known


def _mixed(order: list[_Found]) -> bool:
    """Whether the lines of two loops lie between each other's."""
    return len(order) > 1 and order[0].first < order[1].last


def _names(first: _Found, found: Iterable[_Found], around: str) -> Iterator[str]:
    told = first.row.name
    for pattern, name in first.row.variants.items():
        told = name if re.search(pattern, around, re.M) else told
    yield told
    yield from (
        one.row.name
        for one in found
        if one.row is not first.row and one.row.tier != "trainer" and one.row.name != "tqdm"
    )


def _what_else(known: Recognised, text: str, row: Trainer | None) -> Recognised:
    norms = r"(?i)\b(?:grad(?:ient)?[ _/]?norm|gnorm|total_grad_norm)\b"
    seconds = row.seconds[0] if row and row.seconds else ""
    own = (
        rf"(?<![\w/]){re.escape(row.norm)}['\"]?\s*[:= ]\s*['\"]?[-+\dni]"
        if row and row.norm
        else norms
    )
    return replace(
        known,
        loss=tells_loss(text),
        norm=re.search(own, text) is not None or re.search(norms, text) is not None,
        seconds=bool(seconds) and re.search(seconds, text) is not None,
    )


def _looked_for(known: Recognised, text: str, lines: int) -> Recognised:
    sure, offered = advancing(text, lines)
    numbers = tuple(Number(name, pattern) for name, pattern in offered)
    return replace(known, number=numbers[0] if sure else None, offered=numbers)


# A number that advances in a log of any shape, found by looking. Pure.
#
# Lines that differ in nothing but their numbers have one shape. In a shape that comes several
# times, a whole number that only ever grows may be the progress; it is where a word for it stands
# before it. A count of every epoch begins anew now and then.


LOOKED_AT = 2**17
"""Characters of the end that are looked at."""

LONGEST = 1000
"""Characters of a line."""

MAX_BEFORE = 40
"""Characters before a number that say what it counts."""

RUN = 4
"""Times that a number grows for each time it begins anew, on average."""

_NUMBER = re.compile(
    r"(?:(?<![\w.:/-])|(?<=[^\W\d]:)|(?<=[^\W\d]['\"]:))\d{1,15}(?![\w:.-]{0,40}\d|[\w-])"
)
_DIGITS = re.compile(r"\d[\d.,:e+-]*")
_WORD = re.compile(r"(?<![\w-])([^\W\d_][^\W\d]*)['\"]?[ =:\[(|#]{0,8}$")
_PROGRESS = re.compile(
    r"(?i)(?!(?:skip|nan|eval|val|test|warm|bad|max|overflow|lost|fail|retr))(?:\w{1,24}_)?"
    r"(?:steps?|iter|iters|iterations?|it|updates?|batch|epoch|samples?|tokens?|round|episode|trial)"
)


def advancing(text: str, lines: int = LINES) -> tuple[bool, list[tuple[str, str]]]:
    """Numbers that only ever grow, as (name, pattern), the likeliest first, and whether the first
    is beyond doubt: a word for progress stands before it, and before no other one."""
    found: dict[tuple[str, str], int] = {}
    beside: set[tuple[str, str]] = set()
    for shape in _shapes(text[-LOOKED_AT:], lines):
        for word, name, pattern in _growing(shape, lines):
            found[name, pattern] = found.get((name, pattern), 0) + len(shape)
            beside |= {(name, pattern)} if NO_TRAINING.search(word[-MAX_BEFORE:]) else set()
    clear = [
        one
        for one in found
        if _PROGRESS.fullmatch(one[0]) and one not in beside and _still(one[1], text)
    ]
    finest = _finest(clear, text)
    rest = sorted((one for one in found if one not in finest), key=lambda one: -found[one])
    return len(finest) == 1, [*finest, *rest][:3]


def _shapes(text: str, least: int) -> Iterator[list[str]]:
    shapes: dict[str, list[str]] = {}
    for line in text.splitlines()[1:]:
        if len(line) <= LONGEST and any(c.isdigit() for c in line):
            shapes.setdefault(_DIGITS.sub("0", line), []).append(line)
    yield from (lines for lines in shapes.values() if len(lines) >= least)


def _growing(lines: list[str], least: int) -> Iterator[tuple[str, str, str]]:
    """The text before each number that grows, the word before it, and a pattern for it."""
    rows = [[*_NUMBER.finditer(line)] for line in lines]
    if len({len(row) for row in rows}) != 1:
        return
    for column in zip(*rows, strict=True):
        values = [int(match[0]) for match in column]
        word = _WORD.search(column[0].string[: column[0].start()])
        if word and _grows(values) and len({*values}) >= least:
            yield word.string[: word.start()], word[1], _pattern(word)


def _grows(values: Sequence[float]) -> bool:
    """Whether they only ever grow, or fall back to where they began after several steps."""
    steps = [b - a for a, b in pairwise(values)]
    ups = sum(step > 0 for step in steps)
    falls = [b for a, b in pairwise(values) if b < a]
    near = min(values, default=0) + max((step for step in steps if step > 0), default=0)
    return len(falls) * RUN <= ups and all(value <= near for value in falls)


def _pattern(word: "re.Match[str]") -> str:
    between = r"\s*".join(["", *map(re.escape, word[0][len(word[1]) :].strip()), ""])
    return rf"(?<![\w-]){word[1]}{between}(\d+(?:\.\d+)?(?:[{''.join(SCALES)}](?!\w))?)"


def _still(pattern: str, text: str) -> bool:
    """Whether all that the pattern finds in the text grows, whatever line it is in."""
    return _grows([scaled(value) for value in re.findall(pattern, text[-LOOKED_AT:])])


def _finest(clear: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """Of several on the same lines (epoch, step, samples) the first that moves with every line."""
    moves = {one: len({*re.findall(one[1], text[-LOOKED_AT:])}) for one in clear}
    most = max(moves.values(), default=0)
    lively = [one for one in clear if moves[one] >= 0.9 * most]
    together = {len(re.findall(one[1], text[-LOOKED_AT:])) for one in lively}
    return lively[:1] if len(together) == 1 else lively
