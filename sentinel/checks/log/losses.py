"""Finds losses and gradient norms in the text of a log, by the name before each. Pure. Every name
counts separately: a finite `val_loss` says nothing about the `loss` on the same line. Megatron does
not print a NaN loss, but counts it. Both are read."""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import inf, isfinite
from operator import itemgetter

from sentinel.checks.log.counted_losses import (
    AT_MINIMUM_NAME,
    LEFT_OUT_NAME,
    NAN_ITERATIONS_NAME,
    OVERFLOWED_NAME,
    SKIPPED_NAME,
    TOLD_NAME,
    find_megatron_counts,
    find_skipped_steps,
)
from sentinel.checks.log.loss_names import find_loss_name, find_phase_name
from sentinel.checks.log.loss_tables import (
    MAX_HEADER_CHARS,
    LossValue,
    find_table_losses,
    find_unnamed_losses,
    parse_loss_value,
)
from sentinel.checks.log.lost_rows import ALL_VALUES_NAME, find_lost_rows
from sentinel.checks.log.rows import MAX_ROW_CHARS, hash_values

SAID_PREFIX = "only NaN: "
"""Before the name of a loss that was never finite. It may be printed only for a NaN, so finite rows after it end it."""

FINITE_ROWS_NAME = "finite rows"
"""The name under which rows with a finite loss are told."""

MAX_LOSS_NAMES = 32
"""How many names are kept apart in one text. All others count as one."""


TAIL_CHARS = 2**14
"""The current values are searched in this many characters at the end of a text."""

OTHER_LOSS_WORDS = ("val", "test", "aux", "z_loss")
"""Words in the names of losses that are not trained on: `val`, `eval`, `lm loss value` (Megatron's
evaluation), `aux_loss` and `z_loss` of a router."""


