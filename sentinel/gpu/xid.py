"""Lines of the kernel's log about GPUs and NVSwitches, into events. Pure; never raises.

Every documented form is read: with and without `PCI:`, MIG instances, `pid='<unknown>'`, GPUs
that fell off the bus without an Xid (the bus is empty where its line is not here) or could not be
started (RmInitAdapter), SXid of NVSwitches,
their Severity lines (once with the line they belong to) and Data lines (no events). Of amdgpu:
what its RAS code says of uncorrectable errors, drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c
(amdgpu_ras_error_print_error_data, amdgpu_ras_global_ras_isr) and ras/rascore/ras_aca.c of Linux;
GPUs that could not be started (amdgpu_driver_load_kms) or reset (amdgpu_device_gpu_recover).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from sentinel.core.kernel_lines import ERROR_LEVEL, is_trouble_line, is_warning
from sentinel.core.text import shortened, visible
from sentinel.gpu import xid_table
from sentinel.gpu.advice import Advice, recovery, worst
from sentinel.gpu.bus import bus_id
from sentinel.gpu.nvlink_errors import NVLINK_5, decoded

_BUS = r"(?:PCI:)?[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_OLD_BUS = r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}"
"""The address without a domain, which drivers before 2010 printed."""

# Each pattern matches only at the beginning of the record (re.match). It begins with more text than
# a process's name can contain.
_XID = re.compile(
    rf"NVRM: Xid \((?:({_BUS})(?: GPU-I:([0-9a-fA-F]{{1,4}}))?(?: [A-Za-z-]{{1,12}}:[0-9a-fA-F]{{1,8}})*"
    rf"|{_OLD_BUS})\): ([0-9]{{1,5}})(?:[,\s]\s*(.*))?$"
)
"""krcReportXid_IMPL() of src/nvidia/src/kernel/gpu/rc/kernel_rc.c: a MIG instance is told as
`GPU-I:05`, a compute instance in it as `GPU-I:05 GPU-CI:01`."""
_SXID = re.compile(rf"nvidia-nvswitch([0-9]{{1,6}}): SXid \(({_BUS})\): ([0-9]{{1,6}}), (.*)$")
_LOST = re.compile(
    rf"NVRM: GPU (?:at )?({_BUS}|[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}(?:\.[0-7])?)(?:: GPU)? has fallen off the bus"
)
_LOST_HEAD = re.compile(rf"NVRM: The NVIDIA GPU ({_BUS})(?= |$)")
_LOST_TAIL = re.compile(
    rf"NVRM: (?:The NVIDIA GPU {_BUS} )?(?:\(PCI ID: [0-9a-f:]{{1,12}}\) )?"
    r"(?:(?:installed in this )?system has )?fallen off the bus"
    r"(?: and is not(?: responding(?: to commands)?)?)?\.?$"
)
_LOST_LINES = 3
_INACCESSIBLE = re.compile(
    rf"(?:NVRM: Attempting to remove device (?={_BUS} with non-zero usage count!)|(?:nvidia|amdgpu) (?={_BUS}: "
    r"(?:(?:Unable to|can't) change power state from \S{1,20} to \S{1,20}"
    r"(?:, device inaccessible| \(config space inaccessible\))|(?:amdgpu: )?device lost from bus!)))"
    rf"({_BUS})"
)
"""Messages about a device that is gone: pci_power_up() in drivers/pci/pci.c of Linux, and
pci_raw_set_power_state() before 6.0; amdgpu_device_health_check() of amdgpu; and nv_pci_remove_helper() in
kernel-open/nvidia/nv-pci.c, of one that is taken away while it is in use."""
_WATCHDOG = re.compile(
    r"NVRM: (?:GPU[0-9]{1,3} )?(?:krcWatchdog\w{0,20}: )?"
    r"(RC watchdog: GPU is probably locked!? {0,4}(?:Notify Timeout Seconds: [0-9]{1,6})?)$"
)
"""krcWatchdog_IMPL() in src/nvidia/src/kernel/gpu/rc/kernel_rc_watchdog.c: an Xid need not follow
it."""
_INIT_CODE = re.compile(r" ?(?:\(0x[0-9a-fA-Fx:]{1,40}\))?")
_INIT = re.compile(rf"NVRM: (?:GPU[- ](?:at )?({_BUS}): )?RmInitAdapter failed!?(.*)$")
_NO_ADAPTER = re.compile(
    rf"NVRM: GPU ({_BUS}): (rm_init_adapter failed, device minor number [0-9]{{1,3}})$"
)
"""nv_start_device() in kernel-open/nvidia/nv.c, behind the line of RmInitAdapter."""
_REBOOT = re.compile(
    r"NVRM: (?:GPU[0-9]{1,3} )?(?:nvGpuOpsReportFatalError: )?"
    r"(uvm encountered global fatal error 0x[0-9a-fA-F]{1,8}, requiring os reboot to recover)\.?$"
)
"""nvGpuOpsReportFatalError() in src/nvidia/src/kernel/rmapi/nv_gpu_ops.c: no program computes on any GPU of
the node."""
_PROBE = re.compile(
    rf"(?:(nvidia|amdgpu) ({_BUS}): probe with driver \1|(nvidia|amdgpu): probe of ({_BUS}))"
    r" (failed with error -[0-9]{1,5})$"
)
"""really_probe() in drivers/base/dd.c of Linux, from 6.10 on and before: the driver did not take
the device, so it is in no list of the driver's."""
_PROBE_COUNT = re.compile(r"NVRM: (The NVIDIA probe routine failed for [0-9]{1,3} device\(s\)\.)$")
"""nvidia_init_module() in kernel-open/nvidia/nv.c, behind the lines of its devices."""
_AMD = re.compile(
    rf"(?:amdgpu ({_BUS}):(?: amdgpu:)? ?|\[drm:[a-z0-9_.]{{1,80}} \[amdgpu\]\] \*ERROR\* )"
    r"((?:\{[0-9]{1,20}\})?.*)$"
)
_AMD_NAMELESS = re.compile(r"(?:kfd kfd: (?:amdgpu: )?|amdgpu: (?:\[powerplay\] )?)(.*)$")
"""A line without a device, of the driver or of its part for computing (amdkfd/kfd_device.c). It begins
with fewer than 15 bytes of the driver's own."""
_INIT_WORDS = (
    r"Fatal error during GPU init|GPU reset end with ret = -[0-9]+|GPU reset\([0-9]+\) failed"
    r"|GPU Recovery Failed: -[0-9]+|device [0-9a-f]{4}:[0-9a-f]{4} NOT added due to errors"
    r"|This GPU is in BAD status"  # amdgpu_ras_eeprom.c: too many bad pages
)
_AMD_INIT = re.compile(rf"{_INIT_WORDS}|.*\bGPU will not be initialized", re.IGNORECASE)
_AMD_INIT_WHOLE = re.compile(rf"(?:{_INIT_WORDS})\.?", re.IGNORECASE)
_RAS = re.compile(
    r".{0,120}?\b([1-9][0-9]{0,9}) (?:new )?"
    r"((?:uncorrectable|deferred|correctable) hardware errors|poison consumption) detected"
    r"(?! in total)(.*)$",
    re.IGNORECASE,
)
_RAS_WHOLE = re.compile(
    r"(?:\{[0-9]{1,20}\})? ?(?:socket: [0-9]{1,4},? (?:die: [0-9]{1,4},? )?)?"
    r"[1-9][0-9]{0,9} (?:new )?(?:uncorrectable|deferred) hardware errors detected"
    r" in [a-z0-9_]{1,20} block",
    re.IGNORECASE,
)
"""All of the line, with nothing in it that a user may have written."""
_NAMED = re.compile(r".{1,15}?(?:\[[0-9]|/[0-9]| ?\([0-9])")
"""What the kernel says of a process: its name and its number."""
_RAS_FATAL = re.compile(
    r".{0,80}?\b(Uncorrectable hardware error(?!s)[^!]{0,200}detected.*)$", re.IGNORECASE
)
_AMD_KNOWN = re.compile(
    r"(?:\{[0-9]{1,20}\})? ?(?:"
    r"\[Hardware Error\]:"  # registers of an error that has a line of its own
    r"|.*\bhardware errors detected|.*\bpoison consumption detected"  # corrected errors, and totals
    r"|ring \S+ timeout|IP block:\S+ is hung|Process information: process| ?Process "
    r"|Illegal (?:opcode|register access) in command stream"  # errors of a program
    r"|(?:Starting \S+ ring reset|Ring \S+ reset (?:failed|succeeded))"  # a GPU reset follows
    r"|GPU reset(?:\([0-9]+\))? (?:begin|succeeded)"  # a program hung, and the driver recovers
    r"|(?:\[drm\] )?(?:AMDGPU device coredump|Dumping IP State|VRAM is lost due to GPU reset)"
    r"|\[\S+\] (?:no-)?(?:retry )?page fault|.*\bpage fault \(src_id|.*PROTECTION_FAULT_STATUS"
    r"|\s*(?:in (?:process|page)|for process|Faulty UTCL2|MORE_FAULTS|WALKER_ERROR"
    r"|PERMISSION_FAULTS|MAPPING_ERROR|RW):? )",
    re.IGNORECASE,
)
"""Lines with the level of an error that are not about an error of the device: amdgpu_ras.c,
gmc_v9_0.c (a program's page fault), amdgpu_job.c (a program's ring) of
drivers/gpu/drm/amd/amdgpu."""
_AMD_MENDED = re.compile(
    rf"amdgpu ({_BUS}):(?: amdgpu:)? GPU reset(?:\([0-9]+\))? succeeded", re.IGNORECASE
)
"""amdgpu_device_gpu_recover() has reset the device, so what the driver said of it before is
over."""
_SEVERITY = re.compile(r"Severity ([0-9]{1,3})\b", re.IGNORECASE)
_NEAR = 12
_RESET_RECORDS = 60
"""Records from the first message about a hang to the end of the reset; a dump of the state is among
them."""
_UUID = re.compile(rf"NVRM: GPU at ({_BUS}): (GPU-[0-9a-fA-F-]{{36}})")
_RECOVERY = re.compile(
    r"GPU recovery action changed from 0x[0-9a-fA-F]{1,8} \([^()]{0,60}\)"
    r" to 0x([0-9a-fA-F]{1,8}) \(([^()]{0,60})\)"
)
_PID = re.compile(r"pid='?(<unknown>|[0-9]{1,10})'?(?:, name=([^,]*))?(?:,\s*)?")
_TO_RESET = re.compile(r"\bRST: (?:Yes(?:, D-RST: (?:Yes|No))?|No, D-RST: Yes)$")
"""At the end of what the driver says of a contained or uncontained error (_gpuGenerateErrorLog_GA100()):
whether it asks for a reset, or for a drain and a reset."""
_FATAL = re.compile(r"\b(Non-?fatal|Fatal)\b", re.IGNORECASE)

