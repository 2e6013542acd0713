"""Nights with random faults whose cost is known to the second."""

from pathlib import Path

import pytest

from sentinel.user_files.session import shared_reader
from tests.checks.ledger_nights import Night, find_errors


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_each_part_of_a_night_is_right(seed: int, tmp_path: Path) -> None:
    """To 5 %, or to one look for each change of what the time was spent on. What was held is exact,
    and nothing is unknown where nothing was blind."""
    with shared_reader():
        night = Night(tmp_path, seed)
        night.live()
    account = night.site.account()
    assert account.held / 8e6 == pytest.approx(night.held, abs=2 * night.job)
    assert find_errors(night, account) == {}
    assert account.parts["unknown"] / 8e6 <= 0.01 * night.held
