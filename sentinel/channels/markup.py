"""Turns blocks into the text format of a service, and escapes all foreign text."""

import html
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from sentinel.channels.format.blocks import MessageBlock

# Addresses that are left unescaped in a link. Their only character with a meaning in Markdown is
# `_`, and it has none inside a word. The host is required, because services refuse a message with a
# link without one.
_LINK = re.compile(
    r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?"
    r"(?:[/?#][A-Za-z0-9._:/?#&=%+,;-]*)?(?<=[A-Za-z0-9/])"
)


class Markup(Struct, frozen=True, kw_only=True):
    """The text format of a service.

    `escape_markdown` escapes a text. The other functions get escaped text, but `code` gets raw
    text, because other rules hold inside a code block. `link` gets a word and its address.
    `measure` is the length of a text as the service counts it.
    """

    escape: Callable[[str], str]  # Escapes a text.
    strong: Callable[[str], str]  # Makes escaped text bold.
    code: Callable[[str], str]
    link: Callable[[str, str], str]
    measure: Callable[[str], int] = len

    def render_block(self, block: MessageBlock) -> str:
        """The text of one block."""
        if block.role == "code":
            return self.code(block.text)
        text = self.escape(block.text)
        if block.url:
            return self.link(text, block.url)
        return self.strong(text) if block.role == "strong" else text

    def block_size(self, block: MessageBlock) -> int:
        """The length of a block, with the line break after it."""
        return self.measure(self.render_block(block)) + 1

    def render_blocks(self, blocks: Sequence[MessageBlock]) -> str:
        """The text of all blocks, one below the other."""
        return "\n".join(map(self.render_block, blocks))


def split_links(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is a web address."""
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in _LINK.finditer(text):
        pieces += [(text[end : match.start()], False), (match[0], True)]
        end = match.end()
    return [piece for piece in (*pieces, (text[end:], False)) if piece[0]]


def first_address(text: str) -> str:
    """The first web address in a text. Empty if there is none."""
    return next((piece for piece, link in split_links(text) if link), "")


def neutralize_at_signs(text: str) -> str:
    """Replace `@` by a similar sign, so that a job's name cannot mention anybody."""
    return text.replace("@", "＠")


def _markdown_escaper(special: str) -> Callable[[str], str]:
    """A function that puts backslashes before special characters, but not in web addresses."""
    pattern = re.compile(f"([{special}])")

    def escape_markdown(text: str) -> str:
        pieces = split_links(text)
        return "".join(piece if link else pattern.sub(r"\\\1", piece) for piece, link in pieces)

    return escape_markdown


def _fenced_code(text: str) -> str:
    """A code block. In it only its end mark is special."""
    return "```\n" + text.replace("```", "'''") + "\n```"


def _indented_code(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _named_link(word: str, url: str) -> str:
    return f"[{word}]({url})"


PLAIN = Markup(
    escape=lambda text: text,
    strong=lambda text: text,
    code=_indented_code,
    link=lambda word, url: f"{word}: {url}",
)
HTML = Markup(
    escape=lambda text: html.escape(neutralize_at_signs(text)),
    strong=lambda text: f"<b>{text}</b>",
    code=lambda text: f"<pre>{html.escape(text, quote=False)}</pre>",
    link=lambda word, url: f'<a href="{html.escape(url)}">{word}</a>',
)
# The characters that a backslash escapes in Mattermost and in Discord. In Discord, `<` begins
# mentions and dates: https://docs.mattermost.com/messaging-collaboration/format-messages.html and
# https://support.discord.com/hc/en-us/articles/210298617
_MATTERMOST, _DISCORD = _markdown_escaper(r"\\`*_\[\]>~|#"), _markdown_escaper(r"\\`*_\[\]<>~|#")
MATTERMOST = Markup(
    escape=lambda text: _MATTERMOST(neutralize_at_signs(text)),
    strong=lambda text: f"**{text}**",
    code=_fenced_code,
    link=_named_link,
)
DISCORD = Markup(
    escape=_DISCORD, strong=lambda text: f"**{text}**", code=_fenced_code, link=_named_link
)
