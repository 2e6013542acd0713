"""Parses each section of a probe. A parser raises StrangeLine for lines that it does not know."""

import re
from calendar import timegm
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.node_probe import (
    Disk,
    FileWait,
    GpuProcess,
    Hwmon,
    Interface,
    Ipmi,
    Network,
    NodeIdentity,
    NodeMemory,
    NodeMount,
    NodeProcess,
    PciLink,
    Port,
    Sensor,
    SensorReading,
    StepProcess,
    StepTraces,
    UninterruptibleThread,
    Unread,
)
from sentinel.core.section_lines import StrangeLine, match_line
from sentinel.core.text import shortened, visible

__all__ = ["StrangeLine"]

_BOOT = lazy_pattern(r"[0-9a-f-]{36}")
_UPTIME = lazy_pattern(r"([0-9]{1,12}\.[0-9]{1,6}) .*")
_NUMBER = lazy_pattern(r"[0-9]{1,18}")
# ps(1), lstart in UTC: "Sat Nov 21 00:58:03 2026".
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STARTED = (
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([12][0-9]{3})"
)
_PID = r" *([0-9]{1,10})"
_PROCESS = lazy_pattern(rf"{_PID}{_PID}{_PID} ([A-Za-z]) {_STARTED} (.*)")
_COMMAND = lazy_pattern(rf"{_PID} ([^ ]+) *(.*)")
_BLOCKED = lazy_pattern(rf"{_PID}{_PID}{_PID} D ([^ ]+) +(.*)")
_WAITS = lazy_pattern(r"waits\t([0-9]{1,10})\t([a-z ]+)\t([^\t]*)")
_MOUNT = lazy_pattern(r"([^ ]*) ([^ ]+) ([^ ]+) ([^ ]+) [0-9]+ [0-9]+")
_OCTAL = lazy_pattern(r"\\([0-3][0-7]{2})")
_DAEMON = lazy_pattern(r"daemon ([0-9]{1,10}) ([0-9]{1,10})\.(\S+)(?: stepmgr)?")
_CGROUP = lazy_pattern(
    r"cgroup ([0-9]{1,10}) ([0-9]{1,10}|s[0-9A-Z]{13}|\?) ?(?:/step_([^/ ]+))?(?:/.*)?"
)
_ENVIRONMENT = lazy_pattern(r"environment ([0-9]{1,10}) ([0-9]{1,10})")
_SAW = ("saw daemons", "saw cgroups", "saw environments")
_GPU_PROCESS = lazy_pattern(
    r"((?:GPU|MIG)-[0-9A-Za-z/-]+), ([0-9]{1,10}), ([0-9]{1,12}|\[.*?\])(?:, (.*))?"
)
_NVLINK_GPU = lazy_pattern(r"GPU ([0-9]{1,3}): ")
_NVLINK = lazy_pattern(r"Link [0-9]{1,3}: ([A-Za-z ]{1,40}): ([0-9]{1,18})")
_PORT = lazy_pattern(r"([^ ]+) ([0-9]{1,5}) ([^ ]+) (.*)")
_NETWORK = lazy_pattern(r"(net|pci) ([^ ]+) ([^ ]+) (.*)")
_SPEED = lazy_pattern(r"([0-9]{1,3}(?:\.[0-9])?) GT/s.*")
_HWMON = lazy_pattern(r"([^ ]+) ([^ ]*) ([^ ]+) ((temp|fan)[0-9]+)_([a-z_]+) (.*)")
_THROTTLED = lazy_pattern(r"throttled (core|package) ([0-9]{1,18})")
_SIGNED = lazy_pattern(r"-?[0-9]{1,9}")
# "Fan1 | 30h | ok | 29.1 | 5880 RPM" (ipmi_sdr_print_sensor_fc() in lib/ipmi_sdr.c of ipmitool)
_READING = lazy_pattern(
    r"([^|]{1,64}?) *\| *([0-9A-Fa-f]{2}h) *\| *([a-z]{1,16}) *\| *[0-9.]+ *\| *(.*)"
)
_DISK = lazy_pattern(" ".join([r"([0-9]{1,20})"] * 6) + " (.*)")
_MEGABYTE = 2**20
MAX_BOARD_CHARS = 1000  # Characters of one reading or event of a board's controller.
MAX_SENSORS = 2500
"""More than any node has: a controller numbers at most 4 x 255 (IPMI 2.0, 43.1), and the kernel shows one a core.
Sixty thousand of one node took a check of all nodes its whole time."""
_KERNEL = 2
"""The pid of kthreadd, the parent of every kernel thread."""


