"""The classes of a node's answer. A part has its content, or Unread with the reason, or None if it
was not requested. A part that could not be seen is never empty."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import Invalid
from sentinel.core.host_parts import ClockSync, HostEngine, HostHardware, StalledThreads

Section = Literal[
    "processes",
    "blocked",
    "mounts",
    "kernel",
    "steps",
    "gpu_processes",
    "gpus",
    "gpu_use",
    "nvlink",
    "infiniband",
    "network",
    "traffic",
    "hwmon",
    "ipmi",
    "memory",
    "waits",
    "hardware",
    "smart",
    "stalled",
    "clock",
    "gpu_memory",
    "dcgm",
]
Unseen = Literal["denied", "missing", "failed", "late", "hung", "cut", "garbage", "absent"]


class Unread(Struct, frozen=True, kw_only=True):
    """Why a part could not be read.

    denied: This user may not read it.
    missing: The tool or driver is not there.
    failed: The tool complained.
    late: It took too long and was ended.
    hung: An earlier one cannot be ended (`pid` on the node, `since` epoch seconds), so none was
        started.
    cut: The answer ended within it.
    garbage: It is not of the known form.
    absent: The node's script said nothing of it.
    """

    kind: Unseen  # The reason's kind.
    why: str = ""  # The tool's own words.
    pid: int | None = None
    since: int | None = None

    @property
    def kind_words(self) -> str:
        """The reason's kind, for people."""
        return _KIND_WORDS[self.kind]


_KIND_WORDS: Mapping[Unseen, str] = {
    "denied": "no permission",
    "missing": "not there",
    "failed": "failed",
    "late": "took too long",
    "hung": "hangs",
    "cut": "cut off",
    "garbage": "not understood",
    "absent": "no answer",
}


class Cursor(Struct, frozen=True, kw_only=True):
    """The place where a reader of the kernel's log stopped: a sequence number (kmsg) or a time in
    microseconds."""

    boot: str  # Id of the boot that the log is of.
    source: str  # Which log it is: kmsg, dmesg or journald.
    position: int  # The number where reading stopped.


class ProbeRequest(Struct, frozen=True, kw_only=True):
    """The request to a probe.

    disks: Paths whose space is requested, each separately.
    since: Where reading the kernel's log stopped. Without it, the last 5000 lines are returned.
    cursors: The same for single nodes, by name.
    only: Parts that are requested from these nodes only.
    """

    parts: tuple[Section, ...] = ()  # The requested parts.
    disks: tuple[str, ...] = ()
    since: Cursor | None = None
    cursors: Mapping[str, Cursor] = {}
    only: Mapping[Section, frozenset[str]] = {}

    def __post_init__(self) -> None:
        for path in self.disks:
            if not path.startswith("/") or any(c in path for c in "\n\0"):
                raise Invalid(f"{path!r} is no absolute path in one line", "disks")

    def restrict_to_node(self, node: str) -> "ProbeRequest":
        """The request for this node alone."""
        parts = tuple(p for p in self.parts if node in self.only.get(p, {node}))
        since = self.cursors.get(node, self.since)
        return replace(self, parts=parts, since=since, cursors={}, only={})

    @property
    def section_names(self) -> tuple[str, ...]:
        """The requested sections, by the names that the node's script uses."""
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
"""All parts but `gpus`, whose page of XML for each GPU is requested separately, `gpu_use`, `network`,
`traffic`, `waits` and those of `host_parts`."""


class NodeIdentity(Struct, frozen=True, kw_only=True):
    """The node that answered. `uptime` is in seconds, `time` is its clock in epoch seconds. `uid`
    is the user of the probe; 0 sees more than others."""

    hostname: str  # The name that the node gives itself.
    kernel: str  # The kernel's version.
    boot: str  # Id of the boot.
    uptime: float
    time: int
    uid: int


class NodeProcess(Struct, frozen=True, kw_only=True, gc=False):
    """A process. `state` is as in ps(1), `started` is in epoch seconds.

    If they could not be read, `user` is empty, and `command` is only the kernel's short name.
    """

    pid: int  # Number of the process.
    parent: int  # Number of its parent.
    uid: int  # Number of its user.
    user: str
    state: str
    started: int
    command: str


class UninterruptibleThread(Struct, frozen=True, kw_only=True):
    """A thread in uninterruptible sleep (state D), and the kernel function it waits in."""

    pid: int  # Number of the process.
    thread: int  # Number of the thread.
    name: str  # Its short name.
    wait: str  # The kernel function in which it waits.
    kernel: bool  # Whether it is a thread of the kernel itself.


class FileWait(Struct, frozen=True, kw_only=True):
    """The access to a file on which a task in state D waits."""

    pid: int  # Number of the process.
    doing: str  # What it is doing, e.g. `reading`.
    path: str  # The file. Empty if it is not known.


