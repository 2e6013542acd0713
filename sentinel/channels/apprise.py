"""SMS and some hundred other services through Apprise: https://github.com/caronc/apprise

Apprise tells failure by a False and says more only in its log, which may hold the address:
the log is kept in memory, and nothing of it is passed on but the HTTP status.
"""

import asyncio
import logging
import re
import threading
from typing import Any, ClassVar

from sentinel.channels.aside import StillOccupied, run_aside
from sentinel.channels.chat import ChatChannel, ChatMessage
from sentinel.channels.http import HttpAnswer, HttpRequest, refused_status
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.settings import Secret
from sentinel.core.text import shortened
from sentinel.core.values import duration_text

_ROOM, _TITLE = 1500, 100
_TYPES = {"critical": "failure", "unknown": "warning", "warning": "warning", "ok": "success"}
_TALKATIVE = ("urllib3", "requests", "requests_oauthlib", "oauthlib", "paho", "slixmpp")
_STATUS = re.compile(r"\berror[ =:]+([1-5]\d\d)\b")


class _LogFilter(logging.Filter):
    """Takes what Apprise logs away from every handler, since it holds addresses; `heard` keeps
    the HTTP errors that it names, by thread."""

    heard: ClassVar[dict[int | None, list[int]]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Nothing passes."""
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

    async def deliver(self, message: ChatMessage) -> str:
        """In a thread that can be left behind; never two at once to the same address."""
        try:
            return await run_aside(self.url, lambda: self._notify_service(message), self.timeout)
        except (asyncio.TimeoutError, TimeoutError):
            trouble = f"no answer within {duration_text(self.timeout)}"
        except StillOccupied:
            trouble = "an earlier message still hangs"
        raise ChannelError(f"apprise: {trouble}", reason="timeout")

    @property
    def room(self) -> int:
        """What stands below the title."""
        return self.length

    def _notify_service(self, message: ChatMessage) -> str:
        service = _apprise_service(self.url)
        title = shortened(message.title_line, _TITLE)
        heard = _EAR.heard[threading.get_ident()] = []
        try:
            taken = service.notify(
                title=title,
                body=message.body_text(self.length - len(title)),
                notify_type=_TYPES.get(message.chat.tone, "info"),
                body_format="text",
            )
        except Exception as error:
            name = type(error).__name__  # its text may hold the address
            raise ChannelError(f"apprise failed inside: {name}", reason="server") from None
        finally:
            del _EAR.heard[threading.get_ident()]
        if not taken:
            raise _notify_failure(service, heard)
        return f"apprise: {service.service_name} took it"


def _apprise_service(url: Secret) -> Any:
    """Apprise's own object for the address; Invalid where it knows none."""
    try:
        from apprise import Apprise as Library
    except ImportError:
        remedy = "needs the extra: pip install 'slurm-sentinel[apprise]'"
        raise Invalid(remedy, "kind") from None
    _silence_loggers()
    found = Library.instantiate(url.reveal(), suppress_exceptions=True)
    if found is None:
        raise Invalid("is no address that Apprise knows; see `apprise --details`", "url")
    return found


def _silence_loggers() -> None:
    logging.getLogger("apprise").addFilter(_EAR)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _notify_failure(service: Any, statuses: list[int]) -> ChannelError:
    """As for any other HTTP service, if the log names a status."""
    text = f"apprise: {service.service_name} did not take it"
    if not statuses:
        return ChannelError(f"{text}; is it reachable?", reason="network")
    nowhere = HttpRequest(url="", method="", headers={}, body=b"", timeout=1.0)
    like = refused_status(nowhere, HttpAnswer(statuses[-1], ""))
    return ChannelError(
        f"{text}: HTTP status {statuses[-1]}", permanent=like.permanent, reason=like.reason
    )