_SEPARATOR_REGEX = (
    r"(?:[^\w\n,.;!?%#/+-]{0,40}?(?:[:：=|│┃→⇒~({\[\])>*_`]|[-=]>)\s{0,4}[ \t]{0,40}(?:[a-z]{1,12} (?=(?i:[-+]?(?:nan|inf)\b)))?"
    r"|['\"], ['\"]value['\"]: |['\"]?[ \t]{1,40}"
    r"|[ \t](?:is|was|are|has|became|becomes|went|goes|turned|turns)(?:[ \t](?!not\b|never\b)[a-z]{1,8}){0,3}[ \t](?=(?i:nan|inf)))"
)
_WRAPPED_REGEX = (
    r"(?:\{?['\"](?:value|val|avg|mean|last|current)['\"]: ?|<tf\.Tensor: shape=[^\n]{0,60}?numpy=|Tensor\(shape=[^\n]{0,160}?(?:,|value=)\s{1,12}"
    r"|[\[(]{0,3}[A-Za-z_][\w.]{0,30}\((?:[a-z]{1,10}=)?)?[\[(]{0,3}['\"]?"
)
"""The text around a number that is printed as an object of a library: `np.float64(nan)` (NumPy 2),
`Array(nan, dtype=float32)` (JAX), `tensor([nan], device='cuda:0')`, tensors of TensorFlow, Paddle
and MindSpore, `Decimal('NaN')`."""
_NUMBER_REGEX = (
    r"([-+]?1\.#(?:QNAN|SNAN|IND|INF)\d{0,9}|[-+]?(?:\.?[nN][aA][nN]|\.?[iI][nN][fF](?:inity|INITY)?|∞)(?:\((?:ind|snan|0x[0-9a-f]{1,16})\)|[qQsS](?![a-zA-Z])|(?:32|16)(?!\d))?(?![a-zA-Z(])"
    r"|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?)"
)
"""Microsoft's C library printed `1.#QNAN` before 2015. YAML writes `.nan`."""
_VALUE_REGEX = _SEPARATOR_REGEX + _WRAPPED_REGEX + _NUMBER_REGEX
# Each pattern begins with plain letters, so the search for it is quick.
_SETTING_REGEX = r"[/_](?!(?i:\w{0,40}(?:scal|weight|coef|alpha|lambda|factor|ratio|type|mode)))"
_LOSS_PATTERNS = (
    re.compile(
        rf"oss(?<=[lL]oss)(?:es)?((?:{_SETTING_REGEX}[\w/]{{1,80}}| train| value| is| of [a-z]{{2,12}}|@?\d{{1,3}}|[A-Z](?!(?:cal|eigh|oef))[A-Za-z]{{0,12}}"
        rf"| ?[(\[][\w/ .@±-]{{1,24}}[)\]])?)" + _VALUE_REGEX
    ),
    re.compile(rf"OSS(?<=LOSS)((?:{_SETTING_REGEX}[\w/]{{1,80}})?)" + _VALUE_REGEX),
    re.compile(r"xent()" + _VALUE_REGEX),
    re.compile(r"损失([值値]?)" + _VALUE_REGEX),
    re.compile(r"損失([值値]?)" + _VALUE_REGEX),
    re.compile(r"손실([值値]?)" + _VALUE_REGEX),
    re.compile(r"erlust(e?)" + _VALUE_REGEX),
    re.compile(r"érdida(s?)" + _VALUE_REGEX),
    re.compile(r"perda(s?)" + _VALUE_REGEX),
    re.compile(r"perte(s?)" + _VALUE_REGEX),
    re.compile(r"отер[яи]()" + _VALUE_REGEX),
)
_CRITERION_PATTERNS = (
    re.compile(r"ntropy()" + _VALUE_REGEX),
    re.compile(r"erplexity()" + _VALUE_REGEX),
    re.compile(r"ppl()" + _VALUE_REGEX),
    re.compile(r"L1()" + _VALUE_REGEX),
    re.compile(r"mse()" + _VALUE_REGEX),
    re.compile(r"MSE()" + _VALUE_REGEX),
    re.compile(r"nll()" + _VALUE_REGEX),
    re.compile(r"bjective()" + _VALUE_REGEX),
    re.compile(r"Cost()" + _VALUE_REGEX),
    re.compile(r"cost()" + _VALUE_REGEX),
    re.compile(r"NLL()" + _VALUE_REGEX),
    re.compile(r"PPL()" + _VALUE_REGEX),
    re.compile(r"elbo()" + _VALUE_REGEX),
    re.compile(r"ELBO()" + _VALUE_REGEX),
    re.compile(r"bp[bcd](?<=\b...)()" + _VALUE_REGEX),
    re.compile(r"bits per (?:char|byte|dim)()" + _VALUE_REGEX),
    re.compile(r"mae()" + _VALUE_REGEX),
    re.compile(r"MAE()" + _VALUE_REGEX),
    re.compile(r"BCE()" + _VALUE_REGEX),
    re.compile(r"bce()" + _VALUE_REGEX),
    re.compile(r"nergy()" + _VALUE_REGEX),
)
"""Names of functions that are minimised, without the word loss: `CrossEntropy=nan` (MXNet,
Sockeye)."""
_NORM_PATTERNS = (
    re.compile(r"norm((?:/\w{1,40}){0,4})" + _VALUE_REGEX),
    re.compile(r"Norm((?:/\w{1,40}){0,4})" + _VALUE_REGEX),
    re.compile(r"grad(?<=  grad)()" + _VALUE_REGEX),
)
_OWN_REGEX = r"train_loss(?:_step)?[=:] ?([-+]?\d[\w.+-]{0,20})"
_RANK_PATTERN = re.compile(
    r"^\W{0,3}\d{1,5}(?:,\d{1,5})?(?:\]|:|>|\)){1,2}\W{0,3}(?=[A-Za-z{(\[<])"
)
"""A rank before a line: `3: ` of `srun --label`, `[1,3]<stdout>:` of mpirun."""
_COUNTED_PATTERN = re.compile(
    r"(?i)\b(?:\w{0,16}_)?(?:step|iter\w{0,6}|itr|epoch|ep|(?:mini)?batch|update|round)s?\b[^\w\n]{0,6}\d+(?![\d.]*\d)"
)
"""A whole count: one with decimals may be rounded."""
MAX_TOLD_STEPS = 256
"""How many lost steps of one name are told apart from what other ranks tell of them, in one text."""
MIN_OWN_LOSSES = 3
"""On so many lines it can be seen whether a model's own loss moves."""
MIN_FINITE_ROWS = 2
"""After so many different finite losses, or one in a text without a NaN, what was said of a NaN is no longer true."""
_RECORD_PATTERN = re.compile(
    r"(?i)(?<![a-z])(?:best|min|minimum|lowest|smallest|prev|previous)(?![a-z])"
)
"""A best value so far. It is infinite at the beginning: `best_loss inf`."""
_BESIDE_CHARS = 640
"""Lightning prints its running loss and then the model's own. The running one is always NaN on a
rank without a loss, e.g. in a pipeline (trainer/progress.py of PyTorch Lightning 1, `running_loss`;
neuronx-nemo-megatron)."""

