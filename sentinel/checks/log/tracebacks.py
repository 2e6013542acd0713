"""Finds the exception at the end of a Python traceback. Pure.

The format is CPython's, Lib/traceback.py, `TracebackException.format`: frames are indented, the
exception is not.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

CHARACTERS, LINES = 2**14, 400
"""How much text after a traceback's first line is searched for its end."""

_MARK_PATTERN = re.compile(r"(?:\[[^\[\]\n]{1,40}\]:? ?|\([^()\n]{1,80}\) |\d{1,6}: )$")
_EXCEPTION_PATTERN = re.compile(
    r"(?:(?:[A-Za-z_]\w{0,60}\.){1,12}(?:<locals>\.)?[A-Z_]\w{0,80}|[A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt|Failure|Timeout|Iteration)"
    r"|Exception|(?:socket|struct|zlib|binascii|shutil|select)\.\w{1,20})(?:\(\w{1,60}\))?(?::(?=\s|$)|\s*$)"
)
_OTHER_EXCEPTION_PATTERN = re.compile(
    r"(?!INFO|WARN|ERROR|DEBUG|FATAL)(?:[A-Z]|(?:[A-Za-z_]\w{0,60}\.){1,12})\w{1,60}(?::(?=\s|$)|$)"
)
"""An exception with any name. It is recognised only directly below a frame."""

_NETWORK_PATTERN = re.compile(
    r"(?:[\w.]{0,80}\.)?(?:\w{0,40}Connection\w{0,20}Error|gaierror|timeout|HTTPError|HTTPStatusError|URLError|MaxRetryError"
    r"|ProtocolError|SSLError|\w{0,40}Timeout|RemoteDisconnected|\w{0,10}EngineDeadError|CommError|BrokenPipeError|TimeoutError)\b"
    r"|RuntimeError: (?:Connection (?:reset|refused|closed)|Broken pipe|Socket )"
)
"""Exceptions that arise when a peer is gone or a web service fails. They count as a cause only if
there is no better one."""
_CONSEQUENCE_PATTERN = re.compile(
    r"(?:[\w.]{0,80}\.)?(?:ChildFailedError|Dist\w{1,20}Error|CalledProcessError|EOFError|KeyboardInterrupt|SystemExit"
    r"|Process\w{1,20}Exception|SignalException|Rendezvous\w{1,20}|(?:Ray)?Actor\w{1,20}Error|Ray\w{1,20}Error"
    r"|SimplifiedTraceback|WorkerCrashedError|HorovodInternalError|RemoteError|CancelledError|Empty|AbortedError|FailedException"
    r"|(?:Base)?ExceptionGroup)\b"
    r"|RuntimeError: DataLoader worker|\w{1,60}: [^\n]{0,200}\b(?:exited|died|returned|terminated|finished|failed) (?:with )?(?:a )?non-?zero\b"
)
"""Exceptions that follow the death of another process: those of launchers and other processes, and
errors of a worker that PyTorch raises again (torch/_utils.py, ExceptionWrapper). Also the head of
an exception group, whose members follow it, and the exception by which JAX says that it hides frames
(jax/_src/traceback_util.py)."""
_GROUP_PATTERN = re.compile(r"(?:[\w.]{0,80}\.)?(?:Base)?ExceptionGroup\b")
_MEMBER_PATTERN = re.compile(r"-{3,16} 1 -{3,16}")
"""The line above the first member of a group."""
_WORDLESS_PATTERN = re.compile(
    r"(?<![\w.])[\w.]{1,120}(?=[ \t\r]{0,3}\n[ \t]{0,3}\n[^\n]{0,60}During handling of the above)"
)
"""An exception that says nothing. Another one below it says more."""
_CARRIED_PATTERN = re.compile(
    r"(?!Traceback \(most recent call last\):\s*$)[^\n]{0,60}\bTraceback \(most recent call last\)"
)
"""Directly below an exception, a traceback in other words than Python's own: the exception carries that of
another process, as of a DataLoader's worker (torch/_utils.py, ExceptionWrapper) or of a rank that saved
(torch/distributed/checkpoint/api.py)."""
MAX_CHAIN_CHARS = 200
"""How many characters below an exception are searched for another exception."""
MAX_SHOWN_MARK_CHARS = 20
"""A mark of so many characters before an exception is shown with it: it names a rank. A logger's is longer."""
_BOX_PATTERN = re.compile(r"( ?)[╭┌┏][─━ ]+$")
"""The left part of the box that rich draws around a traceback."""


_ANNOUNCING_PATTERN = re.compile(r"(?::| raised| error\(s\) found\.| errors? for \S{1,200})\s*\Z")
"""The end of an exception's first line that only says that more follows: `Error(s) in loading state_dict for GPT:`,
`1 validation error for Config`."""
_HEADING_PATTERN = re.compile(r"\s*(?:$|\^|File \"|[^\n]{0,200}:\s*$|Node: )")
"""A line below it that says no more than it: a heading, a frame, or the place in TensorFlow's graph."""
MAX_LINES_BELOW = 40
"""How many lines below an exception are searched for what it says."""


_SOURCE_PATTERN = re.compile(
    r"(?:^|[\s\]:|])(File) \"[^\"\n]{1,300}\", line \d{1,9}(?:, in [^\n]{1,200})?\s*$"
)
"""The line of a frame; below it stands a line of the program's source, two columns further in, or nothing
(traceback.format_list() of Python)."""


class TracebackEnd(Struct, frozen=True):
    """The position of a traceback's exception. `network` means that a connection or a service
    failed, `echo` that another process died, so that the exception names no cause."""

    start: int  # Where the exception begins in the text, behind a long mark of a logger.
    end: int  # Where it ends.
    network: bool = False
    echo: bool = False
    below: str = ""  # What it says in a further line, if its first line only announces that.


