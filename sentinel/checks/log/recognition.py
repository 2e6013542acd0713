"""Finds out which trainer wrote a log, and which number in it advances. Pure.

A line counts only if its shape belongs to one trainer alone. In the log of an unknown trainer a
number is searched for. It is used only if there is exactly one.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.advancing_numbers import (
    FEW_LINES,
    LINES,
    MAX_SEARCHED_CHARS,
    find_advancing_numbers,
)
from sentinel.checks.log.bars import (
    find_bars,
    find_training_bar,
    parse_scaled_number,
    remove_bars,
)
from sentinel.checks.log.losses import has_loss
from sentinel.checks.log.progress_words import PROGRESS_WORD_PATTERN
from sentinel.checks.log.trainer_row import BARE_BAR_REGEX, Trainer
from sentinel.checks.log.trainers import TRAINERS

MAX_RECOGNISED_CHARS = 2**19
"""How many characters are searched: the newest, and as many at the log's beginning."""

MIN_PART_CHARS = 500
"""The smallest part of a log's end that is searched alone, in characters."""

NEWEST_CHARS = 2**17
"""How many characters at the end of a log show what its lines contain."""


WANDB_MARK_PATTERN = re.compile(
    r"^wandb: (?:Tracking run|Currently logged in|Syncing run|Run |🚀|⭐|View )", re.M
)


class AdvancingNumber(Struct, frozen=True):
    """A number that advances."""

    name: str  # Its name for people.
    pattern: str  # Pattern whose group captures it.


class LogRecognition(Struct, frozen=True, kw_only=True):
    """What is known about a log's format.

    trainers: Who wrote it. First the one that trains, then libraries and bars. Empty if it is not
        known.
    number: The number that advances, if it is certain.
    offered: Numbers that may advance, for people to choose from. sentinel does not rely on them.
    changed: The trainer that wrote the lines before.
    mixed: Two training loops write at once, so no single number shows the progress.
    loss, norm, seconds: Whether its lines contain the loss, a gradient norm, the time of a step.
    size: Bytes of the file when this was found out.
    last: Bytes of the file when the number was last found.
    """

    trainers: tuple[str, ...] = ()
    number: AdvancingNumber | None = None
    offered: tuple[AdvancingNumber, ...] = ()
    changed: str = ""
    mixed: tuple[str, ...] = ()
    loss: bool = False
    norm: bool = False  # Whether its lines contain a gradient norm.
    seconds: bool = False  # Whether its lines contain the time of a step.
    size: int = 0
    last: int = 0

    @property
    def is_trainer_number(self) -> bool:
        """Whether the number is in a trainer's own lines. It is then no bar, and was not found by
        search."""
        return (
            self.number is not None
            and self.first_trainer not in ("", "tqdm")
            and not self._is_found_by_search
        )

    @property
    def first_trainer(self) -> str:
        """The first trainer's name. Empty if there is none."""
        return self.trainers[0] if self.trainers else ""

    @property
    def missing_values(self) -> tuple[str, ...]:
        """The values that this log lacks, in words for people."""
        lacking = {
            "no number that advances": self.number,
            "no loss": self.loss,
            "no gradient norm": self.norm,
            "no step time": self.seconds,
        }
        return tuple(words for words, there in lacking.items() if not there)

    @property
    def summary_text(self) -> str:
        """For example `log of Megatron-LM, its progress is iteration; no gradient norm in it`."""
        who = " and ".join(self.trainers)
        told = f"log of {who}" if who else "log of an unknown trainer"
        if self.mixed:
            told += f", where {' and '.join(self.mixed)} write at once"
        if self.changed:
            told += f", before that of {self.changed}"
        if self.number:
            found = "" if self.trainers and not self._is_found_by_search else " (found by looking)"
            told += f", its progress is {self.number.name}{found}"
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
    """A row of the table whose lines are in the log: their positions, and the number that was
    found."""

    row: Trainer  # The trainer.
    number: AdvancingNumber | None  # The number that was found.
    first: int  # Where its first line begins.
    last: int  # Where its last line begins.


def recognise_log(text: str, head: str = "", lines: int = LINES) -> LogRecognition:
    """Find out what wrote this text.

    If the text is the end of a log, `head` is its beginning. `lines` is how many lines of one shape
    are needed to find a number. Both texts are as `core.logtext.decode_log` returns them. Never
    raises. If the text fits no row of the table, `trainers` is empty. Then `number` is set only if
    exactly one number was seen to advance.
    """
    text, head = text[-MAX_RECOGNISED_CHARS:], head[:MAX_RECOGNISED_CHARS]
    found = [*_find_trainers(text, head)]
    loops = [one for one in found if one.row.tier == "trainer"]
    order = sorted(loops or found[:1], key=lambda one: one.last, reverse=True)
    mixed = len(order) > 1 and order[0].first < order[1].last  # their lines are interleaved
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
    if known.number and not mixed:
        return _find_later_number(known, text, lines) or known
    return known if mixed else _search_number(known, text, lines, head)


