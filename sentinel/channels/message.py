"""Builds a mail about alerts: text, HTML, and headers that keep an alert in one thread."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import parseaddr
from typing import Any

from msgspec import Struct

from sentinel.channels.format import text as render
from sentinel.channels.format.html import picture_id, render_cards_html
from sentinel.channels.template import BUILT_IN, MessageWords
from sentinel.core.digests import sha256
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Status
from sentinel.core.text import shorten_to_line, shortened, visible

_LOCAL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"{_LOCAL}@(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")


def parse_address(text: str, *path: str | int) -> Address:
    """Parse a mail address. Raises Invalid with the path of its key.

    Only ASCII is allowed, because every SMTP server accepts it. Other domains are written in
    Punycode. The whole text must be used: parseaddr reads `ann@exa mple.org` as `ann@exa`.
    """
    name, bare = parseaddr(text)
    if (
        visible(text) != text
        or "=?" in text
        or not (text == bare or text.endswith(f"<{bare}>") or text.startswith(f"{bare} ("))
        or not _ADDRESS.fullmatch(bare)
        or text.count("@") != 1
    ):
        raise Invalid(f"{text!r} is no mail address; write it like name@example.org", *path)
    return Address(display_name=name, addr_spec=bare)


_LINE = 76  # characters: RFC 5322 section 2.1.1, and RFC 2047 section 2 for encoded words
_OURS = ("subject", "references", "x-sentinel-")


class FoldedPolicy(EmailPolicy):
    """EmailPolicy, but sentinel folds the headers. Since Python 3.12.5 the standard library may put
    one blank too many between encoded words, or none
    (https://github.com/python/cpython/issues/144156)."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        """The lines of the header, each with its line end."""
        if not name.lower().startswith(_OURS):
            return super().fold_binary(name, value)
        return f"{name}: {fold_header(name, str(value))}\r\n".encode("ascii")


def fold_header(name: str, text: str) -> str:
    """The text of the header in ASCII. If it is unfolded and decoded, the result is the same text."""
    room = _LINE - len(name) - len(": ")
    return "\r\n ".join(_fold_lines(text, room) if text.isascii() else _encoded_words(text, room))


def _fold_lines(text: str, room: int) -> Iterator[str]:
    """Break the text at blanks, but not before the first word. A word that is too long stays whole."""
    line, *words = text.split(" ")
    for word in words:
        if word and len(line) + 1 + len(word) > room:
            yield line
            line = word
        else:
            line += f" {word}"
    yield line


def _encoded_words(text: str, room: int) -> Iterator[str]:
    """Encode the text as words of whole characters. Blanks between encoded words have no meaning."""
    # bytes per word; base64 turns three into four characters
    most = (room - len("=?utf-8?b??=")) // 4 * 3
    part = b""
    for char in text:
        raw = char.encode("utf-8", "backslashreplace")
        if len(part) + len(raw) > most:
            yield _encoded_word(part)
            part = b""
        part += raw
    yield _encoded_word(part)


def _encoded_word(part: bytes) -> str:
    return f"=?utf-8?b?{b64encode(part).decode('ascii')}?="


_POLICY = FoldedPolicy(linesep="\r\n", cte_type="7bit")
_THREADS = 100  # ids in one header: 6 kB, which every server accepts
# longer ids would be folded, and the standard library breaks them when it folds
_LONGEST_DOMAIN = 40
_MARKS = ("cluster", "check", "kind", "subject", "severity", "status", "reason", "alert", "key")


class MailAddresses(Struct, frozen=True, kw_only=True):
    """Sender and recipients of a mail."""

    sender: Address  # The sender.
    to: tuple[Address, ...]  # Recipients.
    cc: tuple[Address, ...] = ()  # Recipients of copies.
    reply_to: Address | None = None  # Where answers go.

    @property
    def all_recipients(self) -> tuple[str, ...]:
        """All recipients for the server, without duplicates."""
        return tuple(dict.fromkeys(a.addr_spec for a in (*self.to, *self.cc)))


def build_mail(
    notifications: Sequence[Notification],
    addresses: MailAddresses,
    date: datetime,
    words: MessageWords = BUILT_IN,
) -> bytes:
    """One mail about all alerts, as it is sent: pure ASCII."""
    named = dict(mail_parts(notifications, words))
    mail = EmailMessage(policy=_POLICY)
    mail["Subject"] = _plain_header(named["subject"])
    mail["From"] = addresses.sender
    mail["To"] = addresses.to
    if addresses.cc:
        mail["Cc"] = addresses.cc
    if addresses.reply_to:
        mail["Reply-To"] = addresses.reply_to
    mail["Date"] = date
    _add_thread(mail, notifications, addresses)
    _add_marks(mail, render.sort_worst_first(notifications)[0])
    mail.set_content(named["text"])
    if "html" in named:
        mail.add_alternative(named["html"], subtype="html")
        _add_pictures(mail, notifications, named["html"])
    return mail.as_bytes()


def _add_pictures(mail: EmailMessage, told: Sequence[Notification], text: str) -> None:
    """Attach the pictures that the HTML part shows. A template may show none."""
    *_, page = mail.iter_parts()
    for picture in dict.fromkeys(n.picture for n in told if n.picture):
        if (name := picture_id(picture)) in text:
            page.add_related(picture, "image", "png", cid=f"<{name}>", filename="picture.png")


def mail_parts(notifications: Sequence[Notification], words: MessageWords) -> list[tuple[str, str]]:
    """Subject, text and HTML. Each comes from its template or is built in.

    If only the text has a template, there is no HTML part, because mail programs would show it in
    place of the text.
    """
    cards = render.rank_cards(notifications)
    subject = words.subject or render.subject_of_cards(cards)
    found = [("subject", shortened(subject, render.SUBJECT))]
    found.append(("text", words.text or render.render_cards_text(cards)))
    if words.html or not words.text:
        found.append(("html", words.html or render_cards_html(cards)))
    return found


def _add_thread(
    mail: EmailMessage, notifications: Sequence[Notification], addresses: MailAddresses
) -> None:
    """Set the message id and the references.

    The id is derived from the keys of the alerts, so a repeated mail has the same id. Alerts of one
    incident are one thread. All mails of an alert refer to one id that no mail has, as Alertmanager
    does, because the first mail may have gone to others. A mail about several alerts refers to the
    ids of them all, oldest first. So mails about any of them appear in the same thread.
    https://www.rfc-editor.org/rfc/rfc5322#section-3.6.4
    """
    domain = addresses.sender.domain
    place = domain if len(domain) <= _LONGEST_DOMAIN else "sentinel.invalid"
    keys = [n.key for n in notifications]
    mail["Message-ID"] = f"<{_thread_digest(*keys, *addresses.all_recipients)}@{place}>"
    told = sorted((n for n in notifications if n.alert), key=lambda n: n.since)
    names = [n.incident or n.alert for n in told] + [n.alert for n in told]
    about = dict.fromkeys(zip([n.cluster for n in told] * 2, names, strict=True))
    threads = [f"<{_thread_digest(cluster, name)}@{place}>" for cluster, name in about]
    if threads:
        mail["In-Reply-To"] = threads[0]
        mail["References"] = " ".join(threads[:_THREADS])


def _add_marks(mail: EmailMessage, worst: Notification) -> None:
    """Set headers for mail filters, with the values of the worst alert. RFC 3834 and MS-OXCMAIL
    headers prevent out-of-office replies."""
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    if worst.severity is Status.CRITICAL and worst.reason in ("firing", "worse"):
        mail["Importance"] = "high"
    for name in _MARKS:
        value = getattr(worst, name)
        if value := shorten_to_line(value.value if isinstance(value, Status) else value, 120):
            mail[f"X-Sentinel-{name.capitalize()}"] = _plain_header(value)


def _plain_header(text: str) -> str:
    """The value without encoded words.

    The standard library decodes encoded words in a header, with their line breaks. So
    `=?utf-8?q?=0D=0ABcc:…?=` in a job's name would add a recipient.
    """
    return text.replace("=?", "= ?")


def _thread_digest(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "backslashreplace")
    return sha256(joined).hexdigest()[:20]
