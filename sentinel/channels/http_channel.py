"""The common part of the channels that send HTTP requests."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sentinel.channels.http import submit_request
from sentinel.channels.http_request import HttpRequest
from sentinel.core.model import Receipt
from sentinel.core.settings import ExpectedAnswer
from sentinel.plugin import Channel


class HttpChannel(Channel, frozen=True, kw_only=True):
    """Base of the channels over HTTP. `answers`: what the service answers to a message that it
    took, by its documentation; empty: any 2xx. `expect` replaces it."""

    answers: ClassVar[tuple[ExpectedAnswer, ...]] = ()

    expect: list[ExpectedAnswer] = []

    async def submit(self, *requests: HttpRequest, none: str = "") -> Receipt:
        """Send the requests, one after the other. Returns the last receipt, with the first doubt;
        `none` is its text if there is no request. Raises ChannelError."""
        receipt = Receipt(none)
        for request in requests:
            answered = await submit_request(request, self.forms)
            receipt = replace(answered, doubt=receipt.doubt or answered.doubt)
        return receipt

    @property
    def forms(self) -> Sequence[ExpectedAnswer]:
        """What counts as success."""
        return self.expect or self.answers
