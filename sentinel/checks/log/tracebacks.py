"""What a Python traceback ends with: the exception that says why. Pure.

The form is that of CPython, Lib/traceback.py, `TracebackException.format`: frames are indented, the
exception is not.
"""

import re

CHARACTERS, LINES = 2**14, 400
"""Of a text after a traceback's first line in which its end is looked for."""

_MARK = re.compile(r"(?:\[[^\[\]\n]{1,40}\]:? ?|\([^()\n]{1,80}\) |\d{1,6}: )$")
_EXCEPTION = re.compile(
    r"(?:(?:[A-Za-z_]\w*\.)+[A-Z_]\w*|[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Timeout|Iteration)|socket\.\w+)(?::(?=\s|$)|$)"
)
_FOLLOWS = re.compile(
    r"(?:[\w.]*\.)?(?:ChildFailedError|Dist\w+Error|CalledProcessError|\w*Connection\w*Error|gaierror|timeout"
    r"|HTTPError|URLError|MaxRetryError|ProtocolError|SSLError|\w*Timeout|RemoteDisconnected|CommError|BrokenPipeError|EOFError"
    r"|KeyboardInterrupt|SystemExit|Process\w+Exception|SignalException|Rendezvous\w+|(?:Ray)?Actor\w+Error|Ray\w+Error"
    r"|WorkerCrashedError|HorovodInternalError|RemoteError|TimeoutError|CancelledError|Empty|AbortedError|FailedException)\b"
    r"|RuntimeError: (?:Connection (?:reset|refused|closed)|Broken pipe|Socket |DataLoader worker)"
)
"""What launchers and other processes raise because one of theirs has died, and what a tracker on the
web raises and tries again."""


def last_line(text: str, position: int) -> tuple[int, int] | None:
    """Where the exception of the traceback at this position stands; None where its end is not there yet,
    or where it is one that another process brought about.

    Lines of other ranks, which may stand between, have other marks before them.
    """
    begin = text.rfind("\n", 0, position) + 1
    at = text.find("\n", position) + 1
    mark = _mark(text[max(begin, position - 200) : position], text[at : at + 200])
    for _ in range(LINES if at else 0):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at : min(end, at + 400)]
        before, _, rest = line.partition(mark) if mark else ("", "", line)
        rest = rest.removeprefix(" ") if mark and len(before) < 200 else "" if mark else rest
        if _EXCEPTION.match(rest):
            return None if _FOLLOWS.match(rest) else (at, end)
        at = end + 1
        if at > min(len(text), position + CHARACTERS):
            return None
    return None


def _mark(before: str, following: str) -> str:
    """What stands before each line of it: a launcher's mark, or whatever a logger writes."""
    found, own = _MARK.search(before), before.strip()
    if found:
        return found[0].strip()
    return own if following.lstrip().startswith(own) else ""
