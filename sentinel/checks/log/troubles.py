"""Finds lines that say that something has gone wrong: which known error it is, and which rank it is
from. Pure."""

import re
from bisect import bisect_left
from operator import itemgetter

from msgspec.structs import replace

from sentinel.checks.log.known_troubles import TROUBLE_KINDS
from sentinel.checks.log.last_words import (
    MAX_CHARS,
    find_last_words,
    is_system_error_line,
)
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.new_lines import (
    LogEnd,
    find_new_lines,
    is_bad_line,
    make_shape,
    read_log_end,
)
from sentinel.checks.log.printed_settings import is_setting
from sentinel.checks.log.ranking import CAUSE, rank_trouble
from sentinel.checks.log.run_beginnings import find_last_beginning
from sentinel.checks.log.shown_troubles import (
    MAX_JUDGED_CHARS,
    cut_line_head,
    cut_line_near,
    find_line_bounds,
    show_line,
    show_trouble,
)
from sentinel.checks.log.survived_exceptions import lower_survived
from sentinel.checks.log.tracebacks import TracebackEnd, find_traceback_end, is_source_line
from sentinel.checks.log.trouble_kind import (
    EXCEPTION,
    KILLED_KIND,
    LAST_WORDS_KIND,
    NETWORK_EXCEPTION_KIND,
    NEW_LINE_KIND,
    NOT_STARTED_KIND,
    TRACEBACK,
    UNKNOWN_KIND,
    TroubleKind,
)
from sentinel.checks.log.trouble_roles import ECHO_KIND_NAMES

MAX_TROUBLES_PER_KIND = 20
"""How many errors of one kind a run keeps. The first ones are the causes, the rest are
consequences."""

MAX_LINES_AFTER_NO_START = 60  # lines after a program that did not start

MAX_STOPS = 20  # before how many consequences the last words of the text are searched

MAX_READ_TRACEBACKS = 300
"""For how many tracebacks in a run the exception is searched, over many lines each. Of further
ones, only the first line is judged."""

DIAGNOSTIC_PATTERN = re.compile(
    r"UCX +(?:DIAG|DEBUG|INFO)\b|^(?:\[\w+\]:)?[VIW]\d{4} \d\d:[\d:.]+ [^\n]{0,200}\] Traceback "
    r"|\bsysctl: |/(?:proc|sys)/\S{1,200}: Read-only file system|Read-only file system: '/(?:proc|sys)/"
)
"""Lines that only look like errors: errors of system calls that UCX handles itself
(src/ucs/debug/log.c of openucx/ucx), tracebacks in a warning of PyTorch, e.g. from torch.compile
(torch/_logging/_internal.py), and kernel settings that a container may not write (45 of MLPerf's
v3.1 logs: `vm.drop_caches`)."""

HANDLED_PATTERN = re.compile(
    r"(?i)batch[ _]?size (?:will be|was|is|has been) (?:de|re)|(?:decreas|reduc|halv|lower)ing (?:the )?(?:micro)?_?(?:batch|chunk)"
    r"|(?:retry|try)ing (?:again )?with|\btry again with|autotun|benchmark choice|skipp?ing (?:this )?(?:batch|config|sample)"
    r"|(?:will|is) (?:be )?(?:retr(?:y|ied)|run again|resubmitted)|recovered from"
)
"""Lines in which a program says how it handles an error: composer/trainer/trainer.py halves the
microbatch, torch/_inductor/select_algorithm.py and XLA's autotuner leave out a kernel, batch size
finders continue with less."""

_ELSEWHERE_PATTERN = re.compile(r"(?<![2-9>=-])>{1,2} {0,8}[^>&\s]")
"""In a shell's line about a process that was killed: its output goes to a file. Where healthy rows stand in this log, they are not its:
`nvidia-smi -l 60 > gpu.csv`, which the script kills at its end."""

FATAL_KINDS = ("CUDA error", "GPU memory error", "GPU lost", "fatal check")
"""Errors that no program survives, whatever it prints. A fatal check in an autotuner's file also
ends the process."""

_SURVIVED_PATTERN = re.compile(
    r"Exception ignored (?:in|on|while)\b|(?:Retry attempt failed:|--- Logging error ---)$"
)
"""The line before a traceback says that the program continues: finalizers of CPython
(PyErr_WriteUnraisable; those of DataLoader's iterators in many trainings), W&B's retries, and
logging's own errors."""

