"""The nouns of a probe. A part is what was read, or Unread with the reason, or None: not asked.

Nothing is ever empty because it could not be seen.
"""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import Invalid, SentinelError

Section = Literal[
    "processes",
    "blocked",
    "mounts",
    "kernel",
    "steps",
    "gpu_processes",
    "gpus",
    "nvlink",
    "infiniband",
    "network",
    "hwmon",
    "ipmi",
    "memory",
    "waits",
]
Unseen = Literal["denied", "missing", "failed", "late", "hung", "cut", "garbage", "absent"]


class Unread(Struct, frozen=True, kw_only=True):
    """Why a part could not be read.

    denied: this user may not. missing: the tool or driver is not there. failed: it complained.
    late: ended for taking too long. hung: an earlier one cannot be ended (`pid` on the node,
    `since` epoch seconds), so none was started. cut: the answer ended within it. garbage: not
    of the known form. absent: the node's script said nothing of it.
    """

    kind: Unseen
    why: str = ""
    pid: int | None = None
    since: int | None = None


class Cursor(Struct, frozen=True, kw_only=True):
    """Where a reader of the kernel's log stopped: a sequence number (kmsg) or microseconds."""

    boot: str
    source: str
    position: int


class ProbeRequest(Struct, frozen=True, kw_only=True):
    """What a probe shall look at. `disks`: paths asked for their space, each by itself.

    `since`: where the kernel's log was read to; without it its last 5000 lines come. `cursors`
    says so for single nodes by name. `only`: parts that none but these nodes are asked for.
    """

    parts: tuple[Section, ...] = ()
    disks: tuple[str, ...] = ()
    since: Cursor | None = None
    cursors: Mapping[str, Cursor] = {}
    only: Mapping[Section, frozenset[str]] = {}

    def __post_init__(self) -> None:
        for path in self.disks:
            if not path.startswith("/") or any(c in path for c in "\n\0"):
                raise Invalid(f"{path!r} is no absolute path in one line", "disks")

    def restrict_to_node(self, node: str) -> "ProbeRequest":
        """What is wanted of this node alone."""
        parts = tuple(p for p in self.parts if node in self.only.get(p, {node}))
        since = self.cursors.get(node, self.since)
        return replace(self, parts=parts, since=since, cursors={}, only={})

    @property
    def section_names(self) -> tuple[str, ...]:
        """What the node's script is asked for, by its own names."""
        extra = ("commands",) if "processes" in self.parts else ()
        disks = tuple(f"disk.{number}" for number in range(1, len(self.disks) + 1))
        return ("identity", *dict.fromkeys((*self.parts, *extra)), *disks)


ALL_PARTS_REQUEST = ProbeRequest(
    parts=(
        "processes",
        "blocked",
        "mounts",
        "kernel",
        "steps",
        "gpu_processes",
        "infiniband",
        "memory",
    ),
    disks=("/tmp", "/dev/shm"),  # noqa: S108 - looked at, never written to
)
"""All but `gpus`, whose page of XML per GPU comes where it is asked for, `network` and `waits`."""


class NodeIdentity(Struct, frozen=True, kw_only=True):
    """Which node answered. `uptime` in seconds, `time` its clock in epoch seconds.

    `uid`: as whom the probe looked; 0 sees more than others.
    """

    hostname: str
    kernel: str
    boot: str
    uptime: float
    time: int
    uid: int


class NodeProcess(Struct, frozen=True, kw_only=True, gc=False):
    """A process. `state` as in ps(1), `started` in epoch seconds.

    `user` is empty and `command` only the kernel's short name where they could not be read.
    """

    pid: int
    parent: int
    uid: int
    user: str
    state: str
    started: int
    command: str


class UninterruptibleThread(Struct, frozen=True, kw_only=True):
    """A thread in uninterruptible sleep (state D), and the kernel function it waits in."""

    pid: int
    thread: int
    name: str
    wait: str
    kernel: bool


class FileWait(Struct, frozen=True, kw_only=True):
    """What a task in state D does (`opening`, `reading`) and to which file, empty if not known."""

    pid: int
    doing: str
    path: str


class NodeMount(Struct, frozen=True, kw_only=True):
    """A line of the node's mount table (proc(5))."""

    device: str
    point: str
    type: str
    options: frozenset[str]


class KernelLine(Struct, frozen=True, kw_only=True, gc=False):
    """A record of the kernel's log that the kernel itself wrote."""

    at: float
    """Seconds since boot."""
    level: int | None
    """0 (emergency) to 7 (debug), where it is known."""
    text: str
    """All its lines, as one record may have several. A later line may be a part of somebody's file
    name: only what the first line begins with says who speaks."""


class KernelLog(Struct, frozen=True, kw_only=True):
    """What the kernel said since the cursor asked for. `cursor` is for the next probe.

    `lost`: lines between the two that the kernel had overwritten or that were too many;
    None where that cannot be known (dmesg and journald do not number lines).
    """

    source: str
    lines: tuple[KernelLine, ...]
    cursor: Cursor
    lost: int | None


class StepProcess(Struct, frozen=True, kw_only=True):
    """A process of a Slurm step that is alive, and which witness says so.

    daemon: it is the step's slurmstepd. cgroup: the kernel counts it there, which no user can
    change. environment: it inherited the job's id, maybe from a step that is over, or from the
    first component of a heterogeneous job. `job` is an id; of a cgroup also a SLUID (Slurm 26.05),
    or `?` where its name has no known form.
    """

    pid: int
    job: str
    step: str
    witness: Literal["daemon", "cgroup", "environment"]


