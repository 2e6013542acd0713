"""Mail through a real SMTP server."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.channels.email import Email
from sentinel.channels.message import fold_header
from sentinel.channels.smtp import ehlo_name
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Receipt, Status
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import visible
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, ChannelContract, Mood, Side, assert_inert, send
from tests.channels.samples import HOSTILE, hostile, notification
from tests.lab.loops import close_server
from tests.lab.smtp import SmtpServer

ANN, BOB = "ann@example.org", "bob@example.org"
Start = Callable[..., SmtpServer]


class TestContract(ChannelContract):
    """A server that wants STARTTLS and a login, and repeats the password in its answers."""

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        with SmtpServer(tmp_path, security="starttls", logins={"me": SECRET}) as server:
            if mood == "refuses":
                server.refuse_data(f"554 5.7.1 refused {SECRET}")
            if mood == "later":
                server.refuse(ANN, f"451 4.7.1 later {SECRET}")
            if mood == "hangs":
                server.slow(60)
            channel = email(
                server,
                username="me",
                password=Secret(SECRET),
                ca_file=FilePath(server.ca),
                timeout=Duration(0.5 if mood == "hangs" else 20),
            )
            yield Side(channel, lambda: [readable(m.raw) for m in server.mails])

    def inert(self, message: bytes, text: str) -> None:
        """No control characters; test_hostile_headers looks at the mail itself."""
        assert_inert(message.decode())


def email(server: SmtpServer, **changes: Any) -> Email:
    """A channel to that server, with its kind of encryption."""
    fields = {
        "to": [ANN],
        "from_": "Sentinel <sentinel@example.org>",
        "host": server.host,
        "port": server.port,
        "security": server.security,
    }
    return Email(**{**fields, **changes})


def readable(raw: bytes) -> bytes:
    """Subject and both bodies, decoded."""
    mail = message_from_bytes(raw, policy=policy.default)
    return "\n".join([mail["Subject"], *bodies(mail)]).encode()


def bodies(mail: EmailMessage) -> list[str]:
    """The plain and the HTML text."""
    parts = [mail.get_body((kind,)) for kind in ("plain", "html")]
    return [part.get_content() for part in parts if part]


def told(smtp: SmtpServer, *notifications: Any, **changes: Any) -> EmailMessage:
    """The mail that arrives."""
    asyncio.run(email(smtp, **changes).send(notifications or [notification()]))
    return smtp.mails[-1].message


def test_a_mail_has_text_and_html_and_says_that_a_machine_wrote_it(smtp: SmtpServer) -> None:
    """Both parts tell the same; automatic replies are kept away; the date has a zone."""
    mail = told(smtp)
    assert mail.get_content_type() == "multipart/alternative"
    assert [p.get_content_type() for p in mail.iter_parts()] == ["text/plain", "text/html"]
    assert all("job 4242 FAILED" in body for body in bodies(mail))
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"].datetime.tzinfo is not None
    assert mail["From"] == "Sentinel <sentinel@example.org>"
    assert (mail["X-Sentinel-Cluster"], mail["X-Sentinel-Severity"]) == ("h100-prod", "critical")


def test_it_is_seven_bit_on_the_wire(smtp: SmtpServer) -> None:
    """Relays without 8BITMIME still exist; lines stay within RFC 5322's 998."""
    told(smtp, notification(subject="作业 ümläut", summary="Ω" * 3000))
    raw = smtp.mails[-1].raw
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998


def test_firing_and_resolved_are_one_thread(smtp: SmtpServer) -> None:
    """Same References for an alert, another for another one; each mail has its own id."""
    firing = told(smtp)
    resolved = told(smtp, notification(reason="resolved", key="01J9-2"))
    other = told(smtp, notification(alert="01JA", key="01JA-1"))
    assert firing["References"] == firing["In-Reply-To"] == resolved["References"]
    assert other["References"] != firing["References"]
    assert len({m["Message-ID"] for m in (firing, resolved, other)}) == 3
    assert resolved["Subject"].startswith("RESOLVED ")


def test_a_repeated_delivery_is_the_same_mail(smtp: SmtpServer) -> None:
    """The Message-ID comes from the key: mail stores drop the second."""
    assert told(smtp)["Message-ID"] == told(smtp)["Message-ID"]


