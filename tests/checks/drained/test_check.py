"""What the check reports, and what it asks for: nothing that its settings do not switch on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.cluster_view import ClusterView
from sentinel.actions.undrain import UndrainAction
from sentinel.checks.drained import DrainedCheck
from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionOutcome, ActionRecord, NodeReading
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import Job, Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.node_answers import Answered, Unreachable, Unreached
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, since_text
from sentinel.nodes.probe import (
    FileWait,
    NodeIdentity,
    NodeMount,
    NodeProbe,
    ProbeRequest,
    StepProcess,
    StepTraces,
    Unread,
)
from sentinel.testing import FixedSlurm, context
from tests.checks.drained.nodes import (
    CLEAN,
    DRAINED_AT,
    LEFT_SERVICE,
    NODE,
    NOW,
    blocked,
    process,
    step,
)

UNDRAIN = DrainedCheck(undrain=True)
AT = Instant(wall=NOW * SECOND)


class Nodes:
    """A way to nodes that answer what they were given; `asked` counts round trips."""

    def __init__(self, answers: Mapping[str, NodeProbe | Unreached], code: int = 0) -> None:
        self.answers, self.code = answers, code
        self.asked: list[list[str]] = []
        self.ran: list[list[str]] = []

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answered]:
        self.ran.append(list(argv))
        return {node: Answered(code=self.code, out=b"said") for node in nodes}

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        self.asked.append(list(nodes))
        return {node: self.answers.get(node, Unreachable("no route")) for node in nodes}


class Book:
    """A log of actions and reasons that holds what it was given."""

    def __init__(self, records: Sequence[ActionRecord] = (), *reasons: str) -> None:
        self._records, self._reasons = records, reasons

    def records(self, target: str = "", limit: int = 100) -> Sequence[ActionRecord]:
        return [r for r in self._records if r.target == target]

    def readings(self, node: str, limit: int = 100) -> Sequence[NodeReading]:
        return [
            NodeReading(node=node, state="", reason=r, user="", reason_time=1, out=True, seen=AT)
            for r in self._reasons
        ] + [replace(LEFT_SERVICE, node=node)]


def run(
    check: DrainedCheck = UNDRAIN,
    *,
    nodes: Sequence[Node] = (NODE,),
    probe: NodeProbe = CLEAN,
    jobs: Sequence[Job] = (),
    **more: Any,
) -> Report:
    """One run over these nodes, all of which answer the same."""
    remote = more.pop("remote", None) or Nodes({n.name: probe for n in nodes})
    slurm = FixedSlurm(nodes=nodes, jobs=jobs)
    return check.run(context(slurm, now=AT, **{"remote": remote, "logbook": Book(), **more}))


def only(report: Report) -> Finding:
    [finding] = report.findings
    return finding


def test_a_node_that_is_drained_for_another_reason_is_not_said_to_work() -> None:
    """Somebody else drained it; this check has nothing to say of it."""
    other = run(nodes=[replace(NODE, reason="bad dimm")])
    assert other.coverage.calm.startswith("1 node is drained for other reasons")
    assert run(nodes=[Node(name="n1", state="IDLE")]).coverage.calm == "no node is drained"


def test_a_clean_node_is_asked_back_and_nobody_is_woken() -> None:
    """The request is tied to the reason that was seen, demands an idle node, and holds the proof."""
    report = run()
    [request] = report.requests
    assert (request.action, request.target) == ("undrain", "n1")
    assert request.params == {
        "reason": "Kill task failed",
        "reason_user": "root",
        "reason_time": str(DRAINED_AT),
        "comment": "",
        "extra": "",
        "idle": "yes",
    }
    assert request.evidence["gpus"] == "+ 2 of 2 there"
    assert len(request.evidence) == 10
    assert (only(report).status, only(report).subject) == (Status.OK, "n1")
    assert only(report).summary.startswith("clean by 10 proofs, is given back; ")


def test_by_default_it_only_tells() -> None:
    """With the command that a person would type."""
    report = run(DrainedCheck())
    assert report.requests == ()
    assert only(report).status is Status.WARNING
    assert [one.render() for one in only(report).acts] == ["sentinel nodes undrain n1"]
    assert DrainedCheck().grants() == {}


def test_grants_are_what_is_switched_on_with_the_checks_own_limits() -> None:
    """Nothing else is consented to."""
    limits = Limits(per_hour=1)
    assert DrainedCheck(undrain=True).grants() == {"undrain": None}
    both = DrainedCheck(undrain=True, clean_up=True, reboot=True, limits=limits)
    assert both.grants() == {"undrain": limits, "clean_up": limits, "reboot": limits}


FOREIGN = [
    replace(NODE, flags=frozenset()),  # a stale reason of an idle node
    replace(NODE, flags=frozenset(), state="DOWN"),
    replace(NODE, reason="bad dimm"),
    replace(NODE, reason=""),
    replace(NODE, reason="NHC: Kill task failed"),
]


@pytest.mark.parametrize("node", FOREIGN)
def test_other_nodes_are_no_business_of_it(node: Node) -> None:
    """Neither told, nor asked, nor given back."""
    remote = Nodes({"n1": CLEAN})
    report = run(nodes=[node], remote=remote)
    assert (report.findings, report.requests, remote.asked) == ((), (), [])


def test_one_round_trip_for_all_nodes_that_can_be_asked() -> None:
    """A node that is down or reserved is told about without asking it."""
    down = replace(NODE, name="n2", flags=frozenset({"DRAIN", "NOT_RESPONDING"}))
    reserved = replace(NODE, name="n3", flags=frozenset({"DRAIN", "MAINTENANCE"}))
    other = replace(NODE, name="n4")
    remote = Nodes({"n1": CLEAN, "n4": CLEAN})
    report = run(nodes=[NODE, down, reserved, other], remote=remote)
    assert remote.asked == [["n1", "n4"]]
    assert [f.subject for f in report.findings] == ["n1", "n2", "n3", "n4"]
    assert [f.status for f in report.findings][1:3] == [Status.WARNING] * 2
    assert [r.target for r in report.requests] == ["n1"]  # n4 answered as n1


def test_what_is_not_clean_is_told_by_its_most_telling_item() -> None:
    """A task in state D explains the others; the proof is in the details, marked."""
    probe = replace(CLEAN, blocked=(blocked(),), steps=StepTraces(processes=(step(7),)))
    report = run(probe=probe)
    assert report.requests == ()
    assert only(report).summary == (
        "processes hang in the kernel (state D): cat (pid 7) in request_wait_answer (FUSE) (1 more check"
        f" failed); not ready to return; drained {since_text(DRAINED_AT, NOW)}"
        " (Kill task failed: Slurm could not end a job's processes)"
    )
    assert "- jobs: processes left by job 12: cat (pid 7) of root" in only(report).details
    assert "GPUs" in only(report).details


def test_what_is_not_known_is_told_by_what_will_not_pass_by_itself() -> None:
    """State D of this moment comes last."""
    late = Unread(kind="late", why="no answer within 5 s")
    probe = replace(CLEAN, blocked=(blocked(9),), gpu_processes=late)
    assert "gpu processes: not read, took too long" in only(run(probe=probe)).summary
    alone = only(run(probe=replace(CLEAN, blocked=(blocked(9),))))
    assert "hanging: in state D just now" in alone.summary


def test_state_d_of_one_look_wakes_nobody() -> None:
    """Any process is in it for a moment. Told is what the next look meets too, and until the node is
    back; a node that was told of before is not told as new."""
    doubt, stuck = replace(CLEAN, blocked=(blocked(9),)), replace(CLEAN, blocked=(blocked(),))
    first = run(probe=doubt)
    assert (only(first).status, only(first).patience > 0) == (Status.WARNING, True)
    after = run(memory=first.memory)
    assert (only(after).status, len(after.requests)) == (Status.OK, 1)
    second = run(probe=doubt, memory=first.memory)
    assert (only(second).status, only(second).patience) == (Status.WARNING, 0)
    assert only(run(memory=second.memory)).status is Status.WARNING
    proofs = run(DrainedCheck(undrain=True, proofs={"nhc": ["/usr/sbin/nhc"]}), probe=doubt)
    assert only(proofs).patience > 0  # a proof that waits for the others is no doubt of its own
    assert "hanging: in state D just now" in only(proofs).summary
    known = run(probe=stuck, memory=first.memory)
    assert only(known).patience == 0
    assert only(run(probe=doubt, memory=known.memory)).patience == 0


@pytest.mark.parametrize("more", [{"remote": Nodes({})}, {"logbook": None}])
def test_what_is_not_known_is_no_proof(more: dict[str, Any]) -> None:
    """No answer, no ledger: the node is certainly drained, and stays so."""
    report = run(**more)
    assert report.requests == ()
    assert (only(report).status, only(report).values["clean"]) == (Status.WARNING, False)
    assert "; not known whether it is ready to return; drained" in only(report).summary


def test_a_log_that_somebody_named_has_to_be_read(tmp_path: Path) -> None:
    """What it holds may count against the node."""
    log = tmp_path / "slurmctld.log"
    check = DrainedCheck(undrain=True, slurmctld_log=FilePath(str(log)))
    report = run(check)
    assert report.requests == ()
    unread = "another reason for the drain: not known: slurmctld's log: tail: cannot open"
    assert only(report).summary.startswith(unread)  # the reason that is known stands at its end
    assert "See for yourself" in only(report).guidance.todo
    log.write_text("[2026-11-21T04:10:00.000] update_node: node n1 reason set to: RMA GPU3\n")
    assert "its reason replaced another one: 'RMA GPU3'" in only(run(check)).summary
    log.write_text(
        "[2026-11-21T04:10:00.001] update_node: node n1 reason set to: RMA GPU3\n"
        "[2026-11-21T04:11:00.001] _update_job: setting comment to x\n"
        "[2026-11-21T04:11:00.000] sched: Allocate JobId=9 NodeList=n1 #CPUs=1 Partition=p\n"
    )
    report = run(check)
    assert (report.requests, "its times go back" in only(report).summary) == ((), True)
    log.write_text("")
    assert len(run(check).requests) == 1


def test_a_node_whose_name_looks_like_an_option_blinds_nobody_else() -> None:
    """Slurm takes such a name; a job that runs there too."""
    strange = replace(NODE, name="-oProxyCommand=touch")
    there = Job(*["1"] * 7, "RUNNING", "", strange.name, 1, "", *[None] * 4)
    report = run(
        replace(UNDRAIN, clean_up=True),
        nodes=(strange, NODE),
        jobs=(there,),
        remote=Nodes({"n1": CLEAN}),
    )
    told = {f.subject: f for f in report.findings}
    assert [r.target for r in report.requests] == ["n1"]
    assert told[strange.name].status is Status.WARNING


def test_no_way_to_nodes() -> None:
    """Each node says so."""
    report = UNDRAIN.run(context(FixedSlurm(nodes=[NODE], jobs=[]), now=AT, logbook=Book()))
    assert "the node could not be asked: it was not asked" in only(report).summary


def test_without_slurm_it_cannot_tell() -> None:
    """A failed query is no empty list of drained nodes, nor of jobs that are suspended there."""
    for slurm in (FixedSlurm(), FixedSlurm(nodes=[NODE])):
        with pytest.raises(CannotTell):
            UNDRAIN.run(context(slurm, now=AT, logbook=Book()))


def test_a_node_of_which_people_were_told_stays_told_until_it_is_back() -> None:
    """Clean again is not yet back at work: no `resolved` before the deed."""
    first = run(probe=replace(CLEAN, blocked=(blocked(),)))
    second = run(memory=first.memory)
    assert len(second.requests) == 1
    assert only(second).status is Status.WARNING


def record(outcome: ActionOutcome, at: int = NOW - 10, **more: Any) -> ActionRecord:
    return ActionRecord(
        id="1",
        action="undrain",
        target="n1",
        reason="",
        by="drained",
        at=Instant(wall=at * SECOND),
        outcome=outcome,
        **more,
    )


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (
            record(
                ActionOutcome.REFUSED, rule="per_hour", why="10 within the last hour, at most 10"
            ),
            "but not given back: refused (per_hour): 10 within the last hour, at most 10",
        ),
        (
            record(ActionOutcome.ERROR, detail="Invalid user id"),
            "but not given back: error: Invalid user id",
        ),
        (record(ActionOutcome.DONE), "is given back"),
        (record(ActionOutcome.REFUSED, at=DRAINED_AT - 1), "is given back"),
    ],
)
def test_an_undrain_that_came_to_nothing_is_told(last: ActionRecord, told: str) -> None:
    """In the guard's or Slurm's words; what was before this drain is no news."""
    report = run(logbook=Book([last]))
    assert f"{told}; drained since" in only(report).summary
    assert (only(report).status is Status.OK) is (told == "is given back")
    assert len(report.requests) == 1


def test_a_node_that_was_asked_back_and_is_still_drained_is_told() -> None:
    """As in a dry run, where nothing is written down. A new reason is a new case."""
    first = run()
    assert only(run(memory=first.memory)).status is Status.WARNING
    again = replace(NODE, reason_time=DRAINED_AT + 60)
    assert only(run(memory=first.memory, nodes=[again])).status is Status.OK


def test_memory_of_another_version_is_forgotten() -> None:
    """It is only about what to tell."""
    assert only(run(memory={"asked": 3})).status is Status.OK


def test_configured_proofs_run_last_and_must_be_good() -> None:
    """Only where everything else is good: NHC on a node with a hang would hang too."""
    check = DrainedCheck(undrain=True, proofs={"nhc": ["/usr/sbin/nhc"]})
    for code, asked in ((0, 1), (1, 0)):
        remote = Nodes({"n1": CLEAN}, code=code)
        assert len(run(check, remote=remote).requests) == asked
        assert remote.ran == [["/usr/sbin/nhc"]]
    remote = Nodes({"n1": replace(CLEAN, blocked=(blocked(),))})
    run(check, remote=remote)
    assert remote.ran == []


ALICE = process(50, 1000, "alice")
STRAY = process(50)
LEFT = replace(CLEAN, processes=(ALICE,), steps=StepTraces(processes=(step(50),)))
CLEANING = DrainedCheck(undrain=True, clean_up=True)
MIXED = replace(NODE, state="MIXED")
NAMED = replace(NODE, reason="Kill task failed (JobId=13 StepId=0)")


def job(number: str, state: str = "RUNNING") -> Job:
    return Job(
        id=number,
        job_id=number,
        array_id=number,
        task="",
        name="x",
        user="bob",
        partition="prod",
        state=state,
        reason="",
        nodes="n[1-2]",
        node_count=2,
        dependency="",
        submitted=1,
        started=1,
        ends=None,
        time_limit=None,
    )


@pytest.mark.parametrize(
    ("node", "jobs", "wished"),
    [
        (NODE, [], "12"),
        (MIXED, [job("99")], "12"),
        (MIXED, [job("12")], None),
        (MIXED, [job("12", "COMPLETING")], None),  # it may still save: NVIDIA/deepops#1318
        (MIXED, [replace(job("12", "COMPLETING"), overdue=True)], "12"),
        (NAMED, [], None),
        (replace(NAMED, reason="Kill task failed (JobId=12 StepId=0)"), [], "12"),
    ],
)
def test_a_clean_up_is_asked_for_a_job_that_slurm_no_longer_has_there(
    node: Node, jobs: list[Job], wished: str | None
) -> None:
    """Where the reason names the job, for that one only."""
    report = run(CLEANING, nodes=[node], probe=LEFT, jobs=jobs)
    found = [(r.action, r.params["jobs"]) for r in report.requests]
    assert found == ([("clean_up", wished)] if wished else [])


PLAIN = {"comment": "rack 12", "extra": '{"pod":"a-0","node":"k1"}'}


@pytest.mark.parametrize(
    ("now", "gives_back"),
    [
        ({}, True),
        ({"comment": "rack 13"}, True),
        ({"comment": ""}, True),
        ({"extra": '{"pod":"a-7","node":"k1"}'}, True),  # Slinky, after its pod was made anew
        (
            {"extra": '{"pod":"a-7","node":"k9"}'},
            False,
        ),  # on another host, or by a person: not known
        ({"comment": "rack 12; do not resume"}, False),
        ({"comment": "RMA 4711"}, False),
        ({"extra": "do not resume"}, False),
        ({"extra": '{"pod":"a-0","node":"k1","ticket":"4711"}'}, False),
    ],
)
def test_a_note_beside_the_reason_stops_the_way_back(now: dict[str, str], gives_back: bool) -> None:
    """What was there when the drain was first seen is a program's, or known to whoever drained it."""
    first = run(nodes=[replace(NODE, **PLAIN)])
    assert [r.params["comment"] for r in first.requests] == ["rack 12"]
    later = run(nodes=[replace(NODE, **{**PLAIN, **now})], memory=first.memory)
    assert [r.action for r in later.requests] == ["undrain"] * gives_back
    if not gives_back:
        assert "left a note since it was drained" in only(later).summary + only(later).details
    wish = first.requests[0]
    noted = ClusterView({"n1": replace(NODE, **{**PLAIN, **now})}, {})
    assert bool(UndrainAction().look(wish, noted).not_ready) is not gives_back