def identity(lines: list[str]) -> NodeIdentity:
    """Host name, kernel, boot, uptime, clock and user of the probe, from one line each."""
    if len(lines) != 6:
        raise StrangeLine(f"{len(lines)} lines in place of 6")
    return NodeIdentity(
        hostname=lines[0],
        kernel=lines[1],
        boot=match_line(_BOOT, lines[2])[0],
        uptime=float(match_line(_UPTIME, lines[3])[1]),
        time=int(match_line(_NUMBER, lines[4])[0]),
        uid=int(match_line(_NUMBER, lines[5])[0]),
    )


def processes(lines: list[str]) -> tuple[NodeProcess, ...]:
    """Every process that the kernel lists. An empty list is treated as an error."""
    if not lines:
        raise StrangeLine("not even one process")
    return tuple(_process(match_line(_PROCESS, line)) for line in lines)


def _process(match: re.Match[str]) -> NodeProcess:
    pid, parent, uid, state, month, day, hour, minute, second, year, name = match.groups()
    if month not in _MONTHS:
        raise StrangeLine(f"no month: {month}")
    start = (int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second))
    return NodeProcess(
        pid=int(pid),
        parent=int(parent),
        uid=int(uid),
        user="",
        state=state,
        started=timegm(start),
        command=f"[{name}]",
    )


def commands(lines: list[str]) -> dict[int, tuple[str, str]]:
    """User and command line by pid."""
    return {int(m[1]): (m[2], m[3]) for m in (match_line(_COMMAND, line) for line in lines)}


def named(
    found: tuple[NodeProcess, ...] | Unread, names: dict[int, tuple[str, str]]
) -> tuple[NodeProcess, ...] | Unread:
    """The processes with their users and command lines, if both lists could be read."""
    if isinstance(found, Unread):
        return found
    return tuple(_named(p, *names.get(p.pid, ("", ""))) for p in found)


def _named(process: NodeProcess, user: str, command: str) -> NodeProcess:
    return replace(process, user=user, command=command or process.command)


def blocked(lines: list[str]) -> tuple[UninterruptibleThread, ...]:
    """Threads in state D."""
    return tuple(_blocked(match_line(_BLOCKED, line)) for line in lines)


def _blocked(match: re.Match[str]) -> UninterruptibleThread:
    pid, parent, thread = (int(match[i]) for i in (1, 2, 3))
    kernel = _KERNEL in (pid, parent)
    return UninterruptibleThread(
        pid=pid, thread=thread, wait=match[4], name=match[5], kernel=kernel
    )


def waits(lines: list[str]) -> tuple[FileWait, ...]:
    """The files that tasks in state D wait for, from one line each."""
    found = (match_line(_WAITS, line) for line in lines)
    return tuple(FileWait(pid=int(m[1]), doing=m[2], path=m[3].strip()) for m in found)


def mounts(lines: list[str]) -> tuple[NodeMount, ...]:
    """The mount table. An empty table is treated as an error."""
    if not lines:
        raise StrangeLine("not even one mount")
    return tuple(_mount(match_line(_MOUNT, line)) for line in lines)


def _mount(match: re.Match[str]) -> NodeMount:
    device, point, kind = (_OCTAL.sub(lambda m: chr(int(m[1], 8)), match[i]) for i in (1, 2, 3))
    return NodeMount(device=device, point=point, type=kind, options=frozenset(match[4].split(",")))


def steps(lines: list[str]) -> StepTraces:
    """The processes that each witness saw. A witness that did not answer is listed as blind."""
    found, heard, blind = [], set(), []
    for line in lines:
        if line.startswith("saw "):
            heard.add(line)
        elif line.startswith("blind "):
            blind.append(line.removeprefix("blind "))
        else:
            found.append(_step(line))
    silent = [s.removeprefix("saw ") for s in _SAW if s not in heard]
    told = {b.partition(":")[0] for b in blind}
    blind += [f"{name}: nothing was said of them" for name in silent if name not in told]
    return StepTraces(processes=tuple(found), blind=tuple(blind))


def _step(line: str) -> StepProcess:
    if match := _DAEMON.fullmatch(line):
        return StepProcess(pid=int(match[1]), job=match[2], step=match[3], witness="daemon")
    if match := _CGROUP.fullmatch(line):
        return StepProcess(pid=int(match[1]), job=match[2], step=match[3] or "", witness="cgroup")
    match = match_line(_ENVIRONMENT, line)
    return StepProcess(pid=int(match[1]), job=match[2], step="", witness="environment")


def gpu_processes(lines: list[str]) -> tuple[GpuProcess, ...]:
    """Compute processes by nvidia-smi. Memory is in MiB, or a word in brackets."""
    return tuple(_gpu_process(match_line(_GPU_PROCESS, line)) for line in lines)


