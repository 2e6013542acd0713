"""Signed, expiring links by which a person says from a phone that they have an alert. Pure.

A link names the alert, the deed, the channel that it was sent to and its end; the signature
(HMAC-SHA256, RFC 2104, cut to 128 bits as RFC 2104 section 5 allows) covers them all. It is a
key: who has it may do this one deed to this one alert until then.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Literal, get_args
from urllib.parse import quote

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import SentinelError

LinkAction = Literal["ack", "silence"]

LINK_ACTIONS: Mapping[LinkAction, str] = {"ack": "Acknowledge", "silence": "Silence"}
LINK_PATH = "/a/"
MAX_TOKEN_CHARS = 2000
_SIGNATURE_BYTES = 16


class BadLink(SentinelError):
    """The link is not one of ours, or its time is over."""


class LinkClaim(Struct, frozen=True, array_like=True):
    """What a link allows; `ends` in seconds UTC."""

    deed: LinkAction
    alert: str
    channel: str
    ends: int


class LinkSigner(Struct, frozen=True):
    """Makes and judges links below `url`, which end `lasts` seconds after they were made."""

    url: str
    secret: bytes
    lasts: float

    def __repr__(self) -> str:
        return f"Signer({self.url!r})"

    def action_links(self, alert: str, channel: str, now: Instant) -> dict[str, str]:
        """What may be done about an alert, in a word, and the address for it."""
        ends = now.wall // SECOND + int(self.lasts)
        claims = {
            LINK_ACTIONS[deed]: LinkClaim(deed, alert, channel, ends)
            for deed in get_args(LinkAction)
        }
        base = f"{self.url.rstrip('/')}{LINK_PATH}"
        return {word: f"{base}{self.make_token(c)}/" for word, c in claims.items()}

    def alert_page_url(self, alert: str) -> str:
        """The address of the alert's page; who opens it has to log in there as for any page."""
        return f"{self.url.rstrip('/')}/alerts/{quote(alert, safe='')}"

    def make_token(self, claim: LinkClaim) -> str:
        """The claim with its signature, for an address."""
        body = encode(claim)
        return _encode_base64(self._sign_body(body) + body)

    def verify_token(self, token: str, now: Instant) -> LinkClaim:
        """What a token allows; raises BadLink, in words for the person who has it."""
        raw = _decode_base64(token)
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        import hmac  # with OpenSSL: only who follows or makes a link needs it

        if not hmac.compare_digest(signature, self._sign_body(body)):
            raise BadLink("this link is not valid")
        claim = _decode_claim(body)
        if now.wall // SECOND >= claim.ends:
            raise BadLink("this link has expired; the next message about the alert has a new one")
        return claim

    def _sign_body(self, body: bytes) -> bytes:
        import hmac

        return hmac.digest(self.secret, b"sentinel link 1\0" + body, "sha256")[:_SIGNATURE_BYTES]


def _encode_base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _decode_base64(token: str) -> bytes:
    if len(token) > MAX_TOKEN_CHARS or not token.isascii():
        raise BadLink("this link is not valid")
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (Error, ValueError):
        raise BadLink("this link is not valid") from None
    if _encode_base64(raw) != token:  # one signature, one spelling
        raise BadLink("this link is not valid")
    return raw


def _decode_claim(body: bytes) -> LinkClaim:
    try:
        return decode(body, type=LinkClaim)
    except (DecodeError, ValueError):
        raise BadLink("this link is not valid") from None
