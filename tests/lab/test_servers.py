"""The other real servers: SMTP, FUSE and PostgreSQL do what tests ask of them."""

import os
import smtplib
import socket
import ssl
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.lab.fuse import Fuse
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until

TEXT = "Subject: night\r\n\r\nthe job died\r\n"
Start = Callable[..., SmtpServer]


def send(server: SmtpServer, *to: str) -> dict[str, tuple[int, bytes]]:
    """Send by the standard library's client; the refused recipients."""
    with smtplib.SMTP(server.host, server.port, timeout=10) as client:
        return client.sendmail("me@lab.example", to, TEXT)


def test_a_message_is_kept_with_its_envelope(smtp: SmtpServer) -> None:
    """What the server took is what a test sees."""
    send(smtp, "a@lab.example", "b@lab.example")
    (mail,) = smtp.wait(1)
    assert mail.recipients == ["a@lab.example", "b@lab.example"]
    assert (mail.sender, mail.message["Subject"]) == ("me@lab.example", "night")


@pytest.mark.parametrize(("fault", "code"), [("refuse", 550), ("greylist", 451)])
def test_one_recipient_can_be_refused(smtp: SmtpServer, fault: str, code: int) -> None:
    """550 and 451 hit the one recipient; `accept` ends it."""
    getattr(smtp, fault)("b@lab.example")
    refused = send(smtp, "a@lab.example", "b@lab.example")
    assert {who: answer[0] for who, answer in refused.items()} == {"b@lab.example": code}
    smtp.accept("b@lab.example")
    assert send(smtp, "b@lab.example") == {}
    assert [mail.recipients for mail in smtp.mails] == [["a@lab.example"], ["b@lab.example"]]


def test_content_can_be_refused(smtp: SmtpServer) -> None:
    """The refusal after DATA names its code, and nothing is kept."""
    smtp.refuse_data()
    with pytest.raises(smtplib.SMTPDataError, match="554"):
        send(smtp, "a@lab.example")
    assert smtp.mails == []


def test_the_server_goes_down_and_up_at_the_same_port(smtp: SmtpServer) -> None:
    """Down: the connection is refused, also ones that were open; up: mail flows."""
    with smtplib.SMTP(smtp.host, smtp.port, timeout=10) as client:
        client.ehlo()
        smtp.down()
        with pytest.raises(smtplib.SMTPServerDisconnected):
            client.sendmail("me@lab.example", "a@lab.example", TEXT)
        with pytest.raises(ConnectionRefusedError):
            send(smtp, "a@lab.example")
        smtp.up()
    send(smtp, "a@lab.example")
    assert len(smtp.wait(1)) == 1


def test_no_connection_outlives_the_server(tmp_path: Path) -> None:
    """Not even those that came a moment ago; the collector would find them in a later test."""
    for number in range(20):
        (folder := tmp_path / str(number)).mkdir()
        with ExitStack() as stack:
            with SmtpServer(folder) as server:
                where = (server.host, server.port)
                mine = [stack.enter_context(socket.create_connection(where)) for _ in range(3)]
            for one in mine:
                assert _is_ended(one)


def _is_ended(connection: socket.socket) -> bool:
    """Whether the other side has closed it, after whatever it said."""
    connection.settimeout(2)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_slow_server_outlasts_a_client(smtp: SmtpServer) -> None:
    """The client's own limit ends the waiting."""
    smtp.slow(60)
    client = smtplib.SMTP(smtp.host, smtp.port, timeout=0.5)
    with pytest.raises(smtplib.SMTPServerDisconnected, match="timed out"):
        client.ehlo()


def test_starttls_and_login_are_asked_for(smtp_server: Start) -> None:
    """Plain text is refused, a wrong password too; the certificate is good for `ca` alone."""
    server = smtp_server(security="starttls", logins={"me": "secret"})
    with smtplib.SMTP(server.host, server.port, timeout=10) as client:
        with pytest.raises(smtplib.SMTPResponseException, match="530"):
            client.sendmail("me@lab.example", "a@lab.example", TEXT)
        client.starttls(context=ssl.create_default_context(cafile=str(server.ca)))
        with pytest.raises(smtplib.SMTPAuthenticationError):
            client.login("me", "wrong")
        client.login("me", "secret")
        client.sendmail("me@lab.example", "a@lab.example", TEXT)
    assert len(server.mails) == 1


def test_implicit_tls_is_verified(smtp_server: Start) -> None:
    """A client that does not know the authority does not connect."""
    server = smtp_server(security="tls")
    with pytest.raises(ssl.SSLCertVerificationError):
        smtplib.SMTP_SSL(server.host, server.port, timeout=10, context=ssl.create_default_context())
    context = ssl.create_default_context(cafile=str(server.ca))
    with smtplib.SMTP_SSL(server.host, server.port, timeout=10, context=context) as client:
        client.sendmail("me@lab.example", "a@lab.example", TEXT)
    assert len(server.mails) == 1


def test_fuse_space_is_what_it_was_told(fuse: Fuse) -> None:
    """A file system of any size and fill, without the disk."""
    fuse.space(total=40 * 10**12, free=10**12, available=10**11, inodes=1000, free_inodes=10)
    told = os.statvfs(fuse.point)
    assert told.f_blocks * told.f_frsize == 40 * 10**12
    assert told.f_bavail * told.f_frsize == pytest.approx(10**11, abs=4096)
    assert (told.f_files, told.f_ffree) == (1000, 10)


@pytest.mark.parametrize(
    ("operation", "argv"),
    [("open", ["cat", "data"]), ("statfs", ["stat", "-f", "."]), ("opendir", ["ls"])],
)
def test_a_held_call_survives_sigkill(fuse: Fuse, operation: str, argv: list[str]) -> None:
    """State D through SIGKILL until the answer comes."""
    fuse.hold(operation)
    with subprocess.Popen(argv, cwd=fuse.point, stdout=subprocess.DEVNULL) as stuck:
        wait_until(lambda: fuse.withheld() == 1, "the call reached the file system")
        stuck.kill()
        wait_until(lambda: state(stuck.pid) == "D", "state D")
        fuse.release()
        assert stuck.wait(10) == -9


def test_a_crashed_fuse_answers_not_connected(fuse: Fuse) -> None:
    """The mount stays without a daemon, as after a dead Lustre or NFS client."""
    fuse.crash()
    with pytest.raises(OSError, match="Transport endpoint is not connected"):
        os.statvfs(fuse.point)


def test_postgres_gives_a_fresh_database(postgres_url: str) -> None:
    """The URL is one that psycopg takes, and the database is empty."""
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchone()
    assert row == (0,)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
