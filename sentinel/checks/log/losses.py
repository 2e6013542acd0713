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

MOST_NAMES = 32
"""Names that are told apart in one text; further ones are one."""

NEAR = 24
"""Characters before a value in which its name is looked for."""

MAX_HEADER = 300
"""Characters of a line that names columns."""

MAX_ROWS = 2000
"""Rows that are read below such a line."""

GAP_LINES = 50
"""Lines without a skipped step after which the next one is not in a row with those before."""

OVERFLOWED = "overflowed steps"
AT_MINIMUM = "skipped at the least loss scale"
LEFT_OUT = "left out"
NAN_ITERATIONS = "nan iterations"
SKIPPED = "skipped iterations"
"""What is counted by Megatron, and what it does not print: megatron/training/training.py,
training_log prints a loss only where it is greater than 0, which NaN is not."""

TAIL = 2**14
"""Characters of the end in which the values of now are looked for."""

ELSEWHERE = ("val", "test", "aux", "z_loss")
"""What is in the name of a loss that is not the one that is trained on: `val`, `eval`, `lm loss
value` (Megatron's evaluation), `aux_loss` and `z_loss` of a router."""

Loss = tuple[int, str, float]
"""Where it stands, its name, and its value: NaN for an infinite one too."""

_SEPARATOR = r"(?:['\"]?[ \t]{0,40}(?:[:=|│┃→]|[-=]>)\s{0,4}[ \t]{0,40}(?:[a-z]{1,12} (?=(?i:[-+]?(?:nan|inf)\b)))?|['\"], ['\"]value['\"]: |['\"]?[ \t]{1,40})"
_WRAPPED = (
    r"(?:<tf\.Tensor: shape=[^\n]{0,60}?numpy=|Tensor\(shape=[^\n]{0,160}?(?:,|value=)\s{1,12}"
    r"|[\[(]{0,3}[A-Za-z_][\w.]{0,30}\((?:[a-z]{1,10}=)?)?[\[(]{0,3}['\"]?"
)
"""What stands around a number that is an object of a library: `np.float64(nan)` (NumPy 2),
`Array(nan, dtype=float32)` (JAX), `tensor([nan], device='cuda:0')`, TensorFlow's, Paddle's and
MindSpore's tensors, `Decimal('NaN')`."""
_NUMBER = (
    r"([-+]?(?:[nN][aA][nN]|[iI][nN][fF](?:inity|INITY)?)(?:\((?:ind|snan|0x[0-9a-f]{1,16})\))?(?![a-zA-Z(])"
    r"|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?)"
)
_VALUE = _SEPARATOR + _WRAPPED + _NUMBER
# Each begins with plain letters: the search for them costs next to nothing.
_SETTING = r"[/_](?!(?i:\w{0,40}(?:scal|weight|coef|alpha|lambda|factor|ratio|type|mode)))"
_LOSSES = (
    re.compile(
        rf"oss(?<=[lL]oss)(?:es)?((?:{_SETTING}[\w/]{{1,80}}| train| value| is| ?[(\[][\w/ .@-]{{1,24}}[)\]])?)"
        + _VALUE
    ),
    re.compile(rf"OSS(?<=LOSS)((?:{_SETTING}[\w/]{{1,80}})?)" + _VALUE),
    re.compile(r"xent()" + _VALUE),
)
_NORMS = (
    re.compile(r"norm((?:/\w{1,40}){0,4})" + _VALUE),
    re.compile(r"Norm((?:/\w{1,40}){0,4})" + _VALUE),
    re.compile(r"grad(?<=  grad)()" + _VALUE),
)
_OWN_BESIDE = re.compile(r"train_loss(?:_step)?[=:] ?[-+]?\d")
_BESIDE_CHARS = 640
"""A loss of the model's own behind Lightning's running one, which is NaN all along where a rank has none to
give, such as in pipelines (trainer/progress.py of PyTorch Lightning 1, `running_loss`; neuronx-nemo-megatron)."""

