"""The README as an index of packages shows it: hatchling asks `IndexReadme` when it builds.

An index has none of the project's files, so no relative link works there. Where pyproject.toml names the
`Source` among the project's URLs, links lead there. Else pictures are left out and links become text.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")
_TABLE_OF_PICTURES = re.compile(r"\n(?:\|[^\n]*\n)*\|[^\n]*!\[[^\n]*\|\n")


class IndexReadme(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml has among its dynamic fields."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = resolve_links(text, metadata.get("urls", {}).get("Source", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def resolve_links(text: str, source: str) -> str:
    """The text with every relative link absolute, or without pictures and links where no source is."""
    if source:
        text = _PICTURE.sub(rf"![\1]({source.rstrip('/')}/raw/main/\2)", text)
        return _LINK.sub(rf"[\1]({source.rstrip('/')}/blob/main/\2)", text)
    text = _TABLE_OF_PICTURES.sub("\n", text)
    return _LINK.sub(r"\1", re.sub(_PICTURE.pattern + r"\n*", "", text))
