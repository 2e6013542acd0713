"""What each kind of action declares: which rules hold for it, and how often it may be done."""

import pytest

from sentinel.core.action_limits import Limits
from sentinel.core.values import duration_text
from sentinel.plugin import Action
from sentinel.wiring.app import ACTIONS

KINDS: dict[str, type[Action]] = {name: ACTIONS.load_kind(name) for name in ACTIONS.kind_names()}


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("returns", {"reboot", "undrain"}),
        ("replaces_reason", {"drain", "reboot", "undrain"}),
        ("leaves_no_trace", {"cancel", "diag", "resubmit", "stacks"}),
        ("apart", {"clean"}),
        ("asks_anew", KINDS.keys() - {"clean_up", "diag", "drain", "reboot", "undrain"}),
    ],
)
def test_the_rules_of_each_kind(field: str, names: set[str]) -> None:
    """A kind that returns a node and does not say so has no common cap; one that takes a reason's place
    and does not say so erases what a person wrote meanwhile."""
    assert {name for name, kind in KINDS.items() if getattr(kind, field)} == names


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ("10, 10%, 3 in 7d, 30m", {"clean_up", "undrain"}),
        ("10, 10%, 3 in 7d, 0s", {"probation"}),
        ("10, 10%, 20 in 7d, 0s", {"drain"}),
        ("4, 10%, 1 in 1d, 30m", {"reboot"}),
        ("1000, 100%, 50 in 7d, 0s", {"diag", "release"}),
        ("10, 100%, 2 in 1d, 0s", {"cancel", "hold", "killswitch", "requeue"}),
        ("20, 100%, 4 in 1d, 0s", {"exclude"}),
        ("10, 100%, 6 in 1d, 0s", {"stacks"}),
        ("3, 100%, 1 in 30d, 0s", {"resubmit"}),
        ("20, 100%, 500 in 7d, 0s", {"clean"}),
    ],
)
def test_how_often_each_may_be_done(limits: str, names: set[str]) -> None:
    """In an hour, of a partition, of a node or job, and the pause after it."""
    assert {name for name, kind in KINDS.items() if written(kind.limits) == limits} == names


def written(limits: Limits) -> str:
    pause = duration_text(limits.cooldown)
    return f"{limits.per_hour}, {limits.share:g}%, {limits.per_node}, {pause}"