def ids(mail: EmailMessage) -> list[str]:
    return str(mail["References"]).split()


def test_a_group_is_one_mail_that_belongs_to_the_threads_of_all(smtp: SmtpServer) -> None:
    """What follows about any part of it is in the same thread, the oldest alert first."""
    first = notification(since="2026-09-30T03:12:05+02:00")
    second = notification(
        alert="01JB", key="01JB-1", subject="other", since="2026-09-30T03:10:05+02:00"
    )
    mail = told(smtp, first, second)
    alone = [ids(told(smtp, n)) for n in (second, first)]
    assert ids(mail) == [*alone[0], *alone[1]]
    assert mail["In-Reply-To"] == alone[0][0]
    assert "2 alerts" in mail["Subject"]
    assert all("tr11-176B" in b and "other" in b for b in bodies(mail))


def test_filters_see_the_worst_of_a_group(smtp: SmtpServer) -> None:
    """Whoever lets only what is critical ring the phone hears of it wherever it stands."""
    over = notification(reason="resolved", status=Status.OK, alert="a", key="a-2")
    mild = notification(severity=Status.WARNING, status=Status.WARNING, alert="b", key="b-1")
    mail = told(smtp, over, mild, notification(subject="bad", alert="c", key="c-1"))
    assert (mail["X-Sentinel-Severity"], mail["X-Sentinel-Subject"]) == ("critical", "bad")
    assert mail["Importance"] == "high"


def test_after_an_outage_every_alert_is_still_in_its_thread(smtp: SmtpServer) -> None:
    """Groups are put together anew then: one mail holds the end of an old alert and the
    beginning of a new one, and neither leaves the conversation that it belongs to."""
    alerts = [notification(alert=f"a{n}", key=f"a{n}-1", subject=f"n{n}") for n in range(3)]
    before = ids(told(smtp, alerts[0], alerts[1]))
    end = notification(alert="a1", key="a1-2", subject="n1", reason="resolved")
    mixed = ids(told(smtp, end, alerts[2]))
    after = ids(told(smtp, notification(alert="a2", key="a2-2", subject="n2", reason="resolved")))
    assert set(before) & set(mixed)
    assert set(mixed) & set(after)
    assert not set(before) & set(after)


def test_the_threads_of_a_very_large_group_fit_into_a_header(smtp: SmtpServer) -> None:
    """500 nodes: no line is too long for a server, and the header stays bearable."""
    many = [notification(alert=f"a{n}", key=f"a{n}-1", subject=f"n{n}") for n in range(500)]
    mail = told(smtp, *many)
    head = smtp.mails[-1].raw.split(b"\r\n\r\n")[0]
    assert len(ids(mail)) == 100
    assert max(map(len, head.split(b"\r\n"))) <= 78
    assert len(head) < 12_000


@pytest.mark.parametrize("name", ["Subject", "X-Sentinel-Severity"])
@given(text=st.text(max_size=180).map(visible).map(str.strip).filter(bool))
@example(text="y" * 74 + " a")
@example(text="CRITICAL h100-prod " + "é " * 60)
@example(text="a  b   " + "c" * 80)
def test_a_header_of_ours_arrives_as_it_was(name: str, text: str) -> None:
    """Whatever stands in it: no empty first line, no line too long, no blank more or less."""
    raw = fold_header(name, text.replace("=?", "= ?"))
    first, *_ = f"{name}: {raw}".split("\r\n")
    assert first.removeprefix(f"{name}:").strip()
    assert all(line.strip() for line in raw.split("\r\n"))
    parsed = message_from_bytes(f"{name}: {raw}\r\n\r\n".encode(), policy=policy.default)
    assert parsed[name] == text.replace("=?", "= ?")
    longest = max(map(len, f"{name}: {raw}".split("\r\n")))
    assert longest <= max(76, len(f"{name}:  ") + max(map(len, text.split(" "))))


def test_the_subject_of_a_training_arrives_as_it_was(smtp: SmtpServer) -> None:
    """Folded by Python 3.13.0 it had a blank too many."""
    name = "Größtes Sprachmodell der Wölt — этап 2, 176B ☃ Größtes Sprachmodell der Wölt — э"
    assert told(smtp, notification(subject=name))["X-Sentinel-Subject"] == name


