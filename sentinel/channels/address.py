"""Mail addresses as people write them: `name@host` or `A Name <name@host>`."""

import re
from email.headerregistry import Address
from email.utils import parseaddr

from sentinel.core.errors import Invalid
from sentinel.core.text import visible

_LOCAL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"{_LOCAL}@(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")


def address(text: str, *path: str | int) -> Address:
    """The address, or Invalid with the path of its key.

    Only ASCII, as every SMTP server takes it; other domains are written in Punycode.
    """
    name, bare = parseaddr(text)
    if (
        visible(text) != text
        or "=?" in text
        or not _ADDRESS.fullmatch(bare)
        or text.count("@") != 1
    ):
        raise Invalid(f"{text!r} is no mail address; write it like name@example.org", *path)
    return Address(display_name=name, addr_spec=bare)
