"""Gives mail to this host's sendmail program, by the options that all such programs share
(sendmail(8))."""

from collections.abc import Sequence

from sentinel.channels.mail_server import MailEnvelope
from sentinel.channels.program import hand_to
from sentinel.core.text import visible

# Codes of sysexits.h that are about this mail itself (usage, data, no such user or host). Others
# can be mended without changing the mail (configuration, rights, EX_TEMPFAIL).
_PERMANENT = (64, 65, 67, 68)


def hand_to_program(program: Sequence[str], mail: MailEnvelope, limit: float) -> str:
    """Give the mail to the program. Returns in words for whom it was accepted. Raises ChannelError.

    The program queues the mail, and delivers it later. With `-i`, a line with a single dot does not
    end the mail. `-f` is the address for bounces. The recipients are arguments, so that the program
    reads no headers for them.
    """
    argv = [*program, "-i", "-f", mail.sender, "--", *mail.recipients]
    hand_to(argv, _native_lines(mail.content), limit, _PERMANENT)
    count = len(mail.recipients)
    return f"{visible(program[0])} accepted it for {count} recipient{'s' if count > 1 else ''}"


def _native_lines(content: bytes) -> bytes:
    """Convert line ends to a single newline, as sendmail(8) expects."""
    return content.replace(b"\r\n", b"\n")
