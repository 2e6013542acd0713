"""Sends SMS, and to about a hundred other services, through Apprise:
https://github.com/caronc/apprise

On failure Apprise only returns False. The reason is in its log, which may contain the address. So
the log is kept in memory, and only the HTTP status is taken from it.
"""

import asyncio
import logging
import re
import threading
from collections.abc import Iterable
from html import escape
from typing import Any, ClassVar

from sentinel.channels.aside import StillOccupied, run_aside
from sentinel.channels.chat import ChatChannel, ChatMessage
from sentinel.channels.http import refused_status
from sentinel.channels.http_request import HttpAnswer, HttpRequest
from sentinel.core.errors import ChannelError, Invalid, describe_missing_extra
from sentinel.core.model import Receipt
from sentinel.core.settings import Secret
from sentinel.core.text import shortened
from sentinel.core.values import duration_text

_ROOM, _TITLE = 1500, 100
_TYPES = {"critical": "failure", "unknown": "warning", "warning": "warning", "ok": "success"}
_TALKATIVE = ("urllib3", "requests", "requests_oauthlib", "oauthlib", "paho", "slixmpp")
_STATUS = re.compile(r"\berror[ =:]+([1-5]\d\d)\b")


class _LogFilter(logging.Filter):
    """Keeps Apprise's log away from all handlers, because it contains addresses. `heard` collects
    the HTTP errors in it, by thread."""

    heard: ClassVar[dict[int | None, list[int]]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Let no record pass."""
        if record.thread in self.heard:
            self.heard[record.thread] += map(int, _STATUS.findall(record.getMessage()))
        return False


_EAR = _LogFilter()


class Apprise(ChatChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SMS (Twilio, Vonage, AWS SNS …) and all else that Apprise knows, by its `url`.

    Needs the extra: pip install 'slurm-sentinel[apprise]'. `length` bounds a message: a phone
    gets about 150 characters in one SMS.
    """

    url: Secret
    length: int = _ROOM

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 150 <= self.length <= 10_000:
            raise Invalid("from 150 to 10000 characters", "length")
        _apprise_service(self.url)

    def unused(self) -> Iterable[tuple[str, str]]:
        """`expect`: Apprise shows no answers."""
        if self.expect:
            yield "expect", "Apprise judges the answers itself, and shows none"

    async def deliver(self, message: ChatMessage) -> Receipt:
        """Send in a thread that can be left behind if it hangs. Two messages to one address are
        never sent at once."""
        try:
            said = await run_aside(self.url, lambda: self._notify_service(message), self.timeout)
            return Receipt(said)
        except (asyncio.TimeoutError, TimeoutError):
            trouble = f"no answer within {duration_text(self.timeout)}"
        except StillOccupied:
            trouble = "an earlier message still hangs"
        raise ChannelError(f"apprise: {trouble}", reason="timeout")

    @property
    def web_address(self) -> str:
        """The address as http:// if Apprise sends to it without verified TLS. Services with a host of
        one's own have two names, such as `json://` and `jsons://`; else empty."""
        service = _apprise_service(self.url)
        safe = service.secure and service.verify_certificate
        if safe or not (service.host and service.protocol and service.secure_protocol):
            return ""
        return f"http://{self.url.reveal().partition('://')[2]}"

    @property
    def room(self) -> int:
        """How many characters the body may have."""
        return self.length

    def _notify_service(self, message: ChatMessage) -> str:
        service = _apprise_service(self.url)
        title = shortened(message.title_line, _TITLE)
        body = message.body_text(self.length - len(title))
        form = _resolve_format(service)
        if form == "html":  # before 2.3, Apprise escapes nothing if a service is called directly
            body = escape(body).replace("\n", "<br/>")
            title = escape(title) if service.title_maxlen <= 0 else title
        heard = _EAR.heard[threading.get_ident()] = []
        try:
            taken = service.notify(
                title=title,
                body=body,
                notify_type=_TYPES.get(message.chat.tone, "info"),
                body_format=form,
            )
        except Exception as error:
            name = type(error).__name__  # the text of the error may contain the address
            raise ChannelError(f"apprise failed inside: {name}", reason="server") from None
        finally:
            del _EAR.heard[threading.get_ident()]
        if not taken:
            raise _notify_failure(service, heard)
        return f"apprise: {service.service_name} accepted it"


def _apprise_service(url: Secret) -> Any:
    """Apprise's object for the address. Raises Invalid if Apprise does not know the service."""
    try:
        from apprise import Apprise as Library
    except ImportError as error:
        raise Invalid(describe_missing_extra("apprise", error), "kind") from None
    _silence_loggers()
    found = Library.instantiate(url.reveal(), suppress_exceptions=True)
    if found is None:
        raise Invalid("is no address that Apprise knows; see `apprise --details`", "url")
    return found


def _resolve_format(service: Any) -> str:
    """`html` if the service sends HTML, otherwise `text`. From 2.0 on, a service may have several
    formats."""
    resolve = getattr(service, "resolve_format", None)
    found = resolve("text") if resolve else service.notify_format
    return "html" if str(getattr(found, "value", found)) == "html" else "text"


def _silence_loggers() -> None:
    logging.getLogger("apprise").addFilter(_EAR)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _notify_failure(service: Any, statuses: list[int]) -> ChannelError:
    """The error as for any other HTTP service, if the log contains a status."""
    text = f"apprise: {service.service_name} did not accept it"
    if not statuses:
        return ChannelError(f"{text}; is it reachable?", reason="network")
    nowhere = HttpRequest(url="", method="", headers={}, body=b"", timeout=1.0)
    like = refused_status(nowhere, HttpAnswer(statuses[-1], ""))
    return ChannelError(
        f"{text}: HTTP status {statuses[-1]}", permanent=like.permanent, reason=like.reason
    )