LONGEST = 400


class Event(Struct, frozen=True, kw_only=True):
    """One line: an Xid of a GPU, an SXid of an NVSwitch, a GPU that could not be started or reset
    (init), a memory error of an AMD GPU (ras), or an error of amdgpu that is not known here (driver).
    `bus` as nvidia-smi writes it, empty where not told.

    `code` is 0 for init, ras and driver. `pid` None where the driver does not know it. `fatal` where the
    line says so. `line` is the index of the line it was read from.
    """

    kind: Literal["xid", "sxid", "init", "ras", "driver"]
    code: int
    bus: str
    text: str = ""
    mig: str = ""
    pid: int | None = None
    process: str = ""
    fatal: bool | None = None
    switch: int | None = None
    line: int = 0

    @property
    def row(self) -> xid_table.Row:
        """The table's row for the event."""
        if self.kind == "xid":
            return xid_table.row(self.code)
        if self.kind == "init":
            return xid_table.INIT
        if self.kind == "driver":
            return xid_table.UVM if self.text.startswith("uvm ") else xid_table.DRIVER
        rows = xid_table.RAS if self.kind == "ras" else xid_table.SWITCH
        return rows.get(self.fatal, xid_table.UNKNOWN)

    @property
    def meaning(self) -> str:
        """The meaning in words: for an Xid of NVLink 5 by its fields, for a recovery action with
        its word."""
        if self.kind == "xid" and self.code == xid_table.RECOVERY:
            return self._recovery()[1]
        found = decoded(self.code, self.text) if self.kind == "xid" else None
        return found.meaning if found else self.row.meaning

    @property
    def advice(self) -> Advice:
        """NVIDIA's recovery action if the line has one, else the table's advice."""
        if self.code == xid_table.RECOVERY and self.kind == "xid":
            return self._recovery()[0]
        if self.kind == "xid" and self.code in NVLINK_5:
            return self._linked()
        if self.kind == "xid" and _TO_RESET.search(self.text):
            return worst([self.row.advice, Advice.RESET])
        return self.row.advice

    def _recovery(self) -> tuple[Advice, str]:
        """The advice of NVIDIA's recovery action, and the meaning of the line."""
        found = _RECOVERY.search(self.text)
        if found is None:
            return self.row.advice, self.row.meaning
        advice = recovery(found[2], int(found[1], 16))
        words = f"{self.row.meaning} to {found[2]} (0x{found[1]})"
        if advice is None:
            return self.row.advice, f"{words}, which sentinel does not know"
        return advice, words

    def _linked(self) -> Advice:
        """The advice for an Xid of NVLink 5 by its fields; if they are not known, by its words. A
        line that calls itself fatal needs at least a reset."""
        found = decoded(self.code, self.text)
        if found is None:
            return Advice.MONITOR if self.fatal is False else self.row.advice
        return found.advice


