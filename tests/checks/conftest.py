"""A check that a test calls reads its files as the runner lets it: one child opens those of a run."""

from collections.abc import Iterator

import pytest

from sentinel.user_files.session import shared_reader


@pytest.fixture(autouse=True)
def _one_reader() -> Iterator[None]:
    with shared_reader():
        yield