def follow_lines(known: LogRecognition | None, text: str, head: str = "") -> LogRecognition:
    """What is known of a log after these further lines. The search is repeated if they do not
    contain its number.

    If a log changes back and forth between two trainers, it is mixed and stays so. A number is
    replaced here only by one in a trainer's own lines. For other numbers see `reconsider_number`.
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
    """Whether the text contains the log's number, and the last place that has it is not the end of
    a bar."""
    last = _find_last_match(known, text)
    return last is not None and not _is_bar_end(last)


def reconsider_number(known: LogRecognition, text: str) -> LogRecognition:
    """What is known of a log that goes on without its number, judged by its newest `text`.

    A bar that has reached its total is given up in any case. A number from a bar or a search is
    given up for a number that has advanced since. A trainer's own number stays, because a training
    that hangs may write other lines.
    """
    last = _find_last_match(known, text)
    ended = last is not None and _is_bar_end(last)
    if known.number is None or (known.is_trainer_number and not ended):
        return known
    now = recognise_log(text[last.end() if last else 0 :], lines=FEW_LINES)
    if ended and not now.number:
        now = recognise_log(text)
    if (
        now.number
        and now.number != known.number
        and (ended or _may_follow(now.number, known.number))
    ):
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
        if not any(re.search(row.needs, part, re.M) for part in (text, head)):
            continue
        one = _match_trainer(row, text)
        if one:
            covered.update(row.covers)
            yield one


def _match_trainer(row: Trainer, text: str) -> _TrainerMatch | None:
    """The lines of this trainer in the text. None if there are none.

    The number is the first of the row, unless a later one is found more than twice as often, or it is the
    same on all of many lines: only the end of each epoch is told. A bar that stands still counts too.
    """
    best: tuple[int, AdvancingNumber, int, int] | None = None
    restless = False
    for name, pattern in row.numbers.items():
        found = [(match.start(), match[1]) for match in re.finditer(pattern, text, re.M)]
        at = [start for start, _ in found]
        if at and (best is None or len(at) > 2 * best[0] or restless):
            best = (len(at), AdvancingNumber(name, _pin_bar_pattern(pattern, text)), at[0], at[-1])
            values = [parse_scaled_number(value) for _, value in found]
            restless = _begins_anew_at_once(values) or (len(at) >= LINES and len({*values}) == 1)
    if best:
        return _TrainerMatch(row, best[1], best[2], best[3])
    mark = re.search(WANDB_MARK_PATTERN, text) if row.name == "W&B" else None
    only = mark.start() if mark else text.find(row.words[0]) if row.tier == "library" else -1
    return _TrainerMatch(row, None, only, only) if only >= 0 else None


def _begins_anew_at_once(values: Sequence[float]) -> bool:
    """Whether they fall about as often as they grow: an epoch of few steps, each of which tells two."""
    steps = [b - a for a, b in pairwise(values)]
    falls, ups = sum(step < 0 for step in steps), sum(step > 0 for step in steps)
    return falls > 2 and ups < 2 * falls


def _pin_bar_pattern(pattern: str, text: str) -> str:
    """The bar's pattern with its total. If no words stand before the bar, the total distinguishes
    it from an evaluation's bar."""
    if pattern != BARE_BAR_REGEX:
        return pattern
    bare = [bar for bar in find_bars(text) if not bar.description]
    main = find_training_bar(bare) or max(
        bare, key=lambda bar: parse_scaled_number(bar.total), default=None
    )
    return main.count_pattern if main else pattern


def _recognise_by_bars(known: LogRecognition, text: str, lines: int) -> LogRecognition:
    """Use the bar that counts steps. If there is none, use a number in other lines, or any bar that
    goes on."""
    bars = find_bars(text)
    bar = find_training_bar(bars)
    counted = replace(known, number=AdvancingNumber("count", bar.count_pattern)) if bar else None
    if bar and counted and not bar.transfers and not bar.tells_only_ends:
        return counted
    looked = _search_number(replace(known, number=None), remove_bars(text), lines)
    going_on = any(not bar.is_finished for bar in bars)
    copied = bar is not None and bar.transfers and bar.is_finished
    if looked.number or copied or not (counted or going_on):
        return looked
    return counted or known


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


def _find_later_number(known: LogRecognition, text: str, lines: int) -> LogRecognition | None:
    """The number of another training behind one that is over: the last line of the first tells its total."""
    last = _find_last_match(known, text)
    total = re.search(r"(?<![\w.])(\d+)/(\d+)$", last[0]) if last else None
    if last is None or total is None or total[1] != total[2]:
        return None
    later = _search_number(replace(known, number=None), text[last.end() :], lines)
    named = later.number and _has_word((later.number.name, later.number.pattern))
    return later if named else None


def _may_follow(newer: AdvancingNumber, known: AdvancingNumber) -> bool:
    """Whether this number may take the place of that one: beside a training that hangs, memory may fill."""
    return not _has_word((known.name, known.pattern)) or _has_word((newer.name, newer.pattern))


def _has_word(number: tuple[str, str]) -> bool:
    """Whether the text has a word for progress at this number, not only a place in a row."""
    name, pattern = number
    return PROGRESS_WORD_PATTERN.fullmatch(name) is not None and not pattern.startswith("^")


def _search_number(known: LogRecognition, text: str, lines: int, head: str = "") -> LogRecognition:
    """Search the whole text, and if nothing in it is certain, ever smaller parts of its end: a log may hold several
    runs, or an evaluation between two parts of a training. There only a word for progress counts."""
    sure, offered = find_advancing_numbers(text, lines, head)
    size = min(len(text), MAX_SEARCHED_CHARS) // 2
    while not (sure and _has_word(offered[0])) and size >= MIN_PART_CHARS:
        part = text[text.find("\n", len(text) - size - 1) :]
        found, named = find_advancing_numbers(part, lines)
        if found and _has_word(named[0]):
            sure, offered = found, named
        size //= 2
    numbers = tuple(AdvancingNumber(name, pattern) for name, pattern in offered)
    return replace(known, number=numbers[0] if sure else None, offered=numbers)
