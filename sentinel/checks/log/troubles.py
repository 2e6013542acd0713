"""Lines that say that something has gone wrong: which of the known ones, from whom. Pure."""

import re
from bisect import bisect_left

from msgspec import Struct

from sentinel.checks.log.known_troubles import (
    EXCEPTION,
    GATE_WORDS,
    MAX_CHARS_AFTER,
    NETWORK_EXCEPTION_KIND,
    TRACEBACK,
    TROUBLE_KINDS,
    TroubleKind,
)
from sentinel.checks.log.tracebacks import TracebackEnd, find_traceback_end
from sentinel.core.text import shortened, visible

# Which node and rank a line comes from, by the marks that launchers put before lines. Pure.


_TIME_PATTERN = re.compile(r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ][\d:.,]{8,18}Z?\]?:? ")
"""As container runtimes and loggers put before lines that have marks of their own."""

_MARK_PATTERNS = (
    # `[node-3:17]: text`, and `[17]: text` as pdsh and ompi do
    re.compile(r"^\[(?P<host>[A-Za-z][\w.-]*)[:,](?P<rank>\d{1,6})\](?=:)"),
    # Open MPI and UCX: a process of a host
    re.compile(
        r"^(?:\[\d{9,11}\.\d{3,6}\] )?\[(?P<host>[A-Za-z][\w.-]*):\d+ *(?::[\da-f]{1,9}){0,2}\] "
    ),
    re.compile(r"^\[(?P<rank>\d{1,6})\]:? "),
    # Open MPI, --tag-output
    re.compile(r"^\[\d{1,6},(?P<rank>\d{1,6})\]<std(?:out|err)>: ?"),
    # Ray, of a worker
    re.compile(r"^\((?:[\w.]+ )?pid=\d+(?:, ip=(?P<host>[\w.:-]+))?\) "),
    # torchrun --tee, and PyTorch's own distributed messages
    re.compile(r"^\[(?:default|rank|Rank )(?P<rank>\d{1,6})\]"),
    re.compile(r"^\[\w+ Rank (?P<rank>\d{1,6})\]"),
    # NCCL: host:pid:thread [device]
    re.compile(r"^(?P<host>[A-Za-z][\w.-]*):\d+:\d+ \[-?\d+\] "),
)
_PLAIN_MARK_PATTERNS = (
    # srun --label
    re.compile(r"^ {0,5}(?P<rank>\d{1,6}): "),
    # pdsh, clush
    re.compile(
        r"^(?P<host>(?!\S{0,200}(?:Error|Exception|Warning|Exit):)(?=[A-Za-z][A-Za-z_.-]*\d)[\w.-]+|\d{1,3}(?:\.\d{1,3}){3}): "
    ),
)
"""After a time they would be anything: a logger's name, a count."""

MAX_PREFIX_CHARS = 300  # characters in which marks are looked for
_LOCAL_RANK_PATTERN = re.compile(r"^\[default\d")
_WITHIN_LINE_PATTERN = re.compile(r"\[rank(\d{1,6})\]:")


class LineOrigin(Struct, frozen=True):
    """Either may be empty: not told. `rank` is "local N" where only that is known."""

    host: str = ""
    rank: str = ""

    @property
    def shown_text(self) -> str:
        """`rank 17 on node-3`."""
        rank = f"rank {self.rank}" if self.rank and not self.rank.startswith("local") else ""
        rank = rank or (self.rank.replace("local", "local rank") if self.rank else "")
        return " on ".join(part for part in (rank, self.host) if part)