def _gpu_process(match: re.Match[str]) -> GpuProcess:
    memory = int(match[3]) * _MEGABYTE if match[3].isdigit() else None
    return GpuProcess(gpu=match[1], pid=int(match[2]), memory=memory, name=match[4] or "")


def named_gpu_processes(
    found: tuple[GpuProcess, ...], known: tuple[NodeProcess, ...]
) -> tuple[GpuProcess, ...]:
    """With the commands by ps: the driver is not asked for names, which could forge rows."""
    commands = {process.pid: process.command for process in known}
    return tuple(
        replace(one, name=commands[one.pid]) if not one.name and one.pid in commands else one
        for one in found
    )


def gpus(lines: list[str]) -> str:
    """The XML of `nvidia-smi -q -x`, unchanged."""
    text = "\n".join(lines)
    if "<nvidia_smi_log>" not in text or "</nvidia_smi_log>" not in text:
        raise StrangeLine(f"nvidia-smi -q -x printed no XML: {lines[0] if lines else 'nothing'}")
    return text


def nvlink(lines: list[str]) -> dict[int, dict[str, int]]:
    """Error counters by GPU, summed over its links, from `nvidia-smi nvlink -e`.

    `GPU 0: NVIDIA H100 80GB HBM3 (UUID: …)`, then for each link lines like `Link 17: CRC Errors: 0`;
    a counter that the device does not have is no number (nvidia-smi nvlink -h; shown in
    github.com/stas00/ml-engineering, debug/nvidia.md). Whoever has no link says so in words.
    """
    found: dict[int, dict[str, int]] = {}
    told: dict[str, int] = {}
    for line in lines:
        if match := _NVLINK_GPU.match(line):
            told = found.setdefault(int(match[1]), {})
        elif match := _NVLINK.fullmatch(line.strip()):
            told[match[1]] = told.get(match[1], 0) + int(match[2])
    if lines and not found:
        raise StrangeLine(f"`nvidia-smi nvlink` named no GPU but said: {lines[0]}")
    return found


def infiniband(lines: list[str]) -> tuple[Port, ...]:
    """Ports with state and counters."""
    found: dict[tuple[str, int], dict[str, str]] = {}
    for line in lines:
        device, port, name, value = match_line(_PORT, line).groups()
        found.setdefault((device, int(port)), {})[name] = value.strip()
    return tuple(_port(*key, values) for key, values in found.items())


def _port(device: str, port: int, values: dict[str, str]) -> Port:
    if "state" not in values:
        raise StrangeLine(f"no state of port {port} of {device}")
    words = {name: values.pop(name, "") for name in ("state", "phys_state", "rate", "link_layer")}
    counters = {name: int(v) for name, v in values.items() if _NUMBER.fullmatch(v)}
    # "4: ACTIVE" and "5: LinkUp" (Documentation/ABI/stable/sysfs-class-infiniband).
    words |= {n: words[n].rpartition(": ")[2] for n in ("state", "phys_state")}
    return Port(device=device, port=port, counters=counters, **words)


def network(lines: list[str]) -> Network:
    """Interfaces and PCIe links, from lines of one value each."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    slaves: dict[str, list[str]] = {}
    for line in lines:
        of, name, what, value = match_line(_NETWORK, line).groups()
        told = found.setdefault((of, name), {})
        if what == "slave":
            slaves.setdefault(name, []).append(value.strip())
        else:
            told[what] = value.strip()
    return Network(
        interfaces=tuple(
            _interface(name, told, slaves.get(name, ()))
            for (of, name), told in found.items()
            if of == "net"
        ),
        pci=tuple(_pci(name, told) for (of, name), told in found.items() if of == "pci"),
    )


def _interface(name: str, told: dict[str, str], slaves: Sequence[str]) -> Interface:
    state, speed = told.pop("operstate", ""), told.pop("speed", "")
    return Interface(
        name=name,
        up=state == "up",
        speed=int(speed) if _NUMBER.fullmatch(speed) else None,  # -1: unknown
        slaves=tuple(slaves),
        counters={n: int(v) for n, v in told.items() if _NUMBER.fullmatch(v)},
    )


def _pci(address: str, told: dict[str, str]) -> PciLink:
    def lanes(what: str) -> int | None:
        value = told.get(what, "")
        # 255 and 0 mean that the device is gone or the link is off (drivers/pci/pci-sysfs.c).
        return int(value) if _NUMBER.fullmatch(value) and 0 < int(value) < 255 else None

    def speed(what: str) -> float | None:
        match = _SPEED.fullmatch(told.get(what, ""))
        return float(match[1]) if match else None

    errors = {n.removeprefix("aer_"): v for n, v in told.items() if n.startswith("aer_")}
    return PciLink(
        address=address,
        name=told.get("name", ""),
        gpu=told.get("class", "").startswith(("0x03", "0x12")),
        width=lanes("current_link_width"),
        width_max=lanes("max_link_width"),
        speed=speed("current_link_speed"),
        speed_max=speed("max_link_speed"),
        errors={n: int(v) for n, v in errors.items() if _NUMBER.fullmatch(v)},
    )


def hwmon(lines: list[str]) -> Hwmon:
    """Sensors by device and label; lines with the same number are about one sensor."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    throttled: dict[str, int] = {}
    for line in lines:
        if match := _THROTTLED.fullmatch(line):
            throttled[match[1]] = int(match[2])
            continue
        chip, device, name, number, kind, what, value = match_line(_HWMON, line).groups()
        told = found.setdefault((chip, number), {"of": device or name, "kind": kind})
        told[what] = value.strip()
    names = _apart(
        [f"{t['of']} {t.get('label') or n}" for (_, n), t in found.items()],
        [f"{c}/{n}" for c, n in found],
    )
    sensors = (_sensor(name, told) for name, told in zip(names, found.values(), strict=True))
    return Hwmon(sensors=tuple(sensors), throttled=throttled)


