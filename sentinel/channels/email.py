"""Mail through an SMTP server, or by the mail program of this host."""

import asyncio
import shutil
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import ClassVar, Literal

from msgspec import Struct, field

from sentinel.channels.address import address
from sentinel.channels.local import hand_to_program
from sentinel.channels.message import Addresses, message, parts
from sentinel.channels.settings import check_timeout
from sentinel.channels.smtp import Mail, Server, Taken, greet, hand_over, listed
from sentinel.channels.template import MailTemplates, Words, check, words
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.values import Duration

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Email(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mail (text and HTML) through an SMTP server, one thread per alert.

    `security` is never less than asked for. `timeout` bounds a whole delivery. `sendmail`: a
    program with its arguments, in place of `host`.
    """

    groups: ClassVar[bool] = True
    links: ClassVar[bool] = True

    to: list[str]
    from_: str = field(name="from")
    host: str = ""
    sendmail: list[str] = []
    port: int | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str = ""
    password: Secret | None = None
    ca_file: FilePath = FilePath("")
    timeout: Duration = Duration(30)
    cc: list[str] = []
    reply_to: str = ""
    templates: MailTemplates = MailTemplates()

    def __post_init__(self) -> None:
        self._addresses()
        if not self.to:
            raise Invalid("name at least one address", "to")
        if self.sendmail:
            self._check_program()
        elif not self.host or not self.host.isprintable() or " " in self.host:
            raise Invalid("name the mail server, e.g. smtp.example.org", "host")
        if self.port is not None and not 0 < self.port < 65536:
            raise Invalid("a port is a number from 1 to 65535", "port")
        check_timeout(self.timeout)
        self._check_security()
        check(self.templates)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """One mail about all of them. Recipients refused beside others are in the receipt,
        even those refused for now: the others would get a repeated mail twice. A mail that is
        refused for good with its templates is sent again in the built-in words."""
        own = words(self.templates, notifications)
        try:
            receipt = await self._hand_over(notifications, own)
        except ChannelError as error:
            if not (own.templated and error.permanent and error.reason == "refused"):
                raise
            own = own.given_up(error)
            receipt = await self._hand_over(notifications, own)
        return own.told(receipt)

    async def _hand_over(self, notifications: Sequence[Notification], own: Words) -> Receipt:
        addresses = self._addresses()
        now = datetime.now(timezone.utc).astimezone()
        mail = message(notifications, addresses, now, own)
        envelope = Mail(addresses.sender.addr_spec, addresses.recipients, mail.as_bytes())
        if self.sendmail:
            handing = asyncio.to_thread(hand_to_program, self.sendmail, envelope, self.timeout)
            return Receipt(await handing)
        server = self._server()
        return _receipt(server, envelope, await hand_over(server, envelope))

    async def reach(self) -> str:
        """Whether the server lets us in, for `sentinel doctor`; nothing is sent."""
        if self.sendmail:
            return self._found_program()
        server = self._server()
        await greet(server)
        how = "answers and takes the login" if server.password else "answers"
        return f"{server.place} {how}"

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The parts of the mail, named, as they would be sent."""
        own = words(self.templates, notifications)
        trouble = [("trouble", own.trouble)] if own.trouble else []
        return [*parts(notifications, own), *trouble]

    def _addresses(self) -> Addresses:
        return Addresses(
            sender=address(self.from_, "from"),
            to=tuple(address(text, "to", i) for i, text in enumerate(self.to)),
            cc=tuple(address(text, "cc", i) for i, text in enumerate(self.cc)),
            reply_to=address(self.reply_to, "reply_to") if self.reply_to else None,
        )

    def _check_program(self) -> None:
        if not self.sendmail[0] or any("\0" in word for word in self.sendmail):
            raise Invalid("name a program, e.g. [/usr/sbin/sendmail]", "sendmail")
        for key in ("host", "port", "username", "password", "ca_file"):
            if getattr(self, key):
                raise Invalid("has no use beside sendmail: that program has its own", key)

    def _found_program(self) -> str:
        program = self.sendmail[0]
        if shutil.which(program) is None:
            raise ChannelError(f"there is no program {program} that may be run")
        return f"{program} is there; what it does with a mail is not known"

    def _check_security(self) -> None:
        if bool(self.username) != (self.password is not None):
            missing = "password" if self.username else "username"
            raise Invalid("username and password go together", missing)
        if self.security != "none":
            return
        if self.ca_file:
            raise Invalid("has no use with security: none", "ca_file")
        if self.username and self.host not in _LOOPBACK:
            raise Invalid(
                "would send the password unencrypted; use starttls or tls, or no username",
                "security",
            )

    def _server(self) -> Server:
        return Server(
            host=self.host,
            port=self.port or _PORTS[self.security],
            security=self.security,
            username=self.username,
            password=self.password,
            ca_file=self.ca_file,
            timeout=self.timeout,
        )


def _receipt(server: Server, mail: Mail, taken: Taken) -> Receipt:
    count = len(mail.recipients)
    refused = f"; refused: {listed(taken.refused)}" if taken.refused else ""
    took = f"{count - len(taken.refused)} of {count}" if refused else f"{count}"
    text = f"{server.place} took it for {took} recipient{'s' if count > 1 else ''}"
    return Receipt(f"{text}: {taken.answer}{refused}", tuple(taken.refused))
