"""A mail's subject and threads on the wire. The standard library's own folding begins some with
an empty line, which filters take for none, and doubles blanks between encoded words."""

from base64 import b64encode
from collections.abc import Iterator
from email.policy import EmailPolicy
from typing import Any

_LINE = 76  # characters: RFC 5322 section 2.1.1, and RFC 2047 section 2 for encoded words
_ROOM = _LINE - len("References: ")
_OURS = ("subject", "references")
_BYTES = 42  # of UTF-8, 56 in base64, 68 with `=?utf-8?b?…?=`; with `Subject: ` still one line


class FoldedPolicy(EmailPolicy):
    """As EmailPolicy, with these two folded here."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        """The header's lines with their ends."""
        if name.lower() not in _OURS:
            return super().fold_binary(name, value)
        return f"{name}: {folded(str(value))}\r\n".encode("ascii")


def folded(text: str) -> str:
    """The text in ASCII; unfolded and decoded again it is the same text."""
    return "\r\n ".join(_lines(text) if text.isascii() else _words(text))


def _lines(text: str) -> Iterator[str]:
    """Broken at blanks, never before the first word; a word that is too long stays whole."""
    line, *words = text.split(" ")
    for word in words:
        if word and len(line) + 1 + len(word) > _ROOM:
            yield line
            line = word
        else:
            line += f" {word}"
    yield line


def _words(text: str) -> Iterator[str]:
    """Encoded words of whole characters: blanks between them mean nothing."""
    part = b""
    for char in text:
        raw = char.encode("utf-8", "backslashreplace")
        if len(part) + len(raw) > _BYTES:
            yield _word(part)
            part = b""
        part += raw
    yield _word(part)


def _word(part: bytes) -> str:
    return f"=?utf-8?b?{b64encode(part).decode('ascii')}?="
