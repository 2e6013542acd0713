"""From an address to a channel that works from here: which mail server, which kind of webhook."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from shutil import which
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from sentinel.config.default import settings_from_data
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.core.errors import ChannelError, Invalid, SentinelError
from sentinel.core.settings import is_web_address
from sentinel.core.text import visible
from sentinel.wiring import app

MAIL_SERVER_TIMEOUT = "8s"
"""Time limit for a test whether the mail server exists."""

MAIL_PROGRAMS = ("/usr/sbin/sendmail", "/usr/lib/sendmail", "msmtp")

_CHAT_HOSTS = (
    ("hooks.slack.com", "slack"),
    ("discord.com", "discord"),
    ("webhook.office.com", "teams"),
    ("logic.azure.com", "teams"),
    ("ntfy.sh", "ntfy"),
)
"""Services with their own channel, by the end of the webhook's host name."""


class NoChannelFound(SentinelError):
    """The requested channel does not work. Nothing was written."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""


class ChannelDraft(Struct, frozen=True):
    """A channel as it would stand in the file, and in words how it reaches whom."""

    name: str
    block: Mapping[str, Any]
    words: str
    receiver: str


def check_address(mail: str, webhook: str) -> None:
    """Raise Invalid if this cannot be a mail address or the address of a webhook."""
    if mail:
        _load_channel_plugin(
            "email", _build_mail_block(mail, {"host": "localhost", "security": "none"})
        )
    if webhook:
        make_webhook_channel(webhook)


def make_mail_channel(address: str, relay: str = "") -> ChannelDraft:
    """Mail to that address through the first way that answers; raises NoChannelFound or Invalid."""
    check_address(address, "")
    tried = []
    for way in _list_mail_routes(relay):
        block = _build_mail_block(address, way)
        try:
            said = asyncio.run(
                _load_channel_plugin("email", {**block, "timeout": MAIL_SERVER_TIMEOUT}).reach()
            )
        except ChannelError as error:
            tried.append(f"{_describe_mail_route(way)}: {error}")
            continue
        return ChannelDraft(
            "mail",
            block,
            f"mail to {address} through {_describe_mail_route(way)}"
            + (f" ({said})" if said else ""),
            address,
        )
    raise NoChannelFound(
        "no way to send mail was found ("
        + "; ".join(map(visible, tried))
        + "). Name your mail server: --smtp HOST or --smtp HOST:PORT; or take --webhook URL"
    )


def make_webhook_channel(url: str) -> ChannelDraft:
    """A message to that address; raises Invalid."""
    if not is_web_address(url):
        raise Invalid(
            f"{visible(url)} is no address of a webhook; one begins with https:// or http://"
        )
    host = urlsplit(url).hostname or ""
    kind = next((k for end, k in _CHAT_HOSTS if host == end or host.endswith(f".{end}")), "webhook")
    block = {"kind": kind, "url": url}
    _load_channel_plugin(kind, block)
    return ChannelDraft(
        "chat" if kind != "webhook" else "webhook", block, f"{kind} at {host}", host
    )


def send_test_message(told: ChannelDraft) -> str:
    """What the other side answered to a real test message; raises NoChannelFound where it was not taken."""
    plugin = _load_channel_plugin(told.block["kind"], told.block)
    try:
        receipt = asyncio.run(app.send_test(plugin, Settings()))
    except ChannelError as error:
        raise NoChannelFound(
            f"the test message to {told.words} was not taken: {visible(str(error))}"
        ) from error
    if receipt.refused:
        refused = ", ".join(map(visible, receipt.refused))
        raise NoChannelFound(f"the test message was refused for {refused}: {visible(receipt.text)}")
    if receipt.doubt:
        raise NoChannelFound(
            f"the test message to {told.words} was probably not taken: {receipt.doubt} "
            f"({visible(receipt.text)}). Is the address whole? If the message arrived, write the "
            "channel into the file by hand"
        )
    return visible(receipt.text)


def _build_mail_block(address: str, way: Mapping[str, Any]) -> dict[str, Any]:
    """The block for mail, with sender and recipient. Bounces go to the recipient too."""
    return {"kind": "email", "to": [address], "from": address, **way}


def _list_mail_routes(relay: str) -> Iterator[dict[str, Any]]:
    if relay:
        host, _, port = relay.rpartition(":") if relay.count(":") == 1 else (relay, "", "")
        at: dict[str, Any] = {"host": host, **({"port": int(port)} if port.isdecimal() else {})}
        yield {**at, "security": "starttls"}
        yield {**at, "security": "none"}
        return
    yield {"host": "localhost", "security": "none"}
    for program in MAIL_PROGRAMS:
        if path := which(program):
            yield {"sendmail": [path]}


def _describe_mail_route(way: Mapping[str, Any]) -> str:
    if program := way.get("sendmail"):
        return f"the mail program {program[0]}"
    port = f":{way['port']}" if "port" in way else ""
    return f"{way['host']}{port}" + (" with STARTTLS" if way["security"] == "starttls" else "")


def _load_channel_plugin(kind: str, block: Mapping[str, Any]) -> Any:
    """The channel for this block. Raises Invalid if it does not accept the settings."""
    try:
        settings = settings_from_data({"channels": {"it": dict(block)}}, app.CHECKS, app.CHANNELS)
    except ConfigError as error:
        raise Invalid("; ".join(p.message for p in error.problems)) from None
    return settings.channels[0].plugin
