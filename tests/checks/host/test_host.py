"""Memory, drives and tasks over time: told once, with what to do, and never well unseen."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.host import HostCheck
from sentinel.checks.host.judge import HARMLESS_WAITS, TRACK_POINTS, note_count
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Node
from sentinel.core.errors import Invalid
from sentinel.core.host_parts import (
    ClockSync,
    HostEngine,
    HostHardware,
    MemoryController,
    NvmeController,
    RaidArray,
    StalledThread,
    StalledThreads,
)
from sentinel.core.model import Report, Status
from sentinel.core.node_answers import Answer, Unreached
from sentinel.core.values import Duration
from sentinel.nodes.probe import (
    Cursor,
    KernelLine,
    KernelLog,
    NodeIdentity,
    NodeProbe,
    ProbeRequest,
    Unread,
)
from sentinel.nodes.probe.host import hardware
from sentinel.testing import START, FixedSlurm, context
from tests.kinds import looks

MEMORY = MemoryController(name="mc0", corrected=3, uncorrected=0)
MIRROR = RaidArray(name="md0", state="clean", level="raid1", sync="idle")
DRIVE = NvmeController(name="nvme0", state="live", transport="pcie")
FINE = HostHardware(memory=(MEMORY,), raid=(MIRROR,), nvme=(DRIVE,))
TASK = StalledThread(
    pid=7, thread=8, started=900, switches=41, wait="nfs_wait_bit_killable", name="python"
)
UE = (
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1)"
)
DCGM_LOG = "/var/log/nv-hostengine.log"
ENGINE = HostEngine(pid=9, memory=108 * 2**20, answers=True, patience=5, logs={DCGM_LOG: 4096})
NOT_READ = Unread(kind="denied", why="closed")
UP = 10_000.0


IDLE = FixedSlurm(nodes=[Node(name="n1", state="IDLE")], jobs=[])


def tasks(*threads: StalledThread) -> StalledThreads:
    return StalledThreads(threads=threads, total=len(threads))


def log(*texts: str, at: float = UP, boot: str = "b1") -> KernelLog:
    lines = tuple(KernelLine(at=at, level=3, text=text) for text in texts)
    cursor = Cursor(boot=boot, source="kmsg", position=1)
    return KernelLog(source="kmsg", lines=lines, cursor=cursor, lost=0)


def healthy(**more: Any) -> dict[str, Any]:
    """The parts of a healthy host, with these in place of its own."""
    here: dict[str, Any] = {
        "hardware": FINE,
        "smart": {"nvme0": 0},
        "stalled": tasks(),
        "kernel": log(),
    }
    here |= {"gpu_memory": {"GPU-1": 4 * 2**20}, "gpu_processes": (), "dcgm": ENGINE}
    return {**here, "clock": ClockSync(word="Normal", offset=0.0001), **more}


class Way:
    """A way to nodes, each of which answers so."""

    def __init__(self, boot: str = "b1", **parts: Any) -> None:
        self.parts, self.boot = healthy(**parts), boot
        self.asked: list[ProbeRequest] = []

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        raise NotImplementedError

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        self.asked.append(wants)
        me = NodeIdentity(hostname="n1", kernel="6", boot=self.boot, uptime=UP, time=0, uid=0)
        there = {name: part for name, part in self.parts.items() if name in wants.parts}
        return {node: NodeProbe(identity=me, **there) for node in nodes}


class Night:
    """A check and what it remembers."""

    def __init__(self, **settings: Any) -> None:
        self.check = HostCheck(**{"nodes": "n1", "trial": Duration(0), **settings})
        self.memory: Mapping[str, Any] = {}
        self.at = START

    def look(self, way: Way, after: float = 300, **more: Any) -> Report:
        self.at = shift_instant(self.at, after)
        ctx = context(more.pop("slurm", IDLE), self.at, remote=way, memory=self.memory, **more)
        report = self.check.run(ctx)
        self.memory = report.memory or {}
        return report


def told(report: Report) -> dict[str, str]:
    return {f.subject: f.status.value for f in report.findings if f.subject != "n1"}


def of(report: Report, subject: str = "n1") -> Any:
    return next(f for f in report.findings if f.subject == subject)


def test_the_worst_module_is_one_of_its_own_controller() -> None:
    """Also where a node names ten thousand: each module is looked at once, not for each controller."""
    count = 10_000
    lines = [
        line
        for n in range(count)
        for line in (
            f"memory mc{n} ce_count 1",
            f"memory mc{n} ue_count 0",
            f"memory mc{n}/dimm0 dimm_ce_count {n}",
            f"memory mc{n}/dimm1 dimm_ce_count {count - n - 1}",
            f"memory mc{n}/dimm1 dimm_label B{n}",
        )
    ]
    found = hardware([*lines, "end"]).memory
    assert [found[n].worst for n in (1, 10, 9_999)] == ["B1", "B10", "dimm0"]
    assert len(found) == count


def test_a_healthy_host_is_ok_with_its_numbers() -> None:
    """A few corrected errors are told by nobody."""
    report = Night().look(Way())
    assert (told(report), of(report).status) == ({}, Status.OK)
    assert of(report).values == {"corrected": 3, "stalled": 0}
    assert of(report).summary == (
        "memory controllers: 1 (corrected errors: 3), arrays: 1, NVMe drives: 1; "
        "tasks in state D: 0, stuck: 0"
    )


def test_what_the_kernel_said_is_told_until_it_is_old_or_the_node_boots() -> None:
    """With what to do; a weaker word about the part does not hide it."""
    night = Night()
    found = of(night.look(Way(kernel=log(UE))), "n1/memory")
    assert (found.status, found.labels) == (Status.CRITICAL, {"node": "n1"})
    assert "1 UE memory read error" in found.summary
    assert "replaced" in found.guidance.todo
    assert any("nodes drain n1" in command for command in looks(found))
    assert told(night.look(Way(), after=86000)) == {"n1/memory": "critical"}
    assert told(night.look(Way(), after=400)) == {"n1/memory": "ok"}
    night.look(Way(kernel=log(UE)))
    assert told(night.look(Way(boot="b2"))) == {"n1/memory": "ok"}


def test_a_first_look_tells_what_is_younger_than_it_remembers() -> None:
    """Of a node that has been up for long, an old error is no news."""
    long_ago, lately = log(UE, at=UP - 7200), log(UE, at=UP - 3000)
    assert told(Night(remember=Duration(3600)).look(Way(kernel=long_ago))) == {}
    assert told(Night(remember=Duration(3600)).look(Way(kernel=lately))) == {
        "n1/memory": "critical"
    }


def test_many_corrected_errors_are_told_and_few_are_not() -> None:
    """By the controller's counter, with the module; a counter that began anew counts from there."""
    night = Night()
    night.look(Way())

    def counts(corrected: int) -> Way:
        many = replace(MEMORY, corrected=corrected, worst="CPU0_DIMM_A1")
        return Way(hardware=replace(FINE, memory=(many,)))

    assert told(night.look(counts(103))) == {}
    found = of(night.look(counts(104)), "n1/memory")
    assert found.status is Status.WARNING
    assert (
        "101 corrected memory errors in 10m (mc0, CPU0_DIMM_A1); limit 100 in 1d" in found.summary
    )
    assert told(night.look(counts(0))) == {"n1/memory": "ok"}
    assert told(night.look(counts(104))) == {"n1/memory": "warning"}


