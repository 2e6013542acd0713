"""A real SMTP server (aiosmtpd) in a thread, that keeps the messages and can be made to fail."""

import asyncio
import socket
import ssl
import warnings
from collections.abc import Mapping
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.lab.loops import LoopThread, close_server
from tests.lab.waiting import wait_until

Security = Literal["none", "starttls", "tls"]


class Mail(NamedTuple):
    """One accepted message: the envelope, and the parsed content."""

    sender: str
    recipients: list[str]
    message: EmailMessage
    raw: bytes


class SmtpServer:
    """Listening inside `with`, on `host` and one port that `down` and `up` keep.

    `logins` (name to password) asks for AUTH. With `security` other than none, `ca` is the
    certificate file that a client must trust; the name on the certificate is `localhost`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "localhost",
        security: Security = "none",
        logins: Mapping[str, str] | None = None,
    ) -> None:
        self.host, self.security, self.ca = host, security, folder / "ca.pem"
        self.mails: list[Mail] = []
        self._tls = _certificate(self.ca) if security != "none" else None
        self._handler = _Handler(self.mails, logins or {})
        self._socket = _listen(host, 0)
        self.port: int = self._socket.getsockname()[1]

    def refuse(self, recipient: str, answer: str = "550 5.1.1 no such user here") -> None:
        """Answer this to RCPT for the recipient: 550 for good, 451 to be tried again later."""
        self._handler.refused[recipient] = answer

    def welcome_only(self, *hosts: str) -> None:
        """Answer RCPT from other addresses as a relay that does not know them."""
        self._handler.welcome = frozenset(hosts)

    def greylist(self, recipient: str) -> None:
        self.refuse(recipient, "451 4.7.1 greylisted, try again later")

    def accept(self, recipient: str) -> None:
        """Take back `refuse` and `greylist`."""
        self._handler.refused.pop(recipient, None)

    def refuse_data(self, answer: str = "554 5.7.1 message refused") -> None:
        """Refuse every message after its content was sent."""
        self._handler.data_answer = answer

    def refuse_content(self, text: bytes) -> None:
        """Refuse for good every message that holds these bytes."""
        self._handler.unwanted = text

    @property
    def refusals(self) -> int:
        """How many messages were refused for their content."""
        return self._handler.refusals

    def slow(self, seconds: float) -> None:
        """Wait this long before each answer to EHLO, RCPT and DATA; 0 ends it."""
        self._handler.delay = seconds

    def hold(self) -> None:
        """Answer nobody until `release`."""
        self._handler.held = True

    def release(self) -> None:
        self._handler.held = False

    @property
    def waiting(self) -> int:
        """How many clients wait for an answer that is held back."""
        return self._handler.waiting

    def down(self) -> None:
        """Close the port and every open connection: connecting is refused."""
        self._thread.run(close_server(self._server))

    def up(self) -> None:
        """Listen again, on the same port."""
        self._socket = _listen(self.host, self.port)
        self._thread.run(self._open())

    def wait(self, count: int, limit: float = 20.0) -> list[Mail]:
        """Until `count` messages have come; all there are."""
        wait_until(lambda: len(self.mails) >= count, lambda: f"{count} mails: {self.mails}", limit)
        return list(self.mails)

    def __enter__(self) -> "SmtpServer":
        self._thread = LoopThread().__enter__()
        self._thread.run(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()
        self._thread.__exit__(kind, error, trace)

    async def _open(self) -> None:
        implicit = self._tls if self.security == "tls" else None
        self._server = await self._thread.loop.create_server(
            self._protocol, sock=self._socket, ssl=implicit
        )

    def _protocol(self) -> SMTP:
        with warnings.catch_warnings():
            # aiosmtpd does not count TLS from the first byte as TLS.
            warnings.filterwarnings("ignore", "Requiring AUTH while not requiring TLS")
            return self._smtp()

    def _smtp(self) -> SMTP:
        starttls = self.security == "starttls"
        logins = self._handler.logins
        return SMTP(
            self._handler,
            hostname="lab.example",
            loop=self._thread.loop,
            enable_SMTPUTF8=True,
            tls_context=self._tls if starttls else None,
            require_starttls=starttls,
            auth_required=bool(logins),
            auth_require_tls=starttls,
            authenticator=self._handler.authenticate if logins else None,
        )


class _Handler:
    """aiosmtpd's hooks; each returns the server's answer."""

    def __init__(self, mails: list[Mail], logins: Mapping[str, str]) -> None:
        self.mails, self.logins = mails, logins
        self.refused: dict[str, str] = {}
        self.welcome: frozenset[str] = frozenset()
        self.data_answer = ""
        self.unwanted, self.refusals = b"", 0
        self.delay = 0.0
        self.held, self.waiting = False, 0

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, answers: list[str]
    ) -> list[str]:
        await self._take_time()
        session.host_name = hostname
        return answers

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        await self._take_time()
        if self.welcome and (session.peer or ("",))[0] not in self.welcome:
            return "554 5.7.1 relay access denied"
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        await self._take_time()
        if self.data_answer:
            return self.data_answer
        raw = envelope.content
        assert isinstance(raw, bytes)
        if self.unwanted and self.unwanted in raw:
            self.refusals += 1
            return "554 5.7.1 content rejected"
        message = message_from_bytes(raw, policy=policy.default)
        self.mails.append(Mail(envelope.mail_from or "", list(envelope.rcpt_tos), message, raw))
        return "250 taken"

    async def _take_time(self) -> None:
        await asyncio.sleep(self.delay)
        self.waiting += 1
        while self.held:
            await asyncio.sleep(0.02)
        self.waiting -= 1

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object
    ) -> AuthResult:
        """Only names and passwords that were given are let in."""
        known = isinstance(data, LoginPassword) and (
            self.logins.get(data.login.decode()) == data.password.decode()
        )
        return AuthResult(success=known, handled=False)


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1" if host == "localhost" else host, port))
    return listener


def _certificate(ca_file: Path) -> ssl.SSLContext:
    """A certificate for localhost, and its authority written to `ca_file`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context
