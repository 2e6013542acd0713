"""Losses and gradient norms in the text of a log, by the name that stands before each. Pure.

Every name counts for itself: a finite `val_loss` says nothing of the `loss` on the same line.
What Megatron says of a NaN otherwise is read too: it leaves the loss out of the line, and counts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice, pairwise
from math import inf, isfinite, nan

MAX_LOSS_NAMES = 32
"""Names that are told apart in one text; further ones are one."""

MAX_NAME_CHARS = 24
"""Characters before a value in which its name is looked for."""

MAX_HEADER_CHARS = 300
"""Characters of a line that names columns."""

MAX_TABLE_ROWS = 2000
"""Rows that are read below such a line."""

MAX_SKIP_GAP_LINES = 50
"""Lines without a skipped step after which the next one is not in a row with those before."""

OVERFLOWED_NAME = "overflowed steps"
AT_MINIMUM_NAME = "skipped at the least loss scale"
LEFT_OUT_NAME = "left out"
NAN_ITERATIONS_NAME = "nan iterations"
SKIPPED_NAME = "skipped iterations"
"""What is counted by Megatron, and what it does not print: megatron/training/training.py,
training_log prints a loss only where it is greater than 0, which NaN is not."""

TAIL_CHARS = 2**14
"""Characters of the end in which the values of now are looked for."""

OTHER_LOSS_WORDS = ("val", "test", "aux", "z_loss")
"""What is in the name of a loss that is not the one that is trained on: `val`, `eval`, `lm loss
value` (Megatron's evaluation), `aux_loss` and `z_loss` of a router."""

LossValue = tuple[int, str, float]
"""Where it stands, its name, and its value: NaN for an infinite one too."""

_SEPARATOR_REGEX = r"(?:['\"]?[ \t]{0,40}(?:[:=|│┃→]|[-=]>)\s{0,4}[ \t]{0,40}(?:[a-z]{1,12} (?=(?i:[-+]?(?:nan|inf)\b)))?|['\"], ['\"]value['\"]: |['\"]?[ \t]{1,40})"
_WRAPPED_REGEX = (
    r"(?:<tf\.Tensor: shape=[^\n]{0,60}?numpy=|Tensor\(shape=[^\n]{0,160}?(?:,|value=)\s{1,12}"
    r"|[\[(]{0,3}[A-Za-z_][\w.]{0,30}\((?:[a-z]{1,10}=)?)?[\[(]{0,3}['\"]?"
)
"""What stands around a number that is an object of a library: `np.float64(nan)` (NumPy 2),
`Array(nan, dtype=float32)` (JAX), `tensor([nan], device='cuda:0')`, TensorFlow's, Paddle's and
MindSpore's tensors, `Decimal('NaN')`."""
_NUMBER_REGEX = (
    r"([-+]?(?:[nN][aA][nN]|[iI][nN][fF](?:inity|INITY)?)(?:\((?:ind|snan|0x[0-9a-f]{1,16})\))?(?![a-zA-Z(])"
    r"|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?)"
)
_VALUE_REGEX = _SEPARATOR_REGEX + _WRAPPED_REGEX + _NUMBER_REGEX
# Each begins with plain letters: the search for them costs next to nothing.
_SETTING_REGEX = r"[/_](?!(?i:\w{0,40}(?:scal|weight|coef|alpha|lambda|factor|ratio|type|mode)))"
_LOSS_PATTERNS = (
    re.compile(
        rf"oss(?<=[lL]oss)(?:es)?((?:{_SETTING_REGEX}[\w/]{{1,80}}| train| value| is| ?[(\[][\w/ .@-]{{1,24}}[)\]])?)"
        + _VALUE_REGEX
    ),
    re.compile(rf"OSS(?<=LOSS)((?:{_SETTING_REGEX}[\w/]{{1,80}})?)" + _VALUE_REGEX),
    re.compile(r"xent()" + _VALUE_REGEX),
)
_NORM_PATTERNS = (
    re.compile(r"norm((?:/\w{1,40}){0,4})" + _VALUE_REGEX),
    re.compile(r"Norm((?:/\w{1,40}){0,4})" + _VALUE_REGEX),
    re.compile(r"grad(?<=  grad)()" + _VALUE_REGEX),
)
_OWN_BESIDE_PATTERN = re.compile(r"train_loss(?:_step)?[=:] ?[-+]?\d")
_BESIDE_CHARS = 640
"""A loss of the model's own behind Lightning's running one, which is NaN all along where a rank has none to
give, such as in pipelines (trainer/progress.py of PyTorch Lightning 1, `running_loss`; neuronx-nemo-megatron)."""

_UNNAMED_PATTERNS = (
    (" avg", re.compile(r"^ *\d+: ([-+\w.]+), [-+\w.]+ avg(?: loss)?, ", re.M)),
    (" train, step ", re.compile(r"\bep \d+ train, step \d+, ((?:[\w.:/-]+ [-+\w.]+, ){1,20})")),
    ("G  ", re.compile(r"^ *\d+/\d+ +[\d.]+G((?: +(?:-?[nN]a[nN]|[\d.]+)){4,}):? ", re.M)),
)
_COLUMN_GAP_PATTERN = re.compile(r"[ \t]*[|│┃,;\t][ \t]*|[ \t]{2,}")
_HEADER_PATTERN = re.compile(
    rf"^[^\n\d:=]{{0,{MAX_HEADER_CHARS}}}\b[a-z_]{{0,20}}loss\b[^\n\d:=]{{0,{MAX_HEADER_CHARS}}}$",
    re.M | re.I,
)
_RULER_PATTERN = re.compile(r"[-=+|│┃─━┼ \t:]*")
_SKIPPED_AT_SCALE_PATTERN = re.compile(
    r"(?i)overflow[^\n]{0,80}? loss scale:? (?:to )?(\d[\d.e+-]{0,20})(?:, reducing to (\d[\d.e+-]{0,20}))?"
)
"""`OVERFLOW! … Attempted loss scale: 1, reducing to 1` of deepspeed/runtime/fp16/loss_scaler.py;
`Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.5` of apex/amp/handle.py."""
_SKIPPED_PATTERN = re.compile(r"(?i)found overflow[,.]? skip(?:ping)? (?:this )?step")
"""ColossalAI, colossalai/zero/low_level/low_level_optim.py: it does not say at which scale."""
_NAME_END_CHARS = "|│┃,;:={}[]()'\"\t\n"
_COUNTED_PATTERN = re.compile(
    r"number of skipped iterations: +(\d{1,9}) \|(?: +number of nan iterations: +(\d{1,9}))?"
)
_LINE_LOSS_PATTERN = re.compile(r"loss[\w ]{0,30}: (?<!loss scale: )\S")


def find_losses(text: str, own: "re.Pattern[str] | None" = None) -> list[LossValue]:
    """What there is to say of them, in order: for each name its first value, each that is no
    finite number, and each first one that is finite again. `own` is a user's pattern: it counts
    alone, under the name `loss`.
    """
    if own:
        found = [
            (match.start(), "loss", _parse_loss_value(match[1] or ""))
            for match in own.finditer(text)
        ]
        return list(_filter_telling_losses(found))
    lines = [
        *_match_losses(_LOSS_PATTERNS, text),
        *_find_gradient_norms(text),
        *_find_megatron_counts(text),
        *_find_unnamed_losses(text),
    ]
    lines += [*_find_skipped_steps(text), *_find_table_losses(text)]
    return list(_filter_telling_losses(sorted(lines, key=lambda one: one[0])))


def find_last_values(found: "Iterable[LossValue]") -> list[tuple[LossValue, int]]:
    """Of each name all that `count_bad_losses` needs of a text: its last finite value, then the first of the
    values that are no number after it, and how many these are. A text holds any number of values;
    what is kept and counted later has to be little."""
    finite, bad = dict[str, LossValue](), dict[str, tuple[LossValue, int]]()
    for one in found:
        name, value = one[1:]
        if name not in finite and name not in bad and len({*finite, *bad}) >= 2 * MAX_LOSS_NAMES:
            continue
        if not _is_bad(name, value):
            finite[name] = one
            bad.pop(name, None)
            continue
        first, times = bad.get(name, ((one[0], name, 0.0 if name == SKIPPED_NAME else value), 0))
        if name == SKIPPED_NAME:  # of which the value is the number
            first = (first[0], name, first[2] + value)
        bad[name] = first, times + 1
    told = [*((one, 1) for one in finite.values()), *bad.values()]
    return sorted(told, key=lambda each: each[0][0])


def has_loss(text: str) -> bool:
    """Whether a loss of any name stands in it, with its value."""
    return any(pattern.search(text) for pattern in _LOSS_PATTERNS)


MIN_LOST_TIMES = 3
"""Values in a row that are no number, after which a training is broken."""


def find_lost_line(text: str) -> str:
    """The line on which a loss was no number for the first time, where it stayed so; else empty."""
    first: dict[str, int] = {}
    bad: dict[str, int] = {}
    for at, name, value in find_losses(text):
        bad = count_bad_losses(bad, name, value)
        first = {**first, name: first.get(name, at)} if bad.get(name) else {**first}
        if not bad.get(name):
            first.pop(name, None)
    lost = [at for name, at in first.items() if bad.get(name, 0) >= MIN_LOST_TIMES]
    if not lost:
        return ""
    begin = text.rfind("\n", 0, min(lost)) + 1
    return text[begin:].partition("\n")[0].strip()[:MAX_HEADER_CHARS]


def find_latest_values(text: str, own: "re.Pattern[str] | None" = None) -> dict[str, float]:
    """The `loss` and `grad_norm` that the text told last, where it tells any, for a curve; finite
    ones only. Of several losses the one that is told most often, of those the first."""
    tail = text[-TAIL_CHARS:]
    mine = (
        [("loss", _parse_loss_value(match[1] or "")) for match in own.finditer(tail)]
        if own
        else None
    )
    told = {
        "loss": _find_named_values(_LOSS_PATTERNS, tail) if mine is None else mine,
        "grad_norm": _find_named_values(_NORM_PATTERNS, tail, gradients=True),
    }
    return {
        name: value for name, seen in told.items() for _, value in _select_usual_values(seen)[-1:]
    }


def list_loss_values(text: str, own: "re.Pattern[str] | None" = None) -> list[tuple[str, float]]:
    """Every finite value of the loss that is trained on, in order, with its name."""
    mine = (
        [("loss", _parse_loss_value(match[1] or "")) for match in own.finditer(text)]
        if own
        else None
    )
    return _select_usual_values(_find_named_values(_LOSS_PATTERNS, text) if mine is None else mine)


def _find_named_values(
    patterns: "tuple[re.Pattern[str], ...]", text: str, *, gradients: bool = False
) -> list[tuple[str, float]]:
    """Every value with its name, in order."""
    found = sorted(
        (match.start(), _find_loss_name(text, match), _parse_loss_value(match[2]))
        for pattern in patterns
        for match in pattern.finditer(text)
        if not gradients or _is_gradient_norm(text, match.start())
    )
    return [(name, value) for _, name, value in found]


def _select_usual_values(told: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The values of the name that is there most often."""
    fit = [
        (n, v) for n, v in told if isfinite(v) and not any(w in n.lower() for w in OTHER_LOSS_WORDS)
    ]
    counts = Counter(name for name, _ in fit)  # of equal counts the first comes first
    chosen = counts.most_common(1)
    return [(name, value) for name, value in fit if name == chosen[0][0]] if chosen else []


def count_bad_losses(
    bad: Mapping[str, int], name: str, value: float, times: int = 1
) -> dict[str, int]:
    """How many times in a row each name was no number, after so many more; 0 where it is one. A loss
    is only left out where it was seen before, and skipped iterations are counted themselves. Where
    there are many names, one that is finite makes room for one that is not."""
    each = int(value) if name == SKIPPED_NAME else times
    times = each if _is_bad(name, value) else 0
    if name not in bad:
        if (name == LEFT_OUT_NAME and value) or (
            name in (AT_MINIMUM_NAME, OVERFLOWED_NAME) and not value
        ):
            return {**bad}
        room = [n for n, count in bad.items() if not count] if len(bad) >= MAX_LOSS_NAMES else []
        if len(bad) >= MAX_LOSS_NAMES and not (times and room):
            return {**bad}
        bad = {n: count for n, count in bad.items() if n not in room[:1]}
    return {**bad, name: bad.get(name, 0) + times if times else 0}


def _is_bad(name: str, value: float) -> bool:
    counts = (SKIPPED_NAME, NAN_ITERATIONS_NAME, LEFT_OUT_NAME, AT_MINIMUM_NAME, OVERFLOWED_NAME)
    return not isfinite(value) or (name in counts and value > 0)


def _filter_telling_losses(found: list[LossValue]) -> Iterator[LossValue]:
    """Of a name that stays finite nothing more is to be said."""
    state: dict[str, bool] = {}
    for at, name, value in found:
        bad = _is_bad(name, value)
        if bad or state.get(name, len(state) < MAX_LOSS_NAMES):
            yield at, name, value
        state[name] = bad


def _match_losses(patterns: "tuple[re.Pattern[str], ...]", text: str) -> Iterator[LossValue]:
    """All that is no number, and of what is one the first of those that look alike."""
    for pattern in patterns:
        alike = set[str]()
        for match in pattern.finditer(text):
            at = match.start()
            form = text[max(0, at - 8) : match.end(1)]
            if match[2].lstrip("+-")[:1].isdigit():
                if form in alike:
                    continue
                alike.add(form)
            elif _has_own_beside(text, match.end()) and _find_loss_name(text, match) == "loss":
                continue
            else:
                alike.clear()
            yield at, _find_loss_name(text, match), _parse_loss_value(match[2])


def _has_own_beside(text: str, at: int) -> bool:
    """Whether the rest of the line tells a model's own loss."""
    rest = text[at : at + _BESIDE_CHARS]
    return "train_loss" in rest and _OWN_BESIDE_PATTERN.search(rest.partition("\n")[0]) is not None


def _find_gradient_norms(text: str) -> Iterator[LossValue]:
    """An infinite one is usual: a scaled gradient that overflowed is skipped."""
    for at, name, value in _match_losses(_NORM_PATTERNS, text):
        if _is_gradient_norm(text, at):
            yield at, name, 0.0 if value in (inf, -inf) else value


def _is_gradient_norm(text: str, at: int) -> bool:
    """Whether the norm that is told there is one of gradients."""
    before = text[max(0, at - 6) : at]
    if text.endswith(("max_grad_", "clip_grad_"), max(0, at - 10), at):  # a setting
        return False
    return "rad" in before or before[-1:] == "g" or before[-2:] == "| " or text[at] == "g"


def _find_megatron_counts(text: str) -> Iterator[LossValue]:
    """A line of Megatron: iterations skipped, iterations with a NaN, and a loss that is not there."""
    if "number of skipped iterations" not in text:
        return
    for match in _COUNTED_PATTERN.finditer(text):
        at, skipped, nans = match.start(), int(match[1]), int(match[2] or 0)
        line = text[text.rfind("\n", max(0, at - 2000), at) + 1 : at]
        there = _LINE_LOSS_PATTERN.search(line) is not None
        yield at, SKIPPED_NAME, 0.0 if there else float(skipped)
        yield at, NAN_ITERATIONS_NAME, float(nans)
        if not skipped and not nans:
            yield at, LEFT_OUT_NAME, 0.0 if there else 1.0


def _find_skipped_steps(text: str) -> Iterator[LossValue]:
    """Steps that are skipped although there is no smaller loss scale left: nothing is learned. One
    now and then is none, so a stretch of lines without any is told as 0."""
    there = "verflow" in text or "OVERF" in text
    for pattern, name in (
        (_SKIPPED_AT_SCALE_PATTERN, AT_MINIMUM_NAME),
        (_SKIPPED_PATTERN, OVERFLOWED_NAME),
    ):
        end = 0
        for match in pattern.finditer(text) if there else ():
            if text.count("\n", end, match.start()) >= MAX_SKIP_GAP_LINES:
                yield match.start(), name, 0.0
            yield match.start(), name, float(name == OVERFLOWED_NAME or _is_least_scale(match))
            end = match.end()
        if text.count("\n", end) >= MAX_SKIP_GAP_LINES:
            yield len(text), name, 0.0


def _is_least_scale(match: "re.Match[str]") -> bool:
    attempted, reduced = _parse_loss_value(match[1]), _parse_loss_value(match[2] or match[1])
    return reduced <= 1 or (match[2] is not None and attempted == reduced)


def _find_table_losses(text: str) -> Iterator[LossValue]:
    """Values below a line that names columns, as fastai and CSV files have them. A table ends where
    the next one begins: no line is read twice, whatever names stand in it."""
    headers = _HEADER_PATTERN.finditer(text) if "oss" in text else iter(())
    for header, following in pairwise(chain(headers, [None])):
        names = (
            _split_columns(header[0]) if header and _COLUMN_GAP_PATTERN.search(header[0]) else []
        )
        if header and len(names) > 1:
            begin, end = header.end() + 1, following.start() if following else len(text)
            yield from _parse_table_rows(text[begin:end], begin, names)


def _parse_table_rows(text: str, begin: int, names: "list[str]") -> Iterator[LossValue]:
    """The losses of the table that this text begins with; the text stands at `begin`."""
    wanted = [number for number, name in enumerate(names) if "loss" in name.lower()]
    for line in islice(_iterate_lines(text), MAX_TABLE_ROWS):
        cells = _split_columns(line)
        if len(cells) == len(names):
            found = [(names[n], _parse_cell(cells[n])) for n in wanted]
            yield from ((begin, name, value) for name, value in found if value is not None)
        elif not _RULER_PATTERN.fullmatch(line[:MAX_HEADER_CHARS]):
            return
        begin += len(line) + 1


def _iterate_lines(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        yield text[at:end]
        at = end + 1


def _split_columns(line: str) -> "list[str]":
    return _COLUMN_GAP_PATTERN.split(line.strip(" \t|│┃"))


def _parse_cell(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _find_unnamed_losses(text: str) -> Iterator[LossValue]:
    """Losses whose name stands in a header of columns (YOLO: the first of them, or whichever is NaN), after
    them (darknet), or is anything (RETURNN)."""
    for mark, pattern in _UNNAMED_PATTERNS:
        if mark in text:
            for match in pattern.finditer(text):
                first, *_ = match[1].split()
                value = nan if "nan" in match[1].lower() else _parse_loss_value(first)
                yield match.start(), "loss", value


def _find_loss_name(text: str, match: "re.Match[str]") -> str:
    """What is attached to it, and a word before."""
    start = match.start()
    return _join_loss_name(text[max(0, start - MAX_NAME_CHARS) : start], text[start : match.end(1)])


@lru_cache(maxsize=4096)
def _join_loss_name(before: str, told: str) -> str:
    *_, word, attached = ["", *before[max(map(before.rfind, _NAME_END_CHARS)) + 1 :].split(" ")]
    own = attached + told
    return f"{word} {own}" if word.replace("/", "").isidentifier() else own


def _parse_loss_value(captured: str) -> float:
    try:
        return float(captured)
    except ValueError:
        word = captured.lower().lstrip("+-")
        return inf if word.startswith("inf") else nan if word.startswith("nan") else 0.0
