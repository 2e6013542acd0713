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
    NO_TRAINING_PATTERN,
    SCALE_FACTORS,
    find_bars,
    find_training_bar,
    parse_scaled_number,
    remove_bars,
)
from sentinel.checks.log.language_trainers import BARE_BAR_REGEX, Trainer
from sentinel.checks.log.losses import has_loss
from sentinel.checks.log.trainers import TRAINERS

MAX_RECOGNISED_CHARS = 2**19
"""Characters that are looked at: the newest of a text, and as many of the log's beginning."""

NEWEST_CHARS = 2**17
"""Characters of its end in which it is looked for what its lines tell."""

LINES, FEW_LINES = 5, 2
"""Of one shape, before a number is found by looking; and where the number before it has ended."""

WANDB_MARK_PATTERN = re.compile(
    r"^wandb: (?:Tracking run|Currently logged in|Syncing run|Run |🚀|⭐|View )", re.M
)


class AdvancingNumber(Struct, frozen=True):
    """A number that advances: what people call it, and a pattern whose group captures it."""

    name: str
    pattern: str


class LogRecognition(Struct, frozen=True, kw_only=True):
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
    number: AdvancingNumber | None = None
    offered: tuple[AdvancingNumber, ...] = ()
    changed: str = ""
    mixed: tuple[str, ...] = ()
    loss: bool = False
    norm: bool = False
    seconds: bool = False
    size: int = 0
    last: int = 0

    @property
    def is_trainer_number(self) -> bool:
        """Whether the number is one of a trainer's own lines: no bar, and not found by looking."""
        return (
            self.number is not None
            and self.first_trainer not in ("", "tqdm")
            and not self._is_found_by_search
        )

    @property
    def first_trainer(self) -> str:
        """The first name, or empty."""
        return self.trainers[0] if self.trainers else ""

    @property
    def missing_values(self) -> tuple[str, ...]:
        """What cannot be seen in this log, for people."""
        lacking = {
            "no number that advances": self.number,
            "no loss": self.loss,
            "no gradient norm": self.norm,
            "no step time": self.seconds,
        }
        return tuple(words for words, there in lacking.items() if not there)

    @property
    def summary_text(self) -> str:
        """One sentence: `log of Megatron-LM, iteration advances; no gradient norm in it`."""
        who = " and ".join(self.trainers)
        told = f"log of {who}" if who else "log of an unknown trainer"
        if self.mixed:
            told += f", where {' and '.join(self.mixed)} write at once"
        if self.changed:
            told += f", before that of {self.changed}"
        if self.number:
            found = "" if self.trainers and not self._is_found_by_search else " (found by looking)"
            told += f", {self.number.name} advances{found}"
        elif self.offered:
            told += f"; {self.offered[0].name} may advance: `progress: '{self.offered[0].pattern}'`"
        lacks = [
            words
            for words in self.missing_values
            if self.number or words != "no number that advances"
        ]
        return f"{told}; {', '.join(lacks)} in it" if lacks else told

    @property
    def _is_found_by_search(self) -> bool:
        return self.number in self.offered


class _TrainerMatch(Struct):
    """A row whose lines are there: from where to where, and by which of its numbers."""

    row: Trainer
    number: AdvancingNumber | None
    first: int
    last: int


def recognise_log(text: str, head: str = "", lines: int = LINES) -> LogRecognition:
    """What wrote this text, `head` being the beginning of the log where the text is its end.
    `lines`: how many of one shape it takes to find a number by looking.

    Both are text as `core.logtext.decode_log` gives it. Never raises; for a text that fits no row of
    the table `trainers` is empty, and `number` is one that was seen to advance, if only one was.
    """
    text, head = text[-MAX_RECOGNISED_CHARS:], head[:MAX_RECOGNISED_CHARS]
    found = [*_find_trainers(text, head)]
    loops = [one for one in found if one.row.tier == "trainer"]
    order = sorted(loops or found[:1], key=lambda one: one.last, reverse=True)
    mixed = _are_interleaved(order)
    first = order[0] if order else None
    known = LogRecognition(
        trainers=tuple(_list_trainer_names(first, found, f"{head}\n{text}")) if first else (),
        number=first.number if first and not mixed else None,
        changed=order[1].row.name if len(order) > 1 and not mixed else "",
        mixed=tuple(one.row.name for one in order) if mixed else (),
    )
    known = _detect_other_values(known, text[-NEWEST_CHARS:], first.row if first else None)
    if first and first.row.name == "tqdm" and find_bars(text):
        return _recognise_by_bars(known, text, lines)
    return known if known.number or mixed else _search_number(known, text, lines)