_UNNAMED = (
    (" avg", re.compile(r"^ *\d+: ([-+\w.]+), [-+\w.]+ avg(?: loss)?, ", re.M)),
    (" train, step ", re.compile(r"\bep \d+ train, step \d+, ((?:[\w.:/-]+ [-+\w.]+, ){1,20})")),
    ("G  ", re.compile(r"^ *\d+/\d+ +[\d.]+G((?: +(?:-?[nN]a[nN]|[\d.]+)){4,}):? ", re.M)),
)
_COLUMNS = re.compile(r"[ \t]*[|│┃,;\t][ \t]*|[ \t]{2,}")
_HEADER = re.compile(
    rf"^[^\n\d:=]{{0,{MAX_HEADER}}}\b[a-z_]{{0,20}}loss\b[^\n\d:=]{{0,{MAX_HEADER}}}$", re.M | re.I
)
_RULER = re.compile(r"[-=+|│┃─━┼ \t:]*")
_SKIPPED_AT_SCALE = re.compile(
    r"(?i)overflow[^\n]{0,80}? loss scale:? (?:to )?(\d[\d.e+-]{0,20})(?:, reducing to (\d[\d.e+-]{0,20}))?"
)
"""`OVERFLOW! … Attempted loss scale: 1, reducing to 1` of deepspeed/runtime/fp16/loss_scaler.py;
`Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.5` of apex/amp/handle.py."""
_SKIPPED = re.compile(r"(?i)found overflow[,.]? skip(?:ping)? (?:this )?step")
"""ColossalAI, colossalai/zero/low_level/low_level_optim.py: it does not say at which scale."""
_ENDS = "|│┃,;:={}[]()'\"\t\n"
_COUNTED = re.compile(
    r"number of skipped iterations: +(\d{1,9}) \|(?: +number of nan iterations: +(\d{1,9}))?"
)
_ON_THE_LINE = re.compile(r"loss[\w ]{0,30}: (?<!loss scale: )\S")


def losses(text: str, own: "re.Pattern[str] | None" = None) -> list[Loss]:
    """What there is to say of them, in order: for each name its first value, each that is no
    finite number, and each first one that is finite again. `own` is a user's pattern: it counts
    alone, under the name `loss`.
    """
    if own:
        found = [(match.start(), "loss", _value(match[1] or "")) for match in own.finditer(text)]
        return list(_telling(found))
    lines = [*_of(_LOSSES, text), *_gradients(text), *_counts(text), *_unnamed(text)]
    lines += [*_skipped(text), *_tables(text)]
    return list(_telling(sorted(lines, key=lambda one: one[0])))


def last_of_each(found: "Iterable[Loss]") -> list[tuple[Loss, int]]:
    """Of each name all that `counted` needs of a text: its last finite value, then the first of the
    values that are no number after it, and how many these are. A text holds any number of values;
    what is kept and counted later has to be little."""
    finite, bad = dict[str, Loss](), dict[str, tuple[Loss, int]]()
    for one in found:
        name, value = one[1:]
        if name not in finite and name not in bad and len({*finite, *bad}) >= 2 * MOST_NAMES:
            continue
        if not _is_bad(name, value):
            finite[name] = one
            bad.pop(name, None)
            continue
        first, times = bad.get(name, ((one[0], name, 0.0 if name == SKIPPED else value), 0))
        if name == SKIPPED:  # of which the value is the number
            first = (first[0], name, first[2] + value)
        bad[name] = first, times + 1
    told = [*((one, 1) for one in finite.values()), *bad.values()]
    return sorted(told, key=lambda each: each[0][0])


def tells_loss(text: str) -> bool:
    """Whether a loss of any name stands in it, with its value."""
    return any(pattern.search(text) for pattern in _LOSSES)


LOST_TIMES = 3
"""Values in a row that are no number, after which a training is broken."""


def lost_line(text: str) -> str:
    """The line on which a loss was no number for the first time, where it stayed so; else empty."""
    first: dict[str, int] = {}
    bad: dict[str, int] = {}
    for at, name, value in losses(text):
        bad = counted(bad, name, value)
        first = {**first, name: first.get(name, at)} if bad.get(name) else {**first}
        if not bad.get(name):
            first.pop(name, None)
    lost = [at for name, at in first.items() if bad.get(name, 0) >= LOST_TIMES]
    if not lost:
        return ""
    begin = text.rfind("\n", 0, min(lost)) + 1
    return text[begin:].partition("\n")[0].strip()[:MAX_HEADER]


