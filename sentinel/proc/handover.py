"""Replaces this process by another program."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from sentinel.core.errors import SentinelError
from sentinel.core.text import visible


class CannotReplace(SentinelError):
    """The program could not be started."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3), as for every other program that is not there."""


def replace_process(argv: Sequence[str]) -> NoReturn:
    """Go on as this program: its standard streams, signals and exit code are those of the caller.
    Raises CannotReplace."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program inherits that
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606 - no shell is meant
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CannotReplace(f"{visible(argv[0])} cannot be started: {why}") from None
