"""The `sendmail` of the email channel: a small real program in the place of sendmail(8)."""

import asyncio
import email
from email import policy
from pathlib import Path

import pytest

from sentinel.channels.email import Email
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Receipt
from sentinel.core.values import Duration
from tests.channels.samples import notification

PROGRAM = """\
#!/bin/sh
# Keeps what it was given, as a queue would.
printf '%s\\n' "$@" >{spool}/words
cat >{spool}/mail
echo "{said}" >&2
exit {code}
"""


def program(folder: Path, code: int = 0, said: str = "") -> str:
    path = folder / "sendmail"
    path.write_text(PROGRAM.format(spool=folder, code=code, said=said))
    path.chmod(0o755)
    return str(path)


def channel(*words: str, limit: float = 20) -> Email:
    return Email(
        to=["Ann <ann@example.org>"],
        cc=["bob@example.org"],
        from_="Sentinel <s@example.org>",
        sendmail=list(words),
        timeout=Duration(limit),
    )


def send(told: Email) -> Receipt:
    return asyncio.run(told.send([notification()]))


def test_the_program_gets_the_mail(tmp_path: Path) -> None:
    """Sender and recipients as arguments, the whole mail on its input, lines as in files."""
    receipt = send(channel(program(tmp_path), "-v"))
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["-v", "-i", "-f", "s@example.org", "--", "ann@example.org", "bob@example.org"]
    raw = (tmp_path / "mail").read_bytes()
    mail = email.message_from_bytes(raw, policy=policy.default)
    assert mail["To"] == "Ann <ann@example.org>"
    assert notification().check in str(mail["Subject"])
    assert b"\r" not in raw
    assert receipt.text.endswith("sendmail accepted it for 2 recipients")


@pytest.mark.parametrize(
    ("code", "permanent"),
    [
        (64, True),
        (65, True),
        (67, True),
        (68, True),
        (69, False),
        (75, False),
        (78, False),
        (1, False),
    ],
)
def test_what_the_program_refuses(tmp_path: Path, code: int, permanent: bool) -> None:
    """For good what is about this very mail, by sysexits.h; its words are told."""
    with pytest.raises(ChannelError) as caught:
        send(channel(program(tmp_path, code, "no such user")))
    assert caught.value.permanent is permanent
    assert f"ended with exit code {code}: no such user" in str(caught.value)


def test_a_program_that_is_not_there_or_hangs_is_tried_again(tmp_path: Path) -> None:
    """Neither says anything about the mail."""
    for words, limit in ((["/nonexistent/sendmail"], 20), (["/bin/sh", "-c", "sleep 60"], 0.3)):
        with pytest.raises(ChannelError) as caught:
            send(channel(*words, limit=limit))
        assert not caught.value.permanent


@pytest.mark.parametrize(
    ("more", "key"),
    [({"host": "h"}, "host"), ({"port": 25}, "port"), ({"username": "me"}, "username")],
)
def test_a_server_beside_a_program_makes_no_sense(more: dict[str, object], key: str) -> None:
    """Which of the two would send it?"""
    with pytest.raises(Invalid) as caught:
        Email(to=["a@example.org"], from_="b@example.org", sendmail=["/bin/x"], **more)  # type: ignore[arg-type]
    assert caught.value.path == (key,)
