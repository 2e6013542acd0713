"""What may be written under a `job` check."""

import re
from typing import Any

import pytest

from sentinel.checks.job import JobCheck
from sentinel.checks.job.settings import DoneWhen, RestartLimit
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({}, ()),
        ({"name": "a", "match": re.compile("a")}, ()),
        ({"name": ""}, ()),
        ({"name": "a", "queued": -1}, ("queued",)),
        ({"min_gpus": -1}, ("min_gpus",)),
        ({"min_nodes": -1}, ("min_nodes",)),
        ({"match": re.compile("a"), "forget_after": Duration(59)}, ("forget_after",)),
        ({"name": "a", "users": ["bob", ""]}, ("users", 1)),
        ({"name": "a", "users": ["group:"]}, ("users", 0)),
        ({"name": "a", "restarts": "3"}, ("restarts",)),
        ({"name": "a", "restarts": "0 in 1h"}, ("restarts",)),
        ({"name": "a", "restarts": "3 in soon"}, ("restarts",)),
        ({"name": "a", "restarts": ""}, ("restarts",)),
    ],
)
def test_a_wrong_setting_is_refused_at_its_key(settings: dict[str, Any], path: Any) -> None:
    """The error carries the key, so that the loader can name the line."""
    with pytest.raises(Invalid) as error:
        JobCheck(**settings)
    assert error.value.path == path


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"file": FilePath("/a"), "state": "completed"},
        {"log": FilePath("/a")},
        {"pattern": re.compile("a"), "file": FilePath("/a")},
        {"pattern": re.compile("a")},
    ],
)
def test_done_when_takes_exactly_one_proof(settings: dict[str, Any]) -> None:
    """A file, a log with its pattern, or the state; nothing half and nothing twice."""
    with pytest.raises(Invalid):
        DoneWhen(**settings)


def test_the_pulse_may_not_go_into_the_log_that_tells_the_end() -> None:
    """Its own line could say what the pattern looks for. The spelling of the path is no way out."""
    done = DoneWhen(log=FilePath("/logs/train.log"), pattern=re.compile("finished"))
    with pytest.raises(Invalid) as error:
        JobCheck(name="a", done_when=done, pulse_log=FilePath("/logs/./train.log"))
    assert error.value.path == ("pulse_log",)
    JobCheck(name="a", done_when=done, pulse_log=FilePath("/logs/pulse.log"))


def test_restarts_are_a_number_within_a_time() -> None:
    """`3 in 1h` is three within 3,600 seconds."""
    assert JobCheck(name="a", restarts="3 in 1h").parse_restarts() == RestartLimit(3, 3600.0)
    assert JobCheck(name="a").parse_restarts() is None


@pytest.mark.parametrize(
    ("one", "name", "meant"),
    [
        (JobCheck(name="tr11"), "tr11", True),
        (JobCheck(name="tr11"), "tr11-176B", False),
        (JobCheck(name="tr.1"), "tr11", False),
        (JobCheck(match=re.compile("tr11")), "tr11-176B", False),
        (JobCheck(match=re.compile("tr11.*")), "tr11-176B", True),
        (JobCheck(match=re.compile("tr11.*")), "my-tr11", False),
    ],
)
def test_the_whole_name_counts(one: JobCheck, name: str, meant: bool) -> None:
    """An exact name is no prefix and no pattern; a pattern covers the name to its end."""
    assert one.is_watched_name(name) is meant


def test_the_subject_is_what_was_configured() -> None:
    """Never a job id, so that the alert stays the same when the job is resubmitted."""
    assert JobCheck(name="tr11").subject == "tr11"
    assert JobCheck(match=re.compile("tr11-.*")).subject == "tr11-.*"
