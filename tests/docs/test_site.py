"""The site's table of contents; `make docs` checks every link."""

import re

import pytest

from sentinel.cli import COMMANDS
from tests.docs.pages import DOCS


def test_every_page_is_in_the_table_of_contents_once() -> None:
    """A new page gets a line in mkdocs.yml, in the words of who looks for it."""
    listed = re.findall(r": ([\w/-]+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_speaks_of_every_command(command: str) -> None:
    """Who looks for it finds more than its own help."""
    pages = (path.read_text() for path in DOCS.rglob("*.md"))
    assert any(re.search(rf"\bsentinel {command}\b", text) for text in pages)