def test_a_long_domain_does_not_break_the_ids(smtp: SmtpServer) -> None:
    """The standard library would fold a long id into an encoded word, and the thread is lost."""
    domain = "a-very-long-department-name.of-a-long-institute.example.org"
    mail = told(smtp, from_=f"sentinel@{domain}")
    assert mail["Message-ID"].startswith("<")
    assert b"=?" not in smtp.mails[-1].raw.split(b"\r\n\r\n")[0]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_headers(smtp: SmtpServer, text: str) -> None:
    """No header is added, no recipient won, the body starts where it should."""
    plain = told(smtp)
    mail = told(smtp, hostile(text))
    assert set(mail.keys()) - set(plain.keys()) == set()
    assert mail["Bcc"] is None
    assert smtp.mails[-1].recipients == [ANN]
    assert not mail.defects
    assert "\n" not in mail["Subject"]
    assert len(mail["Subject"]) < 200


def test_the_others_get_it_when_one_is_refused(smtp: SmtpServer) -> None:
    """The receipt names who was refused and why; a repeated send is not asked for."""
    smtp.refuse(BOB)
    receipt = send(email(smtp, to=[ANN, BOB], cc=["cy@example.org"]), notification())
    assert smtp.mails[-1].recipients == [ANN, "cy@example.org"]
    assert receipt.refused == (BOB,)
    assert "2 of 3" in receipt.text
    assert "no such user" in receipt.text


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        ("550 no such user", False),
        ("552 5.5.3 too many", True),
        ("553 no such box", False),
        ("450 4.2.0 greylisted", True),
    ],
)
def test_a_recipient_who_is_refused_for_now_is_a_doubt(
    smtp: SmtpServer, answer: str, doubt: bool
) -> None:
    """He has not got it, and would get it later; one who is refused for good never would."""
    smtp.refuse(BOB, answer)
    receipt = send(email(smtp, to=[ANN, BOB]), notification())
    assert receipt.refused == (BOB,)
    assert (BOB in receipt.doubt) is doubt


@pytest.mark.parametrize(
    ("answers", "permanent"),
    [
        (("550 no", "550 no"), True),
        (("550 no", "451 later"), False),
        (("451 later", "452 full"), False),
        (("599 no", "500 no"), True),
        (("552 too many", "552 too many"), False),
        (("550 no", "550 5.4.5 Daily user sending limit exceeded"), False),
        # Exchange Online says 5.4.1 of who does not exist.
        (("550 no", "550 5.4.1 Recipient address rejected: Access denied"), True),
    ],
)
def test_nobody_takes_it(smtp: SmtpServer, answers: tuple[str, str], permanent: bool) -> None:
    """Permanent only if every recipient was refused for good."""
    smtp.refuse(ANN, answers[0])
    smtp.refuse(BOB, answers[1])
    with pytest.raises(ChannelError, match="every recipient") as caught:
        send(email(smtp, to=[ANN, BOB]), notification())
    assert caught.value.permanent is permanent
    assert smtp.mails == []


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        ("250 2.7.0 Ok, discarded, id=1-1 - spam", True),  # amavisd-new, D_DISCARD
        ("250 2.7.1 Message was moved to quarantine", True),
        ("250 2.0.0 Ok: queued as 4F2A7", False),  # postfix
        ("250 2.6.0 <x@y> [InternalId=1] Queued mail for delivery", False),  # Exchange
        ("250 Accepted, 2.7.0 of it", False),
    ],
)
def test_a_mail_that_a_policy_took_is_in_doubt(smtp: SmtpServer, answer: str, doubt: bool) -> None:
    """RFC 3463, X.7: security or policy."""
    smtp.refuse_data(answer)
    assert bool(send(email(smtp), notification()).doubt) is doubt


