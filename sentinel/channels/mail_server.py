"""A mail server, a mail with its envelope, and the server's answers."""

import base64
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from sentinel.core.settings import Secret


class SmtpServer(Struct, frozen=True, kw_only=True):
    """The address of a mail server and its settings. `security` is starttls, tls or none. It is
    never lowered."""

    host: str  # Name of the server.
    port: int  # Port of the server.
    security: str
    username: str = ""  # Name for the login; empty: none.
    password: Secret | None = None  # Password for the login.
    ca_file: str = ""  # PEM file of the only CA to trust; empty: the system's.
    timeout: float = 30.0  # Seconds for a whole delivery.
    ehlo: str = ""
    """The name for EHLO. Empty: `ehlo_name` chooses it."""
    sender_domain: str = ""
    """The domain of the sender's address."""

    @property
    def host_and_port(self) -> str:
        """`host:port`, for error messages."""
        return f"{self.host}:{self.port}"

    @property
    def wire_secrets(self) -> tuple[str, ...]:
        """The password in every encoding in which it is sent."""
        if self.password is None:
            return ()
        word = self.password.reveal()
        forms = (word, f"\0{self.username}\0{word}")
        return (word, *(base64.b64encode(f.encode()).decode() for f in forms))


class MailEnvelope(Struct, frozen=True):
    """A mail with sender and recipients, as bytes for sending."""

    sender: str  # Address of the sender.
    recipients: tuple[str, ...]  # Addresses of the recipients.
    content: bytes  # The mail.


class MailTaken(Struct, frozen=True):
    """The server's answer to the mail, and its answers to the recipients that it refused."""

    answer: str  # The server's answer to the content.
    refused: Mapping[str, str]  # Its answer to each refused recipient.


def list_refused(refused: Mapping[str, str], limit: int = 3) -> str:
    """For example `a@example.org (550 no such user), … and 4 more`."""
    shown: Iterable[str] = [f"{who} ({said})" for who, said in [*refused.items()][:limit]]
    more = f" and {len(refused) - limit} more" if len(refused) > limit else ""
    return ", ".join(shown) + more


_TRANSIENT = re.compile(r"4\d\d|5\d\d[ -]5\.(?:2\.2|3\.1|4\.5)\b")
"""Codes that are of use for what passes only, by RFC 3463, whatever class a server gives them: a full
mailbox or system, and congestion (Gmail's 550 5.4.5 for a day's limit)."""


def is_for_now(said: str) -> bool:
    """Whether the answer may be another one later. Some say 552 of too many recipients, which clients
    should take so (RFC 5321 4.5.3.1.10)."""
    return said.startswith("552") or _TRANSIENT.match(said) is not None
