"""Which nodes a pending job excludes already, as Slurm writes its list."""

import pytest

from sentinel.actions.exclude import parse_excluded_nodes
from sentinel.core.errors import Invalid
from tests.checks.job.making import job


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("node1[8-10]", ("node18", "node19", "node110")),
        ("n6[1-2][3-4],gpu0[9-10]", ("n613", "n614", "n623", "n624", "gpu09", "gpu010")),
    ],
)
def test_a_pending_jobs_list_is_read_as_slurm_writes_it(text: str, names: tuple[str, ...]) -> None:
    """`node1[8-10]` are three nodes: node50 is not among them."""
    assert parse_excluded_nodes(job(exclude=text)) == names


def test_a_list_that_is_none_is_not_an_empty_one() -> None:
    """Whoever adds to it would not know what is there."""
    with pytest.raises(Invalid):
        parse_excluded_nodes(job(exclude="a[1,2"))
