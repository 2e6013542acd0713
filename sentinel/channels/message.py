"""A mail about alerts: text and HTML, and the headers that keep an alert in one thread."""

import hashlib
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
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Status
from sentinel.core.text import shorten_to_line, shortened, visible

_LOCAL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"{_LOCAL}@(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")


def parse_address(text: str, *path: str | int) -> Address:
    """The address, or Invalid with the path of its key.

    Only ASCII, as every SMTP server takes it; other domains are written in Punycode.
    """
    name, bare = parseaddr(text)
    if (
        visible(text) != text
        or "=?" in text
        or not _ADDRESS.fullmatch(bare)
        or text.count("@") != 1
    ):
        raise Invalid(f"{text!r} is no mail address; write it like name@example.org", *path)
    return Address(display_name=name, addr_spec=bare)


_LINE = 76  # characters: RFC 5322 section 2.1.1, and RFC 2047 section 2 for encoded words
_OURS = ("subject", "references", "x-sentinel-")


class FoldedPolicy(EmailPolicy):
    """As EmailPolicy, with ours folded here: from Python 3.12.5 on it may put a blank too many between
    encoded words, or none (https://github.com/python/cpython/issues/144156)."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        """The header's lines with their ends."""
        if not name.lower().startswith(_OURS):
            return super().fold_binary(name, value)
        return f"{name}: {fold_header(name, str(value))}\r\n".encode("ascii")


def fold_header(name: str, text: str) -> str:
    """The text of that header in ASCII; unfolded and decoded again it is the same text."""
    room = _LINE - len(name) - len(": ")
    return "\r\n ".join(_fold_lines(text, room) if text.isascii() else _encoded_words(text, room))


def _fold_lines(text: str, room: int) -> Iterator[str]:
    """Broken at blanks, never before the first word; a word that is too long stays whole."""
    line, *words = text.split(" ")
    for word in words:
        if word and len(line) + 1 + len(word) > room:
            yield line
            line = word
        else:
            line += f" {word}"
    yield line


def _encoded_words(text: str, room: int) -> Iterator[str]:
    """Encoded words of whole characters: blanks between them mean nothing."""
    most = (room - len("=?utf-8?b??=")) // 4 * 3  # bytes; four characters are three of them
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
_THREADS = 100  # ids in one header: 6 kB, which every server takes
_LONGEST_DOMAIN = 40  # longer ids would be folded, and the standard library breaks them then
_MARKS = ("cluster", "check", "kind", "subject", "severity", "status", "reason", "alert", "key")


class MailAddresses(Struct, frozen=True, kw_only=True):
    """Who writes to whom."""

    sender: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()
    reply_to: Address | None = None

    @property
    def all_recipients(self) -> tuple[str, ...]:
        """Everyone the server is asked to take it for, each once."""
        return tuple(dict.fromkeys(a.addr_spec for a in (*self.to, *self.cc)))


def build_mail(
    notifications: Sequence[Notification],
    addresses: MailAddresses,
    date: datetime,
    words: MessageWords = BUILT_IN,
) -> bytes:
    """One mail about them all as it goes over the wire, pure ASCII."""
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
    """Beside the page, those that it shows: a template may show none."""
    *_, page = mail.iter_parts()
    for picture in dict.fromkeys(n.picture for n in told if n.picture):
        if (name := picture_id(picture)) in text:
            page.add_related(picture, "image", "png", cid=f"<{name}>", filename="picture.png")


def mail_parts(notifications: Sequence[Notification], words: MessageWords) -> list[tuple[str, str]]:
    """Subject, text and HTML, each by its template or built in. Of a text that somebody has
    written there is no built-in HTML: mail programs would show that in its place."""
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
    """The id comes from the keys, so that a repeated mail is the same mail. Alerts of one incident
    are one thread.

    All mails of an alert answer one id that no mail bears, as Alertmanager does it: the
    first may have gone to others. A mail about several refers to the ids of them all, the oldest
    first: whatever was told together, and all that follows about any part of it, is one thread.
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
    """What filters go by, of several alerts those of the worst; RFC 3834 and MS-OXCMAIL keep out-of-office replies away."""
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    if worst.severity is Status.CRITICAL and worst.reason in ("firing", "worse"):
        mail["Importance"] = "high"
    for name in _MARKS:
        value = getattr(worst, name)
        if value := shorten_to_line(value.value if isinstance(value, Status) else value, 120):
            mail[f"X-Sentinel-{name.capitalize()}"] = _plain_header(value)


def _plain_header(text: str) -> str:
    """Never an encoded word: the standard library decodes those it is given in a header,
    line breaks included, and `=?utf-8?q?=0D=0ABcc:…?=` in a job's name adds a recipient."""
    return text.replace("=?", "= ?")


def _thread_digest(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "backslashreplace")
    return hashlib.sha256(joined).hexdigest()[:20]
