import pytest

from tests.world.case import Case, each


def test_two_cases_of_one_name_are_refused() -> None:
    case = Case("a", "https://example.org/1", "", "", "")
    with pytest.raises(ValueError, match="two cases have one name: a"):
        each(case, case)
