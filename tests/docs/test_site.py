"""The site's table of contents; `make docs` checks every link."""

import re

from tests.docs.pages import DOCS


def test_every_page_is_in_the_table_of_contents_once() -> None:
    """A new page gets a line in mkdocs.yml, in the words of who looks for it."""
    listed = re.findall(r": ([\w/-]+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
