"""The common part of the channels to chats: a short message, its templates, and sending."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sentinel.channels.event import incident_move
from sentinel.channels.format.blocks import ChatContent, fit_blocks, make_chat
from sentinel.channels.http_channel import HttpChannel
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import PLAIN, Markup, first_address
from sentinel.channels.settings import check_timeout, check_url
from sentinel.channels.template import (
    BUILT_IN,
    ChatTemplates,
    MessageWords,
    check_templates,
    fill_templates,
)
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import shortened
from sentinel.core.values import Duration

PICTURE = 10.0
"""Seconds for sending a picture. Until then the message is not marked as sent."""


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A chat message, and the wording from templates, if there are any."""

    chat: ChatContent  # Title and blocks.
    markup: Markup  # How the service formats text.
    notifications: Sequence[Notification]  # The alerts in the message.
    words: MessageWords = BUILT_IN  # Wording of templates.

    @property
    def title_line(self) -> str:
        """The title as one plain line, without the service's markup."""
        return self.words.subject or f"{self.chat.tone_icon} {self.chat.title}"

    def body_text(self, room: int) -> str:
        """The body in the service's markup, of at most this many characters."""
        if self.words.text is not None:
            return shortened(self.words.text, room)
        return self.markup.render_blocks(fit_blocks(self.chat, room, self.markup.block_size))

    def whole_text(self, room: int) -> str:
        """Title and body as one text, in the service's markup."""
        title = self.markup.strong(self.markup.escape(self.title_line))
        return f"{title}\n{self.body_text(room - len(title) - 1)}"


class ChatChannel(HttpChannel, frozen=True, kw_only=True):
    """Base of the channels to chats. Subclasses make the request."""

    groups: ClassVar[bool] = True
    links: ClassVar[bool] = True
    markup: ClassVar[Markup] = PLAIN

    templates: ChatTemplates = ChatTemplates()
    timeout: Duration = Duration(30)

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        check_templates(self.templates, self.markup.escape)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Send one message about all alerts.

        If a message from a template is refused, it is sent again with the built-in words. So a
        mistake in a template does not lose an alert.
        """
        message = self.message(notifications)
        try:
            receipt = await self.deliver(message)
        except ChannelError as error:
            if not (message.words.is_templated and error.permanent and error.reason == "refused"):
                raise
            message = replace(message, words=message.words.give_up_templates(error))
            receipt = await self.deliver(message)
        said = receipt.text + await self._send_picture(notifications)
        return message.words.note_in_receipt(replace(receipt, text=said))

    def message(self, notifications: Sequence[Notification]) -> ChatMessage:
        """The message about the alerts."""
        return ChatMessage(
            chat=make_chat(notifications),
            markup=self.markup,
            notifications=notifications,
            words=fill_templates(self.templates, notifications, self.markup.escape),
        )

    @property
    def room(self) -> int:
        """About how many characters a message may have."""
        return 4000

    async def deliver(self, message: ChatMessage) -> Receipt:
        """Send it. By default this is one request."""
        return await self.submit(self.request(message))

    def request(self, message: ChatMessage) -> HttpRequest:
        """The request that sends the message."""
        raise NotImplementedError

    def upload(self, picture: bytes) -> HttpRequest:
        """The request that sends a PNG after the message. Only channels with `pictures` have it."""
        raise NotImplementedError

    async def _send_picture(self, notifications: Sequence[Notification]) -> str:
        """Send the first picture and return what happened, as a note. A failure causes no
        repetition, because the message was already sent."""
        picture = next((n.picture for n in notifications if n.picture), b"")
        if not (picture and self.pictures):
            return ""
        try:
            request = replace(self.upload(picture), timeout=min(self.timeout, PICTURE))
            doubt = (await self.submit(request)).doubt
        except ChannelError as error:
            return f"; its picture was not accepted: {error}"
        return f"; its picture may be missing: {doubt}" if doubt else "; with a picture"

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The named parts of the message, as they would be sent."""
        message = self.message(notifications)
        parts = [("subject", message.title_line), ("text", message.body_text(self.room))]
        return [*parts, *([("trouble", message.words.trouble)] if message.words.trouble else [])]


class WebhookChat(ChatChannel, frozen=True, kw_only=True):
    """Base of the channels to chats that have one address, which is a secret."""

    url: Secret
    ca_file: FilePath = FilePath("")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_url(self.url.reveal(), "url")


def button_links(message: ChatMessage) -> list[tuple[str, str]]:
    """The buttons below a message about one alert: word and address. Services show them."""
    if len(message.notifications) > 1:
        return []
    (n,) = message.notifications
    runbook = first_address(n.runbook)
    page = [("Open", n.page)] if n.page else []
    return [*n.links.items(), *page, *([("Runbook", runbook)] if runbook else [])]


def is_quiet(message: ChatMessage) -> bool:
    """Whether no sound is needed: all alerts are over or acknowledged."""
    return all(incident_move(n) in ("close", "acknowledge") for n in message.notifications)


def without_answers(message: ChatMessage) -> ChatMessage:
    """The message without the lines that the buttons replace."""
    blocks = tuple(block for block in message.chat.blocks if not block.url)
    return replace(message, chat=replace(message.chat, blocks=blocks))