def latest(text: str, own: "re.Pattern[str] | None" = None) -> dict[str, float]:
    """The `loss` and `grad_norm` that the text told last, where it tells any, for a curve; finite
    ones only. Of several losses the one that is told most often, of those the first."""
    tail = text[-TAIL:]
    mine = [("loss", _value(match[1] or "")) for match in own.finditer(tail)] if own else None
    told = {
        "loss": _named(_LOSSES, tail) if mine is None else mine,
        "grad_norm": _named(_NORMS, tail, gradients=True),
    }
    return {name: value for name, seen in told.items() for _, value in _usual(seen)[-1:]}


def course(text: str, own: "re.Pattern[str] | None" = None) -> list[tuple[str, float]]:
    """Every finite value of the loss that is trained on, in order, with its name."""
    mine = [("loss", _value(match[1] or "")) for match in own.finditer(text)] if own else None
    return _usual(_named(_LOSSES, text) if mine is None else mine)


def _named(
    patterns: "tuple[re.Pattern[str], ...]", text: str, *, gradients: bool = False
) -> list[tuple[str, float]]:
    """Every value with its name, in order."""
    found = sorted(
        (match.start(), _name(text, match), _value(match[2]))
        for pattern in patterns
        for match in pattern.finditer(text)
        if not gradients or _of_gradient(text, match.start())
    )
    return [(name, value) for _, name, value in found]


