"""What the channels to chats have in common: a short message, its templates, what is told."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sentinel.channels.event import incident_move
from sentinel.channels.format.blocks import ChatContent, fit_blocks, make_chat
from sentinel.channels.http import HttpRequest, submit_request
from sentinel.channels.markup import PLAIN, Markup, first_address
from sentinel.channels.settings import check_timeout
from sentinel.channels.template import (
    BUILT_IN,
    ChatTemplates,
    MessageWords,
    check_templates,
    fill_templates,
)
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.text import shortened
from sentinel.core.values import Duration
from sentinel.plugin import Channel

PICTURE = 10.0
"""Seconds for a picture: the message itself waits for it to be marked as sent."""


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A chat message and the wording that templates gave it, if any."""

    chat: ChatContent
    markup: Markup
    notifications: Sequence[Notification]
    words: MessageWords = BUILT_IN

    @property
    def title_line(self) -> str:
        """One plain line, not in the service's markup."""
        return self.words.subject or f"{self.chat.tone_icon} {self.chat.title}"

    def body_text(self, room: int) -> str:
        """What stands below, in the service's markup, in so many characters."""
        if self.words.text is not None:
            return shortened(self.words.text, room)
        return self.markup.render_blocks(fit_blocks(self.chat, room, self.markup.block_size))

    def whole_text(self, room: int) -> str:
        """Title and body in one text, in the service's markup."""
        title = self.markup.strong(self.markup.escape(self.title_line))
        return f"{title}\n{self.body_text(room - len(title) - 1)}"


class ChatChannel(Channel, frozen=True, kw_only=True):
    """Base of the channels to chats; subclasses make the request."""

    groups: ClassVar[bool] = True
    links: ClassVar[bool] = True
    markup: ClassVar[Markup] = PLAIN

    templates: ChatTemplates = ChatTemplates()
    timeout: Duration = Duration(30)

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        check_templates(self.templates, self.markup.escape)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """One message about all of them. One that is refused with a template is sent again in
        the built-in words: broken markup must not cost an alert."""
        message = self.message(notifications)
        try:
            said = await self.deliver(message)
        except ChannelError as error:
            if not (message.words.is_templated and error.permanent and error.reason == "refused"):
                raise
            message = replace(message, words=message.words.give_up_templates(error))
            said = await self.deliver(message)
        return message.words.note_in_receipt(
            Receipt(said + await self._send_picture(notifications))
        )

    def message(self, notifications: Sequence[Notification]) -> ChatMessage:
        """The message about them."""
        return ChatMessage(
            chat=make_chat(notifications),
            markup=self.markup,
            notifications=notifications,
            words=fill_templates(self.templates, notifications, self.markup.escape),
        )

    @property
    def room(self) -> int:
        """About how many characters a message has."""
        return 4000

    async def deliver(self, message: ChatMessage) -> str:
        """Send it and return what the service said; by default one request."""
        return await submit_request(self.request(message))

    def request(self, message: ChatMessage) -> HttpRequest:
        """The request that sends the message."""
        raise NotImplementedError

    def upload(self, picture: bytes) -> HttpRequest:
        """The request that sends a PNG after it; of channels with `pictures`."""
        raise NotImplementedError

    async def _send_picture(self, notifications: Sequence[Notification]) -> str:
        """Sends the picture of the first that has one, and says what became of it: the message is there, so
        nothing is sent again for it."""
        picture = next((n.picture for n in notifications if n.picture), b"")
        if not (picture and self.pictures):
            return ""
        try:
            await submit_request(replace(self.upload(picture), timeout=min(self.timeout, PICTURE)))
        except ChannelError as error:
            return f"; its picture was not taken: {error}"
        return "; with a picture"

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The parts of the message, named, as they would be sent."""
        message = self.message(notifications)
        parts = [("subject", message.title_line), ("text", message.body_text(self.room))]
        return [*parts, *([("trouble", message.words.trouble)] if message.words.trouble else [])]


def button_links(message: ChatMessage) -> list[tuple[str, str]]:
    """What services can show as buttons under a message about one alert: word and address."""
    if len(message.notifications) > 1:
        return []
    (n,) = message.notifications
    runbook = first_address(n.runbook)
    page = [("Open", n.page)] if n.page else []
    return [*n.links.items(), *page, *([("Runbook", runbook)] if runbook else [])]


def is_quiet(message: ChatMessage) -> bool:
    """Whether nobody has to get up: all of it is over, or somebody has it."""
    return all(incident_move(n) in ("close", "acknowledge") for n in message.notifications)


def without_answers(message: ChatMessage) -> ChatMessage:
    """Without the lines for which there are buttons."""
    blocks = tuple(block for block in message.chat.blocks if not block.url)
    return replace(message, chat=replace(message.chat, blocks=blocks))
