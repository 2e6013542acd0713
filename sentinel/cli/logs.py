"""One event a line on stderr; with priorities where the journal reads it."""

import logging
import os
import sys

from sentinel.core.text import visible

_PRIORITY = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}


class _Lines(logging.Formatter):
    """Untrusted text stays one line; tracebacks keep theirs."""

    def format(self, record: logging.LogRecord) -> str:
        text = "\n".join(visible(line) for line in record.getMessage().splitlines())
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        if "JOURNAL_STREAM" in os.environ:
            return f"<{_PRIORITY.get(record.levelname, 5)}>{text}"
        return f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower():<7} {text}"


def configure(verbose: bool) -> None:
    """Set the log up for a service or a tick."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("sentinel").setLevel(logging.DEBUG if verbose else logging.INFO)
