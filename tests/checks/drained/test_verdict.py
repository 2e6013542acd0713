"""From the items of the proof to a finding and to requests, bound by bound."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules
from sentinel.checks.drained.proof import prove_by_node, prove_by_slurm
from sentinel.checks.drained.verdict import (
    ITEM_LEGEND,
    NEXT_LOOK_S,
    find_failed_undrain,
    make_drain_finding,
    request_reboot,
)
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Finding, Status
from sentinel.core.values import Duration
from tests.checks.drained.nodes import (
    CLEAN,
    DRAINED_AT,
    NODE,
    NOW,
    RULES,
    blocked,
    process,
    sight,
    spoilt,
)
from tests.kinds import looks

GOOD = ProofItem(name="gpus", good=True, text="2 of 2 there")
BAD = ProofItem(name="steps", good=False, text="processes are left")
HANGS = ProofItem(name="blocked", good=False, text="a process hangs")
UNKNOWN = ProofItem(name="xids", good=None, text="no answer")
SOON = ProofItem(name="blocked", good=None, text="for this moment", moment=True)


def finding(*items: ProofItem, **more: Any) -> Finding:
    given = {"asked": True, "before": False, "told": False, "first": False, **more}
    return make_drain_finding(given.pop("seen", sight()), items, **given)


@pytest.mark.parametrize(
    ("items", "more", "status"),
    [
        ([GOOD], {}, Status.OK),
        ([GOOD], {"asked": False}, Status.WARNING),
        ([GOOD], {"before": True}, Status.WARNING),
        ([GOOD], {"told": True}, Status.WARNING),
        ([GOOD, BAD], {}, Status.WARNING),
        ([GOOD, UNKNOWN], {}, Status.WARNING),
        ([], {}, Status.WARNING),
    ],
)
def test_only_a_node_that_goes_back_at_once_wakes_nobody(
    items: list[ProofItem], more: dict[str, bool], status: Status
) -> None:
    assert finding(*items, **more).status is status


@pytest.mark.parametrize(
    ("items", "more", "patience"),
    [
        ([GOOD, SOON], {"first": True}, NEXT_LOOK_S),
        ([GOOD, SOON], {}, 0.0),
        ([GOOD, SOON], {"first": True, "told": True}, 0.0),
        ([SOON, UNKNOWN], {"first": True}, 0.0),
        ([SOON, BAD], {"first": True}, 0.0),
        ([GOOD], {"first": True}, 0.0),
    ],
)
def test_what_the_next_look_may_end_waits_for_it_once(
    items: list[ProofItem], more: dict[str, bool], patience: float
) -> None:
    """Any number of seconds does, but none is none."""
    assert NEXT_LOOK_S == 1.0
    assert finding(*items, **more).patience == patience


def test_the_details_name_what_is_wrong_then_what_is_unknown_then_what_passed() -> None:
    """Of a clean node there are none; its commands give it back."""
    lines = finding(UNKNOWN, GOOD, BAD, replace(GOOD, name="users")).details.splitlines()
    assert lines == [
        ITEM_LEGEND,
        "- jobs: processes are left",
        "? GPU errors (Xid): no answer",
        "+ all GPUs there, no process of users",
    ]
    assert finding(BAD).details.splitlines()[1:] == ["- jobs: processes are left"]
    clean, dirty = finding(GOOD), finding(BAD)
    assert clean.details == ""
    history = "sentinel nodes list --history n1"
    assert looks(clean) == (history,)
    assert [one.render() for one in clean.acts] == ["sentinel nodes undrain n1"]
    assert looks(dirty) == (
        "sentinel nodes probe n1", history, "sentinel nodes undrain n1 --dry-run",
    )  # fmt: skip
    assert (clean.values["clean"], dirty.values["clean"]) == (True, False)


@pytest.mark.parametrize(
    ("items", "begins"),
    [
        ([BAD], "processes are left; not ready to return"),
        ([BAD, UNKNOWN], "processes are left; not ready to return"),
        ([BAD, HANGS], "a process hangs (1 more check failed); not ready"),
        ([BAD, HANGS, BAD], "a process hangs (2 more checks failed); not ready"),
        ([UNKNOWN], "GPU errors (Xid): no answer; not known whether it is ready to return"),
        ([SOON, UNKNOWN], "GPU errors (Xid): no answer (1 more check unanswered); not"),
        ([GOOD, GOOD], "clean by 2 proofs, is given back"),
    ],
)
def test_the_most_telling_item_is_named(items: list[ProofItem], begins: str) -> None:
    """What hangs in the kernel explains the others; what may pass by itself comes last."""
    assert finding(*items).summary.startswith(begins)


def test_what_to_do_first() -> None:
    """About what failed; what is only unknown is asked again; what is clean is given back."""
    assert finding(BAD, HANGS).guidance.todo.startswith("No signal ends these processes.")
    assert finding(BAD).guidance.todo.startswith("End these processes")
    assert finding(SOON).guidance.todo.startswith("The details say what is not known.")
    broken, busy = replace(BAD, name="gpus"), replace(BAD, name="gpu processes")
    assert finding(broken, UNKNOWN).guidance.todo.startswith("The details name what failed (-).")
    assert finding(busy).guidance.todo.startswith("End these processes")
    assert "end the other processes that the details name" in finding(BAD, HANGS).guidance.todo
    assert finding(GOOD).guidance.todo == "Undrain it: `sentinel nodes undrain n1`."
    assert finding(GOOD).guidance.ask.startswith("undrain n1: drained, clean by 1 proofs")
    asked = finding(BAD, HANGS).guidance.ask
    assert asked.startswith("look at n1: drained, a process hangs (1 more check failed); not")
    long = finding(replace(BAD, text="x" * 500)).guidance.ask
    assert len(long.removeprefix("look at n1: drained, ")) == 200


def record(outcome: ActionOutcome, seconds: float, action: str = "undrain") -> ActionRecord:
    """So long after the node got its reason."""
    at = Instant(wall=int((DRAINED_AT + seconds) * SECOND))
    return ActionRecord(
        id="r", action=action, target="n1", reason="", by="drained", at=at, outcome=outcome,
        why=f"{outcome.value} {seconds:g}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([], None),
        ([record(ActionOutcome.REFUSED, 5)], "refused 5"),
        ([record(ActionOutcome.REFUSED, 0)], "refused 0"),
        ([record(ActionOutcome.REFUSED, -1)], None),
        ([record(ActionOutcome.DONE, 9), record(ActionOutcome.REFUSED, 5)], None),
        ([record(ActionOutcome.UNNEEDED, 9), record(ActionOutcome.REFUSED, 5)], None),
        ([record(ActionOutcome.REFUSED, 9), record(ActionOutcome.DONE, 5)], "refused 9"),
        ([record(ActionOutcome.REFUSED, 9, "reboot")], None),
    ],
)
def test_an_undrain_that_failed_is_the_newest_since_the_reason(
    records: list[ActionRecord], why: str | None
) -> None:
    """The newest come first, as the audit log has them."""
    found = find_failed_undrain(sight(records=records))
    assert (found and found.why) == why


def prove(seen: NodeEvidence, rules: ProofRules = RULES) -> list[ProofItem]:
    return [*prove_by_slurm(seen, rules), *prove_by_node(seen, rules)]


def is_reboot_requested(
    seen: NodeEvidence, after: float = 300.0, rules: ProofRules = RULES, *more: ProofItem
) -> bool:
    return request_reboot(seen, [*prove(seen, rules), *more], rules, Duration(after)) is not None


HANGING = {"blocked": (blocked(),)}


@pytest.mark.parametrize(
    ("parts", "after", "wanted"),
    [
        (HANGING, 300.0, True),
        (HANGING, 301.0, False),
        ({}, 0.0, False),
        ({"blocked": (blocked(8),)}, 0.0, False),  # of this moment
        ({**HANGING, "gpu_processes": None}, 0.0, False),
        ({**HANGING, "gpus": None}, 0.0, False),
        ({**HANGING, "processes": (*CLEAN.processes, process(50, 1000, "al"))}, 0.0, False),  # type: ignore[misc]
    ],
)
def test_a_reboot_is_for_what_hangs_long_and_nothing_else(
    parts: dict[str, Any], after: float, wanted: bool
) -> None:
    """To the second; what is unknown or somebody's keeps the node as it is."""
    assert NOW - DRAINED_AT == 300
    assert is_reboot_requested(spoilt(**parts), after) is wanted