def follow_lines(known: LogRecognition | None, text: str, head: str = "") -> LogRecognition:
    """What a log is after these further lines of it: asked anew where they do not hold its number.

    A log that goes back and forth between two trainers is mixed, and stays it. A number is given up
    here for one of a trainer's own lines only: for others see `reconsider_number`.
    """
    if known is None or not text:
        return recognise_log(text, head) if text else known or LogRecognition()
    if known.mixed or (known.is_trainer_number and has_number(known, text)):
        return known
    now = recognise_log(text, head)
    if known.number and not (now.is_trainer_number and has_number(now, text)):
        return known
    if not now.number or now.number == known.number:
        return known if known.number or not now.trainers else now
    if now.first_trainer and now.first_trainer == known.changed:
        return replace(
            known, number=None, changed="", mixed=(known.first_trainer, now.first_trainer)
        )
    return replace(
        now,
        changed=known.first_trainer if known.first_trainer != now.first_trainer else known.changed,
    )


def has_number(known: LogRecognition, text: str) -> bool:
    """Whether the text tells its number, and is not the end of a bar."""
    last = _find_last_match(known, text)
    return last is not None and not _is_bar_end(last)


def reconsider_number(known: LogRecognition, text: str) -> LogRecognition:
    """What a log is whose number has not come for a while though it goes on, by its newest `text`.

    A bar that has reached its total is given up, whatever else there is. What was only found by
    looking, or is a bar, is given up for a number that advances since. A trainer's own number
    stays: a training that hangs may write other lines.
    """
    last = _find_last_match(known, text)
    ended = last is not None and _is_bar_end(last)
    if known.number is None or (known.is_trainer_number and not ended):
        return known
    now = recognise_log(text[last.end() if last else 0 :], lines=FEW_LINES)
    if ended and not now.number:
        now = recognise_log(text)
    if now.number and now.number != known.number:
        return replace(now, changed=known.first_trainer if known.is_trainer_number else "")
    return replace(known, number=None) if ended else known


def _find_last_match(known: LogRecognition, text: str) -> "re.Match[str] | None":
    matches = re.finditer(known.number.pattern, text, re.M) if known.number else ()
    return next(iter(deque(matches, maxlen=1)), None)


def _is_bar_end(match: "re.Match[str]") -> bool:
    total = re.search(r"/([\d.]+[kMGT]?) \[$", match[0])
    return total is not None and parse_scaled_number(match[1]) >= parse_scaled_number(total[1])


def _find_trainers(text: str, head: str) -> Iterator[_TrainerMatch]:
    covered: set[str] = set()
    for row in TRAINERS:
        if row.name in covered or not any(word in text for word in row.words):
            continue
        if row.needs and not re.search(row.needs, text, re.M) and not _has_match(row.needs, head):
            continue
        one = _match_trainer(row, text)
        if one:
            covered.update(row.covers)
            yield one


def _has_match(pattern: str, head: str) -> bool:
    return bool(head) and re.search(pattern, head, re.M) is not None


def _match_trainer(row: Trainer, text: str) -> _TrainerMatch | None:
    """By the number that is found most often; a bar that stands still counts as well."""
    best: tuple[int, AdvancingNumber, int, int] | None = None
    for name, pattern in row.numbers.items():
        at = [match.start() for match in re.finditer(pattern, text, re.M)]
        if at and (best is None or len(at) > 2 * best[0]):
            best = (len(at), AdvancingNumber(name, _pin_bar_pattern(pattern, text)), at[0], at[-1])
    if best:
        return _TrainerMatch(row, best[1], best[2], best[3])
    mark = re.search(WANDB_MARK_PATTERN, text) if row.name == "W&B" else None
    only = mark.start() if mark else text.find(row.words[0]) if row.tier == "library" else -1
    return _TrainerMatch(row, None, only, only) if only >= 0 else None