def test_corrected_machine_checks_count_in_the_log() -> None:
    """Those of before the first look count within the window only."""
    night = Night()
    corrected = "[Hardware Error]: Corrected error, no action required."
    assert told(night.look(Way(kernel=log(*[corrected] * 100)))) == {}
    assert told(night.look(Way(kernel=log(corrected)))) == {"n1/processor": "warning"}
    old = log(*[corrected] * 101, at=UP - 7200)
    from_then_on = Night(corrected=type(night.check.corrected)("100 in 1h"))
    assert told(from_then_on.look(Way(kernel=old))) == {}


def test_a_track_of_counts_stays_short_and_keeps_its_window() -> None:
    """A count a minute, one more each, over three days."""
    track: list[tuple[float, int]] = []
    rises = [note_count(track, minute, 86400, 60.0 * minute) for minute in range(3 * 1440)]
    assert len(track) <= TRACK_POINTS + 2
    assert 1440 <= rises[-1] <= 1500


def test_uncorrectable_errors_are_critical_until_the_counter_is_gone() -> None:
    """The counter begins anew with the boot."""
    lost = replace(MEMORY, uncorrected=1, worst="CPU0_DIMM_A1")
    night = Night()
    for _ in range(2):
        assert told(night.look(Way(hardware=replace(FINE, memory=(lost,))))) == {
            "n1/memory": "critical"
        }
    assert told(night.look(Way())) == {"n1/memory": "ok"}