def find_line_origin(line: str, node: str = "", at: int = 0) -> LineOrigin:
    """By the prefixes of the line, which may stand one after the other; `node` wrote the file. `at`: where
    in the line somebody speaks: a progress bar may stand before it, which ends no line."""
    host = rank = local = ""
    rest = line[:MAX_PREFIX_CHARS]
    for _ in range(4):
        if time := _TIME_PATTERN.match(rest):
            rest = rest[time.end() :]
        marks = _MARK_PATTERNS if time else (*_MARK_PATTERNS, *_PLAIN_MARK_PATTERNS)
        match = next((m for m in (mark.match(rest) for mark in marks) if m), None)
        if match is None:
            break
        found = match.groupdict()
        host = host or found.get("host") or ""
        if _LOCAL_RANK_PATTERN.match(rest):
            local = local or f"local {found['rank']}"
        else:
            rank = rank or found.get("rank") or ""
        rest = rest[match.end() :].lstrip(": ")
    if not rank and not local:
        rank = next(
            iter(_WITHIN_LINE_PATTERN.findall(line[max(0, at - MAX_PREFIX_CHARS) : at + 1])[-1:]),
            "",
        )
    return LineOrigin(host=host or node, rank=rank or local)


MAX_JUDGED_CHARS = 1000
"""Characters of a line that are looked at on each side of what was found there: nobody's line
shall cost its length squared."""

SHOWN_CHARS_BEFORE = 150
"""Characters that are shown before it: structured logs write lines of many thousands."""

MAX_TROUBLES_PER_KIND = 20
"""Troubles that one look keeps: the first ones are the causes, the rest are their echo."""


MAX_READ_TRACEBACKS = 300
"""Tracebacks of one look whose exceptions are looked for, each on many lines: of further ones only
the first line is judged."""

DIAGNOSTIC_PATTERN = re.compile(
    r"UCX +(?:DIAG|DEBUG|INFO)\b|^(?:\[\w+\]:)?[VIW]\d{4} \d\d:[\d:.]+ [^\n]{0,200}\] Traceback "
    r"|\bsysctl: |/(?:proc|sys)/\S{1,200}: Read-only file system|Read-only file system: '/(?:proc|sys)/"
)
"""Errors of system calls that UCX gets over by itself (src/ucs/debug/log.c of openucx/ucx),
tracebacks that a warning of PyTorch shows, as torch.compile does (torch/_logging/_internal.py), and the
kernel's settings, which a container may not write (45 of MLPerf's v3.1 logs: `vm.drop_caches`)."""


HANDLED_PATTERN = re.compile(
    r"(?i)batch[ _]?size (?:will be|was|is|has been) (?:de|re)|(?:decreas|reduc|halv|lower)ing (?:the )?(?:micro)?_?(?:batch|chunk)"
    r"|(?:retry|try)ing (?:again )?with|\btry again with|autotun|benchmark choice|skipp?ing (?:this )?(?:batch|config|sample)"
    r"|will (?:be )?retr(?:y|ied)|recovered from"
)
"""A program that says of an error what it does about it: composer/trainer/trainer.py halves the microbatch,
torch/_inductor/select_algorithm.py and XLA's autotuner leave out a kernel, batch size finders go on with less."""

FATAL_KINDS = ("CUDA error", "GPU memory error", "GPU lost")
"""What no program gets over, whatever it says."""

_VARIABLE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]{2,60}=")
_SETTING_PATTERN = re.compile(r"(?:\b[\w.-]{1,60}|^)(?:=|['\"] ?: ?)['\"]?$")
_MESSAGE_KEY_PATTERN = re.compile(
    r"(?i)err|msg|message|exc|reason|detail|text|log|what|cause|event|status|trace|output"
)


def is_setting(text: str, at: int) -> bool:
    """Whether what stands there is the value or the name of a setting that somebody printed, such as
    `mode=oom_killer` or `CUDA_ERROR_LEVEL=50`. What is called a message or an error is none."""
    begin = text.rfind("\n", 0, at) + 1
    if _VARIABLE_PATTERN.match(text, at) or _VARIABLE_PATTERN.match(text, begin, begin + 64):
        return True
    key = _SETTING_PATTERN.search(text[max(begin, at - 70) : at])
    return key is not None and key.end() > 1 and not _MESSAGE_KEY_PATTERN.search(key[0])


