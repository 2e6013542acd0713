"""Signed links that expire. With such a link, a person acknowledges an alert from a phone. Pure.

A link contains the alert, the action, the channel that it was sent to, and its end. The signature
covers all of them (HMAC-SHA256, RFC 2104, cut to 128 bits, which section 5 of RFC 2104 allows).
Whoever has the link may do this one action to this one alert until the end. So treat it like a
password.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from sentinel.core.clock import SECOND, Instant
from sentinel.core.digests import is_same_digest, make_hmac
from sentinel.core.errors import SentinelError
from sentinel.core.model import ACK_ALL

LinkAction = Literal["ack", "silence"]

LINK_ACTIONS: Mapping[LinkAction, str] = {"ack": "Acknowledge", "silence": "Silence"}
LINK_PATH = "/a/"
MAX_TOKEN_CHARS = 2000
_SIGNATURE_BYTES = 16


class BadLink(SentinelError):
    """The link was not made by this sentinel, or has expired."""


class LinkClaim(Struct, frozen=True, array_like=True):
    """The content of a link. `ends` is in seconds UTC."""

    deed: LinkAction  # What it allows.
    alert: str  # Id of the alert; of several alerts their ids, with commas.
    channel: str  # Name of the channel that it was sent to.
    ends: int


class LinkSigner(Struct, frozen=True):
    """Makes and verifies links below `url`. They expire `lasts` seconds after they were made."""

    url: str
    secret: bytes  # The key that signs links.
    lasts: float

    def __repr__(self) -> str:
        return f"Signer({self.url!r})"

    def action_links(self, alert: str, channel: str, now: Instant) -> dict[str, str]:
        """One link per action, by the name of the action."""
        return {
            LINK_ACTIONS[deed]: self._make_link(deed, alert, channel, now)
            for deed in get_args(LinkAction)
        }

    def ack_all_link(self, alerts: Iterable[str], channel: str, now: Instant) -> dict[str, str]:
        """The link that acknowledges all of these alerts; nothing if a token has no room for them, as
        a link for some would look as if it were for all."""
        link = self._make_link("ack", ",".join(alerts), channel, now)
        return {ACK_ALL: link} if len(link) <= MAX_TOKEN_CHARS else {}

    def _make_link(self, deed: LinkAction, alert: str, channel: str, now: Instant) -> str:
        claim = LinkClaim(deed, alert, channel, now.wall // SECOND + int(self.lasts))
        return f"{self.url.rstrip('/')}{LINK_PATH}{self.make_token(claim)}/"

    def alert_page_url(self, alert: str) -> str:
        """The address of the alert's page. The reader has to log in there, as for any page."""
        from urllib.parse import quote  # imported only here: a tick without links starts sooner

        return f"{self.url.rstrip('/')}/alerts/{quote(alert, safe='')}"

    def make_token(self, claim: LinkClaim) -> str:
        """The claim with its signature, as part of an address."""
        body = encode(claim)
        return _encode_base64(self._sign_body(body) + body)

    def verify_token(self, token: str, now: Instant) -> LinkClaim:
        """The content of a token. Raises BadLink. The text of the error is for the person who
        opened the link."""
        raw = _decode_base64(token)
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not is_same_digest(signature, self._sign_body(body)):
            raise BadLink("this link is not valid")
        claim = _decode_claim(body)
        if now.wall // SECOND >= claim.ends:
            raise BadLink("this link has expired; the next message about the alert has a new one")
        return claim

    def _sign_body(self, body: bytes) -> bytes:
        return make_hmac(self.secret, b"sentinel link 1\0" + body)[:_SIGNATURE_BYTES]


def _encode_base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _decode_base64(token: str) -> bytes:
    if len(token) > MAX_TOKEN_CHARS or not token.isascii():
        raise BadLink("this link is not valid")
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (Error, ValueError):
        raise BadLink("this link is not valid") from None
    if _encode_base64(raw) != token:  # each signature has exactly one valid spelling
        raise BadLink("this link is not valid")
    return raw


def _decode_claim(body: bytes) -> LinkClaim:
    try:
        return decode(body, type=LinkClaim)
    except (DecodeError, ValueError):
        raise BadLink("this link is not valid") from None