MAX_LINK_CHARS = 150
"""How many characters above a traceback are searched for the note that it arose while another one
was handled."""
_HANDLED_END = "another exception occurred:"
_ORIGINAL_END = "Original exception was:"
"""Between the exception of a hook that was to tell one, and that one: CPython, Python/pythonrun.c."""
_CHAINED_ENDS = (_HANDLED_END, "the following exception:")
_TRACKER_PATTERN = re.compile(r"/(?:wandb|mlflow|comet_ml|neptune|clearml|swanlab|trackio|aim)/")
MAX_FRAMES_CHARS = 8000
"""How many characters of a traceback are searched to find out whose code it is."""


def _is_survived(text: str, begin: int, survived: bool) -> bool:
    """Whether the program survives the traceback that begins here: the line before says so, or it is
    from a thread that only tracks the training. A thread of the training itself does not count,
    because it may be why the training hangs. `survived`: of the one before, to which it may belong."""
    above = text[max(0, begin - MAX_JUDGED_CHARS) : begin].rstrip()
    last = above.rpartition("\n")[2]
    traceback = text[begin : begin + MAX_FRAMES_CHARS]
    own = "Exception in thread " in last and _TRACKER_PATTERN.search(traceback) is not None
    said = own or _SURVIVED_PATTERN.search(last) or HANDLED_PATTERN.search(last)
    return bool(said or (survived and last.endswith(_CHAINED_ENDS)))


def _is_killed_elsewhere(line: str) -> bool:
    """Whether a shell says of another process, whose output goes to a file, that it was killed."""
    at = line.find("Killed  ")
    return at >= 0 and _ELSEWHERE_PATTERN.search(line, at) is not None


_TroubleMatch = tuple[int, str, TroubleKind | None]
"""The position, name and kind of a match."""


_LOADER_PATTERN = re.compile(r"shared libraries: |(?:lookup|relocation) error: |\(required by ")


def _weigh_exception(
    text: str, begin: int, found: list[tuple[int, LogTrouble]], one: LogTrouble, *, network: bool
) -> LogTrouble:
    """The exception of a traceback that begins here, after the errors before it were weighed.

    One that was caught says less than the one that arose while it was handled: its rank is lowered. One directly
    below a program whose libraries are not there only misses what that program would have made.
    """
    one = replace(one, kind=NETWORK_EXCEPTION_KIND if network else EXCEPTION)
    if not found:
        return one
    at, last = found[-1]
    above = text[max(0, begin - MAX_LINK_CHARS) : begin]
    handled = _HANDLED_END in above or _ORIGINAL_END in above
    if handled and last.kind in (EXCEPTION, NETWORK_EXCEPTION_KIND) and last.rank == one.rank:
        found[-1] = (at, replace(last, kind=TRACEBACK))
    direct = _LOADER_PATTERN.search(last.line) and find_line_bounds(text, at)[1] + 1 >= begin
    return replace(one, kind=TRACEBACK) if direct else one


MIN_ROWS_AFTER = 20
"""How many lines that say that all is well follow an error of a system call that a program survived.
Other ranks print a few more when one of them dies."""


def _is_outlived(one: tuple[int, LogTrouble], end: LogEnd) -> bool:
    """Whether this is only an error of a system call, after which the program went on."""
    at, trouble = one
    return (
        not trouble.rank
        and is_system_error_line(trouble.line)
        and end.count_rows_after(at) >= MIN_ROWS_AFTER
    )


def _ends_soon(text: str, position: int) -> bool:
    """Whether hardly anything follows. A script goes on when one of its commands is not there, unless it was told otherwise."""
    return text.count("\n", position) <= MAX_LINES_AFTER_NO_START