@pytest.mark.parametrize(
    ("before", "now", "gives_back"),
    [("", "do not resume", False), ("rack 12", "rack 12", True), ("rack 12", "rack 12 RMA", False)],
)
def test_a_note_that_came_together_with_the_drain_is_one(
    before: str, now: str, gives_back: bool
) -> None:
    """The node was seen in service before, so what stood there then is known."""
    works = replace(NODE, flags=frozenset(), reason="", reason_user="", comment=before)
    first = run(nodes=[works])
    later = run(nodes=[replace(NODE, comment=now)], memory=first.memory)
    assert [r.action for r in later.requests] == ["undrain"] * gives_back
    many = run(nodes=[replace(works, comment="x" * 200_001)])
    told = run(nodes=[replace(NODE, comment=now)], memory=many.memory)
    assert [r.action for r in told.requests] == ["undrain"], "more than is remembered"


def test_sentinels_own_mark_is_no_note() -> None:
    """`guard: {mark: true}` writes it right before the node is given back."""
    wish = run().requests[0]
    marked = replace(NODE, comment="sentinel:returned:1790000000:0123456789ab")
    assert UndrainAction().look(wish, ClusterView({"n1": marked}, {})).not_ready == ""


A, B = "sDTDM8106N2P00", "sDTDM8106N2P01"
IN_A, IN_B = step(50, A, "cgroup"), step(50, B, "cgroup")
HET = replace(job("13"), id="12+1")


