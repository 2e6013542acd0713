"""`reboot`: an undrain by another way, and under the same conditions."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.reboot import SAME_BOOT, Reboot
from sentinel.core.model import ActionRequest
from sentinel.core.nodestate import seen
from sentinel.core.slurm import Node
from tests.actions.test_nodes import View
from tests.actions.world import node

BOOTED = 1_700_000_000
DRAINED = replace(node("n1"), boot_time=BOOTED)
WISH = ActionRequest(
    action="reboot",
    target="n1",
    reason="tasks in state D",
    params={**seen(DRAINED), "booted": str(BOOTED)},
)


def look(found: Node, **changes: Any) -> Any:
    return Reboot().look(replace(WISH, **changes), View(found))


def test_the_command_is_slurms_own_and_gives_the_node_back() -> None:
    """ASAP drains until the node is idle, RESUME is what it becomes (scontrol(1))."""
    assert Reboot().commands(WISH) == (
        (
            "scontrol",
            "reboot",
            "ASAP",
            "nextstate=RESUME",
            "reason=sentinel: tasks in state D",
            "n1",
        ),
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"state": "DOWN"}, "it is DOWN"),
        ({"state": "MIXED"}, "jobs still run there"),
        ({"flags": frozenset({"DRAIN", "COMPLETING"})}, "it is IDLE and COMPLETING"),
        ({"flags": frozenset({"DRAIN", "MAINTENANCE"})}, "it is IDLE and MAINTENANCE"),
        ({"reason": "RMA"}, "its reason changed"),
        ({"reason_time": 7}, "its reason time changed"),
    ],
)
def test_a_node_that_is_not_fit(fields: dict[str, Any], says: str) -> None:
    """Down, busy, reserved, or drained for another reason than the one that was seen."""
    assert look(replace(DRAINED, **fields)).not_ready.startswith(says)
    assert not look(DRAINED).not_ready


def test_it_is_done_when_slurm_says_so_or_the_node_was_booted() -> None:
    """A reboot may be over before anybody looks; Slurm computes boot times, which wander."""
    assert not look(DRAINED).done
    for flag in ("REBOOT_REQUESTED", "REBOOT_ISSUED"):
        assert look(replace(DRAINED, flags=frozenset({"DRAIN", flag}))).done
    back = replace(DRAINED, flags=frozenset())
    assert look(replace(back, boot_time=BOOTED + SAME_BOOT + 1)).done
    assert not look(replace(back, boot_time=BOOTED + SAME_BOOT)).done
    assert not look(replace(DRAINED, boot_time=BOOTED + 999), params={}).done


def test_a_node_that_nobody_drains_needs_none() -> None:
    """Somebody gave it back meanwhile."""
    assert look(replace(DRAINED, flags=frozenset())).unneeded
    assert Reboot().look(WISH, View()).not_ready == "Slurm knows no such node"
