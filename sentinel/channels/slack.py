"""Slack, through an incoming webhook or as a bot.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and
https://docs.slack.dev/reference/methods/chat.postMessage
"""

import re
from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from sentinel.channels.chat import ChatChannel, ChatMessage
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import PLAIN, Markup
from sentinel.channels.post import json_request
from sentinel.channels.settings import check_secret, check_url
from sentinel.channels.slack_blocks import escape_slack, slack_payload
from sentinel.channels.slack_bot import SlackBot
from sentinel.core.errors import Invalid
from sentinel.core.model import Receipt
from sentinel.core.settings import ExpectedAnswer, FilePath, Secret


class Slack(ChatChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages in a Slack channel: by `url` (incoming webhook), or by `token` and `channel`.

    As a bot there is one message per alert: what follows is told in its thread, and the
    message itself shows how the alert stands. `channel` is an id, e.g. C0123456789.
    """

    markup: ClassVar[Markup] = replace(PLAIN, escape=escape_slack)
    # Rocket.Chat takes the same form: API.v1.success() in its webhook integration.
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=200, body=re.compile(r"\Aok\Z")),
        ExpectedAnswer(status=200, json={"success": True}),
    )

    url: Secret | None = None
    token: Secret | None = None
    channel: str = ""
    api: str = "https://slack.com/api"
    ca_file: FilePath = FilePath("")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.url is None) == (self.token is None):
            raise Invalid("needs `url` (a webhook) or `token` and `channel` (a bot)", "url")
        if self.url is not None:
            check_url(self.url.reveal(), "url")
        else:
            self._check_bot_settings()

    def unused(self) -> Iterable[tuple[str, str]]:
        """`expect`, for a bot: Slack's API says itself what it took."""
        if self.token is not None and self.expect:
            yield "expect", "Slack's API says itself whether it accepted a message"

    async def deliver(self, message: ChatMessage) -> Receipt:
        """Send through the webhook or as the bot."""
        if self.token is None:
            return await self.submit(self.request(message))
        bot = SlackBot(self.token, self.channel, self.api, self.timeout, self.ca_file)
        return Receipt(await bot.post_message(message))

    def request(self, message: ChatMessage) -> HttpRequest:
        """The request to the webhook."""
        url = self.url.reveal() if self.url else ""
        return json_request(url, slack_payload(message), self.timeout, self.ca_file)

    def _check_bot_settings(self) -> None:
        check_secret(self.token, "bot token, e.g. xoxb-…", "token")
        check_url(self.api, "api")
        if not self.channel or not self.channel.isprintable() or " " in self.channel:
            raise Invalid("name the channel by its id, e.g. C0123456789", "channel")
