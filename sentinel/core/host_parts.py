"""The parts of a node's answer that are about the host itself."""

from collections.abc import Mapping

from msgspec import Struct


class MemoryController(Struct, frozen=True, kw_only=True):
    """A memory controller's errors since its driver was loaded
    (Documentation/admin-guide/RAS/main.rst). `worst`: the label of the module with most of them."""

    name: str  # As `mc0`.
    corrected: int
    uncorrected: int
    worst: str = ""


class RaidArray(Struct, frozen=True, kw_only=True):
    """An array of md (Documentation/admin-guide/md.rst), in the kernel's words."""

    name: str  # As `md0`.
    state: str  # `clean`, `active`, `inactive`, `broken`, …
    level: str = ""  # `raid1`, …
    missing: int = 0  # Devices that it lacks.
    sync: str = ""  # What it does beside: `idle`, `resync`, `recover`, `check`, …
    metadata: str = ""  # `1.2`, or `external:imsm` for a container of a BIOS.


class NvmeController(Struct, frozen=True, kw_only=True):
    """An NVMe controller as its driver sees it."""

    name: str  # As `nvme0`.
    state: str  # `live`, `resetting`, `dead`, …
    transport: str = ""  # `pcie`; anything else is a drive elsewhere.


class HostHardware(Struct, frozen=True, kw_only=True):
    """What the kernel shows of memory and drives."""

    memory: tuple[MemoryController, ...] = ()
    raid: tuple[RaidArray, ...] = ()
    nvme: tuple[NvmeController, ...] = ()


class ClockSync(Struct, frozen=True, kw_only=True):
    """What keeps the clock in step says of it. `word`: chrony's leap status, or timedatectl's yes
    or no."""

    word: str
    offset: float | None = None  # Seconds ahead of NTP's time, by chrony.


class HostEngine(Struct, frozen=True, kw_only=True):
    """DCGM's daemon, nv-hostengine. All is empty where it does not run.

    answers: whether it answered dcgmi within `patience` seconds; None: dcgmi could not ask it.
    """

    pid: int = 0  # Number of its process; 0: it does not run.
    memory: int = 0  # Resident memory in bytes.
    answers: bool | None = None
    patience: int = 0
    logs: Mapping[str, int] = {}  # Bytes of each of its logs, by path.


class StalledThread(Struct, frozen=True, kw_only=True, gc=False):
    """A thread in uninterruptible sleep (state D), not one of the kernel's own."""

    pid: int  # Number of its process.
    thread: int
    started: int  # In clock ticks after the boot; with the number it names the thread.
    switches: int  # How often it has given up the processor. It has not run while this stays.
    wait: str  # The kernel function in which it waits; `-` if this user may not see it.
    name: str


class StalledThreads(Struct, frozen=True, kw_only=True):
    """The threads in state D. `total` counts those that were left out, too."""

    threads: tuple[StalledThread, ...] = ()
    total: int = 0
