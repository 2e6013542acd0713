"""Finds lines that say that something has gone wrong: which known error it is, and which rank it is
from. Pure."""

import re
from bisect import bisect_left
from operator import itemgetter

from msgspec.structs import replace

from sentinel.checks.log.known_troubles import GATE_WORDS, TROUBLE_KINDS
from sentinel.checks.log.last_words import MAX_CHARS, cut_last_words, find_last_words
from sentinel.checks.log.line_origin import MAX_PREFIX_CHARS, LineOrigin, find_line_origin
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.peers import find_peer_address
from sentinel.checks.log.printed_settings import is_setting
from sentinel.checks.log.ranking import CAUSE, rank_trouble
from sentinel.checks.log.run_beginnings import find_last_beginning
from sentinel.checks.log.survived_exceptions import lower_survived
from sentinel.checks.log.tracebacks import TracebackEnd, find_traceback_end
from sentinel.checks.log.trouble_kind import (
    EXCEPTION,
    LAST_WORDS_KIND,
    MAX_CHARS_AFTER,
    NETWORK_EXCEPTION_KIND,
    NOT_STARTED_KIND,
    TRACEBACK,
    TroubleKind,
)
from sentinel.core.text import shortened, visible

MAX_JUDGED_CHARS = 1000
"""How many characters on each side of a match are read. Without a limit, the time would grow with
the square of the line's length."""

SHOWN_CHARS_BEFORE = 150
"""How many characters before a match are shown. Structured logs have lines of many thousands."""

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
_CHAINED_ENDS = (_HANDLED_END, "the following exception:")
_TRACKER_PATTERN = re.compile(r"/(?:wandb|mlflow|comet_ml|neptune|clearml|swanlab|trackio|aim)/")
MAX_FRAMES_CHARS = 8000
"""How many characters of a traceback are searched to find out whose code it is."""


def _is_survived(last: str, traceback: str) -> bool:
    """Whether the program survives the traceback: the line before says so, or it is from a thread
    that only tracks the training. A thread of the training itself does not count, because it may be
    why the training hangs."""
    own = "Exception in thread " in last and _TRACKER_PATTERN.search(traceback) is not None
    return bool(own or _SURVIVED_PATTERN.search(last) or HANDLED_PATTERN.search(last))


_TroubleMatch = tuple[int, str, TroubleKind | None]
"""The position, name and kind of a match."""


_LOADER_PATTERN = re.compile(r"shared libraries: |(?:lookup|relocation) error: |\(required by ")