class Told(Struct, frozen=True, kw_only=True):
    """What a log told: events in order, and which GPU sat at which bus id, by the driver itself."""

    events: tuple[Event, ...] = ()
    uuids: dict[str, str] = {}


def read(records: Iterable[str], levels: Sequence[int | None] = ()) -> Told:
    """Read all records of the kernel's log about GPUs and NVSwitches; others are skipped.

    A record is one text, however many lines it has: a later line may be a part of a file's name.
    `levels`: those of the records (0 to 7), if they are known."""
    events: list[Event] = []
    uuids: dict[str, str] = {}
    head = ("", 0)
    for number, record in enumerate(records):
        if not record.startswith(_MARKS):
            continue
        line, _, more = record.partition("\n")
        line = line.rstrip()
        if found := _UUID.match(line):
            uuids[bus_id(found[1])] = found[2]
        if found := _LOST_HEAD.match(line):
            head = (bus_id(found[1]), number)
            line = " ".join(
                [line, *(one.removeprefix("NVRM: ") for one in more.split("\n"))]
            ).rstrip()
        if found := _AMD_MENDED.match(line):
            events = [e for e in events if not _is_mended(e, bus_id(found[1]), number)]
        level = levels[number] if number < len(levels) else None
        if head[0] and number - head[1] < _LOST_LINES and _LOST_TAIL.match(line):
            events.append(_lost(head[0], number))
            head = ("", 0)
        elif (event := _event(line, number, level)) and not _repeats(event, events):
            events.append(event)
    return Told(events=tuple(events), uuids=uuids)


