"""`reboot`: an undrain by another way, and under the same conditions."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.reboot import RebootAction
from sentinel.core.actions import Answer, Reply
from sentinel.core.cluster import ControllerLogEntry, Node
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.slurm.node_states import reason_params
from tests.actions.test_nodes import View
from tests.actions.world import node

BOOTED = 1_700_000_000
DRAINED = replace(node("n1"), boot_time=BOOTED)
WISH = ActionRequest(
    action="reboot",
    target="n1",
    reason="tasks in state D",
    params={**reason_params(DRAINED), "booted": str(BOOTED)},
)


def look(found: Node, **changes: Any) -> Any:
    return RebootAction().look(replace(WISH, **changes), View(found))


def test_the_command_is_slurms_own_and_gives_the_node_back() -> None:
    """ASAP drains until the node is idle, RESUME is what it becomes (scontrol(1))."""
    assert RebootAction().commands(WISH) == (
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
    assert look(replace(back, boot_time=BOOTED + 61)).done
    assert not look(replace(back, boot_time=BOOTED + 60)).done
    assert not look(replace(back, boot_time=None)).done
    assert not look(replace(DRAINED, boot_time=BOOTED + 999), params={}).done


def test_slurms_log_shows_it_by_the_wish_alone() -> None:
    """A reason that somebody gave meanwhile is not ours, and must not be lost."""
    kinds = ("rebooted", "back", "reason", "drained")
    logged = [RebootAction().logged(WISH, ControllerLogEntry(kind, "")) for kind in kinds]
    assert logged == [True, False, False, False]


def test_a_node_that_nobody_drains_needs_none() -> None:
    """Somebody gave it back meanwhile."""
    assert not look(DRAINED).unneeded
    assert look(replace(DRAINED, flags=frozenset())).unneeded
    assert RebootAction().look(WISH, View()).not_ready == "Slurm knows no such node"


ENDING = replace(
    DRAINED, flags=frozenset({"COMPLETING"}), reason="", reason_user="", reason_time=None
)
END = replace(WISH, params={**reason_params(ENDING), "booted": str(BOOTED), "completing": "yes"})


MARKED = frozenset({"COMPLETING", "DRAIN", "REBOOT_REQUESTED"})


class Doing(View):
    """Takes changes with this answer; `then` is what the node is like after the first. Without it the
    node cannot be read."""

    def __init__(self, then: Node | None, answer: Answer = Answer.ACCEPTED) -> None:
        super().__init__(*([then] if then else []))
        self.is_silent, self.answer = then is None, answer
        self.ran: list[str] = []

    def node(self, name: str) -> Node | None:
        if self.is_silent:
            raise CannotTell("slurmctld does not answer")
        return super().node(name)

    def change(self, argv: tuple[str, ...]) -> Reply:
        self.ran.append(argv[3] if argv[1] == "update" else argv[1])
        return Reply(self.answer)


@pytest.mark.parametrize(
    ("then", "ran"),
    [
        ({"flags": MARKED}, ["reboot", "State=DOWN"]),
        ({"flags": frozenset({"COMPLETING", "DRAIN"})}, ["reboot", "State=DOWN"]),
        ({"flags": frozenset({"DRAIN", "REBOOT_REQUESTED"})}, ["reboot"]),
        ({"flags": frozenset({"COMPLETING"})}, ["reboot"]),
        ({"state": "MIXED", "flags": frozenset({"COMPLETING", "DRAIN"})}, ["reboot"]),
        ({"name": "n2"}, ["reboot"]),
    ],
)
def test_a_node_that_is_completing_is_set_down_only_while_no_job_is_there(
    then: dict[str, Any], ran: list[str]
) -> None:
    """DOWN ends jobs: DRAIN comes first, and then it is looked whether one has come."""
    assert [words[1] for words in RebootAction().commands(END)] == ["reboot", "update"]
    hands: Any = Doing(replace(ENDING, **then))
    assert RebootAction().perform(END, hands).answer is Answer.ACCEPTED
    assert hands.ran == ran


@pytest.mark.parametrize(
    ("wish", "hands", "answer"),
    [
        (END, Doing(replace(ENDING, flags=MARKED), Answer.REFUSED), Answer.REFUSED),
        (END, Doing(replace(ENDING, flags=MARKED), Answer.UNSURE), Answer.UNSURE),
        (END, Doing(None), Answer.UNSURE),
        (WISH, Doing(replace(DRAINED, flags=MARKED)), Answer.ACCEPTED),
    ],
    ids=["refused", "not known", "cannot be read", "not asked for"],
)
def test_no_node_is_set_down_on_less_than_that(
    wish: ActionRequest, hands: Any, answer: Answer
) -> None:
    """A reboot that Slurm did not take keeps no job away, and DOWN would end it."""
    assert RebootAction().perform(wish, hands).answer is answer
    assert hands.ran == ["reboot"]


def test_what_completes_is_fit_for_a_reboot_only_where_that_was_asked_for() -> None:
    """And only while it is nothing else."""
    asked = RebootAction().look(END, View(ENDING))
    assert not asked.unneeded
    assert not asked.not_ready
    assert RebootAction().look(replace(END, params={}), View(ENDING)).unneeded
    down = replace(ENDING, flags=frozenset({"COMPLETING", "NOT_RESPONDING"}))
    assert RebootAction().look(END, View(down)).not_ready == "it is IDLE and NOT_RESPONDING"
    over = replace(ENDING, flags=frozenset())
    assert RebootAction().look(END, View(over)).unneeded
