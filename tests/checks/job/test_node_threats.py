"""What happens to the nodes of a running job is told to its owner where the job's end is at stake."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job, Node, Reservation, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Report, Status
from sentinel.testing import START, FixedSlurm, context
from tests.checks.job.making import HOUR, NOW, check, job, pending
from tests.kinds import looks

XID = "GPU has fallen off the bus (Xid 79)"


def node(name: str, *flags: str, reason: str = "") -> Node:
    return Node(name=name, state="MIXED", flags=frozenset(flags), reason=reason)


NODES = tuple(node(f"node-{n}") for n in range(64))


def drained(reason: str = XID, *more: str, at: int = 1) -> tuple[Node, ...]:
    return (*NODES[:at], node(NODES[at].name, "DRAIN", *more, reason=reason), *NODES[at + 1 :])


def reserved(hours: float = 2, **more: Any) -> Reservation:
    starts = NOW + int(hours * HOUR)
    fields = {"nodes": frozenset({"node-2", "node-3"}), "flags": frozenset({"MAINT"}), **more}
    return Reservation(name="winter", starts=starts, ends=starts + HOUR, **fields)


def look(
    *jobs: Job,
    nodes: tuple[Node, ...] | None = NODES,
    planned: tuple[Reservation, ...] = (),
    told: tuple[str, ...] = (),
    settings: dict[str, Any] | None = None,
    **more: Any,
) -> Report:
    slurm = FixedSlurm(jobs=jobs or (job(),), nodes=nodes, reservations=planned, **more)
    one = check(**{"node_warnings": True, **(settings or {})})
    return one.run(context(slurm, START, told=dict.fromkeys(told, START)))


def warnings(report: Report) -> list[Finding]:
    return list(report.findings[1:])


def test_a_drain_for_the_hardware_is_told_after_three_minutes() -> None:
    """Which node, why, and what to do."""
    (found,) = warnings(look(nodes=drained()))
    assert (found.subject, found.status, found.patience) == ("train node", Status.WARNING, 180)
    assert found.summary == f"node-1 of job 10 is drained for a hardware fault ({XID})"
    assert found.labels == {"job": "train", "user": "alice", "partition": "prod", "node": "node-1"}
    assert found.tell_once
    assert "ask the training to save by its own means" in found.guidance.todo


@pytest.mark.parametrize(
    "nodes",
    [
        NODES,
        drained(""),
        drained("Kill task failed"),
        drained("GPU driver update"),
        drained("firmware upgrade of the HCA"),
        drained("reboot for kernel update"),
        drained("", "REBOOT_REQUESTED"),
        drained("Reboot ASAP", "REBOOT_REQUESTED"),
        drained("Reboot ASAP : reboot issued", "REBOOT_REQUESTED"),
        (*NODES[:1], node("node-1", "REBOOT_REQUESTED", reason="reboot requested")),
        drained(XID, at=9),
        (*NODES[:1], node("node-1", reason=XID)),
        (*NODES[:1], node("node-1", "NOT_RESPONDING")),
        (*NODES[:1], node("node-1", "PLANNED", "BLOCKED")),
    ],
)
def test_what_lets_the_job_finish_is_told_to_nobody(nodes: tuple[Node, ...]) -> None:
    """An ordinary drain, `scontrol reboot ASAP`, another's node, a reason that is old."""
    assert warnings(look(nodes=nodes)) == []


@pytest.mark.parametrize(
    ("flags", "words", "waits"),
    [
        (("REBOOT_REQUESTED",), f"drained for a hardware fault ({XID})", True),
        (("FAIL",), f"expected to fail ({XID})", True),
        (("REBOOT_ISSUED",), "rebooted now", False),
    ],
)
def test_a_node_that_is_about_to_go_is_told(flags: Any, words: str, waits: bool) -> None:
    """A reboot at once; and a fault, also where the node is to be rebooted for it once the job has
    ended."""
    (found,) = warnings(look(nodes=drained(XID, *flags)))
    assert found.summary == f"node-1 of job 10 is {words}"
    assert bool(found.patience) is waits


@pytest.mark.parametrize(
    ("hours", "fits"), [(2, "There is time for a checkpoint"), (0.1, "Save at once")]
)
def test_a_maintenance_before_the_end_is_told_at_once(hours: float, fits: str) -> None:
    """Until when the job may run, and whether a checkpoint fits."""
    (found,) = warnings(look(planned=(reserved(hours),)))
    assert (found.subject, found.patience) == ("train reservation", 0)
    assert found.summary.startswith("node-[2-3] of job 10 are taken by maintenance (winter) ")
    assert "; its time limit comes " in found.summary
    assert fits in found.guidance.todo


