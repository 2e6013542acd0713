"""Makes verified TLS connections, the same way for all channels."""

from __future__ import annotations

import ssl

from sentinel.core.errors import ChannelError
from sentinel.core.text import visible

# X509_V_ERR_* of OpenSSL, https://docs.openssl.org/3.0/man3/X509_STORE_CTX_get_error/
_REMEDIES = {
    9: "check this host's clock",
    10: "the server needs a new one",
    62: "use the name that the certificate is made for",
    64: "use the name that the certificate is made for",
}


def client_context(ca_file: str) -> ssl.SSLContext:
    """A TLS context that verifies certificates and names. It trusts only `ca_file`, or the system's
    CAs if that is empty.

    Raises ChannelError (reason tls) if the file cannot be read or contains no certificate.
    """
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        why = "holds no PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ChannelError(f"ca_file {visible(ca_file)}: {why}", reason="tls") from None


def tls_trouble(error: BaseException | None) -> ssl.SSLError | None:
    """The innermost TLS error among an error's causes. Libraries wrap it in errors of their own
    that say less."""
    found = None
    while error is not None:
        found = error if isinstance(error, ssl.SSLError) else found
        error = error.__cause__ or error.__context__
    return found


def tls_words(error: ssl.SSLError) -> str:
    """One line: the TLS problem and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = _REMEDIES.get(error.verify_code, "set ca_file to the PEM file of its CA")
        why = visible(error.verify_message.rstrip("."))
        return f"its certificate is not trusted: {why}; {remedy}"
    why = visible(error.reason or "handshake failed").replace("_", " ").lower()
    return f"TLS failed: {why}; check port and security"