def _pin_bar_pattern(pattern: str, text: str) -> str:
    """Where a trainer's bar has no words before it, its total tells it from an evaluation's."""
    if pattern != BARE_BAR_REGEX:
        return pattern
    bare = [bar for bar in find_bars(text) if not bar.description]
    main = find_training_bar(bare) or max(
        bare, key=lambda bar: parse_scaled_number(bar.total), default=None
    )
    return main.count_pattern if main else pattern


def _recognise_by_bars(known: LogRecognition, text: str, lines: int) -> LogRecognition:
    """The bar that counts steps, else a number in other lines, else whichever bar goes on."""
    bars = find_bars(text)
    if bar := find_training_bar(bars):
        return replace(known, number=AdvancingNumber("count", bar.count_pattern))
    looked = _search_number(replace(known, number=None), remove_bars(text), lines)
    going_on = any(not bar.is_finished for bar in bars)
    return looked if looked.number or not going_on else known


def _are_interleaved(order: list[_TrainerMatch]) -> bool:
    """Whether the lines of two loops lie between each other's."""
    return len(order) > 1 and order[0].first < order[1].last


def _list_trainer_names(
    first: _TrainerMatch, found: Iterable[_TrainerMatch], around: str
) -> Iterator[str]:
    told = first.row.name
    for pattern, name in first.row.variants.items():
        told = name if re.search(pattern, around, re.M) else told
    yield told
    yield from (
        one.row.name
        for one in found
        if one.row is not first.row and one.row.tier != "trainer" and one.row.name != "tqdm"
    )


def _detect_other_values(known: LogRecognition, text: str, row: Trainer | None) -> LogRecognition:
    norms = r"(?i)\b(?:grad(?:ient)?[ _/]?norm|gnorm|total_grad_norm)\b"
    seconds = row.seconds[0] if row and row.seconds else ""
    own = (
        rf"(?<![\w/]){re.escape(row.norm)}['\"]?\s*[:= ]\s*['\"]?[-+\dni]"
        if row and row.norm
        else norms
    )
    return replace(
        known,
        loss=has_loss(text),
        norm=re.search(own, text) is not None or re.search(norms, text) is not None,
        seconds=bool(seconds) and re.search(seconds, text) is not None,
    )


def _search_number(known: LogRecognition, text: str, lines: int) -> LogRecognition:
    sure, offered = find_advancing_numbers(text, lines)
    numbers = tuple(AdvancingNumber(name, pattern) for name, pattern in offered)
    return replace(known, number=numbers[0] if sure else None, offered=numbers)


# A number that advances in a log of any shape, found by looking. Pure.
#
# Lines that differ in nothing but their numbers have one shape. In a shape that comes several
# times, a whole number that only ever grows may be the progress; it is where a word for it stands
# before it. A count of every epoch begins anew now and then.


MAX_SEARCHED_CHARS = 2**17
"""Characters of the end that are looked at."""

MAX_SHAPE_LINE_CHARS = 1000
"""Characters of a line."""

MAX_CHARS_BEFORE = 40
"""Characters before a number that say what it counts."""

MIN_STEPS_PER_RESTART = 4
"""Times that a number grows for each time it begins anew, on average."""

_NUMBER_PATTERN = re.compile(
    r"(?:(?<![\w.:/-])|(?<=[^\W\d]:)|(?<=[^\W\d]['\"]:))\d{1,15}(?![\w:.-]{0,40}\d|[\w-])"
)
_DIGITS_PATTERN = re.compile(r"\d[\d.,:e+-]*")
_WORD_PATTERN = re.compile(r"(?<![\w-])([^\W\d_][^\W\d]*)['\"]?[ =:\[(|#]{0,8}$")
_PROGRESS_WORD_PATTERN = re.compile(
    r"(?i)(?!(?:skip|nan|eval|val|test|warm|bad|max|overflow|lost|fail|retr))(?:\w{1,24}_)?"
    r"(?:steps?|iter|iters|iterations?|it|updates?|batch|epoch|samples?|tokens?|round|episode|trial)"
)