def left(*steps: StepProcess, user: str = "alice", **more: Any) -> list[tuple[str, str]]:
    """The jobs, and the uids, of what is asked to be ended."""
    probe = replace(LEFT, processes=(replace(ALICE, user=user),), steps=StepTraces(processes=steps))
    slurm = FixedSlurm(nodes=[MIXED], jobs=more.pop("jobs", []), sluids=more.pop("sluids", None))
    remote = Nodes({"n1": probe})
    found = CLEANING.run(
        context(slurm, now=AT, remote=remote, logbook=more.pop("logbook", Book()))
    ).requests
    assert all(r.action == "clean_up" for r in found)
    return [(r.params["jobs"], r.params["uids"]) for r in found]


def test_a_cgroup_that_is_named_by_sluid_belongs_to_the_job_that_slurm_says() -> None:
    """Slurm 26.05. What carries the id of a job that is over and lives in another one's cgroup is
    that other one's; what nobody can map is nobody's to end."""
    names, inherits = {A: "12", B: "200"}, step(50, witness="environment")
    assert left(IN_A, sluids=names) == [(f"12,{A}", "1000")]
    assert left(IN_A, step(50, "200", "environment"), sluids=names, jobs=[job("200")]) == [
        (f"12,{A}", "1000")
    ]
    assert left(IN_B, inherits, sluids=names, jobs=[job("200")]) == []
    assert left(IN_B, inherits, sluids=names, jobs=[job("200", "SUSPENDED")]) == []
    for unmapped in (None, {}, {B: "200"}):
        assert left(IN_A, inherits, sluids=unmapped) == []
    assert left(step(50, "?"), inherits, sluids=names) == []
    assert left(IN_A, IN_B, sluids=names) == []


