"""`exclude`: which pending job may get one more excluded node, and when it has it already."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from sentinel.actions.exclude import ExcludeAction
from sentinel.core.actions import Look
from sentinel.core.cluster import Job
from sentinel.core.model import ActionRequest
from sentinel.testing import job
from tests.actions.test_resubmit import Slurm

WISH = ActionRequest(
    action="exclude",
    target="11",
    reason="n3 is slow",
    params={"user": "alice", "node": "n3", "exclude": "n1"},
)
WAITS = job("11", "PENDING", exclude="n1")


def look(*jobs: Job, **params: str) -> Look:
    wish = replace(WISH, params={**WISH.params, **params})
    return ExcludeAction().look(wish, cast("Any", Slurm([], *jobs)))


def test_a_job_that_waits_may_exclude_one_more() -> None:
    assert ExcludeAction.asks_anew
    found = look(WAITS)
    assert (found.done, found.unneeded, found.not_ready) == (False, "", "")
    assert found.text == "PENDING, excludes n1"
    [command] = ExcludeAction().commands(WISH)
    assert command == ("scontrol", "update", "JobId=11", "ExcNodeList=n1,n3")


def test_one_that_excludes_the_node_already_needs_nothing() -> None:
    found = look(replace(WAITS, exclude="n[1-3]"), exclude="n[1-3]")
    assert (found.done, found.unneeded) == (True, "it excludes n3 already")


@pytest.mark.parametrize("jobs", [(), (job("11", "RUNNING", exclude="n1"),)])
def test_what_does_not_wait_is_not_changed(jobs: tuple[Job, ...]) -> None:
    assert look(*jobs).unneeded.endswith("not PENDING")


FULL = "m[1-64]"
"""A job that excludes more may wait for ever."""


@pytest.mark.parametrize(
    ("params", "excludes", "says"),
    [
        ({"user": "bob"}, "n1", "it belongs to alice, and only one's own jobs are changed"),
        ({"user": ""}, "n1", "it belongs to alice"),
        ({}, "n1,n9", "its excluded nodes changed: now n1,n9"),
        ({"exclude": FULL}, FULL, "it excludes 64 nodes already (at most 64)"),
    ],
)
def test_what_speaks_against_it(params: dict[str, str], excludes: str, says: str) -> None:
    assert says in look(replace(WAITS, exclude=excludes), **params).not_ready


@pytest.mark.parametrize(
    ("fields", "params"),
    [
        ({"exclude": "a[1,2"}, {"exclude": "a[1,2"}),
        ({}, {"node": "n3 State=DOWN"}),
        ({"user": ""}, {"user": ""}),
    ],
    ids=["a list that is none", "a name that is none", "nobody's"],
)
def test_what_nobody_can_read_is_left_alone(fields: dict[str, Any], params: dict[str, str]) -> None:
    assert look(WAITS, user="alice").not_ready == ""
    assert look(replace(WAITS, **fields), **params).not_ready
