"""How an error of a log is shown: its line, shortened, and where it comes from. Pure."""

import re

from sentinel.checks.log.last_words import cut_last_words
from sentinel.checks.log.line_origin import MAX_PREFIX_CHARS, LineOrigin, find_line_origin
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.peers import find_peer_address
from sentinel.checks.log.tracebacks import TracebackEnd
from sentinel.checks.log.trouble_kind import MAX_CHARS_AFTER, TroubleKind
from sentinel.core.text import shortened, visible

MAX_JUDGED_CHARS = 1000
"""How many characters on each side of a match are read. Without a limit, the time would grow with
the square of the line's length."""

SHOWN_CHARS_BEFORE = 150
"""How many characters before a match are shown. Structured logs have lines of many thousands."""


def show_line(text: str, begin: int, end: int, kind: str, path: str, node: str) -> LogTrouble:
    """A line as an error of this kind."""
    line = text[begin:end][:MAX_JUDGED_CHARS]
    shown = _shorten_line(cut_last_words(_drop_marks(line)), 0)
    return _make_trouble(kind, shown, find_line_origin(line, node), line, path)


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


def show_trouble(
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
    line_begin, line_end = find_line_bounds(text, position)
    begin = line_begin
    told = ended.start if ended else position
    exact = ended or (kind and kind.says_where)
    if exact:
        near, begin = text[told : ended.end if ended else line_end][:MAX_JUDGED_CHARS], told
    else:
        near = cut_line_near(text, told)
    more = f" {ended.below}" if ended and ended.below else ""
    shown = _shorten_line(near.rstrip() + more, min(MAX_JUDGED_CHARS, told - begin))
    source = _find_named_origin(
        kind, text[max(line_begin, told - SHOWN_CHARS_BEFORE) : told + MAX_CHARS_AFTER]
    ) or find_line_origin(
        cut_line_head(text, find_line_bounds(text, begin)[0]),
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


def cut_line_head(text: str, begin: int) -> str:
    """The part of a line that is searched, from its beginning."""
    return text[begin : min(find_line_bounds(text, begin)[1], begin + MAX_JUDGED_CHARS)]


def cut_line_near(text: str, position: int) -> str:
    """The part of the line around a position that is searched."""
    begin, end = find_line_bounds(text, position)
    return text[max(begin, position - MAX_JUDGED_CHARS) : min(end, position + MAX_JUDGED_CHARS)]


def find_line_bounds(text: str, position: int) -> tuple[int, int]:
    """Beginning and end of the line around a position."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)