@pytest.mark.parametrize("strange", [A, "?"])
def test_a_cgroup_that_nobody_can_map_is_not_clean(strange: str) -> None:
    """Nor a reason for a reboot: it is not known what it is."""
    probe = replace(CLEAN, steps=StepTraces(processes=(step(50, strange, "cgroup"),)))
    report = run(probe=probe)
    assert report.requests == ()
    assert f"? jobs: processes left by job {strange}: process 50" in only(report).details
    stuck = replace(STUCK, steps=probe.steps)
    assert run(REBOOT, probe=STUCK).requests
    assert run(REBOOT, probe=stuck).requests == ()


def test_what_a_process_inherited_ends_and_blames_nobody() -> None:
    """Anybody may export any id: it is told as a doubt, so the node is not given back either."""
    inherits = step(50, witness="environment")
    assert left(inherits) == []
    report = run(probe=replace(CLEAN, steps=StepTraces(processes=(inherits,))))
    assert report.requests == ()
    assert (
        "? jobs: no process is known to be of a job, but some carry its id" in only(report).details
    )


def test_what_the_kernel_counts_is_ended_whoever_else_has_jobs_there() -> None:
    """Even where the name of its user is not known; never what runs, whatever id it carries."""
    elsewhere, alices = replace(job("12"), nodes="n7"), replace(job("99"), user="alice")
    assert left(step(50), jobs=[elsewhere, alices]) == [("12", "1000")]
    assert left(step(50), user="1000") == [("12", "1000")]
    for there in (HET, replace(HET, job_id="12", id="12+0")):
        assert left(step(50), jobs=[there]) == []


