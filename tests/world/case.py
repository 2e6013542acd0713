"""A case of the corpus, and how a test takes a table of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Case:
    """One form that somebody met outside, and the right answer to it."""

    name: str
    """Names the case in the output of pytest: short words joined by hyphens."""
    source: str
    """Where the form was met: the URL of a report, or the program and version that prints it."""
    form: Any
    """The input: a line, a page, a list of file names. Hosts, users and numbers are invented."""
    right: Any
    """What a careful operator would say of it, written down before the program was run."""
    cost: str
    """What a wrong answer would cost somebody, in one sentence."""


def each(*cases: Case) -> Callable[[Test], Test]:
    """Run the test once for each case, which it takes as the argument `case`."""
    names = [case.name for case in cases]
    doubles = {name for name in names if names.count(name) > 1}
    if doubles:
        raise ValueError(f"two cases have one name: {', '.join(sorted(doubles))}")
    return pytest.mark.parametrize("case", cases, ids=names)
