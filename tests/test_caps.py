"""What is beyond a cap on subjects is told with its number; at the cap nothing is told.

Caps that have tests beside their code are not repeated here: docs/limits.md names all of them."""

import json
from collections.abc import Callable, Sequence
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.silences import Orders
from sentinel.checks.diag import run_reports
from sentinel.checks.diag.runs import DiagRun
from sentinel.checks.exec import MAX_NUMBERS, parse_output
from sentinel.checks.gpu import signals
from sentinel.checks.gpu.signals import ASKED, Running
from sentinel.cli import gpus, incidents, node_tables
from sentinel.cli.outcome_formats import MAX_UNSEEN_NAMES, render_outcome_json
from sentinel.core.actions import MAX_EVIDENCE_ITEMS, NodeReading, limit_evidence
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job, JobEnd
from sentinel.core.model import Batch, CheckRun, Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.doctor.public_words import PublicWords
from sentinel.doctor.report import MAX_ERRORS, StateErrors, _list_errors
from sentinel.engine import cluster_snapshot
from sentinel.engine.runner import MAX_COMMANDS, CheckRunner
from sentinel.gpu import amd, smi, smi_words
from sentinel.gpu.dcgm.verdict import Blame, Verdict
from sentinel.gpu.smi_tree import Tree
from sentinel.nodes.probe import Cursor, kernel
from sentinel.plugin import Check
from sentinel.stacks import recordings_child
from sentinel.stacks.recordings import RecordingsOrder
from sentinel.status import chart_history, collect
from sentinel.status.chart_history import ChartRequest, read_training_history
from sentinel.status.incidents import IncidentInputs
from sentinel.status.last_seen import CheckLook, ShownFinding, decode_node_look, make_check_key
from sentinel.status.machine_room import MAX_DRAWN_NODES, build_room
from sentinel.status.types import NodesFact
from sentinel.status.view_model import build_facts
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN, START, context
from sentinel.wiring.app import UsageError
from tests.kinds import looks
from tests.status.test_course import change
from tests.web.scenery import Records, around, scene


def exec_numbers(count: int) -> str:
    return parse_output("OK | " + " ".join(f"n{n}={n}" for n in range(count))).details


def evidence(count: int) -> str:
    return limit_evidence({f"item {n}": "" for n in range(count)}).get("left out", "")


def runs_of_the_report(count: int) -> str:
    errors = StateErrors(runs=[("job", 60.0, "no answer")] * count)
    return "\n".join(list(_list_errors(PublicWords(()), errors))[MAX_ERRORS:])


def messages_of_the_report(count: int) -> str:
    errors = StateErrors(unsent=[("email", 3, "no answer")] * count)
    return "\n".join(list(_list_errors(PublicWords(()), errors))[MAX_ERRORS:])


def words_of_a_gpu(count: int) -> str:
    fields = [Tree(f"error_{n}", text="odd", children=[]) for n in range(count)]
    gpu = Tree("gpu", children=[Tree("new_group", children=fields)])
    words = list(smi_words.unknown_words(gpu.list_fields(frozenset())))
    return " ".join(w.word for w in words if w.word != "odd")


def remarks_of_nvidia_smi(count: int) -> str:
    remarks = smi._remarks("\n".join(f"WARNING: {n} is odd" for n in range(count)))
    return " ".join(r for r in remarks if "odd" not in r)


def lines_of_amd_smi(count: int) -> str:
    lines = amd._beside("\n".join(f"line {n}" for n in range(count)))
    return " ".join(li for li in lines if not li.startswith("line"))


def faults_of_a_diagnostic(count: int) -> str:
    blames = tuple(Blame(entity="GPU", index=n, test="memory", text="odd") for n in range(count))
    run = DiagRun(node="n1", name="d", level=3, out="/out", asked=START.wall, limit=60.0)
    told = run_reports.make_last_verdict(run, Verdict(outcome="fail", why="", blames=blames), None,
                                         START)  # fmt: skip
    return " ".join(told.details[run_reports.MAX_BLAMES :])


def kernel_records(count: int) -> str:
    """Of a source without numbers, since the look before."""
    lines = [f"<3>[{n + 10}.000000] line {n}" for n in range(count)]
    since = Cursor(boot="b", source="dmesg", position=1_000_000)
    log = kernel.log(["syslog", *lines], "b", since)
    return f"{log.lost} lost" if log.lost else ""


def undrawn_nodes(count: int) -> str:
    group = NodesFact(state="idle", nodes=f"n[1-{count}]", count=count)
    made = build_room(replace(scene(), nodes=(group,)))
    return f"{made.undrawn} not drawn" if made.undrawn else ""