def test_what_runs_below_a_slurmstepd_is_that_jobs() -> None:
    """However deep; what it inherited counts for nothing."""
    daemon = process(40, command="slurmstepd: [200.batch]")
    shell = process(45, 1000, "alice", parent=40)
    probe = replace(
        LEFT,
        processes=(daemon, shell, replace(ALICE, parent=45)),
        steps=StepTraces(processes=(step(40, "200", "daemon"), step(50, "12", "environment"))),
    )
    for jobs, wished in (([job("200")], []), ([], ["200"])):
        found = run(CLEANING, nodes=[MIXED], probe=probe, jobs=jobs).requests
        assert [r.params["jobs"] for r in found] == wished


TRIED = ActionRecord(
    id="1", action="clean_up", target="n1", reason="", by="drained", at=AT, outcome=ActionOutcome.NO_EFFECT,
    params={"processes": "b 49 50"},
)  # fmt: skip
AGAIN = [
    (TRIED, False),
    (replace(TRIED, outcome=ActionOutcome.DONE), False),
    (replace(TRIED, outcome=ActionOutcome.UNCLEAR), False),
    (replace(TRIED, outcome=ActionOutcome.REFUSED), True),
    (replace(TRIED, outcome=ActionOutcome.WITHDRAWN), True),
    (replace(TRIED, action="reboot"), True),
    (replace(TRIED, params={"processes": "b 49 5"}), True),
    (replace(TRIED, params={"processes": "c 50"}), True),
    (replace(TRIED, params={}), True),
]


