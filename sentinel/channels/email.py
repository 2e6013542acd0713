"""Mail through an SMTP server, or by the mail program of this host."""

import os
import re
import shutil
from collections.abc import Sequence
from datetime import datetime, timezone
from email.headerregistry import Address
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct, field

from sentinel import proc
from sentinel.alerting.owners import OWNER_LABEL, RECIPIENT_REASON
from sentinel.channels.message import MailAddresses, build_mail, mail_parts, parse_address
from sentinel.channels.program import hand_to
from sentinel.channels.settings import check_timeout
from sentinel.channels.template import MailTemplates, MessageWords, check_templates, fill_templates
from sentinel.core.errors import CannotTell, ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration
from sentinel.plugin import Channel

if TYPE_CHECKING:
    from sentinel.channels.smtp import MailEnvelope, MailTaken, SmtpServer

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Email(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mail (text and HTML) through an SMTP server, one thread per alert.

    `security` is never less than asked for. `ehlo`: how this host names itself to the server; by
    default its name, with the sender's domain where it has none. `timeout` bounds a whole delivery. `sendmail`: a
    program with its arguments, in place of `host`. `to: owner`: the user whose job it is, found
    by `owner_lookup` or `owner_domain`, at most `per_day` mails a day to each.
    """

    groups: ClassVar[bool] = True
    links: ClassVar[bool] = True
    pictures: ClassVar[bool] = True

    to: list[str] | str
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
    owner_domain: str = ""
    owner_lookup: list[str] = []
    per_day: int = 20
    ehlo: str = ""
    templates: MailTemplates = MailTemplates()

    def __post_init__(self) -> None:
        self._all_addresses(self._to_addresses())
        self._check_owner()
        if not self.to:
            raise Invalid("name at least one address", "to")
        if self.sendmail:
            self._check_program()
        elif not self.host or not self.host.isprintable() or " " in self.host:
            raise Invalid("name the mail server, e.g. smtp.example.org", "host")
        if self.port is not None and not 0 < self.port < 65536:
            raise Invalid("a port is a number from 1 to 65535", "port")
        check_timeout(self.timeout)
        if self.ehlo and not re.fullmatch(r"[A-Za-z0-9.-]{1,255}|\[[0-9A-Fa-f.:]+\]", self.ehlo):
            raise Invalid("is no name of a host, e.g. login1.example.org", "ehlo")
        self._check_security()
        check_templates(self.templates)

    @property
    def personal(self) -> bool:
        """Whether each message is for the user of its alerts, and for nobody else."""
        return self.to == "owner"

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """One mail about all of them. Recipients refused beside others are in the receipt,
        even those refused for now: the others would get a repeated mail twice. A mail that is
        refused for good with its templates is sent again in the built-in words."""
        if not self.personal:
            return await self._send_mail(notifications, self._to_addresses())
        users: dict[str, list[Notification]] = {}  # one, where delivery has told them apart
        for one in notifications:
            users.setdefault(one.labels.get(OWNER_LABEL, ""), []).append(one)
        return _join_receipts(
            [await self._send_to_owner(user, mine) for user, mine in users.items()]
        )

    async def _send_to_owner(self, user: str, notifications: Sequence[Notification]) -> Receipt:
        """Somebody who wants no mail has none, and that is no failure."""
        import asyncio

        owners = OwnerDirectory(self.owner_domain, tuple(self.owner_lookup))
        owner = await asyncio.to_thread(owners.find_owner, user)
        if owner.address is None:
            return Receipt(f"no mail: {owner.none}")
        receipt = await self._send_mail(notifications, (owner.address,))
        return Receipt(f"{receipt.text}; {owner.note}", receipt.refused) if owner.note else receipt

    async def _send_mail(
        self, notifications: Sequence[Notification], to: tuple[Address, ...]
    ) -> Receipt:
        own = fill_templates(self.templates, notifications)
        try:
            receipt = await self._hand_to_server(notifications, own, to)
        except ChannelError as error:
            if not (own.is_templated and error.permanent and error.reason == "refused"):
                raise
            own = own.give_up_templates(error)
            receipt = await self._hand_to_server(notifications, own, to)
        return own.note_in_receipt(receipt)

    async def _hand_to_server(
        self, notifications: Sequence[Notification], own: MessageWords, to: tuple[Address, ...]
    ) -> Receipt:
        import asyncio

        from sentinel.channels.smtp import MailEnvelope, hand_over_mail

        addresses = self._all_addresses(to)
        now = datetime.now(timezone.utc).astimezone()
        mail = build_mail(notifications, addresses, now, own)
        envelope = MailEnvelope(addresses.sender.addr_spec, addresses.all_recipients, mail)
        if self.sendmail:
            handing = asyncio.to_thread(hand_to_program, self.sendmail, envelope, self.timeout)
            return Receipt(await handing)
        server = self._smtp_server()
        return _mail_receipt(server, envelope, await hand_over_mail(server, envelope))

    async def reach(self) -> str:
        """Whether the server lets us in, for `sentinel doctor`; nothing is sent."""
        if self.sendmail:
            return self._find_program()
        from sentinel.channels.smtp import greet_server

        server = self._smtp_server()
        await greet_server(server)
        how = "answers and takes the login" if server.password else "answers"
        return f"{server.host_and_port} {how}"

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The parts of the mail, named, as they would be sent."""
        own = fill_templates(self.templates, notifications)
        trouble = [("trouble", own.trouble)] if own.trouble else []
        return [*mail_parts(notifications, own), *trouble]

    def _to_addresses(self) -> tuple[Address, ...]:
        if self.personal:
            return ()
        if isinstance(self.to, str):
            return (parse_address(self.to, "to"),) if self.to else ()
        return tuple(parse_address(text, "to", i) for i, text in enumerate(self.to))

    def _all_addresses(self, to: tuple[Address, ...]) -> MailAddresses:
        return MailAddresses(
            sender=parse_address(self.from_, "from"),
            to=to,
            cc=tuple(parse_address(text, "cc", i) for i, text in enumerate(self.cc)),
            reply_to=parse_address(self.reply_to, "reply_to") if self.reply_to else None,
        )

    def _check_owner(self) -> None:
        if not self.personal:
            for key in ("owner_domain", "owner_lookup"):
                if getattr(self, key):
                    raise Invalid("has a use with `to: owner` only", key)
            return
        if not self.owner_domain and not self.owner_lookup:
            raise Invalid("tells where users have their mail, e.g. example.org", "owner_domain")
        if self.owner_domain and parse_address(f"u@{self.owner_domain}", "owner_domain").domain != (
            self.owner_domain
        ):
            raise Invalid(f"{self.owner_domain!r} is no domain of mail addresses", "owner_domain")
        if self.owner_lookup and not all(w and "\0" not in w for w in self.owner_lookup):
            raise Invalid("name a program, e.g. [/usr/local/bin/mail-of]", "owner_lookup")
        if self.per_day < 1:
            raise Invalid("at least 1 mail a day", "per_day")

    def _check_program(self) -> None:
        if not self.sendmail[0] or any("\0" in word for word in self.sendmail):
            raise Invalid("name a program, e.g. [/usr/sbin/sendmail]", "sendmail")
        for key in ("host", "port", "username", "password", "ca_file", "ehlo"):
            if getattr(self, key):
                raise Invalid("has no use beside sendmail: that program has its own", key)

    def _find_program(self) -> str:
        program = self.sendmail[0]
        if shutil.which(program) is None:
            raise ChannelError(f"there is no program {program} that may be run")
        return f"{program} is there; what it does with a mail is not known"

    def _check_security(self) -> None:
        if bool(self.username) != (self.password is not None):
            missing = "password" if self.username else "username"
            raise Invalid("is missing: a login needs both username and password", missing)
        if self.security != "none":
            return
        if self.ca_file:
            raise Invalid("has no use with security: none", "ca_file")
        if self.username and self.host not in _LOOPBACK:
            raise Invalid(
                "would send the password unencrypted; use starttls or tls, or no username",
                "security",
            )

    def _smtp_server(self) -> "SmtpServer":
        from sentinel.channels.smtp import SmtpServer

        return SmtpServer(
            host=self.host,
            port=self.port or _PORTS[self.security],
            security=self.security,
            username=self.username,
            password=self.password,
            ca_file=self.ca_file,
            timeout=self.timeout,
            ehlo=self.ehlo,
            sender_domain=parse_address(self.from_, "from").domain,
        )


def _join_receipts(receipts: Sequence[Receipt]) -> Receipt:
    refused = tuple(name for receipt in receipts for name in receipt.refused)
    return Receipt("; ".join(receipt.text for receipt in receipts), refused)


def _mail_receipt(server: "SmtpServer", mail: "MailEnvelope", taken: "MailTaken") -> Receipt:
    from sentinel.channels.smtp import list_refused

    count = len(mail.recipients)
    refused = f"; refused: {list_refused(taken.refused)}" if taken.refused else ""
    took = f"{count - len(taken.refused)} of {count}" if refused else f"{count}"
    text = f"{server.host_and_port} took it for {took} recipient{'s' if count > 1 else ''}"
    return Receipt(f"{text}: {taken.answer}{refused}", tuple(taken.refused))


# Mail handed to the program of this host, in the way that sendmail(8) has set for all of them.


# sysexits.h: what is wrong with this very mail (usage, data, no such user or host). All else (no
# configuration, no rights, EX_TEMPFAIL) is mended without the mail.
_PERMANENT = (64, 65, 67, 68)


def hand_to_program(program: Sequence[str], mail: "MailEnvelope", limit: float) -> str:
    """Whom it took the mail for, in words; raises ChannelError. A queue takes it, delivery is later.

    `-i`: a line with a dot alone ends nothing; `-f`: where bounces go. The recipients are
    arguments, so that no header is read for them.
    """
    argv = [*program, "-i", "-f", mail.sender, "--", *mail.recipients]
    hand_to(argv, _native_lines(mail.content), limit, _PERMANENT)
    count = len(mail.recipients)
    return f"{visible(program[0])} took it for {count} recipient{'s' if count > 1 else ''}"


def _native_lines(content: bytes) -> bytes:
    """As files have them: sendmail(8) reads lines that end in a newline alone."""
    return content.replace(b"\r\n", b"\n")


# The user whose job an alert is about: their mail address, and whether they want mail.


OPT_OUT = ".config/sentinel/no-mail"
"""The file in a user's home that says: no mail."""

PROGRAM_LIMIT_S = 5.0  # seconds for each question: a lookup, the list of users, a home
MAX_STUCK = 4  # children that hang on homes; then no further one is sent there

# useradd(8) of shadow-utils allows these; what else a directory has, only a lookup can translate.
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}")