TOLD: Sequence[tuple[Callable[[int], str], int, str]] = (
    (exec_numbers, MAX_NUMBERS, "1 of 501 numbers of performance data are not kept"),
    (evidence, MAX_EVIDENCE_ITEMS, "1 more"),
    (runs_of_the_report, MAX_ERRORS, "- and 1 more runs"),
    (messages_of_the_report, MAX_ERRORS, "- and 1 more messages"),
    (words_of_a_gpu, smi_words.MAX_WORDS, "1 more words"),
    (remarks_of_nvidia_smi, smi.MAX_REMARKS, "and 1 more"),
    (lines_of_amd_smi, amd.MAX_LINES, "and 1 more"),
    (faults_of_a_diagnostic, run_reports.MAX_BLAMES, "and 1 more"),
    (kernel_records, kernel.MAX_RECORDS, "1 lost"),
    (undrawn_nodes, MAX_DRAWN_NODES, "1 not drawn"),
)


@pytest.mark.parametrize(("tell", "cap", "words"), TOLD, ids=[row[0].__name__ for row in TOLD])
def test_what_is_beyond_a_cap_is_told(tell: Callable[[int], str], cap: int, words: str) -> None:
    """One more than the cap is one that is left out."""
    assert tell(cap).strip() == ""
    assert tell(cap + 1).strip() == words


def test_ended_jobs_beyond_a_run_are_asked_about_by_the_next() -> None:
    """A rack that died with 50 jobs told of 20 of them; the others were forgotten."""
    before = [Running(job_id=str(n), nodes=f"n{n}", count=1) for n in range(ASKED + 1)]
    told = list[str]()

    def end_of(job_id: str) -> JobEnd:
        told.append(job_id)
        return JobEnd(job_id=job_id, state="NODE_FAIL", failed_node=f"n{job_id}")

    while before and len(told) <= ASKED:
        list(signals.failures(before, [], end_of, START))
        before = signals.waiting(before, [])
    assert told == [str(n) for n in range(ASKED + 1)]
    assert before == []


def test_names_of_what_was_not_seen_are_counted_where_they_are_too_many() -> None:
    """The document lists 1,000; how many were meant and seen is whole."""
    names = tuple(f"n{n}" for n in range(MAX_UNSEEN_NAMES + 1))
    coverage = Coverage(of="nodes", meant=len(names), unseen=names)
    itself = Finding(subject="", status=Status.UNKNOWN, summary="not seen")
    outcome = RunOutcome(check="x", kind="x", itself=itself, report=Report(findings=(), coverage=coverage),
                         seconds=0.1)  # fmt: skip
    told = json.loads(render_outcome_json(outcome))["coverage"]
    assert len(told["unseen"]) == MAX_UNSEEN_NAMES
    assert (told["meant"], told["seen"]) == (MAX_UNSEEN_NAMES + 1, 0)


def test_dumps_beyond_the_limit_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may take a rank whose dump was left out for one that has none."""
    monkeypatch.setattr(recordings_child, "FILES", 3)
    for rank in range(4):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(b"no dump")
    order = RecordingsOrder(places=(f"{tmp_path}/nccl_trace_rank_",))
    found = recordings_child._find_recordings(order, None)
    assert (len(found.refused), found.unread) == (3, 1)
    assert found.standstill_words.endswith("; 1 more were not read")


def make_job(number: int, state: str = "RUNNING") -> Job:
    """It has as many nodes as its number says."""
    name = str(number)
    return Job(
        name, name, name, "", "llm", "ann", "p", state, "None", f"n[1-{number}]", number, "", 1, 1,
        None, None,
    )  # fmt: skip


class OneNode:
    """A Slurm with these jobs and no node."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = jobs

    def last(self) -> tuple[Sequence[Any], Sequence[Job]]:
        return [], self.jobs


def test_of_too_many_jobs_the_largest_have_a_place() -> None:
    """The page says "no job that is seen" of a node whose job has none."""
    cap = cluster_snapshot.MAX_PLACED_JOBS
    slurm: Any = OneNode(*(make_job(n) for n in range(1, cap + 2)))
    look = decode_node_look(
        cluster_snapshot.ClusterPoller(slurm, asks=False).poll_nodes(START) or {}
    )
    assert look is not None
    assert [job.id for job in look.work] == [str(n) for n in range(cap + 1, 1, -1)]
    assert dict(look.jobs) == {"RUNNING": cap + 1}


def test_a_speed_that_is_not_read_is_unknown_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "MAX_PACES", 2)
    store = MemoryStore()
    store.take_lead("x", START)
    for minute in range(10):
        at = shift_instant(START, -60.0 * (10 - minute))
        store.commit(Batch(at=at, samples={"progress": tuple(
            Sample(f"llm-{n}", "progress", 10.0 * minute) for n in range(3)
        )}))  # fmt: skip
    found = tuple(
        ShownFinding(subject=f"llm-{n}", status=Status.OK, summary="", values={"progress": 90.0})
        for n in range(3)
    )
    look = to_builtins(CheckLook(at=START, findings=found))
    run = CheckRun(check="progress", kind="log", at=START, status=Status.OK, summary="", duration=1)
    store.commit(Batch(at=START, runs=(run,), memory={make_check_key("progress"): look}))
    inputs = collect.read_status_inputs(store, around({"progress": "log"}), START)
    rates = [job.rate for job in build_facts(inputs).jobs]
    assert rates == [10 / 60, 10 / 60, None]


