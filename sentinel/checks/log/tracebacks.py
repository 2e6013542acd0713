"""What a Python traceback ends with: the exception that says why. Pure.

The form is that of CPython, Lib/traceback.py, `TracebackException.format`: frames are indented, the
exception is not.
"""

import re

from msgspec import Struct

CHARACTERS, LINES = 2**14, 400
"""Of a text after a traceback's first line in which its end is looked for."""

_MARK_PATTERN = re.compile(r"(?:\[[^\[\]\n]{1,40}\]:? ?|\([^()\n]{1,80}\) |\d{1,6}: )$")
_EXCEPTION_PATTERN = re.compile(
    r"(?:(?:[A-Za-z_]\w{0,60}\.){1,12}(?:<locals>\.)?[A-Z_]\w{0,80}|[A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt|Failure|Timeout|Iteration)"
    r"|Exception|(?:socket|struct|zlib|binascii|shutil|select)\.\w{1,20})(?:\(\w{1,60}\))?(?::(?=\s|$)|\s*$)"
)
_OTHER_EXCEPTION_PATTERN = re.compile(
    r"(?!INFO|WARN|ERROR|DEBUG|FATAL)[A-Z]\w{0,60}(?::(?=\s|$)|$)"
)
"""An exception by a name of its own, which no word of the language tells: right below a frame only."""

_NETWORK_PATTERN = re.compile(
    r"(?:[\w.]{0,80}\.)?(?:\w{0,40}Connection\w{0,20}Error|gaierror|timeout|HTTPError|HTTPStatusError|URLError|MaxRetryError"
    r"|ProtocolError|SSLError|\w{0,40}Timeout|RemoteDisconnected|\w{0,10}EngineDeadError|CommError|BrokenPipeError|TimeoutError)\b"
    r"|RuntimeError: (?:Connection (?:reset|refused|closed)|Broken pipe|Socket )"
)
"""What a peer that is gone brings about, and what a service on the web does, which is tried again: a
cause where nothing better is told."""
_CONSEQUENCE_PATTERN = re.compile(
    r"(?:[\w.]{0,80}\.)?(?:ChildFailedError|Dist\w{1,20}Error|CalledProcessError|EOFError|KeyboardInterrupt|SystemExit"
    r"|Process\w{1,20}Exception|SignalException|Rendezvous\w{1,20}|(?:Ray)?Actor\w{1,20}Error|Ray\w{1,20}Error"
    r"|WorkerCrashedError|HorovodInternalError|RemoteError|CancelledError|Empty|AbortedError|FailedException)\b"
    r"|RuntimeError: DataLoader worker"
)
"""What launchers and other processes raise because one of theirs has died."""


class TracebackEnd(Struct, frozen=True):
    """Where the exception of a traceback stands; `network`: a connection or a service failed."""

    start: int
    end: int
    network: bool = False


def find_traceback_end(text: str, position: int) -> TracebackEnd | None:
    """The exception of the traceback at this position; None where its end is not there yet, or where
    it is one that another process brought about.

    Lines of other ranks, which may stand between, have other marks before them. Below an exception
    that carries one of another process (Ray) that one's own frames follow, and count.
    """
    begin = text.rfind("\n", 0, position) + 1
    at = text.find("\n", position) + 1
    if escaped := _find_escaped_end(text, position, at - 1 if at else len(text)):
        return escaped
    mark = _find_line_mark(text[max(begin, position - 200) : position], text[at : at + 200])
    found: TracebackEnd | None = None
    framed = said = False
    for _ in range(LINES if at else 0):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        rest = _strip_line_mark(mark, text[at : min(end, at + 400)])
        if rest[:1] in (" ", "\t"):
            framed = framed or rest.lstrip().startswith("File ")
            said = said and not framed
        elif rest.strip() and said:
            return found
        elif _EXCEPTION_PATTERN.match(rest) or (framed and _OTHER_EXCEPTION_PATTERN.match(rest)):
            found, framed, said = _classify_exception(rest, at, end), False, True
        at = end + 1
        if at > min(len(text), position + CHARACTERS):
            break
    return found


def _classify_exception(said: str, start: int, end: int) -> TracebackEnd | None:
    if _CONSEQUENCE_PATTERN.match(said):
        return None
    return TracebackEnd(start, end, network=_NETWORK_PATTERN.match(said) is not None)


def _find_escaped_end(text: str, position: int, end: int) -> TracebackEnd | None:
    """Within a string of JSON, whose ends of lines are written as two characters."""
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
    """What stands on the line behind the mark; empty where it has none."""
    if isinstance(mark, str):
        before, _, rest = line.partition(mark) if mark else ("", "", line)
        return rest.removeprefix(" ") if mark and len(before) < 200 else "" if mark else rest
    found = mark.match(line)
    return line[found.end() :] if found else ""


def _find_line_mark(before: str, following: str) -> "re.Pattern[str] | str":
    """What stands before each line of it: a launcher's mark, or whatever a logger writes, in which
    the time may be another one."""
    found, own = _MARK_PATTERN.search(before), before.strip()
    if found and found[0].strip() in following:
        return found[0].strip()
    if own.endswith("+ Exception Group"):
        return "|"
    if own:
        words = re.split(r"\d+", before)  # not {1,12}: two in a row would be tried in all ways
        same = re.compile(r"\d+".join(map(re.escape, words)))
        if same.match(following):
            return same
    if found:
        return found[0].strip()
    return own if following.lstrip().startswith(own) else ""