@pytest.mark.parametrize(
    "plan",
    [
        reserved(20),  # after the job's time limit
        reserved(-0.5),  # it has begun: the job runs in it, or was there before
        reserved(nodes=frozenset({"node-9"})),
        reserved(users=frozenset({"alice"})),
        reserved(flags=frozenset({"MAINT", "TIME_FLOAT"})),
        reserved(nodes=frozenset()),
    ],
)
def test_a_reservation_that_takes_nothing_of_the_job_is_not_told(plan: Reservation) -> None:
    """Nor one that is its owner's."""
    assert warnings(look(planned=(plan,))) == []


def test_64_nodes_are_one_message_and_two_causes_are_two() -> None:
    """So nobody who knows of a broken node misses a maintenance."""
    broken = tuple(replace(n, flags=frozenset({"DRAIN"}), reason=XID) for n in NODES)
    large = job(nodes="node-[0-63]", node_count=64)
    everything = reserved(flags=frozenset({"MAINT", "ALL_NODES"}))
    first, second = warnings(look(large, nodes=broken, planned=(everything,)))
    assert first.summary == f"node-[0-63] of job 10 are drained for a hardware fault ({XID})"
    assert second.summary.startswith("node-[0-63] of job 10 are taken by maintenance")
    assert "node" not in first.labels


def test_only_running_jobs_are_at_stake() -> None:
    """And without one Slurm is asked for no nodes: this Slurm gives none."""
    assert warnings(look(pending(), nodes=None)) == []
    off = {"node_warnings": False}
    assert warnings(look(nodes=None, settings=off)) == []


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("sbatch --signal=B:USR1@120 train.sh", "--batch --signal=USR1 10"),
        ("sbatch --signal USR2 train.sh", "--signal=USR2 10"),
        ("sbatch --signal=RB:10@60 train.sh", "--batch --signal=10 10"),
        ("sbatch -N 2 --sig=sigusr2@60 train.sh", "--signal=USR2 10"),
        ("sbatch --signal=$(reboot) train.sh", ""),
        ("sbatch --signal=KILL@60 train.sh", ""),
        ("sbatch --signal=B:TERM@60 train.sh", ""),
        ("sbatch train.sh --signal=USR1", ""),
        ("sbatch train.sh", ""),
        ("", ""),
    ],
)
def test_a_command_comes_only_where_the_job_is_known_to_handle_it(line: str, command: str) -> None:
    """The signal of its own submission."""
    how = Submission(id="10", name="train", user="alice", workdir="/", line=line)
    (found,) = warnings(look(nodes=drained(), submissions={"10": how}))
    line = f'[ "$(id -un)" = alice ] && scancel {command}'
    assert [one.render() for one in found.acts] == ([line] if command else [])


@pytest.mark.parametrize(
    ("settings", "private"),
    [({"hidden_reasons": ["GPU has"]}, ()), ({}, ("nodes", "reservations"))],
)
def test_what_users_may_not_see_is_not_told(settings: dict[str, Any], private: Any) -> None:
    """Reasons of the operator's list, and what PrivateData hides."""
    plans = (reserved(),) if private else ()
    found = warnings(look(nodes=drained(), planned=plans, settings=settings, private=private))
    assert found[0].summary == "node-1 of job 10 is drained for a hardware fault"
    assert not [f for f in found if "winter" in f.summary]


def test_it_ends_when_it_is_over_and_a_slurm_that_is_silent_ends_nothing() -> None:
    """Only what was told has an end."""
    (over,) = warnings(look(told=("train node",)))
    assert (over.subject, over.status) == ("train node", Status.OK)
    (gone,) = warnings(look(pending(), told=("train node",)))
    assert (gone.status, gone.summary) == (Status.OK, "no job of it runs now")
    (blind,) = warnings(look(nodes=None, told=("train reservation",)))
    assert (blind.subject, blind.status) == ("train reservation", Status.UNKNOWN)
    assert warnings(look(nodes=None)) == []


def test_each_of_many_trainings_has_its_own() -> None:
    """With the wish of each owner."""
    jobs = (
        job("10", wish="sentinel: off"),
        job("11", user="bob", nodes="node-[0-1]"),
        job("12", user="carol", nodes="node-5"),
    )
    found = look(*jobs, nodes=drained(), settings={"users": ["*"]})
    told = {f.subject: f.owner_muted for f in found.findings if f.status is Status.WARNING}
    assert told == {"alice/train node": True, "bob/train node": False}


def test_a_time_limit_that_is_none_is_always_after_the_beginning() -> None:
    """An unlimited job has no end."""
    (found,) = warnings(look(job(ends=None, time_limit=None), planned=(reserved(900),)))
    assert "time limit" not in found.summary


def test_the_end_of_a_job_that_cannot_be_asked_about_is_no_error() -> None:
    """The command is left out."""

    class Silent(FixedSlurm):
        def submission(self, job_id: str) -> Submission | None:
            raise CannotTell("no answer")

    slurm = Silent(jobs=(job(),), nodes=drained(), reservations=())
    later = shift_instant(START, 60)
    report = check(node_warnings=True).run(context(slurm, later))
    assert looks(warnings(report)[0]) == ()