def find_advancing_numbers(text: str, lines: int = LINES) -> tuple[bool, list[tuple[str, str]]]:
    """Numbers that only ever grow, as (name, pattern), the likeliest first, and whether the first
    is beyond doubt: a word for progress stands before it, and before no other one."""
    found: dict[tuple[str, str], int] = {}
    beside: set[tuple[str, str]] = set()
    for shape in _group_by_shape(text[-MAX_SEARCHED_CHARS:], lines):
        for word, name, pattern in _find_growing_columns(shape, lines):
            found[name, pattern] = found.get((name, pattern), 0) + len(shape)
            beside |= (
                {(name, pattern)} if NO_TRAINING_PATTERN.search(word[-MAX_CHARS_BEFORE:]) else set()
            )
    clear = [
        one
        for one in found
        if _PROGRESS_WORD_PATTERN.fullmatch(one[0])
        and one not in beside
        and _is_growing_throughout(one[1], text)
    ]
    finest = _select_finest(clear, text)
    rest = sorted((one for one in found if one not in finest), key=lambda one: -found[one])
    return len(finest) == 1, [*finest, *rest][:3]


def _group_by_shape(text: str, least: int) -> Iterator[list[str]]:
    shapes: dict[str, list[str]] = {}
    for line in text.splitlines()[1:]:
        if len(line) <= MAX_SHAPE_LINE_CHARS and any(c.isdigit() for c in line):
            shapes.setdefault(_DIGITS_PATTERN.sub("0", line), []).append(line)
    yield from (lines for lines in shapes.values() if len(lines) >= least)


def _find_growing_columns(lines: list[str], least: int) -> Iterator[tuple[str, str, str]]:
    """The text before each number that grows, the word before it, and a pattern for it."""
    rows = [[*_NUMBER_PATTERN.finditer(line)] for line in lines]
    if len({len(row) for row in rows}) != 1:
        return
    for column in zip(*rows, strict=True):
        values = [int(match[0]) for match in column]
        word = _WORD_PATTERN.search(column[0].string[: column[0].start()])
        if word and _is_growing(values) and len({*values}) >= least:
            yield word.string[: word.start()], word[1], _make_number_pattern(word)


def _is_growing(values: Sequence[float]) -> bool:
    """Whether they only ever grow, or fall back to where they began after several steps."""
    steps = [b - a for a, b in pairwise(values)]
    ups = sum(step > 0 for step in steps)
    falls = [b for a, b in pairwise(values) if b < a]
    near = min(values, default=0) + max((step for step in steps if step > 0), default=0)
    return len(falls) * MIN_STEPS_PER_RESTART <= ups and all(value <= near for value in falls)


def _make_number_pattern(word: "re.Match[str]") -> str:
    between = r"\s*".join(["", *map(re.escape, word[0][len(word[1]) :].strip()), ""])
    return rf"(?<![\w-]){word[1]}{between}(\d+(?:\.\d+)?(?:[{''.join(SCALE_FACTORS)}](?!\w))?)"


def _is_growing_throughout(pattern: str, text: str) -> bool:
    """Whether all that the pattern finds in the text grows, whatever line it is in."""
    return _is_growing(
        [parse_scaled_number(value) for value in re.findall(pattern, text[-MAX_SEARCHED_CHARS:])]
    )


def _select_finest(clear: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """Of several on the same lines (epoch, step, samples) the first that moves with every line."""
    moves = {one: len({*re.findall(one[1], text[-MAX_SEARCHED_CHARS:])}) for one in clear}
    most = max(moves.values(), default=0)
    lively = [one for one in clear if moves[one] >= 0.9 * most]
    together = {len(re.findall(one[1], text[-MAX_SEARCHED_CHARS:])) for one in lively}
    return lively[:1] if len(together) == 1 else lively
