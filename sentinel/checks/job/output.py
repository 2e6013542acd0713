"""Finds where a job that is gone wrote its output, and selects the lines of its end for people."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from sentinel.checks.job.memory import GoneJob, SeenJob
from sentinel.core.cluster import Job
from sentinel.core.text import shortened, visible_lines
from sentinel.slurm.filename_patterns import job_output_path
from sentinel.slurm.step_messages import HOUSEKEEPING_ERROR_REGEX, STEPD_ERROR_REGEX

if TYPE_CHECKING:
    from sentinel.checks.log.recognition import LogRecognition

MAX_END_CHARS = 2**17
"""Of an output, this many characters at its end are read."""

MAX_STEPS_AFTER = 6
"""How many steps other ranks may make after one of them has died."""

MAX_NEW_LINES = 4
"""How many lines that were new at the end are shown above the last lines."""

MIN_FOLLOWER_LINES = 5
"""From this number on, lines of one kind are followers: one rank fails, and thousands report it."""

_NUMBER_PATTERN = re.compile(r"0x[0-9a-fA-F]+|\d+")
_TROUBLE_PATTERN = re.compile(
    r"(?i)error|exception|traceback|fatal|abort|killed|fail|signal|oom|out of memory"
)
_HARMLESS_PATTERN = re.compile(
    r"(?<=\w)Warning: |\bWARN(?:ING)?\b|\b(?:raise|except) [A-Za-z(]|" + HOUSEKEEPING_ERROR_REGEX
)
_CAUSE_PATTERN = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Interrupt)\b|\bCUDA error|Segmentation fault|Bus error|"
    r"oom[-_ ]kill|Out of memory|(?m:^Killed)|\bXid\b|[Nn]o space left|" + STEPD_ERROR_REGEX
)
_FRAME_PATTERN = re.compile(r"[^\n]{0,120}?(?:[\])|:] ?)?\s{2}|\s*$")
MAX_TRACEBACK_CHARS = 2**14
"""How much text above an exception is searched for its traceback."""

_STEP_PATTERN = re.compile(
    r"(?i)(?<![\w/-])(?<!optimization )(?<!nan )(?<!skipped )(?<!number of )(?<!@ )"
    r"((?:global[_ ])?(?:step|iteration|iter|batch)s?)\b['\"]?[ =:#(\[]{1,8}"
    r"(\d+(?:,\d{3})*)(?![\d%]|\.\w+ (?:ON|exceeded) |\.\d*[1-9]|(?:\.\d+)?e[+-]?\d)"
    r"|(?m:^ *|\]:? *|(?<=\]) +|(Epoch) \d+: *|Steps: *)\d{1,3}%\|[^|\n]{0,200}\| *(\d+)/\d+ \[[^\]\n]{0,300}\]?"
)
"""Or a bar that is a training's own. Not a step of Slurm (`STEP 4711.0 ON node-3 CANCELLED`), no number of
steps that are to come or went wrong (`number of nan iterations: 0`), none that is rounded
(`global_step=3.2e+4`), and no measure (`ms/batch 4.5`)."""

_STOPPED_PATTERN = re.compile(r"(?<![\w-])(?<!early )stopping: \S", re.I)
"""Lines of a training that a `sentinel.training.Guard` stops (docs/training.md). It exits with 0,
and has not finished. Early stopping is an end that the trainer wants."""


SAME, LONGEST = 100, 1000
"""Lines with the same first characters (the first number) count as equal. Of a line, this many
characters are read (the second)."""

_BAR_END_PATTERN = re.compile(r"\A[^\[\]\n]{0,900}\]")
"""A bar does not end its line, so the next text follows it on the same line."""


def condense_lines(lines: Sequence[str]) -> list[str]:
    """The lines without followers. Of many lines that differ only in numbers, the last ones are
    kept. If they are about a problem, only the first one is kept, with the number of the others."""
    kinds, same = dict[str, list[int]](), dict[str, list[int]]()
    for at, line in enumerate(lines):
        if (places := same.get(line)) is None:
            form = " ".join(_NUMBER_PATTERN.sub("0", line).split())  # numbers may be padded
            places = same[line] = kinds.setdefault(form, [])
        places.append(at)
    kept: dict[int, str] = {}
    for places in kinds.values():
        kept |= {at: lines[at] for at in places[-MIN_FOLLOWER_LINES:]}
        first = places[0]
        if len(places) > MIN_FOLLOWER_LINES and _TROUBLE_PATTERN.search(lines[first]):
            for at in places[-MIN_FOLLOWER_LINES:]:
                del kept[at]
            kept[first] = f"{lines[first]}   (and {len(places) - 1} more like it)"
    return [kept[at] for at in sorted(kept)]


def make_excerpt(lines: Sequence[str], most: int) -> str:
    """The end of the lines, and what is further up: the last step, the error, and what else was new
    when it ended. In a large job, the last lines are those of the launchers, a screen or two after
    these."""
    kept = condense_lines(lines)
    shown, text = kept[-most:], "\n".join(kept)
    steps = _locate_steps(text)[-1:]
    step = [text[:at].rpartition("\n")[2] + text[at:].partition("\n")[0] for at, _, _ in steps]
    error = find_error_line(text)
    why = filter(None, [*_list_new_lines(text, error)[:MAX_NEW_LINES], error])
    above = [one for one in [*step, *why] if not any(one in line for line in shown)]
    return "\n".join([*above, "…", *shown[len(above) + 1 :]] if above else shown)


class OutputEnd(Struct, frozen=True):
    """The end of an output."""

    excerpt: str  # the last lines, for people
    clean: bool  # see `is_clean`


def summarize_end(text: str, most: int, width: int) -> OutputEnd:
    """The end of an output: at most this many lines, of at most this width."""
    lines = [shortened(line, width) for line in visible_lines(text).splitlines()]
    return OutputEnd(make_excerpt(lines, most), is_clean("\n".join(lines)))


class OutputError(NamedTuple):
    """The error that an output names. `known`: it is no consequence of another one. `kind` is its name among the
    errors that `log` knows; empty for none, None if the kind `log` was taken out."""

    line: str
    known: bool
    kind: str | None


def find_error_line(text: str) -> str:
    """The line of `find_error`. Empty if no line names an error."""
    return find_error(text).line


def find_error(text: str) -> OutputError:
    """The error that caused the others, after the last step. It reads the last MAX_END_CHARS.

    If all that follows the last step was caused by something else, the cause may stand before it: other ranks make a
    step or two more when one of them dies.
    """
    text = text[-MAX_END_CHARS:]
    steps = _locate_steps(text)
    rest = text[steps[-1][1] :] if steps else ""
    told = _select_error(_BAR_END_PATTERN.sub("", rest, 1))
    if told.line and not told.known:
        before = _select_error(text[steps[-MAX_STEPS_AFTER:][0][1] :])
        told = before if before.known else told
    return told if told.line else _select_error(text)


def _list_new_lines(text: str, error: str) -> list[str]:
    """The lines besides the error that were new when the job ended."""
    try:
        from sentinel.checks.log.trouble_kind import NEW_KINDS
        from sentinel.checks.log.troubles import TroubleFinder
    except ModuleNotFoundError:  # the kind `log` was taken out
        return []
    found = TroubleFinder({}, []).find_end(text) if error else ()
    return [one.line for _, one in found if one.kind in NEW_KINDS and one.line != error]


def _select_error(text: str) -> OutputError:
    """The error that nothing else causes. If there is none, the first one that is
    named, and then a consequence. The name of an exception without its traceback
    counts where no error is known, since the end of an output may begin within the traceback."""
    try:
        from sentinel.checks.log.last_words import is_error_line
        from sentinel.checks.log.losses import find_lost_line
        from sentinel.checks.log.printed_settings import is_setting
        from sentinel.checks.log.ranking import (
            CAUSE,
            LATE_KINDS,
            find_first_cause,
            rank_trouble,
        )
        from sentinel.checks.log.trouble_kind import EXCEPTION, LAST_WORDS_KIND, NEW_KINDS
        from sentinel.checks.log.troubles import HANDLED_PATTERN, TroubleFinder
    except ModuleNotFoundError:  # the kind `log` was taken out
        lines = (line.strip() for line in text.splitlines() if _CAUSE_PATTERN.search(line))
        return OutputError(next(lines, ""), True, None)
    found = TroubleFinder({}, []).find_end(text)
    causes = [(at, trouble.kind, trouble.line) for at, trouble in found]
    first = find_first_cause([kind for _, kind, _ in causes])
    if first is None or rank_trouble(causes[first][1]) > CAUSE or causes[first][1] in LATE_KINDS:
        told = [one for _, one in found if one.kind not in (LAST_WORDS_KIND, *NEW_KINDS)]
        known = {trouble.line[:SAME] for trouble in told}
        named = (
            (begin, EXCEPTION, line.strip())
            for begin, at, line in _find_cause_lines(text)
            if is_error_line(line)
            and not (_HARMLESS_PATTERN.search(line) or HANDLED_PATTERN.search(line[:LONGEST]))
            and not is_setting(text, at)
            and line.strip()[:SAME] not in known
            and not _ends_traceback(text, begin)
        )
        causes = sorted([*causes, *islice(named, 1)], key=lambda one: one[0])
        first = find_first_cause([kind for _, kind, _ in causes])
    kind, line = causes[first][1:] if first is not None else ("", "")
    if first is None or rank_trouble(kind) > CAUSE:
        return OutputError(find_lost_line(text) or line, False, kind)
    return OutputError(line, kind not in LATE_KINDS, kind)


def _ends_traceback(text: str, begin: int) -> bool:
    """Whether this line is the exception below the frames of a traceback, which has been judged as a whole."""
    head = text.rfind("Traceback (most recent", max(0, begin - MAX_TRACEBACK_CHARS), begin)
    between = text[head:begin].splitlines()[1:] if head >= 0 else []
    return bool(between) and all(_FRAME_PATTERN.match(line) for line in between)


def _find_cause_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Each line that names an error: where the line begins, where the first such word begins, and
    the line."""
    end = -1
    for word in _CAUSE_PATTERN.finditer(text):
        if word.start() > end:
            begin = text.rfind("\n", 0, word.start()) + 1
            end = text.find("\n", word.start())
            end = len(text) if end < 0 else end
            yield begin, word.start(), text[begin:end]


