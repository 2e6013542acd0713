"""Sends mail through an SMTP server or the mail program of this host."""

import re
import shutil
from collections.abc import Sequence
from datetime import datetime, timezone
from email.headerregistry import Address
from typing import ClassVar, Literal

from msgspec import field
from msgspec.structs import replace

from sentinel.alerting.owners import OWNER_LABEL
from sentinel.channels.aside import run_in_thread
from sentinel.channels.mail_owners import OwnerDirectory
from sentinel.channels.mail_server import (
    MailEnvelope,
    MailTaken,
    SmtpServer,
    is_for_now,
    list_refused,
)
from sentinel.channels.message import MailAddresses, build_mail, mail_parts, parse_address
from sentinel.channels.sendmail import hand_to_program
from sentinel.channels.settings import check_timeout
from sentinel.channels.template import MailTemplates, MessageWords, check_templates, fill_templates
from sentinel.core.command_places import tell_owner_place
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret, is_this_machine
from sentinel.core.values import Duration
from sentinel.plugin import Channel
from sentinel.trust import list_program_paths

_PORTS = {"starttls": 587, "tls": 465, "none": 25}


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
        """Whether each message goes only to the user whose alerts it contains."""
        return self.to == "owner"

    def trusted_paths(self) -> list[str]:
        """The program that takes the mail, if one does."""
        return list_program_paths(self.sendmail) if self.sendmail else []

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Send one mail about all alerts.

        If only some recipients are refused, the receipt names them. If one is refused for now, this
        is a doubt: he has nothing yet, and a repetition reaches the others twice. If a mail from templates is refused
        for good, it is sent again with the built-in words.
        """
        if not self.personal:
            return await self._send_mail(notifications, self._to_addresses())
        users: dict[str, list[Notification]] = {}  # one user, if delivery has separated the users
        for one in notifications:
            users.setdefault(one.labels.get(OWNER_LABEL, ""), []).append(one)
        return _join_receipts(
            [await self._send_to_owner(user, mine) for user, mine in users.items()]
        )

    async def _send_to_owner(self, user: str, notifications: Sequence[Notification]) -> Receipt:
        """Send to the owner. A user who wants no mail gets none, and this is no failure."""
        owners = OwnerDirectory(self.owner_domain, tuple(self.owner_lookup))
        owner = await run_in_thread(owners.find_owner, user)
        if owner.address is None:
            return Receipt(f"no mail: {owner.none}")
        receipt = await self._send_mail(_address_owner(notifications), (owner.address,))
        return replace(receipt, text=f"{receipt.text}; {owner.note}") if owner.note else receipt

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
        # importing aiosmtplib takes half of the start-up time
        from sentinel.channels.smtp import hand_over_mail

        addresses = self._all_addresses(to)
        now = datetime.now(timezone.utc).astimezone()
        mail = build_mail(notifications, addresses, now, own)
        envelope = MailEnvelope(addresses.sender.addr_spec, addresses.all_recipients, mail)
        if self.sendmail:
            handing = run_in_thread(hand_to_program, self.sendmail, envelope, self.timeout)
            return Receipt(await handing)
        server = self._smtp_server()
        return _mail_receipt(server, envelope, await hand_over_mail(server, envelope))

    async def reach(self) -> str:
        """Whether the server accepts the login, for `sentinel doctor`. Nothing is sent."""
        if self.sendmail:
            return self._find_program()
        from sentinel.channels.smtp import greet_server

        server = self._smtp_server()
        await greet_server(server)
        how = "answers and accepts the login" if server.password else "answers"
        return f"{server.host_and_port} {how}"

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The named parts of the mail, as they would be sent."""
        if self.personal:
            notifications = _address_owner(notifications)
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
                    raise Invalid("changes nothing without `to: owner`", key)
            return
        if not self.owner_domain and not self.owner_lookup:
            raise Invalid(
                "is missing: the domain of users' addresses, e.g. example.org; or set `owner_lookup`",
                "owner_domain",
            )
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
                raise Invalid(
                    "changes nothing beside `sendmail`: that program has a configuration of its own",
                    key,
                )

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
            raise Invalid("changes nothing with `security: none`", "ca_file")
        if self.username and not is_this_machine(self.host):
            raise Invalid(
                "would send the password unencrypted; use starttls or tls, or no username",
                "security",
            )

    def _smtp_server(self) -> SmtpServer:
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


def _address_owner(notifications: Sequence[Notification]) -> list[Notification]:
    """The same for the user whom they are about: commands of sentinel are run by who runs it."""
    return [
        replace(n, setup_place=tell_owner_place(n.setup_place, n.labels.get(OWNER_LABEL, "")))
        for n in notifications
    ]


def _join_receipts(receipts: Sequence[Receipt]) -> Receipt:
    refused = tuple(name for receipt in receipts for name in receipt.refused)
    doubt = next((receipt.doubt for receipt in receipts if receipt.doubt), "")
    return Receipt("; ".join(receipt.text for receipt in receipts), refused, doubt)


def _mail_receipt(server: SmtpServer, mail: MailEnvelope, taken: MailTaken) -> Receipt:
    count = len(mail.recipients)
    refused = f"; refused: {list_refused(taken.refused)}" if taken.refused else ""
    took = f"{count - len(taken.refused)} of {count}" if refused else f"{count}"
    text = f"{server.host_and_port} accepted it for {took} recipient{'s' if count > 1 else ''}"
    later = {who: said for who, said in taken.refused.items() if is_for_now(said)}
    doubt = f"refused for now (4xx), as by a greylist: {list_refused(later)}" if later else ""
    if not doubt and re.match(r"2\.7\.\d", taken.answer):
        doubt = "its answer is about policy (2.7.x): it may have thrown the mail away"
    return Receipt(f"{text}: {taken.answer}{refused}", tuple(taken.refused), doubt)