@pytest.mark.parametrize(
    ("hardware", "first", "second"),
    [
        (replace(FINE, raid=(replace(MIRROR, missing=1, sync="recover"),)), {"n1/md0": "warning"}, {"n1/md0": "warning"}),
        (replace(FINE, raid=(replace(MIRROR, state="broken", level="raid0"),)), {"n1/md0": "critical"}, {"n1/md0": "critical"}),
        (replace(FINE, raid=(replace(MIRROR, state="inactive", metadata="1.2"),)), {}, {"n1/md0": "warning"}),
        (replace(FINE, raid=(replace(MIRROR, sync="check"),)), {}, {}),
        (replace(FINE, raid=(replace(MIRROR, state="shiny"),)), {"n1/md0": "unknown"}, {"n1/md0": "unknown"}),
        (replace(FINE, nvme=(replace(DRIVE, state="resetting"),)), {}, {"n1/nvme0": "warning"}),
        (replace(FINE, nvme=(replace(DRIVE, state="dead"),)), {"n1/nvme0": "critical"}, {"n1/nvme0": "critical"}),
        (replace(FINE, nvme=(replace(DRIVE, state="sleepy"),)), {"n1/nvme0": "unknown"}, {"n1/nvme0": "unknown"}),
    ],
)  # fmt: skip
def test_drives_at_two_looks(
    hardware: HostHardware, first: dict[str, str], second: dict[str, str]
) -> None:
    """A state that may pass is told at the second look; an unknown one is unknown."""
    night = Night()
    assert told(night.look(Way(hardware=hardware))) == first
    assert told(night.look(Way(hardware=hardware))) == second
    assert night.look(Way()).findings[0].status is Status.OK


def test_a_task_that_has_not_run_is_told_and_a_busy_one_is_not() -> None:
    """Both are in state D at every look; the busy one gave up the processor in between."""
    night = Night()
    busy = replace(TASK, thread=9)
    for look in range(2):
        assert told(night.look(Way(stalled=tasks(TASK, replace(busy, switches=look))))) == {}
    report = night.look(Way(stalled=tasks(TASK, replace(busy, switches=9))))
    assert told(report) == {"n1/tasks": "warning"}
    found = of(report, "n1/tasks")
    assert found.summary.startswith("1 task has not run since ")
    assert "python (pid 7, in nfs_wait_bit_killable)" in found.summary
    assert of(report).values["stalled"] == 1
    assert told(night.look(Way())) == {"n1/tasks": "ok"}


@pytest.mark.parametrize(
    "other", [{"started": 901}, {"switches": 42}, {"thread": 9}, {"pid": 6}], ids=str
)
def test_another_task_is_not_the_same(other: dict[str, int]) -> None:
    """One that ran, one that began later under the same number, and another one."""
    night = Night()
    for _ in range(3):
        night.look(Way(stalled=tasks(TASK)))
    assert told(night.look(Way(stalled=tasks(replace(TASK, **other))))) == {"n1/tasks": "ok"}


@pytest.mark.parametrize("wait", HARMLESS_WAITS)
def test_a_task_that_was_put_to_sleep_is_not_stuck(wait: str) -> None:
    """A frozen cgroup, and a parent that waits for vfork(2)."""
    night = Night()
    for _ in range(4):
        assert told(night.look(Way(stalled=tasks(replace(TASK, wait=wait))))) == {}


def test_an_unseen_look_does_not_end_the_time_of_a_task() -> None:
    """That it has not run in between is known afterwards."""
    night = Night()
    night.look(Way(stalled=tasks(TASK)))
    report = night.look(Way(stalled=NOT_READ))
    assert (told(report), of(report).status) == ({}, Status.UNKNOWN)
    assert told(night.look(Way(stalled=tasks(TASK)))) == {"n1/tasks": "warning"}


@pytest.mark.parametrize(
    "part",
    ["kernel", "hardware", "smart", "stalled", "clock", "gpu_memory", "gpu_processes", "dcgm"],
)
def test_what_cannot_be_read_is_unknown_and_ends_nothing(part: str) -> None:
    """Trouble of the other parts goes on, and so does that which is not seen any more."""
    night = Night()
    bad = {"hardware": replace(FINE, nvme=(replace(DRIVE, state="dead"),)), "kernel": log(UE)}
    night.look(Way(**bad))
    report = night.look(Way(**{**bad, "kernel": log(), part: NOT_READ}))
    assert of(report).status is Status.UNKNOWN
    assert f"{part} not read (no permission): closed" in of(report).summary
    assert "ok" not in told(report).values()
    assert report.coverage.unseen == ("n1",)