class StepTraces(Struct, frozen=True, kw_only=True):
    """Traces of Slurm's steps; `blind` says which witnesses could not be heard, and why."""

    processes: tuple[StepProcess, ...]
    blind: tuple[str, ...] = ()


class GpuProcess(Struct, frozen=True, kw_only=True):
    """A compute process on a GPU (or MIG slice), by nvidia-smi; memory in bytes if told."""

    gpu: str
    pid: int
    memory: int | None
    name: str


class Port(Struct, frozen=True, kw_only=True):
    """An InfiniBand (or RoCE) port as the kernel shows it, with all counters it has."""

    device: str
    port: int
    state: str
    phys_state: str
    rate: str
    link_layer: str
    counters: Mapping[str, int]


class Interface(Struct, frozen=True, kw_only=True):
    """An Ethernet interface or bond. `up`: its operstate is `up`. `speed` in Mb/s, None where it is
    not told. `slaves`: those of a bond. `counters`: carrier changes and errors (sysfs-class-net)."""

    name: str
    up: bool
    speed: int | None = None
    slaves: tuple[str, ...] = ()
    counters: Mapping[str, int] = {}


class PciLink(Struct, frozen=True, kw_only=True):
    """The PCIe link of a GPU or network card, `name` is what its driver calls it.

    Widths in lanes, speeds in GT/s, None where they are not told. `errors` are the totals of
    Advanced Error Reporting: correctable, nonfatal, fatal (sysfs-bus-pci-devices-aer_stats).
    """

    address: str
    name: str
    gpu: bool
    width: int | None
    width_max: int | None
    speed: float | None
    speed_max: float | None
    errors: Mapping[str, int] = {}


class Network(Struct, frozen=True, kw_only=True):
    """Ethernet interfaces, bonds, and PCIe links of a node."""

    interfaces: tuple[Interface, ...]
    pci: tuple[PciLink, ...]


class Sensor(Struct, frozen=True, kw_only=True):
    """One of the kernel's sensors (Documentation/hwmon/sysfs-interface.rst).

    `name`: device and label. `value`: degrees Celsius or turns a minute; `critical`: degrees at
    which the device is in danger, None where the driver tells none. `alarm`: the chip says so.
    """

    name: str
    kind: Literal["temp", "fan"]
    value: float | None
    critical: float | None = None
    alarm: bool = False


class Hwmon(Struct, frozen=True, kw_only=True):
    """The sensors of the kernel. `throttled`: how often heat slowed cores and packages since the
    boot, summed over processors (thermal_throttle of Documentation/ABI/testing/sysfs-devices-system-cpu).
    """

    sensors: tuple[Sensor, ...]
    throttled: Mapping[str, int] = {}


class SensorReading(Struct, frozen=True, kw_only=True):
    """A line of `ipmitool sdr elist`: a sensor of the management controller, `status` as
    ipmitool says it (ok, nc, cr, nr, ns, …), `text` its number or its states."""

    name: str
    status: str
    text: str


class Ipmi(Struct, frozen=True, kw_only=True):
    """What the management controller measures; `events`: the last lines of its own log."""

    readings: tuple[SensorReading, ...]
    events: tuple[str, ...] = ()


class Disk(Struct, frozen=True, kw_only=True):
    """Space of a file system, bytes and inodes; `available` is what ordinary users get."""

    type: str
    total: int
    free: int
    available: int
    inodes: int
    inodes_free: int


class NodeMemory(Struct, frozen=True, kw_only=True):
    """Bytes, and how often the kernel killed for want of them since boot (None: not told)."""

    total: int
    available: int
    swap_total: int
    swap_free: int
    oom_kills: int | None


class NodeProbe(Struct, frozen=True, kw_only=True):
    """What a node told in one round trip. `nvlink`: error counters by GPU, summed over its links."""

    identity: NodeIdentity | Unread
    processes: tuple[NodeProcess, ...] | Unread | None = None
    commands: Unread | None = None
    blocked: tuple[UninterruptibleThread, ...] | Unread | None = None
    mounts: tuple[NodeMount, ...] | Unread | None = None
    kernel: KernelLog | Unread | None = None
    steps: StepTraces | Unread | None = None
    gpu_processes: tuple[GpuProcess, ...] | Unread | None = None
    gpus: str | Unread | None = None
    nvlink: Mapping[int, Mapping[str, int]] | Unread | None = None
    infiniband: tuple[Port, ...] | Unread | None = None
    network: Network | Unread | None = None
    hwmon: Hwmon | Unread | None = None
    ipmi: Ipmi | Unread | None = None
    disks: Mapping[str, Disk | Unread] = {}
    memory: NodeMemory | Unread | None = None
    waits: tuple[FileWait, ...] | Unread | None = None
    squatter: str = ""
    """Who sits where the probe keeps its locks, so that it took another directory; or empty."""

    @property
    def unread_parts(self) -> Mapping[str, Unread]:
        """Every part that was asked for and could not be read, by name (`disks./tmp`)."""
        parts = {name: getattr(self, name) for name in self.__struct_fields__}
        parts |= {f"disks.{path}": disk for path, disk in self.disks.items()}
        return {name: part for name, part in parts.items() if isinstance(part, Unread)}


# What the parsers of sections share.


class StrangeLine(SentinelError):
    """A line is not of the known form: then the section says nothing at all."""


def match_line(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    """The line in its parts; raises StrangeLine."""
    match = pattern.fullmatch(line)
    if not match:
        raise StrangeLine(f"a line that is not understood: {line}")
    return match