@pytest.mark.parametrize(("record", "again"), AGAIN)
def test_what_could_not_be_ended_is_not_asked_for_again(record: ActionRecord, again: bool) -> None:
    """It was tried on that very process, in this boot; another one is asked for as ever."""
    book = Book([replace(TRIED, params={"processes": "b 1"}), record])
    assert bool(left(step(50), logbook=book)) is again
    report = run(CLEANING, nodes=[MIXED], probe=LEFT, logbook=book)
    assert ("could not end 50" in only(report).details) is not again
    two = replace(LEFT, processes=(ALICE, replace(ALICE, pid=51)))
    two = replace(two, steps=StepTraces(processes=(step(50), step(51))))
    [request] = run(CLEANING, nodes=[MIXED], probe=two, logbook=book).requests
    assert request.params["processes"] == ("b 50 51" if again else "b 51")


NOT_TO_BE_ENDED = [
    replace(CLEAN, processes=(process(50),)),
    replace(LEFT, processes=(replace(ALICE, state="D"),)),
    replace(LEFT, processes=(replace(ALICE, state="Z"),)),
    replace(LEFT, steps=StepTraces(processes=())),
]


@pytest.mark.parametrize("probe", NOT_TO_BE_ENDED)
def test_no_clean_up_where_nothing_can_be_ended(probe: NodeProbe) -> None:
    """Root's, what hangs in the kernel, the dead, and what belongs to no job."""
    assert all(r.action == "undrain" for r in run(CLEANING, probe=probe).requests)