def test_a_recipient_named_twice_gets_one(smtp: SmtpServer) -> None:
    """Also when named in cc once more."""
    told(smtp, to=[ANN, f"Ann <{ANN}>"], cc=[ANN])
    assert smtp.mails[-1].recipients == [ANN]


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_encrypted_mail_arrives(smtp_server: Start, security: str, name: str) -> None:
    """With the CA given, by name and by address, with a login."""
    server = smtp_server(security=security, logins={"me": "pass:wörd"})
    login: dict[str, Any] = {"username": "me", "password": Secret("pass:wörd")}
    told(server, host=name, ca_file=FilePath(server.ca), **login)
    assert len(server.mails) == 1


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_an_unknown_authority_is_refused(smtp_server: Start, security: str) -> None:
    """The error is about TLS, says what to do, and nothing was sent."""
    server = smtp_server(security=security)
    error = failure(email(server))
    assert (error.reason, error.permanent) == ("tls", False)
    assert "set ca_file" in str(error)
    assert server.mails == []


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_for_another_name_is_refused(smtp_server: Start, security: str) -> None:
    """The remedy is another one than for an unknown authority."""
    server = smtp_server(security=security)
    error = failure(email(server, host="127.1", ca_file=FilePath(server.ca)))
    assert error.reason == "tls"
    assert "use the name that the certificate is made for" in str(error)
    assert server.mails == []


def test_encryption_is_never_given_up_silently(smtp: SmtpServer) -> None:
    """A server without STARTTLS is an error that names the choices."""
    error = failure(email(smtp, security="starttls"))
    assert error.reason == "tls"
    assert "offers no STARTTLS" in str(error)
    assert smtp.mails == []


@pytest.mark.parametrize("offers", ["AUTH PLAIN LOGIN", "STARTTLS\r\n250 AUTH PLAIN LOGIN"])
def test_a_false_relay_gets_no_login(offers: str) -> None:
    """One that offers the login before TLS, and one whose TLS is none."""
    heard: list[bytes] = []

    def serve() -> None:
        client, _ = server.accept()
        with client, suppress(OSError):
            client.sendall(b"220 relay\r\n")
            while data := client.recv(4096):
                heard.append(data)
                greeted = data.startswith((b"EHLO", b"HELO"))
                ready = f"250-relay\r\n250 {offers}\r\n".replace("250 STARTTLS", "250-STARTTLS")
                client.sendall(ready.encode() if greeted else b"220 go on\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        login: dict[str, Any] = {"username": "me", "password": Secret("the-secret")}
        port = server.getsockname()[1]
        channel = Email(to=ANN, from_="s@example.org", host="127.0.0.1", port=port, **login)
        assert failure(channel).reason == "tls"
        thread.join(10)
    assert heard[0].startswith(b"EHLO")
    assert not any(b"AUTH" in data or b"the-secret" in data for data in heard)


def test_tls_with_a_plain_server_is_a_tls_error(smtp: SmtpServer) -> None:
    """The usual confusion of 465 with 587."""
    error = failure(email(smtp, security="tls"))
    assert error.reason == "tls"
    assert "check port and security" in str(error)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), ("no certificate", "holds no PEM")]
)
def test_a_bad_ca_file_is_named(
    smtp_server: Start, tmp_path: Path, content: str | None, words: str
) -> None:
    """It is no reason to drop the message."""
    path = tmp_path / "bad.pem"
    if content:
        path.write_text(content)
    error = failure(email(smtp_server(security="tls"), ca_file=FilePath(path)))
    assert (error.reason, error.permanent) == ("tls", False)
    assert words in str(error)
    assert str(path) in str(error)


def test_a_wrong_password_is_tried_once(smtp_server: Start) -> None:
    """Reason auth, worth another try once mended; no lock-out by three ways of one login."""
    server = smtp_server(security="starttls", logins={"me": "right"})
    login = {"username": "me", "password": Secret("wrong"), "ca_file": FilePath(server.ca)}
    error = failure(email(server, **login))
    assert (error.reason, error.permanent) == ("auth", False)
    assert "check username and password" in str(error)


def test_a_server_that_wants_a_login_first_is_an_auth_error(smtp_server: Start) -> None:
    """530 is about us, not about the mail."""
    server = smtp_server(security="starttls", logins={"me": "right"})
    error = failure(email(server, ca_file=FilePath(server.ca)))
    assert (error.reason, error.permanent) == ("auth", False)


def test_whether_the_server_lets_us_in_is_told_without_a_mail(smtp_server: Start) -> None:
    """For doctor: connection, encryption and login as for a mail, and its errors."""
    server = smtp_server(security="starttls", logins={"me": "right"})
    login = {"username": "me", "password": Secret("right"), "ca_file": FilePath(server.ca)}
    said = asyncio.run(email(server, **login).reach())
    assert said == f"{server.host}:{server.port} answers and accepts the login"
    with pytest.raises(ChannelError, match="check username and password"):
        asyncio.run(email(server, **(login | {"password": Secret("wrong")})).reach())
    with pytest.raises(ChannelError, match="set ca_file"):
        asyncio.run(email(server).reach())
    assert server.mails == []