class NodeMount(Struct, frozen=True, kw_only=True):
    """A line of the node's mount table (proc(5))."""

    device: str  # The device or server.
    point: str  # Where it is mounted.
    type: str  # The file system's type.
    options: frozenset[str]  # Its options.


class KernelLine(Struct, frozen=True, kw_only=True, gc=False):
    """A record of the kernel's log that the kernel itself wrote."""

    at: float
    """Seconds since boot."""
    level: int | None
    """0 (emergency) to 7 (debug). None if it is not known."""
    text: str
    """All lines of the record, since a record may have several. A later line may be a part of
    somebody's file name: only the beginning of the first line shows who wrote the record."""


class KernelLog(Struct, frozen=True, kw_only=True):
    """Lines of the kernel's log since the cursor that was given.

    cursor: For the next probe.
    lost: Lines in between that the kernel had overwritten or that were too many. None: it cannot be
        known, because dmesg and journald do not number lines.
    """

    source: str  # Which log was read: kmsg, dmesg or journald.
    lines: tuple[KernelLine, ...]  # The lines, the oldest first.
    cursor: Cursor
    lost: int | None


class StepProcess(Struct, frozen=True, kw_only=True):
    """A process of a Slurm step that is alive, and the witness that shows it.

    daemon: it is the step's slurmstepd. cgroup: the kernel counts it to the step, which no user can
    change. environment: it inherited the job's id, maybe from a step that is over, or from the
    first component of a heterogeneous job. `job` is an id. From a cgroup it may also be a SLUID
    (Slurm 26.05), or `?` if the name of the cgroup has no known form.
    """

    pid: int  # Number of the process.
    job: str
    step: str  # Name of the step, as `batch` or `0`.
    witness: Literal["daemon", "cgroup", "environment"]  # Which witness reported it, see above.


class StepTraces(Struct, frozen=True, kw_only=True):
    """Traces of Slurm's steps. `blind` says which witnesses could not be read, and why."""

    processes: tuple[StepProcess, ...]  # Processes of steps that are alive.
    blind: tuple[str, ...] = ()


class GpuProcess(Struct, frozen=True, kw_only=True):
    """A compute process on a GPU (or MIG slice), by nvidia-smi."""

    gpu: str  # UUID of the GPU or MIG slice.
    pid: int  # Number of the process.
    memory: int | None  # GPU memory in bytes. None: not known.
    name: str  # Its command by ps. Empty: not known.


class Port(Struct, frozen=True, kw_only=True):
    """An InfiniBand (or RoCE) port as the kernel shows it, with all counters it has."""

    device: str  # Name of the adapter, as `mlx5_0`.
    port: int  # Number of the port.
    state: str  # Logical state, as `ACTIVE`.
    phys_state: str  # Physical state, as `LinkUp`.
    rate: str  # Speed and width, as the kernel writes them.
    link_layer: str  # `InfiniBand` or `Ethernet`.
    counters: Mapping[str, int]  # Every counter by its name.


class Interface(Struct, frozen=True, kw_only=True):
    """An Ethernet interface or bond. `up`: its operstate is `up`. `speed` is in Mb/s, None if it is
    not known. `slaves` are those of a bond. `counters`: carrier changes and errors
    (sysfs-class-net)."""

    name: str  # Its name, as `eth0`.
    up: bool
    speed: int | None = None
    slaves: tuple[str, ...] = ()
    counters: Mapping[str, int] = {}


class PciLink(Struct, frozen=True, kw_only=True):
    """The PCIe link of a GPU or network card. `name` is its name in its driver.

    Widths are in lanes, speeds in GT/s. None: not known. `errors` are the totals of Advanced Error
    Reporting: correctable, nonfatal, fatal (sysfs-bus-pci-devices-aer_stats).
    """

    address: str  # PCI address.
    name: str
    gpu: bool  # Whether it is a GPU; else a network card.
    width: int | None  # Lanes in use.
    width_max: int | None  # Lanes that it can use.
    speed: float | None  # Speed in use.
    speed_max: float | None  # Speed that it can reach.
    errors: Mapping[str, int] = {}


class Network(Struct, frozen=True, kw_only=True):
    """Ethernet interfaces, bonds, and PCIe links of a node."""

    interfaces: tuple[Interface, ...]  # Ethernet interfaces and bonds.
    pci: tuple[PciLink, ...]  # PCIe links of GPUs and network cards.


class NodeTraffic(Struct, frozen=True, kw_only=True):
    """Bytes that the node has moved since its boot, in both directions.

    A bond and the interfaces below it are both counted.
    """

    network: int  # Over Ethernet and InfiniBand.
    disk: int  # To and from block devices.


class Sensor(Struct, frozen=True, kw_only=True):
    """One of the kernel's sensors (Documentation/hwmon/sysfs-interface.rst).

    `name`: device and label. `value`: degrees Celsius or turns per minute. `critical`: degrees at
    which the device is in danger, None if the driver names none. `alarm`: the chip reports an
    alarm.
    """

    name: str
    kind: Literal["temp", "fan"]  # Temperature or fan.
    value: float | None
    critical: float | None = None
    alarm: bool = False