def test_no_clean_up_where_it_is_off_or_a_note_is_hidden() -> None:
    """The node is somebody's: not even its processes are touched."""
    assert run(UNDRAIN, probe=LEFT).requests == ()
    assert run(CLEANING, probe=LEFT, logbook=Book([], "Kill task failed", "RMA")).requests == ()


def test_everybodys_jobs_are_asked_for_only_where_they_matter() -> None:
    """A user without the right to see them can still have drained nodes proven."""
    assert CLEANING.jobs_of() is None
    assert UNDRAIN.jobs_of() == frozenset()


def test_no_clean_up_through_a_name_that_leads_elsewhere() -> None:
    """There the job may run rightly: its processes would be ended."""
    told = LEFT.identity
    assert isinstance(told, NodeIdentity)
    elsewhere = replace(LEFT, identity=replace(told, hostname="n2"))
    nodes = [NODE, replace(NODE, name="n2", flags=frozenset())]
    assert run(CLEANING, nodes=nodes, remote=Nodes({"n1": LEFT})).requests
    assert run(CLEANING, nodes=nodes, remote=Nodes({"n1": elsewhere})).requests == ()


STUCK = replace(
    CLEAN, processes=(STRAY,), blocked=(blocked(50),), steps=StepTraces(processes=(step(50),))
)
REBOOT = DrainedCheck(undrain=True, reboot=True, reboot_after=Duration(300))


def test_a_reboot_is_asked_for_tasks_that_stay_in_state_d() -> None:
    """From that time on, where all else is clean; tied to the reason and to the boot."""
    [request] = run(REBOOT, probe=STUCK).requests
    assert (request.action, request.params["booted"]) == ("reboot", str(NODE.boot_time))
    assert request.params["reason"] == NODE.reason
    assert run(replace(REBOOT, reboot_after=Duration(301)), probe=STUCK).requests == ()
    assert run(UNDRAIN, probe=STUCK).requests == ()


NO_REBOOT = [
    {"probe": replace(STUCK, processes=(ALICE, process(51, 1001, "bob")))},
    {"probe": replace(STUCK, gpus=None)},
    {"probe": replace(STUCK, processes=None)},
    {"probe": replace(STUCK, blocked=())},
    {"probe": STUCK, "nodes": [MIXED]},
    {"probe": STUCK, "logbook": Book([], "RMA")},
    {"probe": STUCK, "logbook": None},
]


@pytest.mark.parametrize("more", NO_REBOOT)
def test_no_reboot_without_the_proof_of_an_undrain(more: dict[str, Any]) -> None:
    """It is one: strangers, unseen GPUs, jobs, a hidden note, no ledger."""
    assert run(REBOOT, **more).requests == ()


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"reasons": [""]}, "reasons"),
        ({"reasons": ["Kill task failed", "   "]}, "reasons"),
        ({"reasons": ["Kil"]}, "reasons"),
        ({"reasons": ["Kill task failed", "k8s: Pod not ready"]}, "reasons"),
        ({"reasons": ["[node_problem] gpu"]}, "reasons"),
        ({"reasons": []}, "reasons"),
        ({"proofs": {"nhc": []}}, "proofs"),
        ({"proofs": {"nhc": ["nhc"]}}, "proofs"),
        ({"slurmd_log": "slurmd.log"}, "slurmd_log"),
    ],
)
def test_bad_settings(settings: dict[str, Any], key: str) -> None:
    """A prefix that fits every reason would give back what was drained for any."""
    with pytest.raises(Invalid) as refused:
        DrainedCheck(**settings)
    assert refused.value.path[0] == key


@pytest.mark.parametrize(("minutes", "person"), [(9, False), (11, True)])
def test_a_job_that_is_expediting_on_it_needs_a_person_after_minutes(
    minutes: int, person: bool
) -> None:
    """Its nodes are kept for it until all epilogs have ended; here one does not."""
    waits = job("7", "EXPEDITING")
    node = replace(NODE, flags=frozenset({"DRAIN"}), reason_time=NOW - 60 * minutes)
    report = run(nodes=(node,), jobs=(waits,))
    assert report.requests == ()
    assert only(report).summary.startswith("job 7 is EXPEDITING there")
    assert "; not ready to return; drained" in only(report).summary
    assert ("needs a person" in only(report).summary) is person