def test_a_missing_tool_is_said_and_is_no_fault() -> None:
    """The kernel's own sources are read all the same."""
    report = Night().look(Way(smart=Unread(kind="missing", why="neither is installed")))
    assert of(report).status is Status.OK
    assert of(report).summary.endswith("no health of drives: neither is installed")


def test_a_user_without_rights_leaves_out_what_is_closed() -> None:
    """What is left out is not asked for."""
    night, way = Night(skip=["kernel", "smart"]), Way(kernel=NOT_READ, smart=NOT_READ)
    assert of(night.look(way)).status is Status.OK
    assert way.asked[0].parts[:3] == ("hardware", "stalled", "clock")
    with pytest.raises(Invalid, match="nothing is left"):
        HostCheck(skip=["kernel", "memory", "drives", "smart", "tasks", "clock", "gpus", "dcgm"])
    hidden = replace(FINE, memory=(replace(MEMORY, uncorrected=1),))
    assert told(Night(skip=["memory"]).look(Way(hardware=hidden))) == {}


def test_what_drives_warn_of_is_told() -> None:
    """One that tells nothing is unknown, and can be ignored."""
    way = Way(smart={"nvme0": 0x08, "nvme1": None, "nvme2": 0x81})
    assert told(Night().look(way)) == {
        "n1/nvme0": "critical",
        "n1/nvme1": "unknown",
        "n1/nvme2": "warning",
    }
    assert told(Night(ignore=["nvme[12]", "n1/nvme0"]).look(way)) == {}


def test_its_first_week_is_silent() -> None:
    """The page shows what it would have told."""
    night = Night(trial=Duration(7 * 86400))
    report = night.look(Way(kernel=log(UE)))
    assert told(report) == {"n1/memory": "ok"}
    assert (
        "on trial for another 7d, told nobody: critical: memory lost data"
        in of(report, "n1/memory").summary
    )
    assert told(night.look(Way(kernel=log(UE)), after=7 * 86400)) == {"n1/memory": "critical"}


def test_tasks_beyond_the_cap_are_counted() -> None:
    """They are in the line of the node, and the node is not called well for it."""
    many = StalledThreads(threads=(TASK,), total=6)
    found = of(Night().look(Way(stalled=many)))
    assert found.summary.startswith("tasks in state D not looked at: 5; ")
    assert found.status is Status.UNKNOWN


TIMEOUT = "nvme nvme0: I/O 12 QID 5 timeout, aborting"
DOWN = "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10"
GONE = "nvme nvme0: Removing after probe failure status: -19"


def test_the_newest_of_the_worst_words_is_told() -> None:
    """A milder word behind a bad one does not hide it."""
    night = Night()
    assert "is down" in of(night.look(Way(kernel=log(TIMEOUT, DOWN))), "n1/nvme0").summary
    assert "timeout" in of(night.look(Way(kernel=log(TIMEOUT))), "n1/nvme0").summary
    found = of(night.look(Way(kernel=log(GONE, TIMEOUT))), "n1/nvme0")
    assert (found.status, "Removing" in found.summary) == (Status.CRITICAL, True)


def of_firmware(number: int) -> tuple[str, ...]:
    """A corrected error of memory, among whose lines stand those of another record."""
    head, other = f"{{{number}}}[Hardware Error]", f"{{{number + 5000}}}[Hardware Error]"
    return (
        f"{head}: event severity: corrected",
        f"{other}:   section_type: PCIe error",
        f"{head}:   section_type: memory error",
    )


def test_an_error_that_a_controller_counts_is_not_counted_twice() -> None:
    """Without a controller the log alone tells of memory."""
    many = log(*(line for number in range(101) for line in of_firmware(number)))
    assert told(Night().look(Way(kernel=many))) == {}
    alone = Way(kernel=many, hardware=replace(FINE, memory=()))
    assert told(Night().look(alone)) == {"n1/memory": "warning"}


def test_a_machine_check_and_the_word_that_it_was_logged_are_one() -> None:
    """The kernel says both of each; where a daemon takes the events, only the second."""
    logged = "mce: [Hardware Error]: Machine check events logged"
    corrected = "[Hardware Error]: Corrected error, no action required."
    assert told(Night().look(Way(kernel=log(*[logged, corrected] * 51)))) == {}
    assert told(Night().look(Way(kernel=log(*[logged] * 101)))) == {"n1/processor": "warning"}
