"""What becomes of a message, by the answer of a service on the loopback that says what the real one says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentinel.channels.alertmanager import Alertmanager
from sentinel.channels.discord import Discord
from sentinel.channels.email import Email
from sentinel.channels.heartbeat import WebPulse
from sentinel.channels.mail_server import MailEnvelope
from sentinel.channels.mattermost import Mattermost
from sentinel.channels.ntfy import Ntfy
from sentinel.channels.opsgenie import Opsgenie
from sentinel.channels.pagerduty import Pagerduty
from sentinel.channels.sendmail import hand_to_program
from sentinel.channels.slack import Slack
from sentinel.channels.teams import Teams
from sentinel.channels.telegram import Telegram
from sentinel.channels.webhook import Webhook
from sentinel.config.settings import HeartbeatSettings
from sentinel.core.errors import ChannelError
from sentinel.core.settings import Secret
from sentinel.plugin import Channel
from tests.channels.contract import send
from tests.channels.samples import notification
from tests.channels.web import Web, answers
from tests.lab.smtp import SmtpServer

KINDS: dict[str, Callable[[str], Channel]] = {
    "alertmanager": lambda url: Alertmanager(urls=[url]),
    "discord": lambda url: Discord(url=Secret(f"{url}/api/webhooks/1/x")),
    "mattermost": lambda url: Mattermost(url=Secret(f"{url}/hooks/x")),
    "ntfy": lambda url: Ntfy(url=Secret(f"{url}/topic")),
    "opsgenie": lambda url: Opsgenie(api_key=Secret("k"), api=url),
    "pagerduty": lambda url: Pagerduty(routing_key=Secret("r"), url=f"{url}/v2/enqueue"),
    "slack": lambda url: Slack(url=Secret(f"{url}/services/T0/B0/x")),
    "slack bot": lambda url: Slack(token=Secret("xoxb-1"), channel="C1", api=f"{url}/api"),
    "teams": lambda url: Teams(url=Secret(f"{url}/webhookb2/x/IncomingWebhook/y/z")),
    "telegram": lambda url: Telegram(token=Secret("1:a"), chat="-100", api=url),
    "webhook": lambda url: Webhook(url=Secret(f"{url}/hook")),
}


def outcome(kind: str, status: int, body: str = "", **headers: str) -> str:
    """`taken`, `never`, or `later` (after so many seconds, where it was told)."""
    with Web(answers(status, body, **headers)) as server:
        if kind == "heartbeat":
            settings = HeartbeatSettings(url=Secret(f"{server.url}/ping/x"))
            return _outcome(lambda: asyncio.run(WebPulse(settings).send_heartbeat(True, "")))
        return _outcome(lambda: send(KINDS[kind](server.url), notification()))


def mailed(folder: Path, rcpt: str = "", data: str = "", login: bool = False) -> str:
    """The same of a mail, by what the server says of the recipient, of the content, or of the login."""
    logins = {"me": "right"} if login else None
    with SmtpServer(folder, logins=logins, security="starttls" if login else "none") as server:
        if rcpt:
            server.refuse("ann@example.org", rcpt)
        if data:
            server.refuse_data(data)
        fields: dict[str, Any] = {
            "to": ["ann@example.org"],
            "host": "localhost",
            "port": server.port,
        }
        fields |= {"from_": "me@example.org", "security": server.security}
        if login:
            fields |= {"username": "me", "password": Secret("wrong"), "ca_file": str(server.ca)}
        return _outcome(lambda: send(Email(**fields), notification()))


def through_program(folder: Path, code: int) -> str:
    """The same where the program of this host ends with that exit code."""
    program = folder / "sendmail"
    program.write_text(f"#!/bin/sh\ncat >/dev/null\nexit {code}\n")
    program.chmod(0o755)
    mail = MailEnvelope("me@example.org", ["ann@example.org"], b"x")
    return _outcome(lambda: hand_to_program([str(program)], mail, 10))


def _outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except ChannelError as error:
        if error.permanent:
            return "never"
        return "later" if error.retry_after is None else f"later ({error.retry_after:g} s)"
    return "taken"