_NO_NUMBER_PATTERN = re.compile(
    r"(?:(?:NaN|nan|NAN|Inf|inf|infinite|[Nn]on-?[Ff]inite|[Ii]nvalid)(?:(?: or |/)(?:NaN|nan|Inf|inf|infinite))?s?(?: (?:while|when|during)(?: [a-z]{2,12}){0,2}| train(?:ing)?)? [Ll]oss(?:es)?\b"
    r"|\b[Ll]oss(?:es)?\b[ a-z]{0,16} (?:not (?:a )?(?:finite|number)|[Nn]on-?[Ff]inite))(?! (?:check|detect|guard|filter|monitor))"
)

LossMatches = list[list["re.Match[str]"]]
"""The matches of each loss pattern in a text."""


def match_losses(text: str) -> LossMatches:
    """Search the text once, for all that reads losses in it."""
    return [[*pattern.finditer(text)] for pattern in _LOSS_PATTERNS]


def find_losses(text: str, own: "re.Pattern[str] | None" = None) -> list[LossValue]:
    """The events about losses, in order. For each name: its first value, each value that is not
    finite, and each first one that is finite again. `own` is a user's pattern. Then only its values
    count, under the name `loss`."""
    if own:
        found = [
            (match.start(), "loss", parse_loss_value(match[1] or ""))
            for match in own.finditer(text)
        ]
        return list(_filter_telling_losses(found))
    matches = match_losses(text)
    lines = [
        *_tell_losses(matches, text),
        *_find_gradient_norms(text),
        *_find_criteria(text),
        *find_megatron_counts(text),
        *find_unnamed_losses(text),
        *_find_losses_in_words(text),
    ]
    lines += [*find_skipped_steps(text), *find_table_losses(text)]
    lines += _select_unnamed_rows(lines, text)
    lines = [*_drop_other_ranks(sorted(lines, key=itemgetter(0)), text)]
    lines = _judge_by_rows(lines, matches, text)
    return list(_filter_telling_losses(sorted(lines, key=itemgetter(0))))


def _judge_by_rows(lines: list[LossValue], matches: LossMatches, text: str) -> list[LossValue]:
    """The lines, and where rows are finite. Of a name that is never finite, perhaps it is printed only
    for a NaN. It is left out where finite rows follow it before it comes again."""
    finite = {name for _, name, value in lines if isfinite(value)}
    bad = [
        (at, name)
        for at, name, value in lines
        if not isfinite(value) and name not in finite and _may_be_said(name)
    ]
    values = _list_finite_values(matches, text, None if bad else MIN_FINITE_ROWS)
    rows: list[int] = []
    for name in [*dict.fromkeys(name for _, name in bad)][:MAX_LOSS_NAMES] or [""]:
        places = [-1, *(at for at, other in bad if other == name), len(text)]
        gaps = pairwise(places)
        rows.append(max(_find_finite_row(values, text, gap, 1 + bool(bad)) for gap in gaps))
        lines = [one for one in lines if one[1] != name or one[0] > rows[-1]]
    return [*lines, (min(rows), FINITE_ROWS_NAME, 0.0)] if min(rows) >= 0 else lines


def _list_finite_values(
    matches: LossMatches, text: str, newest: int | None
) -> list[list[tuple[int, float]]]:
    """Of each name, the finite values with their places, in order. With `newest` only so many of each pattern."""
    by_name: dict[str, list[tuple[int, float]]] = {}
    for found in matches:
        for match in found[-newest:] if newest else found:
            value, name = parse_loss_value(match[2]), find_phase_name(text, match)
            if isfinite(value) and _may_be_said(name) and not _RECORD_PATTERN.search(name):
                by_name.setdefault(name, []).append((match.start(), value))
    return [*by_name.values()][:MAX_LOSS_NAMES]


