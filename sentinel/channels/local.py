"""Mail handed to the program of this host, in the way that sendmail(8) has set for all of them."""

from collections.abc import Sequence

from sentinel import proc
from sentinel.channels.quoted import quoted
from sentinel.channels.smtp import Mail
from sentinel.core.errors import ChannelError
from sentinel.core.text import visible

# sysexits.h: what is wrong with this very mail (usage, data, no such user or host). All else (no
# configuration, no rights, EX_TEMPFAIL) is mended without the mail.
_PERMANENT = (64, 65, 67, 68)


def hand_to_program(program: Sequence[str], mail: Mail, limit: float) -> str:
    """Whom it took the mail for, in words; raises ChannelError. A queue takes it, delivery is later.

    `-i`: a line with a dot alone ends nothing; `-f`: where bounces go. The recipients are
    arguments, so that no header is read for them.
    """
    name = visible(program[0])
    argv = [*program, "-i", "-f", mail.sender, "--", *mail.recipients]
    try:
        done = proc.run(argv, limit=limit, stdin=_lines(mail.content), max_output=1 << 20)
    except proc.TimedOut as error:
        raise ChannelError(str(error), reason="timeout") from None
    except (proc.NotFound, proc.TooMuch) as error:
        raise ChannelError(str(error), reason="server") from None
    if done.code:
        raise _refusal(name, done.code, quoted(done.err.strip() or done.out.strip()))
    count = len(mail.recipients)
    return f"{name} took it for {count} recipient{'s' if count > 1 else ''}"


def _lines(content: bytes) -> bytes:
    """As files have them: sendmail(8) reads lines that end in a newline alone."""
    return content.replace(b"\r\n", b"\n")


def _refusal(name: str, code: int, said: str) -> ChannelError:
    permanent = code in _PERMANENT
    return ChannelError(
        f"{name} ended with exit code {code}{f': {said}' if said else ''}",
        permanent=permanent,
        reason="refused" if permanent else "server",
    )
