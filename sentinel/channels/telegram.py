"""Sends messages through a Telegram bot: https://core.telegram.org/bots/api#sendmessage"""

from typing import ClassVar

from sentinel.channels.chat import ChatChannel, ChatMessage, is_quiet
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import HTML, Markup
from sentinel.channels.post import form_request, json_request, url_below
from sentinel.channels.settings import check_secret, check_url
from sentinel.core.errors import Invalid
from sentinel.core.settings import ExpectedAnswer, FilePath, Secret

_ROOM = 4000
"""Characters with markup. Telegram accepts 4,096 without markup."""


class Telegram(ChatChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages from a Telegram bot to a chat, group or channel; no sound for what is good again.

    `chat`: its number or @name; `thread`: the topic of a forum; `api`: a Bot API server of one's
    own.
    """

    markup: ClassVar[Markup] = HTML
    pictures: ClassVar[bool] = True
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (ExpectedAnswer(status=200, json={"ok": True}),)

    token: Secret
    chat: str | int
    thread: int | None = None
    api: str = "https://api.telegram.org"
    ca_file: FilePath = FilePath("")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_secret(self.token, "bot token, e.g. 123456:ABC…", "token")
        check_url(self.api, "api")
        if not str(self.chat).strip():
            raise Invalid("name the chat: its number or @name", "chat")

    def request(self, message: ChatMessage) -> HttpRequest:
        """The message as HTML. All foreign text is escaped, and links get no preview."""
        payload = {
            "chat_id": self.chat,
            "text": message.whole_text(_ROOM),
            "parse_mode": "HTML",
            "link_preview_options": {"is_disabled": True},
            "disable_notification": is_quiet(message),
            **({"message_thread_id": self.thread} if self.thread is not None else {}),
        }
        url, hidden = self._method_url("sendMessage")
        return json_request(url, payload, self.timeout, self.ca_file, hidden=hidden)

    def upload(self, picture: bytes) -> HttpRequest:
        """The request that sends the picture: https://core.telegram.org/bots/api#sendphoto"""
        fields = {"chat_id": str(self.chat), "disable_notification": "true"}
        if self.thread is not None:
            fields["message_thread_id"] = str(self.thread)
        url, hidden = self._method_url("sendPhoto")
        return form_request(
            url, fields, "photo", picture, self.timeout, self.ca_file, hidden=hidden
        )

    def _method_url(self, name: str) -> tuple[str, tuple[str, ...]]:
        token = self.token.reveal()
        return url_below(self.api, f"bot{token}/{name}"), (token, token.partition(":")[2])
