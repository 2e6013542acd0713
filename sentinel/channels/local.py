"""Mail handed to the program of this host, in the way that sendmail(8) has set for all of them."""

from collections.abc import Sequence

from sentinel.channels.program import hand_to
from sentinel.channels.smtp import Mail
from sentinel.core.text import visible

# sysexits.h: what is wrong with this very mail (usage, data, no such user or host). All else (no
# configuration, no rights, EX_TEMPFAIL) is mended without the mail.
_PERMANENT = (64, 65, 67, 68)


def hand_to_program(program: Sequence[str], mail: Mail, limit: float) -> str:
    """Whom it took the mail for, in words; raises ChannelError. A queue takes it, delivery is later.

    `-i`: a line with a dot alone ends nothing; `-f`: where bounces go. The recipients are
    arguments, so that no header is read for them.
    """
    argv = [*program, "-i", "-f", mail.sender, "--", *mail.recipients]
    hand_to(argv, _lines(mail.content), limit, _PERMANENT)
    count = len(mail.recipients)
    return f"{visible(program[0])} took it for {count} recipient{'s' if count > 1 else ''}"


def _lines(content: bytes) -> bytes:
    """As files have them: sendmail(8) reads lines that end in a newline alone."""
    return content.replace(b"\r\n", b"\n")