def test_a_mail_program_is_looked_for_without_a_mail(tmp_path: Path) -> None:
    """For doctor: it is called with mails only."""
    there, gone = ["/bin/false"], [str(tmp_path / "sendmail")]
    common: dict[str, Any] = {"to": [ANN], "from_": BOB}
    assert "/bin/false is there" in asyncio.run(Email(sendmail=there, **common).reach())
    with pytest.raises(ChannelError, match="no program"):
        asyncio.run(Email(sendmail=gone, **common).reach())


def test_a_server_that_is_down_is_a_network_error(smtp: SmtpServer) -> None:
    """With host and port; up again, it takes the same mail."""
    channel = email(smtp)
    smtp.down()
    error = failure(channel)
    assert (error.reason, error.permanent) == ("network", False)
    assert str(error) == f"cannot connect to {smtp.host}:{smtp.port}: Connection refused"
    smtp.up()
    assert send(channel, notification()).text


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("login1.hpc.example.org", "login1.hpc.example.org"),
        ("login1", "login1.example.org"),
        ("gpu_01.cluster", "example.org"),
        ("nöde.example.org", "example.org"),
        ("a..b", "example.org"),
    ],
)
def test_the_name_for_the_greeting_is_one_that_servers_take(host: str, name: str) -> None:
    """Many refuse a name without a domain or with an underscore, which nodes may have."""
    assert ehlo_name(host, "example.org") == name


HELLO, EHLO = b"220 a", b"250 a"
AUTH = b"250-a\r\n250 AUTH LOGIN PLAIN"
SCRIPTS: dict[str, tuple[list[bytes], str, bool]] = {
    "hangs up at once": ([], "network", False),
    "greets with a refusal": ([b"554 go away"], "server", False),
    "greets with too busy": ([b"421 busy"], "server", False),
    "speaks no SMTP": ([b"SSH-2.0-OpenSSH_9.2"], "server", False),
    "answers megabytes": ([HELLO, b"250 " + b"x" * 10**6], "server", False),
    "knows neither EHLO nor HELO": ([HELLO, b"502 what", b"502 what"], "server", False),
    "refuses the sender for good": ([HELLO, EHLO, b"550 no"], "refused", True),
    "refuses the sender for now": ([HELLO, EHLO, b"450 no"], "server", False),
    "wants a login": ([HELLO, EHLO, b"530 5.7.0 log in"], "auth", False),
    "hangs up after MAIL": ([HELLO, EHLO], "network", False),
    "is too big": ([HELLO, EHLO, b"552 5.3.4 too big"], "refused", True),
}


