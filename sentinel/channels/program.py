"""Gives a message to a program on its standard input."""

import os
from collections.abc import Collection, Mapping, Sequence

from sentinel import proc
from sentinel.channels.redact import quote_redacted
from sentinel.core.errors import ChannelError
from sentinel.core.text import visible
from sentinel.trust import UntrustedFile, require_trusted_program

_OUTPUT = 1 << 20


def hand_to(
    argv: Sequence[str],
    message: bytes,
    limit: float,
    final: Collection[int],
    env: Mapping[str, str] | None = None,
) -> str:
    """Run the program and return its output in one line. Raises ChannelError unless it ends with 0,
    and if root would run what a user could have written.

    The exit codes in `final` mean a permanent refusal.
    """
    try:
        require_trusted_program(argv[0])
        done = proc.run(
            argv,
            limit=limit,
            env=os.environ if env is None else env,
            stdin=message,
            max_output=_OUTPUT,
        )
    except proc.TimedOut as error:
        raise ChannelError(str(error), reason="timeout") from None
    except (proc.CommandNotFound, proc.TooMuchOutput, UntrustedFile) as error:
        raise ChannelError(str(error), reason="server") from None
    if done.code:
        raise _program_refusal(visible(argv[0]), done, permanent=done.code in final)
    return quote_redacted(done.out)


def _program_refusal(name: str, done: proc.Done, *, permanent: bool) -> ChannelError:
    how = (
        f"was killed by signal {-done.code}"
        if done.code < 0
        else f"ended with exit code {done.code}"
    )
    said = quote_redacted(done.err.strip() or done.out.strip())
    return ChannelError(
        f"{name} {how}{f': {said}' if said else ''}",
        permanent=permanent,
        reason="refused" if permanent else "server",
    )
