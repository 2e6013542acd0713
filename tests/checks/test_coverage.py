"""No kind is silently ok where it saw nothing, or not all, of what it was to look at."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields, replace

from sentinel.alerting.observations import RunOutcome
from sentinel.checks import KINDS
from sentinel.checks.chain import ChainCheck
from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.clean.check import CleanCheck
from sentinel.checks.cron import CronCheck
from sentinel.checks.diag import DiagCheck
from sentinel.checks.drained import DrainedCheck
from sentinel.checks.du.check import DuCheck
from sentinel.checks.exec import ExecCheck
from sentinel.checks.fs import FsCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.host import HostCheck
from sentinel.checks.idle import IdleCheck
from sentinel.checks.job import JobCheck
from sentinel.checks.log import Log
from sentinel.checks.memory import MemoryCheck
from sentinel.checks.network import NetworkCheck
from sentinel.checks.nodes import NodesCheck
from sentinel.checks.quota.check import QuotaCheck
from sentinel.checks.sensors import SensorsCheck
from sentinel.checks.service import ServiceCheck
from sentinel.checks.slurm import SlurmCheck
from sentinel.cli import outcome_formats
from sentinel.core.cluster import Node
from sentinel.core.host_parts import ClockSync, HostEngine, HostHardware, StalledThreads
from sentinel.core.model import Report, Status
from sentinel.core.node_answers import Answer, Unreachable, Unreached
from sentinel.core.settings import CheckCommon, CheckConfig, FilePath
from sentinel.core.values import Duration
from sentinel.engine.runner import CheckRunner
from sentinel.nodes.probe import Hwmon, Network, NodeProbe, ProbeRequest, Sensor
from sentinel.testing import FixedSlurm, context
from tests.checks.gpu.world import NodeWithGpus
from tests.checks.remote.test_asked import WELL
from tests.lab.gpus import gpus_of


class Nobody:
    """core.remote.Remote of nodes none of which is reached, but those of `well`."""

    def __init__(self, *well: str) -> None:
        self.well = well

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        return {node: Unreachable("no route") for node in nodes}

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        return {n: WELL if n in self.well else Unreachable("no route") for n in nodes}


LINKS = Network(interfaces=(), pci=())
SOUND: dict[str, Any] = {
    "hardware": HostHardware(), "smart": {}, "stalled": StalledThreads(), "dcgm": HostEngine(),
    "clock": ClockSync(word="yes"), "gpu_memory": {}, "gpu_processes": (),
}  # fmt: skip
WARM = Hwmon(sensors=(Sensor(name="cpu temp1", kind="temp", value=50.0),))


class WithGpus(Nobody):
    """Those of `well` have GPUs and links too."""

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        told = super().probe(nodes, wants, limit=limit)
        seen = NodeWithGpus(gpus_of(0)).probe(None)
        gpus = (
            {"gpus": seen.gpus, "kernel": seen.kernel, "network": LINKS, "hwmon": WARM, **SOUND}
            if isinstance(seen, NodeProbe)
            else {}
        )
        return {n: replace(a, **gpus) if isinstance(a, NodeProbe) else a for n, a in told.items()}


def nodes(*states: str) -> list[Node]:
    """`DOWN`, `IDLE+POWERED_DOWN`."""
    words = [state.split("+") for state in states]
    return [
        Node(name=f"n{at}", state=w[0], flags=frozenset(w[1:])) for at, w in enumerate(words, 1)
    ]


def run(kind: str, plugin: Any, **more: Any) -> RunOutcome:
    check: Any = CheckConfig(name="c", common=CheckCommon(kind=kind), plugin=plugin)
    return CheckRunner().run(check, context(**{"remote": Nobody(), **more}))


def status(outcome: RunOutcome) -> Status:
    return max((f.status for f in outcome.findings), key=lambda s: s.rank)


def silent(outcome: RunOutcome) -> bool:
    """Ok, and no word of what was not seen."""
    said = outcome_formats.render_outcome_lines(outcome)
    whole = outcome.report is not None and outcome.report.coverage.whole
    return status(outcome) is Status.OK and not whole and outcome.unseen_summary not in said


EVERYWHERE: dict[str, Callable[[Path], Any]] = {
    "chain": lambda at: ChainCheck(dir=FilePath(str(at))),
    "checkpoint": lambda at: CheckpointCheck(path=FilePath(str(at / "none"))),
    "clean": lambda at: CleanCheck(
        root=FilePath(str(at)), match=re.compile(r"step(\d+)"), older_than=Duration(60)
    ),
    "cron": lambda at: CronCheck(base=FilePath(str(at))),
    "diag": lambda at: DiagCheck(archive=FilePath(str(at))),
    "drained": lambda at: DrainedCheck(),
    "du": lambda at: DuCheck(paths=[FilePath(str(at / "none"))]),
    "exec": lambda at: ExecCheck(command=[str(at / "none")]),
    "fs": lambda at: FsCheck(nodes="all", paths=[FilePath("/tmp")]),
    "gpu": lambda at: GpuCheck(nodes="all"),
    "host": lambda at: HostCheck(nodes="all"),
    "idle": lambda at: IdleCheck(users=["root"]),
    "job": lambda at: JobCheck(name="train", users=["root"]),
    "log": lambda at: Log(job="train", users=["root"]),
    "memory": lambda at: MemoryCheck(nodes="all"),
    "network": lambda at: NetworkCheck(nodes="all"),
    "nodes": lambda at: NodesCheck(),
    "quota": lambda at: QuotaCheck(paths=[FilePath(str(at / "none"))]),
    "sensors": lambda at: SensorsCheck(nodes="all"),
    "service": lambda at: ServiceCheck(processes=["sshd"], nodes="n1"),
    "slurm": lambda at: SlurmCheck(),
}
"""A check of each kind with nothing to see."""


def test_every_kind_is_here() -> None:
    """A new one says what it does where there is nothing to see."""
    assert sorted(EVERYWHERE) == sorted(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_report_of_a_kind_says_how_much_it_saw(kind: str) -> None:
    """Of the type that demands it: what runs a check gives back is a Report and nothing else."""
    module, _, name = KINDS[kind].partition(":")
    returned = inspect.signature(getattr(import_module(module), name).run).return_annotation
    assert returned in (Report, "Report")
    assert {f.name for f in fields(Report) if f.required} == {"findings", "coverage"}


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("one_shot", [False, True])
def test_a_kind_with_nothing_to_see_is_not_silently_ok(
    kind: str, one_shot: bool, tmp_path: Path
) -> None:
    """Slurm has no job and no node, directories are empty, no node is reached: nobody can tell,
    or why nothing is right is said."""
    outcome = run(
        kind, EVERYWHERE[kind](tmp_path), slurm=FixedSlurm(jobs=[], nodes=[]), one_shot=one_shot
    )
    assert not silent(outcome), outcome_formats.render_outcome_lines(outcome)


ON_NODES = ["fs", "gpu", "host", "memory", "network", "sensors"]


@pytest.mark.parametrize("kind", ON_NODES)
@pytest.mark.parametrize(
    ("listed", "expected", "words"),
    [
        (nodes(), "unknown", "there are no nodes to look at"),
        (nodes("DOWN", "IDLE+NOT_RESPONDING"), "unknown", "saw 0 of 2 nodes: not n[1-2] (Slurm does not hear from them)"),
        (nodes("IDLE", "DOWN"), "ok", "saw 1 of 2 nodes: not n2 (Slurm does not hear from them)"),
        (nodes("IDLE+POWERED_DOWN", "FUTURE"), "ok", "there are no nodes to look at: all 2 sleep or are yet to come"),
        (nodes("IDLE", "IDLE+POWERED_DOWN"), "ok", ""),
        (nodes("IDLE", "IDLE"), "unknown", ""),
    ],
)  # fmt: skip
def test_all_nodes_are_those_that_slurm_lists(
    kind: str, listed: list[Node], expected: str, words: str, tmp_path: Path
) -> None:
    """That it hears from none of them is no reason to be content; n1 alone can be reached."""
    outcome = run(
        kind, EVERYWHERE[kind](tmp_path), slurm=FixedSlurm(nodes=listed), remote=WithGpus("n1")
    )
    assert (status(outcome).value, outcome.unseen_summary if words else "") == (expected, words)
    assert words in outcome_formats.render_outcome_lines(outcome)
    assert not silent(outcome)


@pytest.mark.parametrize(
    ("script", "seen"), [("exit 3", 1), ("kill -9 $$", 0), ("exit 77", 0), ("exit 0", 1)]
)
def test_a_plugin_that_broke_off_was_not_seen(script: str, seen: int) -> None:
    """Unlike one that says itself that it cannot tell."""
    outcome = run("exec", ExecCheck(command=["sh", "-c", f"echo so; {script}"]))
    assert outcome.report is not None
    assert outcome.report.coverage.seen == seen


PARTLY: list[tuple[str, Any, str]] = [
    ("fs", FsCheck(paths=[FilePath("/tmp"), FilePath("/etc/passwd")]), "saw 1 of 2 paths: not /etc/passwd"),
    ("fs", FsCheck(nodes="n[1-2]", paths=[FilePath("/tmp")]), "saw 1 of 2 nodes: not n2"),
    ("memory", MemoryCheck(nodes="n[1-2]"), "saw 1 of 2 nodes: not n2"),
    ("gpu", GpuCheck(nodes="n[1-2]"), "saw 1 of 2 nodes: not n2"),
    ("drained", DrainedCheck(), "saw 1 of 2 nodes: not n2"),
    ("nodes", NodesCheck(), "saw 1 of 2 nodes: not n2"),
    ("service", ServiceCheck(units=["sshd"], nodes="n[1-2]"), "saw 0 of 2 services: not n1 sshd, n2 sshd"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "plugin", "words"), PARTLY)
def test_what_was_not_seen_is_counted_and_named(kind: str, plugin: Any, words: str) -> None:
    """One that answers and one that does not."""
    slurm = FixedSlurm(nodes=nodes("IDLE", "UNKNOWN"))
    outcome = run(kind, plugin, slurm=slurm, remote=WithGpus("n1"))
    assert outcome.report is not None
    assert outcome.report.coverage.words == words
    assert outcome.report.status is status(outcome) is Status.UNKNOWN
    assert outcome_formats.render_outcome_json(outcome).count('"seen": ') == 1