_hanging = proc.HangingChildren(most=MAX_STUCK)


class MailOwner(Struct, frozen=True):
    """Who gets the mail; `none`: why they get none after all; `note`: what could not be seen."""

    address: Address | None
    none: str = ""
    note: str = ""


class OwnerDirectory(Struct, frozen=True):
    """How addresses are found: `lookup` is a program that is given the user's name and prints the
    address; where it prints nothing, and without one, it is `user@domain`."""

    domain: str = ""
    lookup: tuple[str, ...] = ()
    limit: float = PROGRAM_LIMIT_S

    def find_owner(self, user: str) -> MailOwner:
        """Blocks for seconds at most. Raises ChannelError where there is no address: permanent,
        unless the lookup itself failed."""
        if not user:
            raise _no_address_error("the alert names no user: it is about no job")
        if user.isdigit():
            raise _no_address_error(f"Slurm knows uid {user}, but no name for it")
        found = self._owner_address(user)
        out, note = find_opt_out(user, self.limit)
        if out:
            return MailOwner(None, f"{visible(user)} wants none: {visible(out)} is there")
        return MailOwner(found, note=note)

    def _owner_address(self, user: str) -> Address:
        text = self._lookup_output(user) if self.lookup else ""
        if not text and self.domain and _LOCAL.fullmatch(user):
            text = f"{user}@{self.domain}"
        if not text:
            how = "the lookup prints none" if self.lookup else "it is no name that a mail can go to"
            raise _no_address_error(f"user {visible(user)} has no mail address: {how}")
        try:
            return parse_address(text)
        except Invalid as error:
            raise _no_address_error(f"user {visible(user)}: {error}") from None

    def _lookup_output(self, user: str) -> str:
        if user.startswith("-") or not user.isprintable():
            return ""
        try:
            done = proc.run(
                [*self.lookup, user], limit=self.limit, env=os.environ, max_output=2**16
            )
        except CannotTell as error:
            raise _lookup_failed_error(user, str(error)) from None
        if done.code:
            said = visible(os.fsdecode(done.err).strip())
            raise _lookup_failed_error(user, f"exit code {done.code}: {shortened(said, 200)}")
        lines = done.out.decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[0].strip() if lines else ""