def test_a_reboot_knows_what_a_configured_proof_and_an_ignored_user_are() -> None:
    """The proof has not run; the user is one who may be there."""
    rules = replace(RULES, proofs=("nhc",), ignore_users=frozenset({"al"}))
    unrun = ProofItem(name="nhc", good=None, text="not run", moment=True)
    there = (*CLEAN.processes, process(50, 1000, "al"))  # type: ignore[misc]
    seen = spoilt(**HANGING, processes=there)
    assert is_reboot_requested(seen, 300.0, rules, unrun)
    assert not is_reboot_requested(seen, 300.0, RULES, unrun)


@pytest.mark.parametrize(
    ("completing", "expediting", "wanted"),
    [(700.0, (), True), (None, (), False), (700.0, ("7",), False)],
)
def test_a_node_that_ends_a_job_is_rebooted_only_where_that_takes_too_long(
    completing: float | None, expediting: tuple[str, ...], wanted: bool
) -> None:
    """And never while a job waits for its epilog there to start again."""
    ending = replace(NODE, flags=NODE.flags | {"COMPLETING"})
    seen = replace(spoilt(**HANGING), node=ending, completing=completing, expediting=expediting)
    assert is_reboot_requested(seen) is wanted


def test_a_node_that_was_asked_to_go_back_and_has_no_record_of_it_is_told() -> None:
    """Its record was refused silently, or is older than its reason."""
    assert finding(GOOD, before=True).summary.startswith(
        "clean by 1 proofs, but not yet given back"
    )


def test_a_reboot_is_of_one_boot_and_one_reason() -> None:
    """Whoever changes one of them in between ends it."""
    seen = spoilt(**HANGING)
    request = request_reboot(seen, prove(seen), RULES, Duration(0))
    assert request is not None
    assert (request.action, request.target) == ("reboot", "n1")
    assert request.params["booted"] == str(NODE.boot_time)
    assert "completing" not in request.params
    assert request.reason == f"tasks in state D since: {NODE.reason}"
    assert request.evidence["blocked"].startswith("- processes hang")
    assert request.evidence["reservation"].startswith("+ ")
    unbooted = replace(seen, node=replace(NODE, boot_time=None))
    request = request_reboot(unbooted, prove(unbooted), RULES, Duration(0))
    assert request is not None
    assert request.params["booted"] == ""