ENDING = replace(NODE, flags=frozenset({"COMPLETING"}), reason="", reason_user="", reason_time=None)
HANGS = replace(
    CLEAN,
    blocked=(blocked(),),
    steps=StepTraces(processes=(step(7),)),
    mounts=(NodeMount(device="x", point="/data", type="nfs4", options=frozenset()),),
    waits=(FileWait(pid=7, doing="reading", path="/data/x"),),
)
ENDS = DrainedCheck(reboot=True, reboot_after=Duration(3600))


def completing(node: Node = ENDING, seconds: float = 700.0, **more: Any) -> Report:
    """The second look, so many seconds after the first."""
    slurm = FixedSlurm(nodes=[node], jobs=more.pop("jobs", ()))
    remote, check = Nodes({node.name: more.pop("probe", HANGS)}), more.pop("check", ENDS)
    world = {"remote": remote, "logbook": Book()}
    first = check.run(context(slurm, now=AT, **world))
    later = shift_instant(AT, seconds)
    return check.run(context(slurm, now=later, memory=first.memory, **world, **more))


def test_a_node_that_does_not_end_a_job_is_a_finding_of_its_own() -> None:
    """After ten minutes, drained or not, with the task, where it waits, and on what."""
    assert completing(seconds=600.0).findings == ()
    told = only(completing())
    assert (told.subject, told.status) == ("n1", Status.WARNING)
    assert told.summary == (
        "processes hang in the kernel (state D): job 12: cat (pid 7) of root in request_wait_answer, "
        "reading /data/x (nfs4 at /data); completing for 11m 40s"
    )
    assert completing(check=replace(ENDS, completing=Duration(3600))).findings == ()


def test_it_is_rebooted_by_the_same_proof_as_a_drained_one() -> None:
    """After `reboot_after`, and where nothing else is wrong with it; nothing else is asked for."""
    assert completing().requests == ()
    [request] = completing(seconds=3700.0).requests
    assert (request.action, request.params["completing"]) == ("reboot", "yes")
    everything = replace(ENDS, undrain=True, clean_up=True)
    assert [r.action for r in completing(seconds=3700.0, check=everything).requests] == ["reboot"]
    assert completing(seconds=3700.0, check=DrainedCheck()).requests == ()


@pytest.mark.parametrize(
    ("node", "probe"),
    [
        (replace(ENDING, state="MIXED"), HANGS),
        (replace(ENDING, flags=frozenset({"COMPLETING", "MAINTENANCE"})), HANGS),
        (replace(ENDING, flags=frozenset({"COMPLETING", "DRAIN"}), reason="RMA"), HANGS),
        (ENDING, replace(HANGS, blocked=())),
        (ENDING, replace(HANGS, gpus=Unread(kind="late"))),
        (ENDING, replace(HANGS, processes=(process(99, 1000, "bob"),))),
    ],
)
def test_what_is_not_proven_is_not_rebooted(node: Node, probe: NodeProbe) -> None:
    """Another job, a reservation, somebody's reason, no task in state D, what was not seen, a
    stranger: a person has to look."""
    report = completing(node, 3700.0, probe=probe)
    assert report.requests == ()
    assert only(report).status is Status.WARNING


def test_a_log_on_the_node_is_read_where_it_is_named() -> None:
    """Its lines that tell something stand beside the proof; by default no node is asked for one."""

    class Telling(Nodes):
        def run(
            self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
        ) -> Mapping[str, Answered]:
            self.ran.append(list(argv))
            line = b"[2026-11-20T21:15:00.000] error: Kill task failed for job 7\n"
            return {node: Answered(code=0, out=line) for node in nodes}

    said = []
    for path in (None, "/var/log/slurmd.log"):
        remote = Telling({"n1": CLEAN})
        [request] = run(DrainedCheck(undrain=True, slurmd_log=path), remote=remote).requests
        said.append(request.evidence.get("slurmd", ""))
        assert [argv[-1] for argv in remote.ran if argv[0] == "tail"] == [path] * bool(path)
    assert ["Kill task failed for job 7" in text for text in said] == [False, True]