def _usual(told: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The values of the name that is there most often."""
    fit = [(n, v) for n, v in told if isfinite(v) and not any(w in n.lower() for w in ELSEWHERE)]
    counts = Counter(name for name, _ in fit)  # of equal counts the first comes first
    chosen = counts.most_common(1)
    return [(name, value) for name, value in fit if name == chosen[0][0]] if chosen else []


def counted(bad: Mapping[str, int], name: str, value: float, times: int = 1) -> dict[str, int]:
    """How many times in a row each name was no number, after so many more; 0 where it is one. A loss
    is only left out where it was seen before, and skipped iterations are counted themselves. Where
    there are many names, one that is finite makes room for one that is not."""
    each = int(value) if name == SKIPPED else times
    times = each if _is_bad(name, value) else 0
    if name not in bad:
        if (name == LEFT_OUT and value) or (name in (AT_MINIMUM, OVERFLOWED) and not value):
            return {**bad}
        room = [n for n, count in bad.items() if not count] if len(bad) >= MOST_NAMES else []
        if len(bad) >= MOST_NAMES and not (times and room):
            return {**bad}
        bad = {n: count for n, count in bad.items() if n not in room[:1]}
    return {**bad, name: bad.get(name, 0) + times if times else 0}


def _is_bad(name: str, value: float) -> bool:
    counts = (SKIPPED, NAN_ITERATIONS, LEFT_OUT, AT_MINIMUM, OVERFLOWED)
    return not isfinite(value) or (name in counts and value > 0)


def _telling(found: list[Loss]) -> Iterator[Loss]:
    """Of a name that stays finite nothing more is to be said."""
    state: dict[str, bool] = {}
    for at, name, value in found:
        bad = _is_bad(name, value)
        if bad or state.get(name, len(state) < MOST_NAMES):
            yield at, name, value
        state[name] = bad


def _of(patterns: "tuple[re.Pattern[str], ...]", text: str) -> Iterator[Loss]:
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
            elif _has_own_beside(text, match.end()) and _name(text, match) == "loss":
                continue
            else:
                alike.clear()
            yield at, _name(text, match), _value(match[2])


def _has_own_beside(text: str, at: int) -> bool:
    """Whether the rest of the line tells a model's own loss."""
    rest = text[at : at + _BESIDE_CHARS]
    return "train_loss" in rest and _OWN_BESIDE.search(rest.partition("\n")[0]) is not None


def _gradients(text: str) -> Iterator[Loss]:
    """An infinite one is usual: a scaled gradient that overflowed is skipped."""
    for at, name, value in _of(_NORMS, text):
        if _of_gradient(text, at):
            yield at, name, 0.0 if value in (inf, -inf) else value


def _of_gradient(text: str, at: int) -> bool:
    """Whether the norm that is told there is one of gradients."""
    before = text[max(0, at - 6) : at]
    if text.endswith(("max_grad_", "clip_grad_"), max(0, at - 10), at):  # a setting
        return False
    return "rad" in before or before[-1:] == "g" or before[-2:] == "| " or text[at] == "g"


def _counts(text: str) -> Iterator[Loss]:
    """A line of Megatron: iterations skipped, iterations with a NaN, and a loss that is not there."""
    if "number of skipped iterations" not in text:
        return
    for match in _COUNTED.finditer(text):
        at, skipped, nans = match.start(), int(match[1]), int(match[2] or 0)
        line = text[text.rfind("\n", max(0, at - 2000), at) + 1 : at]
        there = _ON_THE_LINE.search(line) is not None
        yield at, SKIPPED, 0.0 if there else float(skipped)
        yield at, NAN_ITERATIONS, float(nans)
        if not skipped and not nans:
            yield at, LEFT_OUT, 0.0 if there else 1.0


def _skipped(text: str) -> Iterator[Loss]:
    """Steps that are skipped although there is no smaller loss scale left: nothing is learned. One
    now and then is none, so a stretch of lines without any is told as 0."""
    there = "verflow" in text or "OVERF" in text
    for pattern, name in ((_SKIPPED_AT_SCALE, AT_MINIMUM), (_SKIPPED, OVERFLOWED)):
        end = 0
        for match in pattern.finditer(text) if there else ():
            if text.count("\n", end, match.start()) >= GAP_LINES:
                yield match.start(), name, 0.0
            yield match.start(), name, float(name == OVERFLOWED or _is_least(match))
            end = match.end()
        if text.count("\n", end) >= GAP_LINES:
            yield len(text), name, 0.0


def _is_least(match: "re.Match[str]") -> bool:
    attempted, reduced = _value(match[1]), _value(match[2] or match[1])
    return reduced <= 1 or (match[2] is not None and attempted == reduced)


def _tables(text: str) -> Iterator[Loss]:
    """Values below a line that names columns, as fastai and CSV files have them. A table ends where
    the next one begins: no line is read twice, whatever names stand in it."""
    headers = _HEADER.finditer(text) if "oss" in text else iter(())
    for header, following in pairwise(chain(headers, [None])):
        names = _columns(header[0]) if header and _COLUMNS.search(header[0]) else []
        if header and len(names) > 1:
            begin, end = header.end() + 1, following.start() if following else len(text)
            yield from _rows(text[begin:end], begin, names)


def _rows(text: str, begin: int, names: "list[str]") -> Iterator[Loss]:
    """The losses of the table that this text begins with; the text stands at `begin`."""
    wanted = [number for number, name in enumerate(names) if "loss" in name.lower()]
    for line in islice(_lines(text), MAX_ROWS):
        cells = _columns(line)
        if len(cells) == len(names):
            found = [(names[n], _cell(cells[n])) for n in wanted]
            yield from ((begin, name, value) for name, value in found if value is not None)
        elif not _RULER.fullmatch(line[:MAX_HEADER]):
            return
        begin += len(line) + 1


def _lines(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        yield text[at:end]
        at = end + 1


def _columns(line: str) -> "list[str]":
    return _COLUMNS.split(line.strip(" \t|│┃"))


def _cell(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unnamed(text: str) -> Iterator[Loss]:
    """Losses whose name stands in a header of columns (YOLO: the first of them, or whichever is NaN), after
    them (darknet), or is anything (RETURNN)."""
    for mark, pattern in _UNNAMED:
        if mark in text:
            for match in pattern.finditer(text):
                first, *_ = match[1].split()
                value = nan if "nan" in match[1].lower() else _value(first)
                yield match.start(), "loss", value


def _name(text: str, match: "re.Match[str]") -> str:
    """What is attached to it, and a word before."""
    start = match.start()
    return _named_by(text[max(0, start - NEAR) : start], text[start : match.end(1)])


@lru_cache(maxsize=4096)
def _named_by(before: str, told: str) -> str:
    *_, word, attached = ["", *before[max(map(before.rfind, _ENDS)) + 1 :].split(" ")]
    own = attached + told
    return f"{word} {own}" if word.replace("/", "").isidentifier() else own


def _value(captured: str) -> float:
    try:
        return float(captured)
    except ValueError:
        word = captured.lower().lstrip("+-")
        return inf if word.startswith("inf") else nan if word.startswith("nan") else 0.0