def _find_finite_row(
    values: list[list[tuple[int, float]]], text: str, gap: tuple[int, int], least: int
) -> int:
    """Where the last row between the lines of these two places is, if rows there tell so many different values of
    one name. -1 otherwise."""
    after, before = gap
    begin = text.find("\n", after) if after >= 0 else 0
    end = text.rfind("\n", 0, before) if before < len(text) else before
    for told in values if begin >= 0 else ():
        between = told[bisect(told, (begin,)) : bisect(told, (end,))]
        if len({value for _, value in between}) >= least:
            return between[-1][0]
    return -1


def _may_be_said(name: str) -> bool:
    """Whether it is the name of a loss that is trained on."""
    return name not in _NO_LOSS_NAMES and not any(w in name.lower() for w in OTHER_LOSS_WORDS)


def _select_unnamed_rows(named: list[LossValue], text: str) -> list[LossValue]:
    """The lines that tell nothing finite, but for those that name a loss. A finite one is told only where no
    loss is named, because a named one says the same."""
    places = sorted(at for at, *_ in named)
    rows = [*find_lost_rows(text)]
    ends = {at: text.find("\n", at) for at, *_ in rows}
    return [
        (at, name, value)
        for at, name, value in rows
        if (value or not named)
        and bisect(places, at - 1) == bisect(places, ends[at] if ends[at] >= 0 else len(text))
    ]


def find_last_values(found: "Iterable[LossValue]") -> list[tuple[LossValue, int]]:
    """For each name only what `count_bad_losses` needs: its last finite value, the first bad value
    after it, and how many bad ones there are. A text may contain any number of values, so few are
    kept."""
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
        if name == SKIPPED_NAME:  # its value is the number itself
            first = (first[0], name, first[2] + value)
        bad[name] = first, times + 1
    told = [*((one, 1) for one in finite.values()), *bad.values()]
    return sorted(told, key=lambda each: each[0][0])


def has_loss(text: str) -> bool:
    """Whether the text contains a loss of any name, with its value."""
    return any(pattern.search(text) for pattern in _LOSS_PATTERNS)


MIN_LOST_TIMES = 3
"""After this many bad values in a row, a training counts as broken."""


def find_lost_line(text: str) -> str:
    """The line on which a loss became NaN and stayed so. Empty if there is none."""
    first: dict[str, int] = {}
    bad: dict[str, int] = {}
    for (at, name, value), times in find_last_values(find_losses(text)):
        bad = count_bad_losses(bad, name, value, times)
        first[name] = at
    lost = [
        first[name.removeprefix(SAID_PREFIX)]
        for name, count in bad.items()
        if count >= MIN_LOST_TIMES
    ]
    if not lost:
        return ""
    begin = text.rfind("\n", 0, min(lost)) + 1
    return text[begin:].partition("\n")[0].strip()[:MAX_HEADER_CHARS]


def find_latest_values(text: str, own: "re.Pattern[str] | None" = None) -> dict[str, float]:
    """The last finite values of `loss` and `grad_norm` in the text, for a curve. Of several losses,
    the one counts that is printed most often, and of several equally often, the first."""
    tail = text[-TAIL_CHARS:]
    mine = (
        [("loss", parse_loss_value(match[1] or "")) for match in own.finditer(tail)]
        if own
        else None
    )
    told = {
        "loss": _name_values(match_losses(tail), tail) if mine is None else mine,
        "grad_norm": _name_values((p.finditer(tail) for p in _NORM_PATTERNS), tail, gradients=True),
    }
    return {
        name: value for name, seen in told.items() for _, value in _select_usual_values(seen)[-1:]
    }


def list_loss_values(text: str, own: "re.Pattern[str] | None" = None) -> list[tuple[str, float]]:
    """Every finite value of the loss that is trained on, in order, with its name."""
    mine = (
        [("loss", parse_loss_value(match[1] or "")) for match in own.finditer(text)]
        if own
        else None
    )
    if mine is None:
        mine = _name_values(match_losses(text), text)
    return _select_usual_values(mine)


def _name_values(
    matches: "Iterable[Iterable[re.Match[str]]]", text: str, *, gradients: bool = False
) -> list[tuple[str, float]]:
    """Every value with its name, in order."""
    values = sorted(
        [
            (match.start(), find_loss_name(text, match), parse_loss_value(match[2]))
            for found in matches
            for match in found
            if not gradients or _is_gradient_norm(text, match.start())
        ],
        key=itemgetter(0),
    )
    return [(name, value) for _, name, value in values]