_MARKS = (
    "NVRM: ",
    "nvidia-nvswitch",
    "nvidia ",
    "nvidia: probe of ",
    "amdgpu",
    "kfd kfd: ",
    "[drm:",
)
"""The beginnings of these drivers' records."""


def _repeats(event: Event, before: Sequence[Event]) -> bool:
    """Whether the event is the Severity line of an SXid that was read already; lines of other
    switches may be between them. Or the driver's count of failed probes, just behind a line that
    names a GPU."""
    if event.kind == "init" and _PROBE_COUNT.match(f"NVRM: {event.text}"):
        return any(e.bus and event.line - e.line <= _NEAR for e in before[-_NEAR:])
    if event.kind != "sxid" or not _SEVERITY.match(event.text):
        return False
    return any((e.kind, e.code, e.bus) == ("sxid", event.code, event.bus) for e in before[-_NEAR:])


def _is_mended(event: Event, bus: str, number: int) -> bool:
    """Whether the reset of that GPU, in record `number`, ended the event. Lines of the driver
    without an address belong to the reset beside them."""
    nameless = not event.bus and number - event.line <= _RESET_RECORDS
    return event.kind == "driver" and (event.bus == bus or nameless)


def _event(line: str, number: int, level: int | None) -> Event | None:
    if found := _XID.match(line):
        return _xid(found, number)
    if (found := _LOST.match(line)) and (found[1].count(":") > 1 or is_warning(level)):
        return _lost(bus_id(found[1]), number)  # without a domain a name is as long
    if found := _INACCESSIBLE.match(line):
        return _lost(bus_id(found[1]), number)
    if (found := _INIT.match(line)) and found[1]:
        return _init(found[1], f"RmInitAdapter failed{found[2]}", number)
    if found := _NO_ADAPTER.match(line):
        return _init(found[1], found[2], number)
    if found := _PROBE.match(line):
        return _init(found[2] or found[4], f"the driver's probe {found[5]}", number)
    if (found := _AMD.match(line)) and found[1]:
        return _amd(found[1], found[2], number, level)
    return _sxid(line, number) or _nameless_event(line, number, level)


