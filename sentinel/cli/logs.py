"""Writes the log to stderr, one event a line: words on a terminal, else JSON, with priorities for
journald.

https://man7.org/linux/man-pages/man3/sd-daemon.3.html: a line that begins with <N> has that
priority; the journal removes the prefix."""

import json
import logging
import os
import sys
from datetime import datetime, timezone
from typing import TextIO

from sentinel.core.text import visible, visible_lines

_JOURNAL_PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
FIELDS_KEY = "fields"
"""The key of `extra` under which a call of the log gives a mapping: an event, and what it is
about."""


class _TextFormatter(logging.Formatter):
    """Formats for people: untrusted text stays on one line; tracebacks keep their lines."""

    def format(self, record: logging.LogRecord) -> str:
        text = "\n".join(visible(line) for line in record.getMessage().splitlines())
        if record.exc_info:
            text += "\n" + visible_lines(self.formatException(record.exc_info))
        return f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower():<7} {text}"


class _JsonFormatter(logging.Formatter):
    """Formats for programs: one object a line with `at`, `level`, `message`, and the fields of the
    event."""

    def __init__(self, journal: bool) -> None:
        super().__init__()
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        event = {
            "at": _format_iso_time(record.created),
            "level": level,
            "message": record.getMessage(),
        }
        event |= getattr(record, FIELDS_KEY, {})
        if record.exc_info:
            event["trace"] = self.formatException(record.exc_info)
        if record.name != "sentinel":
            event["from"] = record.name
        line = _escape_unprintable(json.dumps(event, ensure_ascii=False, default=str))
        return f"<{_JOURNAL_PRIORITIES.get(record.levelname, 5)}>{line}" if self._journal else line


def configure_logging(verbose: bool, stream: TextIO | None = None) -> None:
    """Set the log up for a service or a tick."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(choose_formatter(stream.isatty(), "JOURNAL_STREAM" in os.environ))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # do not log malformed HTTP requests
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    logging.getLogger("sentinel").setLevel(logging.DEBUG if verbose else logging.INFO)


def choose_formatter(terminal: bool, journal: bool) -> logging.Formatter:
    """The formatter for a terminal, journald or other outputs."""
    return _TextFormatter() if terminal else _JsonFormatter(journal)


def _escape_unprintable(line: str) -> str:
    """The line, still valid JSON, with everything escaped that a terminal or a line reader would
    obey."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(c if c == " " or c.isprintable() else _escape_char(c) for c in line)


def _escape_char(char: str) -> str:
    return json.dumps(char)[1:-1]


def _format_iso_time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, tz=timezone.utc)
    return moment.isoformat(timespec="milliseconds")