_SURVIVED_PATTERN = re.compile(
    r"^[^\n]{0,200}(?:Exception ignored (?:in|on|while)\b[^\n]*|Retry attempt failed:|--- Logging error ---)\s*\Z",
    re.M,
)
_CHAINED_PATTERN = re.compile(r"(?:another exception occurred|the following exception):\s*\Z")
"""The line before a traceback that says that the program goes on: finalizers of CPython (PyErr_WriteUnraisable;
those of DataLoader's iterators in many trainings), W&B's retries, and logging's own errors."""


_THREAD_PATTERN = re.compile(r"Exception in thread [^\n]{0,200}\s*\Z")
_TRACKER_PATTERN = re.compile(r"/(?:wandb|mlflow|comet_ml|neptune|clearml|swanlab|trackio|aim)/")
MAX_FRAMES_CHARS = 8000
"""Characters of a traceback in which it is looked for whose code it is."""


def _is_survived(before: str, traceback: str) -> bool:
    """Whether the line before a traceback says that the program gets over it, or it is a thread of what
    only tracks the training. (A thread of the training itself may be why it hangs.)"""
    last = before.rstrip().rpartition("\n")[2]
    own = (
        _THREAD_PATTERN.search(before) is not None
        and _TRACKER_PATTERN.search(traceback) is not None
    )
    return bool(own or _SURVIVED_PATTERN.search(before) or HANDLED_PATTERN.search(last))


class LogTrouble(Struct, frozen=True, kw_only=True):
    """One line that was found; `line` is made visible and short. `peer`: an address in it."""

    kind: str
    line: str
    host: str = ""
    rank: str = ""
    peer: str = ""
    path: str = ""

    @property
    def origin_text(self) -> str:
        """`rank 17 on node-3`, or empty."""
        return LineOrigin(host=self.host, rank=self.rank).shown_text


_TroubleMatch = tuple[int, str, TroubleKind | None]
"""Where something stands, what it is called, and which of the known kinds it is."""