class TroubleFinder:
    """Searches for all kinds of errors at once, and for a user's own patterns, which are reported
    by their name.

    Lines that match `ignore` are not errors.
    """

    def __init__(
        self,
        own: "dict[str, re.Pattern[str]]",
        ignore: "list[re.Pattern[str]]",
        builtin: bool = True,
    ) -> None:
        self._own, self._ignore = own, ignore
        self._known = TROUBLE_KINDS if builtin else ()

    def find_end(
        self, text: str, path: str = "", node: str = "", earlier: str = ""
    ) -> list[tuple[int, LogTrouble]]:
        """The errors as in `find_troubles`, and beside known ones the lines that were new when the
        program ended. `earlier` is what the log said before the text."""
        hits = self._find_matches(text)
        end = read_log_end(text, earlier) if hits and self._known else LogEnd((), (), ())
        begin, found = self._find_errors(text, path, node, hits, end)
        return self._add_new_lines(text, found, end, max(begin, end.begin), path, node)

    def find_troubles(
        self, text: str, path: str = "", node: str = ""
    ) -> list[tuple[int, LogTrouble]]:
        """The errors with their positions, one per line, and at most MAX_TROUBLES_PER_KIND of a
        kind, before and after the last line that says that all is well.

        If none is a cause, the last words before each of them and those of the text are added. They
        are not added if the program recovered from an error in the last MAX_CHARS characters.
        """
        hits = self._find_matches(text)
        end = read_log_end(text) if hits and self._known else LogEnd((), (), ())
        return self._find_errors(text, path, node, hits, end)[1]

    def _find_errors(
        self, text: str, path: str, node: str, hits: "list[_TroubleMatch]", end: LogEnd
    ) -> tuple[int, list[tuple[int, LogTrouble]]]:
        """Where the last of several runs in this text begins, and its errors."""
        found, spared = self._find_known(text, path, node, hits, end)
        found = [
            one for one in found if one[1].kind != NOT_STARTED_KIND or _ends_soon(text, one[0])
        ]
        found = [one for one in lower_survived(text, found) if not _is_outlived(one, end)]
        known = any(rank_trouble(one.kind) <= CAUSE for _, one in found)
        own = [at for at, one in found if rank_trouble(one.kind) <= CAUSE and not one.rank]
        begin = find_last_beginning(text, own)
        found = [one for one in found if one[0] >= begin]
        if self._known and not (begin or known or spared >= max(0, len(text) - MAX_CHARS)):
            found = self._add_last_words(text, found, path, node)
        return begin, found

    def _add_last_words(
        self, text: str, found: list[tuple[int, LogTrouble]], path: str, node: str
    ) -> list[tuple[int, LogTrouble]]:
        """Also the last words before each of these, which follow from them, and those of the text."""
        places = {find_line_bounds(text, at) for at, _ in found}
        ends = [*(find_line_bounds(text, at)[0] for at, _ in found[:MAX_STOPS]), len(text)]
        last = [one for end in ends for one in self._find_last_words(text, end, path, node)]
        more = {one[0]: one for one in last if find_line_bounds(text, one[0]) not in places}
        return sorted([*found, *more.values()], key=lambda one: one[0])

    def _add_new_lines(
        self,
        text: str,
        found: list[tuple[int, LogTrouble]],
        end: LogEnd,
        begin: int,
        path: str,
        node: str,
    ) -> list[tuple[int, LogTrouble]]:
        """Also the lines that were new when the program ended, if one of the known errors is after
        `begin`, from where on it was not well."""
        known = [one for one in found if one[0] >= begin and one[1].kind != LAST_WORDS_KIND]
        if not (known and end.lines):
            return found
        echoes = [find_line_bounds(text, at)[0] for at, one in known if one.kind in ECHO_KIND_NAMES]
        told = {find_line_bounds(text, at)[0] for at, _ in found}
        places = find_new_lines(text, end, min(echoes, default=len(text)), told)
        more = [
            (
                at,
                show_line(
                    text,
                    at,
                    stop,
                    UNKNOWN_KIND if is_bad_line(text[at:stop]) else NEW_LINE_KIND,
                    path,
                    node,
                ),
            )
            for at, stop in places
            if at >= begin and not self._is_ignored(text, at)
        ]
        shown = {make_shape(one.line) for _, one in found}
        more = [one for one in more if make_shape(one[1].line) not in shown]
        return sorted([*found, *more], key=lambda one: one[0])

    def _find_known(
        self, text: str, path: str, node: str, hits: "list[_TroubleMatch]", well: LogEnd
    ) -> tuple[list[tuple[int, LogTrouble]], int]:
        """The known errors, and the last position where the program recovered from an error, or -1.
        Until the last row of `well`, the program was well."""
        found: list[tuple[int, LogTrouble]] = []
        counts: dict[tuple[str, bool], int] = {}
        end, survived, read, spared, said = -1, False, 0, -1, range(0)
        for number, first in enumerate(hits):
            if first[0] <= end or (first[1] == NOT_STARTED_KIND and first[0] in said):
                continue
            begin, end = find_line_bounds(text, first[0])
            match = _select_worst_match(hits, number, end)
            position, name, kind = _replace_kind(text, max(begin, match[0] - 120), match)
            if counts.get((name, begin < well.begin), 0) == MAX_TROUBLES_PER_KIND:
                continue
            if name == TRACEBACK and kind:
                if survived := _is_survived(text, begin, survived):
                    spared = position
                    continue
                read += 1
            follow = name == TRACEBACK and kind and read <= MAX_READ_TRACEBACKS
            ended = find_traceback_end(text, position) if follow else None
            if ended and _is_told_within(ended, hits):
                continue
            if (
                (ended and ended.start == said.start)  # told by the traceback before
                or (
                    kind
                    and well.rows
                    and name == KILLED_KIND
                    and _is_killed_elsewhere(text[begin:end])
                )
                or self._is_spared(text, position, ended, kind)
            ):
                spared = position
                continue
            counts[name, begin < well.begin] = counts.get((name, begin < well.begin), 0) + 1
            one = show_trouble(text, position, ended, kind, name, path, node)
            if ended and not ended.echo:
                said = range(ended.start, ended.end)
                one = _weigh_exception(text, begin, found, one, network=ended.network)
            found.append((position, one))
        return found, spared

    def _is_spared(
        self, text: str, position: int, ended: TracebackEnd | None, kind: TroubleKind | None
    ) -> bool:
        """Whether it is told to be ignored, is only printed, or the program recovered from it."""
        places = (position, ended.start) if ended else (position,)
        return any(self._is_ignored(text, at) for at in places) or bool(
            kind and (is_setting(text, position) or self._is_handled(text, position, ended, kind))
        )

    def _find_last_words(
        self, text: str, stop: int, path: str, node: str
    ) -> list[tuple[int, LogTrouble]]:
        found = find_last_words(text, stop)
        if found is None or self._is_ignored(text, found[0]):
            return []
        if HANDLED_PATTERN.search(text[found[0] : found[1]][:MAX_JUDGED_CHARS]):
            return []
        kind = UNKNOWN_KIND if stop < len(text) else LAST_WORDS_KIND
        return [(found[0], show_line(text, *found, kind, path, node))]

    def _is_ignored(self, text: str, position: int) -> bool:
        parts = {
            cut_line_head(text, find_line_bounds(text, position)[0]),
            cut_line_near(text, position),
        }
        return any(p.search(part) for p in (*self._ignore, DIAGNOSTIC_PATTERN) for part in parts)

    def _is_handled(
        self, text: str, position: int, ended: "TracebackEnd | None", kind: TroubleKind
    ) -> bool:
        """Whether the program says, on that line or about that exception, that it continues."""
        if kind.name in FATAL_KINDS:
            return False
        places = [position, *([ended.start] if ended else [])]
        return any(HANDLED_PATTERN.search(cut_line_near(text, at)) for at in places)

    def _find_matches(self, text: str) -> "list[_TroubleMatch]":
        """The matches by position. If there are two at one position, the more specific kind comes
        first and counts."""
        hits: list[_TroubleMatch] = [
            (m.start(), name, None) for name, p in self._own.items() for m in p.finditer(text)
        ]
        for kind in self._known:
            found = kind.find_matches(text)
            hits += [(at, kind.name, kind) for at, kind in found if not is_source_line(text, at)]
        return sorted(hits, key=itemgetter(0))