def _weigh_exception(
    text: str, begin: int, found: list[tuple[int, LogTrouble]], one: LogTrouble
) -> LogTrouble:
    """The exception of a traceback that begins here, after the errors before it were weighed.

    One that was caught says less than the one that arose while it was handled: its rank is lowered. One directly
    below a program whose libraries are not there only misses what that program would have made.
    """
    if not found:
        return one
    at, last = found[-1]
    handled = _HANDLED_END in text[max(0, begin - MAX_LINK_CHARS) : begin]
    if handled and last.kind in (EXCEPTION, NETWORK_EXCEPTION_KIND) and last.rank == one.rank:
        found[-1] = (at, replace(last, kind=TRACEBACK))
    direct = _LOADER_PATTERN.search(last.line) and _find_line_bounds(text, at)[1] + 1 >= begin
    return replace(one, kind=TRACEBACK) if direct else one


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

    def find_troubles(
        self, text: str, path: str = "", node: str = ""
    ) -> list[tuple[int, LogTrouble]]:
        """The errors with their positions, one per line, and at most MAX_TROUBLES_PER_KIND of a
        kind.

        If none is a cause, the last words before each of them and those of the text are added. They
        are not added if the program recovered from an error in the last MAX_CHARS characters.
        """
        found, spared = self._find_known(text, path, node)
        found = [
            one for one in found if one[1].kind != NOT_STARTED_KIND or _ends_soon(text, one[0])
        ]
        found = lower_survived(text, found)
        known = any(rank_trouble(one.kind) <= CAUSE for _, one in found)
        own = [at for at, one in found if rank_trouble(one.kind) <= CAUSE and not one.rank]
        if begin := find_last_beginning(text, own):
            return [one for one in found if one[0] >= begin]
        if not self._known or known or spared >= max(0, len(text) - MAX_CHARS):
            return found
        places = {_find_line_bounds(text, at) for at, _ in found}
        ends = [*(_find_line_bounds(text, at)[0] for at, _ in found[:MAX_STOPS]), len(text)]
        last = [one for end in ends for one in self._find_last_words(text, end, path, node)]
        more = {one[0]: one for one in last if _find_line_bounds(text, one[0]) not in places}
        return sorted([*found, *more.values()], key=lambda one: one[0])

    def _find_known(
        self, text: str, path: str, node: str
    ) -> tuple[list[tuple[int, LogTrouble]], int]:
        """The known errors, and the last position where the program recovered from an error, or -1."""
        found: list[tuple[int, LogTrouble]] = []
        counts: dict[str, int] = {}
        end, hits, survived, read, spared = -1, self._find_matches(text), False, 0, -1
        said = range(0)
        for number, first in enumerate(hits):
            if first[0] <= end or (first[1] == NOT_STARTED_KIND and first[0] in said):
                continue
            begin, end = _find_line_bounds(text, first[0])
            position, name, kind = _select_worst_match(hits, number, end)
            if counts.get(name, 0) == MAX_TROUBLES_PER_KIND:
                continue
            if name == TRACEBACK and kind:
                above = text[max(0, begin - MAX_JUDGED_CHARS) : begin].rstrip()
                last = above.rpartition("\n")[2]
                survived = _is_survived(last, text[begin : begin + MAX_FRAMES_CHARS]) or (
                    survived and last.endswith(_CHAINED_ENDS)
                )
                if survived:
                    spared = position
                    continue
                read += 1
            follow = name == TRACEBACK and kind and read <= MAX_READ_TRACEBACKS
            ended = _find_exception(text, position, hits) if follow else None
            if self._is_ignored(text, position) or (ended and self._is_ignored(text, ended.start)):
                spared = position
                continue
            if kind and (
                is_setting(text, position) or self._is_handled(text, position, ended, kind)
            ):
                spared = position
                continue
            counts[name] = counts.get(name, 0) + 1
            if ended:
                said = range(ended.start, ended.end)
                name = NETWORK_EXCEPTION_KIND if ended.network else EXCEPTION
            one = _show_trouble(text, position, ended, kind, name, path, node)
            if ended:
                one = _weigh_exception(text, begin, found, one)
            found.append((position, one))
        return found, spared

    def _find_last_words(
        self, text: str, stop: int, path: str, node: str
    ) -> list[tuple[int, LogTrouble]]:
        found = find_last_words(text, stop)
        if found is None or self._is_ignored(text, found[0]):
            return []
        line = text[found[0] : found[1]][:MAX_JUDGED_CHARS]
        if HANDLED_PATTERN.search(line):
            return []
        source = find_line_origin(line, node)
        return [
            (
                found[0],
                _make_trouble(
                    LAST_WORDS_KIND,
                    _shorten_line(cut_last_words(_drop_marks(line)), 0),
                    source,
                    line,
                    path,
                ),
            )
        ]

    def _is_ignored(self, text: str, position: int) -> bool:
        parts = {
            _cut_line_head(text, _find_line_bounds(text, position)[0]),
            _cut_line_near(text, position),
        }
        return any(p.search(part) for p in (*self._ignore, DIAGNOSTIC_PATTERN) for part in parts)

    def _is_handled(
        self, text: str, position: int, ended: "TracebackEnd | None", kind: TroubleKind
    ) -> bool:
        """Whether the program says, on that line or about that exception, that it continues."""
        if kind.name in FATAL_KINDS:
            return False
        places = [position, *([ended.start] if ended else [])]
        return any(HANDLED_PATTERN.search(_cut_line_near(text, at)) for at in places)

    def _find_matches(self, text: str) -> "list[_TroubleMatch]":
        """The matches by position. If there are two at one position, the more specific kind comes
        first and counts."""
        hits: list[_TroubleMatch] = [
            (m.start(), name, None) for name, p in self._own.items() for m in p.finditer(text)
        ]
        suspect = self._known if any(gate in text for gate in GATE_WORDS) else ()
        for kind in suspect:
            hits += [(at, kind.name, kind) for at, kind in kind.find_matches(text)]
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
    return max(
        line,
        key=lambda one: _rank_match(one[2]),
    )


