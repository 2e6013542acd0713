"""A Slack bot that tells an alert once, and what follows in the thread of that message.

Where the thread is needs no state of ours: the message bears the alerts' ids as metadata, and
after a restart it is looked for in the channel's history.
https://docs.slack.dev/messaging/message-metadata and
https://docs.slack.dev/reference/methods/conversations.history
"""

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from sentinel.channels.chat import Message
from sentinel.channels.event import move
from sentinel.channels.post import below, post
from sentinel.channels.slack_api import MOST, Root, call, member, metadata, oldest, roots_in
from sentinel.channels.slack_blocks import payload
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification
from sentinel.core.settings import Secret

_PAGE, _PAGES = 200, 3
_SHARE = 0.25  # of the timeout, for what only makes a message nicer
_REMEMBERED = 5000
_FIRST = ("firing", "test", "flapping")
_ALOUD = ("worse", "repeat")
"""Reasons that the whole channel sees, although they are told in a thread."""

_roots: dict[tuple[str, str, str], Root] = {}


class Bot(Struct, frozen=True):
    """Talks to Slack's Web API. The token needs chat:write; to find threads after a restart
    also channels:history, for a private channel groups:history."""

    token: Secret
    channel: str
    api: str
    timeout: float
    ca_file: str

    async def tell(self, message: Message) -> str:
        """Post the message, in the thread of its alerts where there is one."""
        about = _ids(message.notifications)
        root, trouble = await self._root(message.notifications)
        try:
            given = await self._post(message, root, about)
        except ChannelError as error:
            if root is None or not error.permanent or error.reason != "refused":
                raise
            root, trouble = None, f"; not in its thread: {error}"
            given = await self._post(message, root, about)
        if root is None:
            self._remember(Root.of(given, self.channel, about))
            return f"Slack took it for channel {self.channel}{trouble}"
        if root.alerts == about and any(move(n) != "note" for n in message.notifications):
            trouble = await self._refresh(root, message)
        return f"Slack took it into a thread of channel {self.channel}{trouble}"

    async def _post(
        self, message: Message, root: Root | None, about: tuple[str, ...]
    ) -> dict[str, Any]:
        body = {**payload(message), "channel": self.channel, "metadata": metadata(about)}
        if root is not None:
            aloud = any(n.reason in _ALOUD for n in message.notifications)
            body |= {"channel": root.channel, "thread_ts": root.ts, "reply_broadcast": aloud}
        return await self._call("chat.postMessage", body, 1 - 2 * _SHARE)

    async def _root(self, notifications: Sequence[Notification]) -> tuple[Root | None, str]:
        """The one message that told of all these alerts before, and what kept us from it."""
        if any(n.reason in _FIRST or not n.alert for n in notifications):
            return None, ""
        known = {_roots.get(self._place(n.alert)) for n in notifications}
        if known != {None}:
            return (known.pop(), "") if len(known) == 1 else (None, "")
        try:
            return await asyncio.wait_for(self._found(notifications), self.timeout * _SHARE), ""
        except ChannelError as error:
            return None, f"; not in a thread: {error}"
        except (asyncio.TimeoutError, TimeoutError):
            return None, "; not in a thread: the channel's history did not come in time"

    async def _found(self, notifications: Sequence[Notification]) -> Root | None:
        """The message of this bot in the channel's history that names all of the alerts."""
        wanted = set(_ids(notifications))
        query = {"channel": self.channel, "limit": str(_PAGE), "include_all_metadata": "true"}
        query["oldest"] = oldest(n.since for n in notifications)
        for _ in range(_PAGES):
            page = await self._call(f"conversations.history?{urlencode(query)}", None, _SHARE)
            for root in roots_in(page, self.channel):
                self._remember(root)
                if wanted <= set(root.alerts):
                    return root
            query["cursor"] = str(member(page, "response_metadata").get("next_cursor") or "")
            if not query["cursor"]:
                break
        return None

    async def _refresh(self, root: Root, message: Message) -> str:
        """Let the first message show how things stand; that it cannot is no failure."""
        body = {**payload(message), "channel": root.channel, "ts": root.ts}
        try:
            await self._call("chat.update", {**body, "metadata": metadata(root.alerts)}, _SHARE)
        except ChannelError as error:
            return f"; the first message stays as it was: {error}"
        return ""

    async def _call(self, method: str, body: Any, share: float) -> dict[str, Any]:
        limit = self.timeout * share
        headers = {"Authorization": f"Bearer {self.token.reveal()}"}
        request = post(
            below(self.api, method),
            body,
            limit,
            self.ca_file,
            method="GET" if body is None else "POST",
            headers=headers,
            most=MOST,
        )
        return await call(request)

    def _place(self, alert: str) -> tuple[str, str, str]:
        return self.api, self.channel, alert

    def _remember(self, root: Root | None) -> None:
        if root is not None:
            _roots.update({self._place(alert): root for alert in root.alerts})
        for old in [*_roots][: max(0, len(_roots) - _REMEMBERED)]:
            del _roots[old]


def _ids(notifications: Sequence[Notification]) -> tuple[str, ...]:
    return tuple(sorted({n.alert for n in notifications if n.alert}))
