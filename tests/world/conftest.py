"""Cases read their files as the runner lets checks read them: one child opens the files of many looks."""

from collections.abc import Iterator

import pytest

from sentinel.user_files.session import shared_reader


@pytest.fixture(scope="module", autouse=True)
def _one_reader() -> Iterator[None]:
    with shared_reader():
        yield
