"""Finds nodes that came back to service, and plans the reservation in which each is kept until it
is tested. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node, Reservation
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.values import duration_text
from sentinel.nodes.history import held_out, is_out
from sentinel.slurm.node_states import ASLEEP, unfit_reason
from sentinel.slurm.reservations import is_as_asked

SAME_BOOT_S = 60
"""Seconds by which the boot times of one boot may differ, since Slurm computes them."""

RETURN_INTEREST_S = 900.0
"""Seconds after its return in which a node is still tested first; later it has worked already."""

RESERVATIONS_FRESH_AFTER_S = 60.0
"""Seconds after which a new reservation is in the list, which may be half a minute old."""

OutOfServiceNodes = Mapping[str, int | None]
"""Nodes out of service: None if somebody keeps the node out, else its boot time when it was first
seen out. A node that was only silent and was not booted since has not returned."""


class NodeProbation(Struct, frozen=True, kw_only=True):
    """A node that is kept in a reservation until it is tested."""

    node: str  # Name of the node.
    name: str  # Name of the reservation.
    minutes: int  # How long the reservation lasts.
    users: str  # Who may use it.
    asked: int  # when the reservation was requested, µs UTC
    run: str = ""  # the name of its test; empty until the test is requested

    @property
    def reservation_params(self) -> dict[str, str]:
        """The parameters by which the reservation is made and recognized."""
        words = {"node": self.node, "name": self.name, "users": self.users}
        return {**words, "minutes": str(self.minutes), "asked": str(self.asked // SECOND)}


class ProbationStep(Struct, frozen=True, kw_only=True):
    """The next step for a reserved node."""

    kept: NodeProbation  # The probation of the node.
    over: bool = False  # whether the node is not kept any more
    requests: tuple[ActionRequest, ...] = ()  # Actions that it requests.
    test: bool = False  # whether its test has to be requested now
    lost: str = ""  # why there will be no test


def find_returned(
    out: OutOfServiceNodes, nodes: Sequence[Node]
) -> tuple[list[str], dict[str, int | None]]:
    """The nodes that have come back to service since the last look, and those that are out of
    service now."""
    back, now = list[str](), dict[str, int | None]()
    for node in nodes:
        before = out.get(node.name, -1)
        if is_out(node) or node.flags & {"REBOOT_ISSUED"}:
            held = held_out(node) or before is None
            now[node.name] = None if held else (node.boot_time if before == -1 else before)
        elif before != -1 and (unfit_reason(node) or node.flags & ASLEEP):
            now[node.name] = before
        elif before is None or (before != -1 and (node.boot_time or 0) > before + SAME_BOOT_S):
            back.append(node.name)
    return back, now


def make_probation(node: str, seconds: float, users: str, now: Instant) -> NodeProbation:
    """A new probation. Its name is made once, so that it is found again after a restart."""
    return NodeProbation(
        node=node,
        name=f"sentinel-{node}-{now.wall // SECOND}",
        minutes=max(1, int(seconds // 60)),
        users=users,
        asked=now.wall,
    )


def request_probation(kept: NodeProbation) -> ActionRequest:
    """The request to keep the node in a reservation."""
    why = "it came back to service, and is tested before it takes jobs"
    return ActionRequest(
        action="probation", target=kept.node, reason=why, params=kept.reservation_params
    )


def request_release(kept: NodeProbation, why: str) -> ActionRequest:
    """The request to end the reservation early."""
    return ActionRequest(
        action="release", target=kept.node, reason=why, params=kept.reservation_params
    )


def plan_step(
    kept: NodeProbation,
    node: Node | None,
    found: Reservation | None,
    record: ActionRecord | None,
    last: LastDiagVerdict | None,
    now: Instant,
) -> ProbationStep:
    """The next step for a reserved node. `found`: its reservation. `record`: the newest record of
    the action `probation`. `last`: the verdict of its test. Each is None if there is none."""
    if found is None:
        return _plan_without_reservation(kept, record, (now.wall - kept.asked) / SECOND)
    if not is_as_asked(found, kept.reservation_params):
        changed = f"somebody has changed {found.name}, so it is theirs now"
        return ProbationStep(kept=kept, over=True, lost="" if kept.run else changed)
    if record is not None and record.outcome.is_open:
        return ProbationStep(kept=kept)  # the result is read again first
    if not kept.run:
        if node is None or unfit_reason(node) or "DRAIN" in node.flags:
            return ProbationStep(
                kept=kept, requests=(request_release(kept, "it went out of service again"),)
            )
        return ProbationStep(kept=kept, test=True)
    bad = last is not None and last.outcome == "fail"
    if last is None or (bad and node is not None and "DRAIN" not in node.flags):
        return ProbationStep(
            kept=kept
        )  # wait until the test has ended, the node is drained, or the time is over
    return ProbationStep(
        kept=kept, requests=(request_release(kept, f"its test is over: {last.outcome}"),)
    )


def _plan_without_reservation(
    kept: NodeProbation, record: ActionRecord | None, age: float
) -> ProbationStep:
    """The next step if the reservation is not in Slurm's list: it is not there yet, it has ended,
    or it was never made."""
    if record is None:
        # It was not requested yet, or sentinel was killed before it could request it.
        asks = () if age < RESERVATIONS_FRESH_AFTER_S else (request_probation(kept),)
        return ProbationStep(
            kept=kept,
            over=age >= RETURN_INTEREST_S,
            requests=asks if age < RETURN_INTEREST_S else (),
        )
    young = age - (record.at.wall - kept.asked) / SECOND < RESERVATIONS_FRESH_AFTER_S
    if record.outcome.is_open or (record.outcome.has_effect and not kept.run and young):
        return ProbationStep(kept=kept)
    gone = record.outcome.has_effect and not kept.run
    return ProbationStep(
        kept=kept, over=True, lost=f"somebody has taken {kept.name} away" if gone else ""
    )


def make_probation_finding(kept: NodeProbation, what: str, now: Instant) -> Finding:
    """The finding about a node that came back and is not tested yet."""
    age = duration_text(max(0, now.wall - kept.asked) // SECOND)
    return Finding(
        subject=kept.node,
        status=Status.OK,
        summary=f"came back {age} ago; kept for {what}, in {kept.name}",
        labels={"node": kept.node},
    )


def assign_test_runs(kept: Sequence[NodeProbation], runs: Sequence[DiagRun]) -> list[NodeProbation]:
    """The probations, each with the name of the test that was requested for it."""
    names = {run.kept: run.name for run in runs}
    return [replace(one, run=names.get(one.name, one.run)) for one in kept]