def find_opt_out(user: str, limit: float = PROGRAM_LIMIT_S) -> tuple[str, str]:
    """The file by which the user says so, or "", and what kept it from being seen, or "".

    Only a file of that user counts: whoever else may write there decides nothing. Where it cannot
    be seen (a home that hangs, or that sentinel may not enter) the mail is sent: a death that
    nobody hears of costs more than a mail too many.
    """
    try:
        home = _home_folder(user, limit)
        return (_own_file(f"{home}/{OPT_OUT}", user, limit), "") if home else ("", "")
    except CannotTell as error:
        return "", f"whether {visible(user)} wants none could not be seen: {error}"


def _home_folder(user: str, limit: float) -> str:
    done = _ask_tool(["getent", "passwd", "--", user], "getent passwd", limit)
    fields = os.fsdecode(done.out).partition("\n")[0].split(":")
    return fields[5] if len(fields) > 6 and fields[5].startswith("/") else ""


def _own_file(path: str, user: str, limit: float) -> str:
    done = _ask_tool(["stat", "-c", "%U", "--", path], path, limit)
    error = os.fsdecode(done.err)
    if done.code and "No such file" not in error and "Not a directory" not in error:
        raise CannotTell(shortened(visible(error.strip()), 200))
    return path if os.fsdecode(done.out).strip() == user else ""


def _ask_tool(argv: Sequence[str], what: str, limit: float) -> proc.Done:
    try:
        with _hanging.start_alone(what):
            return proc.run(argv, limit=limit, max_output=2**16)
    except proc.StillHanging as error:
        raise CannotTell(f"{visible(what)} {error}") from None
    except proc.TimedOut as error:
        raise CannotTell(f"{visible(what)} does not answer: {error}") from None


def _no_address_error(text: str) -> ChannelError:
    return ChannelError(text, permanent=True, reason=RECIPIENT_REASON)


def _lookup_failed_error(user: str, why: str) -> ChannelError:
    text = f"the address of user {visible(user)} could not be looked up: {why}"
    return ChannelError(text, reason=RECIPIENT_REASON)