def _nameless_event(line: str, number: int, level: int | None) -> Event | None:
    """The event of a line that names no device. A user may have put together such a line, so it
    counts only at the level of its driver, and only if all of it is the driver's. NVIDIA's driver
    gives no level, so its lines have the kernel's default, KERN_WARNING: nv_printf() in
    kernel-open/nvidia/os-interface.c."""
    if level is None or not is_warning(level):
        return None
    if found := _WATCHDOG.match(line):
        return Event(kind="driver", code=0, bus="", text=_plain(found[1]), line=number)
    if found := _REBOOT.match(line):
        return Event(kind="driver", code=0, bus="", text=found[1], line=number)
    if _LOST_TAIL.match(line):  # the line that names the program is missing
        return _lost("", number)
    if (found := _INIT.match(line)) and _INIT_CODE.fullmatch(found[2]):
        return _init("", f"RmInitAdapter failed{found[2]}", number)
    if found := _PROBE_COUNT.match(line):
        return _init("", found[1], number)
    if found := _AMD.match(line):
        return _nameless_amd(found[2], number, level)
    if (found := _AMD_NAMELESS.match(line)) and not _NAMED.match(line):
        return _nameless_amd(found[1], number, level)
    return None


def _nameless_amd(text: str, number: int, level: int) -> Event | None:
    """amdgpu tells its errors with KERN_ERR."""
    if level > ERROR_LEVEL:
        return None
    if _AMD_INIT_WHOLE.fullmatch(text):
        return _init("", text, number)
    if _RAS_WHOLE.fullmatch(text):
        return _ras("", text, number)
    if _AMD_KNOWN.match(text) or not is_trouble_line(level, text):
        return None
    return Event(kind="driver", code=0, bus="", text=_plain(text), line=number)


def _init(bus: str, text: str, number: int) -> Event:
    return Event(kind="init", code=0, bus=bus_id(bus), text=_plain(text), line=number)


def _amd(bus: str, text: str, number: int, level: int | None) -> Event | None:
    if found := _AMD_INIT.match(text):
        return _init(bus, found[0], number)
    if event := _ras(bus, text, number):
        return event
    if _AMD_KNOWN.match(text) or not is_trouble_line(level, text):
        return None
    return Event(kind="driver", code=0, bus=bus_id(bus), text=_plain(text), line=number)


def _ras(bus: str, text: str, number: int) -> Event | None:
    """The event of a RAS line. Corrected errors are no events: the driver says that no user action
    is needed."""
    if found := _RAS_FATAL.match(text):
        said, fatal = found[1], True
    elif (found := _RAS.match(text)) and not found[2].lower().startswith("correctable"):
        said = f"{found[1]} {found[2]} detected{found[3]}"
        fatal = found[2].lower().startswith("uncorrectable")
    else:
        return None
    return Event(kind="ras", code=0, bus=bus_id(bus), text=_plain(said), fatal=fatal, line=number)


def _sxid(line: str, number: int) -> Event | None:
    found = _SXID.match(line)
    if not found or found[4].lstrip().startswith("Data"):
        return None
    return Event(
        kind="sxid",
        code=int(found[3]),
        bus=bus_id(found[2]),
        text=_plain(found[4]),
        fatal=_fatal(found[4]),
        switch=int(found[1][:6]),
        line=number,
    )


def _xid(found: re.Match[str], number: int) -> Event:
    rest = found[4] or ""
    pid = _PID.match(rest)
    text = rest[pid.end() :] if pid else rest
    known = pid is not None and pid[1] != "<unknown>"
    name = pid[2] or "" if pid else ""
    return Event(
        kind="xid",
        code=int(found[3]),
        bus=bus_id(found[1] or ""),
        text=_plain(text),
        mig=found[2] or "",
        pid=int(pid[1]) if pid is not None and known else None,
        process="" if name == "<unknown>" else _plain(name),
        fatal=None
        if known
        else _fatal(text),  # the name of a program may hold a comma and this word
        line=number,
    )


def _lost(bus: str, number: int) -> Event:
    text = "GPU has fallen off the bus"
    return Event(kind="xid", code=xid_table.LOST, bus=bus, text=text, line=number)


def _fatal(text: str) -> bool | None:
    """Whether the line is fatal: by its word, else by the driver's NVSWITCH_ERROR_SEVERITY_NONFATAL
    (0) or _FATAL (1). None if it does not say."""
    if found := _FATAL.search(text):
        return found[1].lower() == "fatal"
    number = _SEVERITY.search(text)
    return {"0": False, "1": True}.get(number[1]) if number else None


def _plain(text: str) -> str:
    return shortened(visible(text.strip()), LONGEST)
