"""Speaks with a mail server (RFC 5321), and raises sentinel's errors.

An error is permanent only if the server refuses this mail itself (sender, recipients, content).
Problems with the connection, TLS or the login can be mended without changing the mail. So it is
tried again, whatever code the server gives.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from aiohappyeyeballs import AddrInfoType, start_connection
from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPConnectError,
    SMTPDataError,
    SMTPException,
    SMTPHeloError,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPSenderRefused,
)

from sentinel.alerting.owners import RECIPIENT_REASON
from sentinel.channels.mail_server import (
    MailEnvelope,
    MailTaken,
    SmtpServer,
    is_for_now,
    list_refused,
)
from sentinel.channels.redact import connection_failure, quote_redacted
from sentinel.channels.tls import client_context, tls_trouble, tls_words
from sentinel.core.errors import ChannelError
from sentinel.core.settings import Secret
from sentinel.core.values import duration_text

Answer = TypeVar("Answer")
_PARTING = 1.0  # seconds to wait for the answer to QUIT; the server has accepted the mail by then
_LOGINS = ("plain", "login", "cram-md5")
_NOT_THIS_WAY = (502, 504, 534)  # RFC 4954: the login mechanism is refused, not the password
_WANTS_LOGIN = (530, 535, 538)


class _SmtpClient(SMTP):
    """aiosmtplib's client, but it closes the connection at once.

    Its own close waits for a server that may no longer read. It also leaves the connection open if
    the event loop ends before.
    """

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()  # type: ignore[attr-defined]
        super().close()


async def hand_over_mail(server: SmtpServer, mail: MailEnvelope) -> MailTaken:
    """Send the mail to the server. Raises ChannelError unless the server accepts it for at least
    one recipient."""
    return await _meet_server(server, lambda client: _talk_mail(client, server, mail))


async def greet_server(server: SmtpServer) -> None:
    """Log in and leave without sending. Raises ChannelError if the server refuses."""

    async def come_and_go(client: SMTP) -> None:
        await _enter_server(client, server)
        await _leave_server(client)

    await _meet_server(server, come_and_go)


async def _meet_server(server: SmtpServer, talk: Callable[[SMTP], Awaitable[Answer]]) -> Answer:
    context = None if server.security == "none" else client_context(server.ca_file)
    try:
        connected = await asyncio.wait_for(_connect_socket(server), server.timeout)
    except (OSError, asyncio.TimeoutError) as error:
        raise _network_error(server, error) from None
    client = _SmtpClient(
        hostname=server.host,
        sock=connected,
        timeout=server.timeout,
        use_tls=server.security == "tls",
        start_tls=False,
        local_hostname=server.ehlo or ehlo_name(socket.gethostname(), server.sender_domain),
        tls_context=context,
    )
    try:
        return await asyncio.wait_for(talk(client), server.timeout)
    except (SMTPException, OSError, ValueError, asyncio.TimeoutError) as error:
        raise _network_error(server, error) from None
    finally:
        if client.transport is None:  # otherwise the connection is closed together with the client
            connected.close()
        client.close()


async def _connect_socket(server: SmtpServer) -> socket.socket:
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    return await connect_first(infos)


async def connect_first(infos: Sequence[AddrInfoType]) -> socket.socket:
    """Connect to the first of these addresses that answers. Raises OSError.

    An address that does not answer delays the next one by only 250 ms (RFC 8305, as in curl and
    browsers).
    """
    return await start_connection(infos, happy_eyeballs_delay=0.25)


async def _enter_server(client: SMTP, server: SmtpServer) -> None:
    await client.connect()
    if server.security == "starttls":
        await _start_tls(client, server)
    if server.password is not None:
        await _log_in(client, server, server.password)


async def _leave_server(client: SMTP) -> None:
    with suppress(Exception):
        await client.quit(timeout=_PARTING)


async def _talk_mail(client: SMTP, server: SmtpServer, mail: MailEnvelope) -> MailTaken:
    await _enter_server(client, server)
    errors, answer = await client.sendmail(mail.sender, mail.recipients, mail.content)
    await _leave_server(client)
    refused = {who: f"{said.code} {said.message}" for who, said in errors.items()}
    return MailTaken(
        quote_redacted(answer, server.wire_secrets),
        {who: quote_redacted(said, server.wire_secrets) for who, said in refused.items()},
    )


async def _start_tls(client: SMTP, server: SmtpServer) -> None:
    with suppress(SMTPHeloError):
        await client.ehlo()
    if not client.supports_extension("starttls"):
        raise ChannelError(
            f"{server.host_and_port} offers no STARTTLS; set security to tls if it speaks TLS from "
            "the start (port 465), or to none if mail may go unencrypted",
            reason="tls",
        )
    try:
        await client.starttls()
    except SMTPResponseException as error:
        said = quote_redacted(f"{error.code} {error.message}")
        raise ChannelError(
            f"{server.host_and_port} refused STARTTLS: {said}", reason="tls"
        ) from None


async def _log_in(client: SMTP, server: SmtpServer, password: Secret) -> None:
    """Log in with one attempt. aiosmtplib's login tries all mechanisms, and three failures at once
    lock some accounts."""
    await client.ehlo()
    for name in (n for n in _LOGINS if n in client.server_auth_methods):
        method = getattr(client, "auth_" + name.replace("-", ""))
        try:
            await method(server.username, password.reveal())
        except SMTPAuthenticationError as error:
            if error.code not in _NOT_THIS_WAY:
                raise
        else:
            return
    offered = quote_redacted(" ".join(client.server_auth_methods) or "none")
    raise ChannelError(
        f"{server.host_and_port} offers no login with a password (it offers: {offered})",
        reason="auth",
    )


_LABEL = r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)"
DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
"""A name with a domain (RFC 5321 4.1.2)."""


def ehlo_name(host: str, domain: str) -> str:
    """This host's name for EHLO, without a DNS query.

    The name of a node or container often has no domain. Then the sender's domain is added, because
    relays such as Google's reject `localhost` and address literals. If there is no name at all, the
    literal of RFC 5321 4.1.3 is used.
    """
    host = host.rstrip(".")
    names = (host, f"{host}.{domain}", domain) if DOMAIN.fullmatch(domain) else (host,)
    return next((name for name in names if DOMAIN.fullmatch(name)), "[127.0.0.1]")


def _network_error(server: SmtpServer, error: Exception) -> ChannelError:
    if (tls := tls_trouble(error)) is not None:
        return ChannelError(f"{server.host_and_port}: {tls_words(tls)}", reason="tls")
    if isinstance(error, SMTPRecipientsRefused):
        return _no_recipient_error(server, error)
    if isinstance(error, SMTPResponseException):
        return _refused_error(server, error)
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        limit = duration_text(server.timeout)
        return ChannelError(
            f"{server.host_and_port} did not answer within {limit}", reason="timeout"
        )
    cause = error.__cause__ if isinstance(error, SMTPConnectError) else error
    if isinstance(cause, OSError) and not isinstance(cause, SMTPException):
        why = connection_failure(cause)
        return ChannelError(f"cannot connect to {server.host_and_port}: {why}", reason="network")
    said = quote_redacted(str(error) or type(error).__name__, server.wire_secrets)
    place = "" if server.host in said else f"{server.host_and_port}: "
    return ChannelError(f"{place}{said}", reason="network")


def _refused_error(server: SmtpServer, error: SMTPResponseException) -> ChannelError:
    said = quote_redacted(f"{error.code} {error.message}", server.wire_secrets)
    if isinstance(error, SMTPAuthenticationError):
        advice = "; check username and password" if error.code // 100 == 5 else ""
        text = f"{server.host_and_port} refused the login of {quote_redacted(server.username)}{advice}: {said}"
        return ChannelError(text, reason="auth")
    if error.code in _WANTS_LOGIN:
        return ChannelError(
            f"{server.host_and_port} wants a login or TLS first: {said}", reason="auth"
        )
    if not isinstance(error, SMTPSenderRefused | SMTPDataError):
        return ChannelError(
            f"{server.host_and_port} refused the connection: {said}", reason="server"
        )
    what = "the sender" if isinstance(error, SMTPSenderRefused) else "the mail"
    # What says 552 of no recipient is too large.
    later = error.code != 552 and is_for_now(f"{error.code} {error.message}")
    permanent = error.code // 100 == 5 and not later
    return ChannelError(
        f"{server.host_and_port} refused {what}: {said}",
        permanent=permanent,
        reason="refused" if permanent else "server",
    )


def _no_recipient_error(server: SmtpServer, error: SMTPRecipientsRefused) -> ChannelError:
    permanent = not any(is_for_now(f"{r.code} {r.message}") for r in error.recipients)
    said = list_refused(
        {
            r.recipient: quote_redacted(f"{r.code} {r.message}", server.wire_secrets)
            for r in error.recipients
        }
    )
    return ChannelError(
        f"{server.host_and_port} refused every recipient: {said}",
        permanent=permanent,
        reason=RECIPIENT_REASON,
    )