def _select_usual_values(told: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The finite values of the name that occurs most often, without OTHER_LOSS_WORDS in it."""
    finite = [(name, value) for name, value in told if isfinite(value)]
    counts = Counter([name for name, _ in finite])
    fit = [name for name in counts if not any(w in name.lower() for w in OTHER_LOSS_WORDS)]
    chosen = max(fit, key=counts.__getitem__, default="")  # if counts are equal, the first
    return [(name, value) for name, value in finite if name == chosen] if fit else []


def count_bad_losses(
    bad: Mapping[str, int], name: str, value: float, times: int = 1
) -> dict[str, int]:
    """How many times in a row each loss was bad, after these further values. 0 if the last one was
    good. A missing loss counts only if it was printed before. Skipped iterations are counted
    separately. If there are too many names, a good one makes room for a bad one."""
    if name == FINITE_ROWS_NAME:
        return {n: count for n, count in bad.items() if not n.startswith(SAID_PREFIX)}
    if name not in bad and _is_bad(name, value) and _may_be_said(name):
        name = SAID_PREFIX + name
    else:
        bad = {n: count for n, count in bad.items() if n != SAID_PREFIX + name}
    each = int(value) if name == SKIPPED_NAME else times
    times = each if _is_bad(name, value) else 0
    if not times and name not in _COUNTING_NAMES and {TOLD_NAME, ALL_VALUES_NAME} & bad.keys():
        bad = {n: count for n, count in bad.items() if n not in (TOLD_NAME, ALL_VALUES_NAME)}
    if name not in bad:
        if (name == LEFT_OUT_NAME and value) or (
            name in (AT_MINIMUM_NAME, OVERFLOWED_NAME, TOLD_NAME, ALL_VALUES_NAME) and not value
        ):
            return {**bad}
        room = [n for n, count in bad.items() if not count] if len(bad) >= MAX_LOSS_NAMES else []
        if len(bad) >= MAX_LOSS_NAMES and not (times and room):
            return {**bad}
        bad = {n: count for n, count in bad.items() if n not in room[:1]}
    return {**bad, name: bad.get(name, 0) + times if times else 0}


def _is_bad(name: str, value: float) -> bool:
    return not isfinite(value) or (value > 0 and name in _COUNTING_NAMES)


_COUNTING_NAMES = frozenset(
    (SKIPPED_NAME, NAN_ITERATIONS_NAME, LEFT_OUT_NAME, AT_MINIMUM_NAME, OVERFLOWED_NAME, TOLD_NAME)
)
"""Names whose value is a number of bad steps, not a loss."""

_NO_LOSS_NAMES = _COUNTING_NAMES | {ALL_VALUES_NAME, FINITE_ROWS_NAME}


def _filter_telling_losses(found: list[LossValue]) -> Iterator[LossValue]:
    """Leave out further values of a loss that stays finite."""
    state: dict[str, bool] = {}
    for one in found:
        _, name, value = one
        bad = _is_bad(name, value)
        if bad or state.get(name, len(state) < MAX_LOSS_NAMES):
            yield one
        state[name] = bad


def _tell_losses(matches: "Iterable[Iterable[re.Match[str]]]", text: str) -> Iterator[LossValue]:
    """All bad values, and the first of the good ones that look alike."""
    neighbours = _Neighbours(text)
    for found in matches:
        alike = set[str]()
        for match in found:
            at, captured = match.start(), match[2]
            if "#" not in captured and (captured[0].isdigit() or captured[1:2].isdigit()):
                form = text[max(0, at - 8) : match.end(1)]
                if form in alike:
                    continue
                alike.add(form)
            elif neighbours.excuse(match):
                continue
            else:
                alike.clear()
            name, value = find_phase_name(text, match), parse_loss_value(captured)
            yield at, name, 0.0 if value == inf and _RECORD_PATTERN.search(name) else value


def _drop_other_ranks(lines: Iterable[LossValue], text: str) -> Iterator[LossValue]:
    """The lines without those of other ranks that tell of the same step that the loss is no number."""
    steps: dict[str, set[int]] = {}
    for at, name, value in lines:
        if isfinite(value):
            steps.pop(name, None)
        elif _is_told_again(steps.setdefault(name, set()), text, at):
            continue
        yield at, name, value


def _is_told_again(steps: set[int], text: str, at: int) -> bool:
    """Whether another rank has told this step already. `steps` has those that were told, and gets this one. A row
    that does not count steps is a step of its own."""
    begin = text.rfind("\n", max(0, at - MAX_ROW_CHARS), at) + 1
    row = _RANK_PATTERN.sub("", text[begin : at + MAX_ROW_CHARS].partition("\n")[0])
    if len(steps) >= MAX_TOLD_STEPS or not _COUNTED_PATTERN.search(row):
        return False
    step = hash_values(row)
    told = step in steps
    steps.add(step)
    return told


class _Neighbours:
    """Finite values of one text that excuse a NaN beside them. A part of a total that is finite was not in it, since
    NaN stays NaN in a sum: `loss/math` beside `loss`. Lightning's running loss has the model's own behind it. One that
    does not move from the first NaN on excuses nothing: it is the mean of an epoch that is over, or replaces a NaN."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._moves: dict[str, bool] = {}

    def excuse(self, nan: "re.Match[str]") -> bool:
        """Whether such a value, which moves or of which nobody can tell, is on the line of this NaN."""
        name, begin, end = find_loss_name(self._text, nan), nan.end(), nan.end() + _BESIDE_CHARS
        pattern = _OWN_REGEX if name == "loss" else ""
        if nan[1].startswith("/"):
            begin = self._text.rfind("\n", max(0, nan.start() - _BESIDE_CHARS), nan.start()) + 1
            begin = begin or max(0, nan.start() - _BESIDE_CHARS)
            total = re.escape(name.rpartition(" ")[2].removesuffix(nan[1]))
            pattern = rf"{total}(?<![\w/.-]{total})[^\w\n/.-]{{1,12}}([-+]?\d[\w.+-]{{0,20}})"
        beside = self._text[begin:end].partition("\n")[0]
        return (
            bool(pattern) and self._moves_from(begin, pattern) and bool(re.search(pattern, beside))
        )

    def _moves_from(self, begin: int, pattern: str) -> bool:
        if pattern not in self._moves and len(self._moves) < MAX_LOSS_NAMES:
            told = re.compile(pattern).findall(self._text, begin)
            self._moves[pattern] = len(told) < MIN_OWN_LOSSES or len({*told}) > len(told) // 10 + 1
        return self._moves.get(pattern, False)


def _find_gradient_norms(text: str) -> Iterator[LossValue]:
    """Gradient norms. An infinite one is normal, because a scaled gradient that overflowed is
    skipped."""
    for at, name, value in _tell_losses((p.finditer(text) for p in _NORM_PATTERNS), text):
        if _is_gradient_norm(text, at):
            yield at, name, 0.0 if value in (inf, -inf) else value


def _find_criteria(text: str) -> Iterator[LossValue]:
    """Other criteria. An infinite one is normal, because a perplexity is a power of the loss."""
    for at, name, value in _tell_losses((p.finditer(text) for p in _CRITERION_PATTERNS), text):
        yield at, name, 0.0 if value in (inf, -inf) else value


def _is_gradient_norm(text: str, at: int) -> bool:
    """Whether the norm on that line is a gradient norm."""
    before = text[max(0, at - 6) : at]
    if text.endswith(("max_grad_", "clip_grad_"), max(0, at - 10), at):  # this is a setting
        return False
    return (
        "rad" in before
        or before == "total_"
        or before[-1:] == "g"
        or before[-2:] == "| "
        or text[at] == "g"
    )


def _find_losses_in_words(text: str) -> Iterator[LossValue]:
    """Losses that are said to be no number: `NaN loss, skipping the batch`. A single one does no
    harm, so a finite loss of any name after it is told as 0."""
    told = [match.start() for match in _NO_NUMBER_PATTERN.finditer(text)] if "oss" in text else []
    if not told:
        return
    finite = sorted(
        match.start()
        for pattern in _LOSS_PATTERNS
        for match in pattern.finditer(text)
        if isfinite(parse_loss_value(match[2]))
    )
    for at, following in pairwise([-1, *told, len(text)]):
        if at >= 0:
            yield at, TOLD_NAME, 1.0
        between = finite[bisect(finite, at) : bisect(finite, following)]
        if between:
            yield between[-1], TOLD_NAME, 0.0