def _find_words_below(text: str, start: int, end: int, mark: "re.Pattern[str] | str") -> str:
    """What an exception says below its first line, if that line ends where the words should begin."""
    if not _ANNOUNCING_PATTERN.search(text, max(start, end - 300), end):
        return ""
    code, name = False, ""
    for line in text[end + 1 : end + CHARACTERS].split("\n", MAX_LINES_BELOW)[:MAX_LINES_BELOW]:
        said = _strip_line_mark(mark, line[:400])
        if said.startswith(("Traceback ", "During handling", "The above exception")):
            break
        if not (_HEADING_PATTERN.match(said) or code):
            if name or " " in said.strip():
                return f"{name}{said.strip()}"
            name = f"{said.strip()}: "
        code = said.lstrip().startswith('File "')
    return ""


def is_source_line(text: str, position: int) -> bool:
    """Whether the line is the source of a frame. The program did not print it, and what it would say may
    not be what went wrong: that stands below the frames."""
    end = text.rfind("\n", 0, position)
    begin = text.rfind("\n", 0, max(0, end)) + 1
    frame = _SOURCE_PATTERN.search(text, max(begin, end - 600), end) if end > 0 else None
    return frame is not None and text.startswith("  ", end + 1 + frame.start(1) - begin)


def find_traceback_end(text: str, position: int) -> TracebackEnd | None:
    """The exception of the traceback at this position.

    None if the traceback is not complete yet. Lines of other ranks may stand in between. They have
    other marks at their beginning. If an exception of another process is shown first (Ray), the
    process's own frames follow it, and they count.
    """
    at = text.find("\n", position) + 1
    if escaped := _find_escaped_end(text, position, at - 1 if at else len(text)):
        return escaped
    begin = max(text.rfind("\n", 0, position) + 1, position - 200)
    before = _BOX_PATTERN.sub(r"\1", text[begin:position])
    mark = _find_line_mark(before, text[at : at + 200])
    indent = before if before.isspace() else ""
    found: TracebackEnd | None = None
    framed = said = False
    for _ in range(LINES if at else 0):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        rest = _strip_line_mark(mark, text[at : min(end, at + 400)]).removeprefix(indent)
        if rest[:1] in (" ", "\t", "╰"):
            framed = framed or rest.lstrip().startswith(("File ", "╰"))
            said = said and not framed
        elif said and _CARRIED_PATTERN.match(rest):
            found, framed, said = None, False, False
        elif rest.strip() and said:
            return found
        elif _EXCEPTION_PATTERN.match(rest) or (framed and _OTHER_EXCEPTION_PATTERN.match(rest)):
            below = text[end : end + MAX_CHAIN_CHARS]
            start = min(end, at + 400) - len(rest)
            start = at if start - at <= MAX_SHOWN_MARK_CHARS else start
            found, framed, said = _classify_exception(rest, start, end, below), False, True
            found = replace(found, below=_find_words_below(text, start, end, mark))
            if _WORDLESS_PATTERN.match(text, end - len(rest), end + MAX_CHAIN_CHARS):
                return None
        at = end + 1
        if at > min(len(text), position + CHARACTERS):
            break
    return found


def _classify_exception(said: str, start: int, end: int, below: str = "") -> TracebackEnd:
    """The head of a group is an echo if its members are in `below`."""
    alone = _GROUP_PATTERN.match(said) and not _MEMBER_PATTERN.search(below)
    echo = _CONSEQUENCE_PATTERN.match(said) is not None and not alone
    return TracebackEnd(start, end, _NETWORK_PATTERN.match(said) is not None, echo)


def _find_escaped_end(text: str, position: int, end: int) -> TracebackEnd | None:
    """The end of a traceback within a JSON string, where line ends are written as two characters."""
    line = text[position : min(end, position + CHARACTERS)]
    at = len("Traceback (most recent call last):")
    if line[at : at + 2] != "\\n":
        return None
    stop = re.compile(r'(?<!\\)"').search(line)
    parts = line[: stop.start() if stop else len(line)].split("\\n")
    start = position
    for number, part in enumerate(parts):
        if number and _EXCEPTION_PATTERN.match(part):
            return _classify_exception(part, start, start + len(part))
        start += len(part) + 2
    return None


def _strip_line_mark(mark: "re.Pattern[str] | str", line: str) -> str:
    """The text of the line after the mark. Empty if the line does not have the mark."""
    if isinstance(mark, str):
        before, _, rest = line.partition(mark) if mark else ("", "", line)
        return rest.removeprefix(" ") if mark and len(before) < 200 else "" if mark else rest
    found = mark.match(line)
    return line[found.end() :] if found else ""


def _find_line_mark(before: str, following: str) -> "re.Pattern[str] | str":
    """The text before each line of the traceback: a launcher's mark, or whatever a logger writes.
    The time in it may differ from line to line. None if the first frame has none: then the text is
    of another line without an end, such as a bar's."""
    if following.startswith('  File "'):
        return ""
    found, own = _MARK_PATTERN.search(before), before.strip()
    if found and found[0].strip() in following:
        return found[0].strip()
    if own.endswith("+ Exception Group"):
        return "|"
    if own:
        # not {1,12}: with two in a row, the search would try all ways to divide them
        words = re.split(r"\d+", before)
        same = re.compile(r"\d+".join(map(re.escape, words)))
        if same.match(following):
            return same
    if found:
        return found[0].strip()
    return own if following.lstrip().startswith(own) else ""