class Hwmon(Struct, frozen=True, kw_only=True):
    """The sensors of the kernel. `throttled`: how often heat slowed cores and packages since the
    boot, summed over processors (thermal_throttle of Documentation/ABI/testing/sysfs-devices-system-cpu).
    """

    sensors: tuple[Sensor, ...]  # What each sensor measures.
    throttled: Mapping[str, int] = {}


class SensorReading(Struct, frozen=True, kw_only=True):
    """A line of `ipmitool sdr elist`: a sensor of the management controller. `status` is a word of
    ipmitool (ok, nc, cr, nr, ns, …). `text` is its number or its states."""

    name: str  # The sensor's name.
    status: str
    text: str


class Ipmi(Struct, frozen=True, kw_only=True):
    """The values of the management controller. `events` are the last lines of its own log."""

    readings: tuple[SensorReading, ...]  # What each sensor measures.
    events: tuple[str, ...] = ()
    cut: str = ""  # The last line, if it is not a sensor. The rest of the answer is missing.


class Disk(Struct, frozen=True, kw_only=True):
    """Space of a file system, bytes and inodes; `available` is what ordinary users get."""

    type: str  # The file system's type.
    total: int  # Size in bytes.
    free: int  # Free bytes, those for root too.
    available: int
    inodes: int  # How many inodes there are.
    inodes_free: int  # How many are free.


class NodeMemory(Struct, frozen=True, kw_only=True):
    """The memory in bytes, and how often the kernel has killed a process for lack of it since boot
    (None: not known)."""

    total: int  # Memory in bytes.
    available: int  # Memory that is still available, in bytes.
    swap_total: int  # Swap in bytes.
    swap_free: int  # Free swap in bytes.
    oom_kills: int | None  # How often the kernel killed a process for lack of memory.


class NodeProbe(Struct, frozen=True, kw_only=True):
    """All that a node has reported in one round trip. `nvlink` has error counters by GPU, summed
    over its links."""

    identity: NodeIdentity | Unread  # The node that answered.
    processes: tuple[NodeProcess, ...] | Unread | None = None  # All processes.
    commands: Unread | None = None  # Why their command lines could not be read. None: they could.
    blocked: tuple[UninterruptibleThread, ...] | Unread | None = None
    """Threads in uninterruptible sleep."""
    mounts: tuple[NodeMount, ...] | Unread | None = None  # The mount table.
    kernel: KernelLog | Unread | None = None  # Lines of the kernel's log.
    steps: StepTraces | Unread | None = None  # Traces of Slurm's steps.
    gpu_processes: tuple[GpuProcess, ...] | Unread | None = None  # Compute processes on GPUs.
    gpus: str | Unread | None = None  # The page of nvidia-smi -q -x.
    gpu_use: str | Unread | None = None  # The text of nvidia-smi -q -d UTILIZATION.
    nvlink: Mapping[int, Mapping[str, int]] | Unread | None = None
    infiniband: tuple[Port, ...] | Unread | None = None  # InfiniBand and RoCE ports.
    network: Network | Unread | None = None  # Interfaces and PCIe links.
    traffic: NodeTraffic | Unread | None = None  # Bytes moved since the boot.
    hwmon: Hwmon | Unread | None = None  # The kernel's sensors.
    ipmi: Ipmi | Unread | None = None  # The management controller's sensors.
    disks: Mapping[str, Disk | Unread] = {}  # Space at each requested path.
    memory: NodeMemory | Unread | None = None  # Memory and swap.
    waits: tuple[FileWait, ...] | Unread | None = None  # Which file each task in state D waits for.
    hardware: HostHardware | Unread | None = None  # Memory controllers, RAID, NVMe.
    smart: Mapping[str, int | None] | Unread | None = None
    """The critical warning of each local NVMe drive, as bits; None: it gave none."""
    stalled: StalledThreads | Unread | None = None  # Threads in state D, and whether they ran.
    clock: ClockSync | Unread | None = None  # Whether its clock is kept in step.
    gpu_memory: Mapping[str, int | None] | Unread | None = None  # Bytes in use, by UUID.
    dcgm: HostEngine | Unread | None = None  # DCGM's daemon.
    asked: tuple[float, float] | None = None
    """When it was asked, and when its answer was there, by the clock of who asked (epoch seconds)."""
    squatter: str = ""
    """The user who owns the directory for the probe's locks, so that the probe used another one.
    Empty if nobody does."""

    @property
    def unread_parts(self) -> Mapping[str, Unread]:
        """Every part that was requested and could not be read, by name (`disks./tmp`)."""
        parts = {name: getattr(self, name) for name in self.__struct_fields__}
        parts |= {f"disks.{path}": disk for path, disk in self.disks.items()}
        return {name: part for name, part in parts.items() if isinstance(part, Unread)}