@pytest.mark.parametrize(("script", "reason", "permanent"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_odd_servers(script: list[bytes], reason: str, permanent: bool) -> None:
    """Only what is said about the mail itself is permanent."""
    error, _ = asyncio.run(against(script))
    assert (error.reason, error.permanent) == (reason, permanent), str(error)
    assert "127.0.0.1" in str(error)


LOGINS = {
    "a wrong password is tried once": ([HELLO, AUTH, b"535 wrong"], [b"PLAIN"]),
    "a login that fails for now too": ([HELLO, AUTH, b"454 later"], [b"PLAIN"]),
    "an unwanted mechanism gives way": (
        [HELLO, AUTH, b"504 no PLAIN", b"334 UGFzc3dvcmQ6", b"535 wrong"],
        [b"PLAIN", b"LOGIN"],
    ),
    "no mechanism with a password": ([HELLO, b"250-a\r\n250 AUTH XOAUTH2"], []),
    "no login at all": ([HELLO, EHLO], []),
}


@pytest.mark.parametrize(("script", "mechanisms"), LOGINS.values(), ids=LOGINS.keys())
def test_logins_that_fail(script: list[bytes], mechanisms: list[bytes]) -> None:
    """Reason auth, not permanent, and never one password in three ways: that locks accounts."""
    error, heard = asyncio.run(against(script, username="me", password=Secret(SECRET)))
    assert (error.reason, error.permanent) == ("auth", False), str(error)
    assert [line.split()[1] for line in heard if line.startswith(b"AUTH")] == mechanisms


def test_a_refused_starttls_is_a_tls_error() -> None:
    """Nothing goes on unencrypted."""
    script = [HELLO, b"250-a\r\n250 STARTTLS", b"454 TLS not available"]
    error, heard = asyncio.run(against(script, security="starttls"))
    assert (error.reason, error.permanent) == ("tls", False)
    assert [line.split()[0] for line in heard if line] == [b"EHLO", b"STARTTLS"]


async def against(script: list[bytes], **changes: Any) -> tuple[ChannelError, list[bytes]]:
    """What a send to a server with these answers raises, and what the server heard."""
    heard: list[bytes] = []
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            for reply in script:
                writer.write(reply + b"\r\n")
                heard.append(await reader.readline())
        writer.close()
        done.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    fields = {**GOOD, "host": host, "port": port, "security": "none", "timeout": Duration(10)}
    with pytest.raises(ChannelError) as caught:
        await Email(**{**fields, **changes}).send([notification()])
    await asyncio.wait_for(done.wait(), 60)
    await close_server(server)
    return caught.value, heard


def failure(channel: Email) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        send(channel, notification())
    return caught.value


GOOD: dict[str, Any] = {"to": [ANN], "from_": BOB, "host": "mail.example.org"}
BAD = [
    ({"to": []}, ("to",), "at least one"),
    ({"to": [ANN, "nobody"]}, ("to", 1), "'nobody' is no mail address"),
    ({"to": "ann@exa mple.org"}, ("to",), "'ann@exa mple.org' is no mail address"),
    ({"to": "ann@example.org bob@example.org"}, ("to",), "is no mail address"),
    ({"to": ["a b@example.org"]}, ("to", 0), "no mail address"),
    ({"to": ["a@example.org, b@example.org"]}, ("to", 0), "no mail address"),
    ({"to": ["a@example.org\r\nBcc: x@example.org"]}, ("to", 0), "no mail address"),
    ({"to": ["ü@example.org"]}, ("to", 0), "no mail address"),
    ({"to": ["a@exam_ple.org"]}, ("to", 0), "no mail address"),
    ({"to": [f"{'a' * 65}@example.org"]}, ("to", 0), "no mail address"),
    ({"from_": "sentinel"}, ("from",), "no mail address"),
    ({"cc": ["x"]}, ("cc", 0), "no mail address"),
    ({"reply_to": "x"}, ("reply_to",), "no mail address"),
    ({"host": ""}, ("host",), "name the mail server"),
    ({"host": "a\r\nb"}, ("host",), "name the mail server"),
    ({"port": 0}, ("port",), "1 to 65535"),
    ({"port": 65536}, ("port",), "1 to 65535"),
    ({"timeout": Duration(0)}, ("timeout",), "longer than 0s"),
    ({"username": "me"}, ("password",), "needs both"),
    ({"password": Secret("x")}, ("username",), "needs both"),
    ({"security": "none", "ca_file": FilePath("/ca")}, ("ca_file",), "changes nothing"),
    (
        {"security": "none", "username": "me", "password": Secret("x")},
        ("security",),
        "unencrypted",
    ),
]


@pytest.mark.parametrize(("changes", "path", "words"), BAD)
def test_wrong_settings_are_refused(
    changes: dict[str, Any], path: tuple[str | int, ...], words: str
) -> None:
    """Each names its key and what to write instead."""
    with pytest.raises(Invalid, match=words) as caught:
        Email(**{**GOOD, **changes})
    assert caught.value.path == path


@pytest.mark.parametrize(
    "text",
    [
        "root@localhost",
        "On Call <a.b+c@x-1.example.org>",
        f"{'a' * 64}@example.org",
        '"Doe, John" <j@example.org>',
        "Jürgen <j@xn--mnchen-3ya.example>",
    ],
)
def test_addresses_as_people_write_them_are_taken(text: str) -> None:
    """With and without a name."""
    assert Email(**{**GOOD, "to": [text]}).to == [text]


def test_the_key_in_the_file_is_from() -> None:
    """`from` is no name in Python, but it is the one in the file."""
    plain = {"to": [ANN], "from": BOB, "host": "h"}
    assert msgspec.convert(plain, Email).from_ == BOB
    assert isinstance(Receipt("x"), Receipt)
