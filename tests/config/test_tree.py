"""Nodes know their lines, also where a path leads past them."""

import pytest

from sentinel.config.problems import Collector, dotted
from sentinel.config.reader import read
from sentinel.config.tree import line_at

TEXT = b"""\
a:
  b:
    - x
    - y: 1
      z: 2
c: 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("a",), 1),
        (("a", "b"), 2),
        (("a", "b", 0), 3),
        (("a", "b", 1, "z"), 5),
        (("a", "b", 2), 2),
        (("a", "b", "no"), 2),
        (("a", "no", "b"), 1),
        (("c",), 6),
        (("c", "d"), 6),
        (("d",), 1),
    ],
)
def test_a_path_has_the_line_of_the_deepest_part_that_exists(
    path: tuple[str | int, ...], line: int
) -> None:
    """A plugin may name a key that stands at its default, or an item that is not there."""
    assert line_at(read(TEXT, Collector("f")), path) == line


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a", "b_c", 0, "d-e"), "a.b_c[0].d-e"),
        (("checks", "a.b", "c d"), 'checks."a.b"."c d"'),
        (("checks", ""), 'checks.""'),
    ],
)
def test_a_path_is_written_so_that_each_step_can_be_told(
    path: tuple[str | int, ...], text: str
) -> None:
    """A name with a dot in it is one name."""
    assert dotted(path) == text