def _rank_match(kind: TroubleKind | None) -> int:
    if kind is None or kind.echo:
        return 0
    return 3 if kind.root else 1 if kind.general else 2


def _find_exception(text: str, position: int, hits: "list[_TroubleMatch]") -> "TracebackEnd | None":
    """The exception of the traceback. None if it is a consequence, or if it contains a known error."""
    said = find_traceback_end(text, position)
    if said is None:
        return None
    following = bisect_left(hits, said.start, key=lambda hit: hit[0])
    known = (
        following < len(hits)
        and hits[following][0] < said.end
        and hits[following][1] != NOT_STARTED_KIND
    )
    return None if known else said


def _find_named_origin(kind: TroubleKind | None, near: str) -> LineOrigin | None:
    """The rank and node that the message itself names. None if it names none."""
    match = re.search(kind.names, near) if kind and kind.names else None
    if not match:
        return None
    said = {name.rstrip("234567"): value for name, value in match.groupdict().items() if value}
    local = f"local {said['local']}" if "local" in said else ""
    return LineOrigin(host=said.get("host", ""), rank=said.get("rank", local))


_LAST_ERROR_PATTERN = re.compile(r"\bLast error:[^\n]{0,20}\n([^\n]{1,400})")


def _find_last_error(text: str, position: int) -> str:
    """NCCL's last error, which PyTorch repeats below its exception
    (torch/csrc/distributed/c10d/NCCLUtils.cpp)."""
    found = _LAST_ERROR_PATTERN.search(text, position, position + MAX_JUDGED_CHARS)
    return "\n" + found[1] if found else ""


def _show_trouble(
    text: str,
    position: int,
    ended: "TracebackEnd | None",
    kind: TroubleKind | None,
    name: str,
    path: str,
    node: str,
) -> LogTrouble:
    """The error at this position, with its line and origin.

    `ended` is the exception at the end of a traceback. It is shown in place of the traceback.
    """
    line_begin, line_end = _find_line_bounds(text, position)
    begin = line_begin
    told = ended.start if ended else position
    exact = ended or (kind and kind.says_where)
    if exact:
        near, begin = text[told : ended.end if ended else line_end][:MAX_JUDGED_CHARS], told
    else:
        near = _cut_line_near(text, told)
    more = f" {ended.below}" if ended and ended.below else ""
    shown = _shorten_line(near.rstrip() + more, min(MAX_JUDGED_CHARS, told - begin))
    source = _find_named_origin(
        kind, text[max(line_begin, told - SHOWN_CHARS_BEFORE) : told + MAX_CHARS_AFTER]
    ) or find_line_origin(
        _cut_line_head(text, _find_line_bounds(text, begin)[0]),
        node,
        MAX_PREFIX_CHARS if exact else told - begin,
    )
    peers = near + _find_last_error(text, position) if name == "NCCL error" else near
    return _make_trouble(name, shown, source, peers, path)


def _make_trouble(name: str, shown: str, source: LineOrigin, near: str, path: str) -> LogTrouble:
    return LogTrouble(
        kind=name,
        line=shown,
        host=visible(source.host),
        rank=source.rank,
        peer=find_peer_address(near),
        path=path,
    )


def _drop_marks(line: str) -> str:
    """A long line without the marks of loggers before the text."""
    marks = line.rfind("] ", 0, SHOWN_CHARS_BEFORE) if len(line) > SHOWN_CHARS_BEFORE else -1
    return f"…{line[marks + 2 :]}" if marks >= 0 else line


def _shorten_line(line: str, at: int) -> str:
    """The line from its beginning, or from a little before the match."""
    start = at - SHOWN_CHARS_BEFORE if at > 2 * SHOWN_CHARS_BEFORE else 0
    return ("…" if start else "") + shortened(visible(line[start:].strip()), 300)


def _cut_line_head(text: str, begin: int) -> str:
    """The part of a line that is searched, from its beginning."""
    return text[begin : min(_find_line_bounds(text, begin)[1], begin + MAX_JUDGED_CHARS)]


def _cut_line_near(text: str, position: int) -> str:
    """The part of the line around a position that is searched."""
    begin, end = _find_line_bounds(text, position)
    return text[max(begin, position - MAX_JUDGED_CHARS) : min(end, position + MAX_JUDGED_CHARS)]


def _find_line_bounds(text: str, position: int) -> tuple[int, int]:
    """Beginning and end of the line around a position."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)
