"""A hook of mkdocs: links from a page into the source code have no page in the site."""

import re
from typing import Any

_SOURCE = re.compile(
    r"\[([^\]]*)\]\((?:\.\./)+((?:sentinel|config|packaging|slurm|systemd)\b[^)]*)\)"
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The same text with the file's path in place of the link."""
    return _SOURCE.sub(lambda m: _named(m[1], m[2]), markdown)


def _named(words: str, path: str) -> str:
    return f"`{path}`" if words.strip("`") in path else f"{words} (`{path}`)"