def is_clean(text: str) -> bool:
    """Whether these lines show progress, no error, and no early stop. After the last step there
    must also be no word about a problem, such as of a launcher."""
    steps = _locate_steps(text)
    if not steps or _STOPPED_PATTERN.search(text) or find_error_line(text):
        return False
    after = text[steps[-1][1] :].splitlines()[1:]  # the line of the step counts skipped ones, too
    return not any(
        _TROUBLE_PATTERN.search(line) and not _HARMLESS_PATTERN.search(line) for line in after
    )


def find_last_step(text: str) -> str:
    """The last step in the lines, such as `iteration 79400`. Empty if there is none."""
    return next((told for _, _, told in _locate_steps(text)[-1:]), "")


def _locate_steps(text: str) -> list[tuple[int, int, str]]:
    """The positions and texts of steps, by the lines of the trainer if it is known."""
    known = _recognise_trainer(text)
    if known and known.number and known.first_trainer not in ("", "tqdm"):
        own = re.finditer(known.number.pattern, text, re.M)
        return [(one.start(1), one.end(), f"{known.number.name} {one[1]}") for one in own]
    found = []
    for one in _STEP_PATTERN.finditer(text):
        name, number, epoch, count = one.groups()
        told = f"{name.lower()} {number}" if name else f"{'batch' if epoch else 'step'} {count}"
        found.append((one.start(1) if name else one.start(4), one.end(), told))
    return found


def _recognise_trainer(text: str) -> "LogRecognition | None":
    try:
        from sentinel.checks.log.recognition import recognise_log
    except ModuleNotFoundError:  # the kind `log` was taken out
        return None
    return recognise_log(text)


def get_stdout_path(gone: GoneJob) -> str:
    """The absolute path of its standard output. Empty if it is not known."""
    how = gone.how or gone.seen.how
    told = (gone.end.stdout if gone.end else "") or (how.stdout if how else "")
    return job_output_path(told, _make_job(gone.seen)) if told else ""


def _make_job(seen: SeenJob) -> Job:
    """A Job with the facts that a file name can depend on. Others are not remembered, and no symbol
    stands for them."""
    known = {f: getattr(seen, f) for f in Job.__struct_fields__ if f in SeenJob.__struct_fields__}
    gone: dict[str, Any] = dict.fromkeys(("submitted", "ends", "time_limit"))
    return Job(**known, **gone, node_count=0, dependency="")
