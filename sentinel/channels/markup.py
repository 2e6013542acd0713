"""Blocks as the text that a service takes, with everything inert in its markup."""

import html
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from sentinel.channels.format.blocks import MessageBlock

# What may stand in a link as it is: no character of it means anything to Markdown but `_`,
# which opens nothing inside a word. Without a host it is none: services refuse such a message.
_LINK = re.compile(
    r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?"
    r"(?:[/?#][A-Za-z0-9._:/?#&=%+,;-]*)?(?<=[A-Za-z0-9/])"
)


class Markup(Struct, frozen=True, kw_only=True):
    """How a service writes things. `escape_markdown` makes a text inert; the others take escaped text,
    only `code` takes it raw, since inside a code block other rules hold. `link` takes a word and
    its address. `measure`: what a text costs of the room."""

    escape: Callable[[str], str]
    strong: Callable[[str], str]
    code: Callable[[str], str]
    link: Callable[[str, str], str]
    measure: Callable[[str], int] = len

    def render_block(self, block: MessageBlock) -> str:
        """One block."""
        if block.role == "code":
            return self.code(block.text)
        text = self.escape(block.text)
        if block.url:
            return self.link(text, block.url)
        return self.strong(text) if block.role == "strong" else text

    def block_size(self, block: MessageBlock) -> int:
        """What it costs, with the line break after it."""
        return self.measure(self.render_block(block)) + 1

    def render_blocks(self, blocks: Sequence[MessageBlock]) -> str:
        """All of them, one below the other."""
        return "\n".join(map(self.render_block, blocks))


def split_links(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is an address of the web."""
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in _LINK.finditer(text):
        pieces += [(text[end : match.start()], False), (match[0], True)]
        end = match.end()
    return [piece for piece in (*pieces, (text[end:], False)) if piece[0]]


def first_address(text: str) -> str:
    """The first address of the web in a text, or an empty string."""
    return next((piece for piece, link in split_links(text) if link), "")


def neutralize_at_signs(text: str) -> str:
    """With a sign that looks like `@` in its place: nobody is called by what a job is named."""
    return text.replace("@", "＠")


def _markdown_escaper(special: str) -> Callable[[str], str]:
    """Backslashes before what is special, except in addresses of the web."""
    pattern = re.compile(f"([{special}])")

    def escape_markdown(text: str) -> str:
        pieces = split_links(text)
        return "".join(piece if link else pattern.sub(r"\\\1", piece) for piece, link in pieces)

    return escape_markdown


def _fenced_code(text: str) -> str:
    """In a code block nothing is special but its end."""
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
# Which characters a backslash makes inert, for Mattermost and for Discord, where `<` opens
# mentions and dates: https://docs.mattermost.com/messaging-collaboration/format-messages.html
# and https://support.discord.com/hc/en-us/articles/210298617
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