class TroubleFinder:
    """Looks for all kinds at once, and for a user's own patterns, which are told by their name.

    Lines that match `ignore` are no trouble.
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
        """With the position of each; one of a line, and at most MOST of a kind."""
        found: list[tuple[int, LogTrouble]] = []
        counts: dict[str, int] = {}
        end, hits, survived, read = -1, self._find_matches(text), False, 0
        for number, first in enumerate(hits):
            if first[0] <= end:
                continue
            begin, end = _find_line_bounds(text, first[0])
            position, name, kind = _select_worst_match(hits, number, end)
            if counts.get(name, 0) == MAX_TROUBLES_PER_KIND:
                continue
            if name == TRACEBACK and kind:
                before = text[max(0, begin - MAX_JUDGED_CHARS) : begin]
                survived = _is_survived(before, text[begin : begin + MAX_FRAMES_CHARS]) or bool(
                    survived and _CHAINED_PATTERN.search(before)
                )
                if survived:
                    continue
                read += 1
            follow = name == TRACEBACK and kind and read <= MAX_READ_TRACEBACKS
            ended = _find_exception(text, position, hits) if follow else None
            if self._is_ignored(text, position) or (ended and self._is_ignored(text, ended.start)):
                continue
            if kind and (
                is_setting(text, position) or self._is_handled(text, position, ended, kind)
            ):
                continue
            counts[name] = counts.get(name, 0) + 1
            if ended:
                name = NETWORK_EXCEPTION_KIND if ended.network else EXCEPTION
            begin = told = ended.start if ended else position
            begin = begin if ended else _find_line_bounds(text, position)[0]
            near = (
                text[told : ended.end][:MAX_JUDGED_CHARS] if ended else _cut_line_near(text, told)
            )
            shown = _shorten_line(near, min(MAX_JUDGED_CHARS, told - begin))
            source = _find_named_origin(
                kind, text[max(begin, told - SHOWN_CHARS_BEFORE) : told + MAX_CHARS_AFTER]
            ) or find_line_origin(
                _cut_line_head(text, _find_line_bounds(text, begin)[0]),
                node,
                MAX_PREFIX_CHARS if ended else told - begin,
            )
            found.append((position, _make_trouble(name, shown, source, near, path)))
        return found

    def _is_ignored(self, text: str, position: int) -> bool:
        parts = {
            _cut_line_head(text, _find_line_bounds(text, position)[0]),
            _cut_line_near(text, position),
        }
        return any(p.search(part) for p in (*self._ignore, DIAGNOSTIC_PATTERN) for part in parts)

    def _is_handled(
        self, text: str, position: int, ended: "TracebackEnd | None", kind: TroubleKind
    ) -> bool:
        """Whether the program says on that line, or of that exception, that it goes on."""
        if kind.name in FATAL_KINDS:
            return False
        places = [position, *([ended.start] if ended else [])]
        return any(HANDLED_PATTERN.search(_cut_line_near(text, at)) for at in places)

    def _find_matches(self, text: str) -> "list[_TroubleMatch]":
        """By position; of two on one place the more specific kind, which stands first."""
        hits = [(m.start(), name, None) for name, p in self._own.items() for m in p.finditer(text)]
        suspect = self._known if any(gate in text for gate in GATE_WORDS) else ()
        known = [hit for kind in suspect for hit in kind.find_matches(text)]
        every = [*hits, *((at, kind.name, kind) for at, kind in known)]
        return sorted(every, key=lambda hit: hit[0])


def _select_worst_match(hits: "list[_TroubleMatch]", number: int, end: int) -> "_TroubleMatch":
    """Of those on one line the one that says most: what nothing else brings about, then what is no echo.
    What a user asked for stays."""
    line = [one for one in hits[number : number + 9] if one[0] < max(end, hits[number][0] + 1)]
    if line[0][2] is None:
        return line[0]
    return max(
        line,
        key=lambda one: 2 if one[2] and one[2].root else 1 if one[2] and not one[2].echo else 0,
    )


def _find_exception(text: str, position: int, hits: "list[_TroubleMatch]") -> "TracebackEnd | None":
    """The exception of the traceback there, if it is the cause, and nothing known."""
    said = find_traceback_end(text, position)
    if said is None:
        return None
    following = bisect_left(hits, said.start, key=lambda hit: hit[0])
    known = following < len(hits) and hits[following][0] < said.end
    return None if known else said


def _find_named_origin(kind: TroubleKind | None, near: str) -> LineOrigin | None:
    """Who is named by what is said, rather than by the line's own marks."""
    match = re.search(kind.names, near) if kind and kind.names else None
    if not match:
        return None
    said = {name.rstrip("23456"): value for name, value in match.groupdict().items() if value}
    local = f"local {said['local']}" if "local" in said else ""
    return LineOrigin(host=said.get("host", ""), rank=said.get("rank", local))


def _make_trouble(name: str, shown: str, source: LineOrigin, near: str, path: str) -> LogTrouble:
    from sentinel.checks.log.peers import find_peer_address

    return LogTrouble(
        kind=name,
        line=shown,
        host=visible(source.host),
        rank=source.rank,
        peer=find_peer_address(near),
        path=path,
    )


def _shorten_line(line: str, at: int) -> str:
    """From its beginning, or from a little before what was found in it."""
    start = at - SHOWN_CHARS_BEFORE if at > 2 * SHOWN_CHARS_BEFORE else 0
    return ("…" if start else "") + shortened(visible(line[start:].strip()), 300)


def _cut_line_head(text: str, begin: int) -> str:
    """What is looked at of the line that begins there."""
    return text[begin : min(_find_line_bounds(text, begin)[1], begin + MAX_JUDGED_CHARS)]


def _cut_line_near(text: str, position: int) -> str:
    """That part of the line around a position which is looked at."""
    begin, end = _find_line_bounds(text, position)
    return text[max(begin, position - MAX_JUDGED_CHARS) : min(end, position + MAX_JUDGED_CHARS)]


def _find_line_bounds(text: str, position: int) -> tuple[int, int]:
    """Where the line around a position begins and ends."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)