def _apart(names: Sequence[str], marks: Sequence[str]) -> list[str]:
    """The names; the mark is added to names that occur twice: one of two power supplies may be
    dead. Raises StrangeLine for more than a node has."""
    if len(names) > MAX_SENSORS:
        raise StrangeLine(f"{len(names)} sensors are more than a node has")
    often = Counter(names)
    return [f"{n} ({m})" if often[n] > 1 else n for n, m in zip(names, marks, strict=True)]


def _sensor(name: str, told: dict[str, str]) -> Sensor:
    scale = 1000.0 if told["kind"] == "temp" else 1.0  # millidegrees

    def value(what: str) -> float | None:
        text = told.get(what, "")
        return int(text) / scale if _SIGNED.fullmatch(text) else None

    return Sensor(
        name=name,
        kind="temp" if told["kind"] == "temp" else "fan",
        value=value("input"),
        critical=value("crit"),
        alarm="1" in (told.get("crit_alarm"), told.get("alarm")),
    )


def ipmi(lines: list[str]) -> Ipmi:
    """The readings of a management controller. No readings are an error. Another line between
    readings is text of the tool. At the end it means that the answer is incomplete."""
    events = tuple(
        visible(shortened(e.removeprefix("event ").strip(), MAX_BOARD_CHARS))
        for e in lines
        if e.startswith("event ")
    )
    told = [line for line in lines if line.strip() and not line.startswith("event ")]
    rows = [row for line in told if (row := _READING.fullmatch(line))]
    if not rows:
        raise StrangeLine(f"no sensor: {told[-1]}" if told else "not even one sensor")
    names = _apart([m[1] for m in rows], [m[2] for m in rows])
    readings = (
        SensorReading(
            name=visible(n), status=m[3], text=visible(shortened(m[4].strip(), MAX_BOARD_CHARS))
        )
        for n, m in zip(names, rows, strict=True)
    )
    cut = "" if _READING.fullmatch(told[-1]) else told[-1].strip()
    return Ipmi(readings=tuple(readings), events=events, cut=cut)


def memory(lines: list[str]) -> NodeMemory:
    """Memory from /proc/meminfo (in kB), and oom_kill of /proc/vmstat (Linux 4.13)."""
    values: dict[str, int] = {}
    for line in lines:
        name, _, rest = line.partition(":")
        number, _, unit = rest.strip().partition(" ")
        if _NUMBER.fullmatch(number):
            values[name] = int(number) * (1024 if unit == "kB" else 1)
    try:
        return NodeMemory(
            total=values["MemTotal"],
            available=values["MemAvailable"],
            swap_total=values["SwapTotal"],
            swap_free=values["SwapFree"],
            oom_kills=values.get("OomKills"),
        )
    except KeyError as key:
        raise StrangeLine(f"meminfo does not tell {key}") from None


def disk(lines: list[str]) -> Disk:
    """Space from a line of `stat -f`: block size, blocks, free, available, inodes, free inodes, type."""
    if len(lines) != 1:
        raise StrangeLine(f"{len(lines)} lines in place of 1")
    match = match_line(_DISK, lines[0])
    size, blocks, free, available, inodes, inodes_free = (int(match[i]) for i in range(1, 7))
    return Disk(
        type=match[7],
        total=blocks * size,
        free=free * size,
        available=available * size,
        inodes=inodes,
        inodes_free=inodes_free,
    )
