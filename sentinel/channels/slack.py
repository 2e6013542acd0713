"""Slack, through an incoming webhook or as a bot.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and
https://docs.slack.dev/reference/methods/chat.postMessage
"""

from typing import ClassVar

from msgspec.structs import replace

from sentinel.channels.chat import ChatChannel, Message
from sentinel.channels.http import Request, submit
from sentinel.channels.markup import PLAIN, Markup
from sentinel.channels.post import post
from sentinel.channels.settings import check_secret, check_url
from sentinel.channels.slack_blocks import escaped, payload
from sentinel.channels.slack_bot import Bot
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret


class Slack(ChatChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages in a Slack channel: by `url` (incoming webhook), or by `token` and `channel`.

    As a bot there is one message per alert: what follows is told in its thread, and the
    message itself shows how the alert stands. `channel` is an id, e.g. C0123456789.
    """

    markup: ClassVar[Markup] = replace(PLAIN, escape=escaped)

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
            self._check_bot()

    async def deliver(self, message: Message) -> str:
        """By the one way or the other."""
        if self.token is None:
            return await submit(self.request(message))
        bot = Bot(self.token, self.channel, self.api, self.timeout, self.ca_file)
        return await bot.tell(message)

    def request(self, message: Message) -> Request:
        """What the webhook is posted."""
        url = self.url.reveal() if self.url else ""
        return post(url, payload(message), self.timeout, self.ca_file)

    def _check_bot(self) -> None:
        check_secret(self.token, "bot token, e.g. xoxb-…", "token")
        check_url(self.api, "api")
        if not self.channel or not self.channel.isprintable() or " " in self.channel:
            raise Invalid("name the channel by its id, e.g. C0123456789", "channel")