def test_a_temperature_that_is_not_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "MAX_TEMPERATURES", 2)
    store = MemoryStore()
    store.take_lead("x", START)
    run = CheckRun(check="hot", kind="gpu", at=START, status=Status.OK, summary="", duration=0.1)
    samples = tuple(Sample(f"GPU-{n}", "temperature_c", 40.0 + n) for n in range(3))
    store.commit(Batch(at=START, runs=(run,), samples={"hot": samples}))

    class Opened:
        def __init__(self, *_: object, **__: object) -> None:
            self.store, self.now = store, START

        def __enter__(self) -> "Opened":
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(gpus, "OpenState", Opened)
    assert gpus._read_temperatures(None, [s.subject for s in samples]) == {
        "GPU-0": 40.0,
        "GPU-1": 41.0,
    }


def test_nodes_and_alerts_beyond_a_chart_have_no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the alerts the newest have some."""
    monkeypatch.setattr(chart_history, "MAX_TRANSITIONS", 2)
    store, asked = MemoryStore(), list[str]()
    store.take_lead("x", START)
    for minutes in (30, 20, 10):
        begun = replace(change("firing", minutes), id=f"t{minutes}", alert=f"a{minutes}")
        store.commit(Batch(at=START, transitions=(begun,)))

    class Ledger(Records):
        def readings(self, node: str, limit: int = 100) -> Sequence[NodeReading]:
            asked.append(node)
            return [reading(node, 0)]

    wanted = ChartRequest(
        check="progress", subject="llm", kind="log", first=START.wall / 1e6 - 7200,
        last=START.wall / 1e6, nodes=f"n[1-{chart_history.MAX_NODES + 1}]",
    )  # fmt: skip
    marks = read_training_history(store, Ledger(), wanted, START).marks
    assert [m.href for m in marks if m.kind != "node"] == ["/alerts/a20", "/alerts/a10"]
    nodes = [f"n{n}" for n in range(1, chart_history.MAX_NODES + 1)]
    assert asked == nodes
    assert {m.text.partition(":")[0] for m in marks if m.kind == "node"} <= {*nodes}


def reading(node: str, number: int) -> NodeReading:
    seen = shift_instant(START, float(number))
    return NodeReading(node=node, state="DOWN", reason=f"{number}", user="root", reason_time=None,
                       out=True, seen=seen)  # fmt: skip


@pytest.mark.parametrize("more", [0, 1])
def test_a_history_that_is_cut_says_so(
    more: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node_tables, "MAX_HISTORY_ROWS", 3)

    class Ledger:
        def records(self, target: str, limit: int) -> list[Any]:
            return []

        def readings(self, node: str, limit: int) -> list[NodeReading]:
            return [reading(node, n) for n in range(3 + more, 0, -1)][:limit]

    log: Any = Ledger()
    node_tables.print_node_history(log, "n1", timezone.utc, as_json=True)
    shown = capsys.readouterr()
    assert [row["reason"] for row in json.loads(shown.out)] == [str(n + more) for n in (1, 2, 3)]
    cut = "sentinel: n1: only the newest 3 states and actions are shown\n"
    assert shown.err == (cut if more else "")


@pytest.mark.parametrize(("begins", "words"), [
    ("a", "no incident has the id 'x'; see: sentinel incidents"),
    ("ab", "no incident has the id 'x' (of the newest 2 changes of alerts); see: sentinel incidents"),
    ("xx", "2 incidents begin with 'x'; see: sentinel incidents"),
])  # fmt: skip
def test_an_incident_that_may_be_older_is_not_denied(
    begins: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents, "MAX_TRANSITIONS", 2)
    history = [replace(change("firing", n), alert=f"{one}{n}") for n, one in enumerate(begins)]
    known = IncidentInputs(
        alerts=(), history=history, orders=Orders(), now=START, zone=timezone.utc
    )
    with pytest.raises(UsageError) as refused:
        incidents._find_incident("x", known)
    assert str(refused.value) == words


def test_a_finding_about_a_check_has_few_commands_and_each_subject_its_own() -> None:
    class Unseen(Check, frozen=True):
        def run(self, ctx: Context) -> Report:
            found = tuple(
                Finding(subject=f"n{n}", status=Status.UNKNOWN, summary="", commands=(f"look {n}",))
                for n in range(MAX_COMMANDS + 1)
            )
            return Report(findings=found, coverage=ALL_SEEN)

    check = CheckConfig(name="x", common=CheckCommon(kind="fs"), plugin=Unseen())
    outcome = CheckRunner().run(check, context())
    assert outcome.itself.status is Status.UNKNOWN
    assert looks(outcome.itself) == tuple(f"look {n}" for n in range(MAX_COMMANDS))
    assert all(f"n{n}:" in outcome.itself.summary for n in range(MAX_COMMANDS + 1))
    assert outcome.report is not None
    assert looks(outcome.report.findings[-1]) == (f"look {MAX_COMMANDS}",)