def _select_worst_match(hits: "list[_TroubleMatch]", number: int, end: int) -> "_TroubleMatch":
    """The match on a line that says most: an error that nothing else causes, then other known
    errors, then general ones, then echoes. If the first one is of a user's own pattern, it stays.
    """
    end = max(end, hits[number][0] + 1)
    if number + 1 == len(hits) or hits[number + 1][0] >= end:
        return hits[number]  # one of many similar lines
    line = [one for one in hits[number : number + 9] if one[0] < end]
    if line[0][2] is None:
        return line[0]
    return max(line, key=lambda one: _rank_match(one[2]))


_FABRIC_CALL_PATTERN = re.compile(r"\b(?:ibv|rdma)_\w{2,40}[^\n]{0,60}$")
_FABRIC_KIND = next(kind for kind in TROUBLE_KINDS if kind.name == "NCCL network")


def _replace_kind(text: str, begin: int, match: "_TroubleMatch") -> "_TroubleMatch":
    """The match, as an error of the network if a call of the fabric's library says it: such a call has no
    room in its own limits, not on a disk or in the host's memory."""
    position, name, kind = match
    if kind and kind.root and _FABRIC_CALL_PATTERN.search(text, begin, position):
        return position, _FABRIC_KIND.name, _FABRIC_KIND
    return position, name, kind


def _rank_match(kind: TroubleKind | None) -> int:
    if kind is None or kind.echo:
        return 0
    return 3 if kind.root else 1 if kind.general else 2


def _is_told_within(said: TracebackEnd, hits: "list[_TroubleMatch]") -> bool:
    """Whether the exception contains another error that is known, which is told by itself."""
    following = bisect_left(hits, said.start, key=lambda hit: hit[0])
    return (
        following < len(hits)
        and hits[following][0] < said.end
        and hits[following][1] != NOT_STARTED_KIND
    )
