"""Lines of the kernel's log about GPUs and NVSwitches, into events. Pure; never raises.

Every documented form is read: with and without `PCI:`, MIG instances, `pid='<unknown>'`, GPUs
that fell off the bus without an Xid (the bus is empty where its line is not here) or could not be
started (RmInitAdapter), SXid of NVSwitches,
their Severity lines (once with the line they belong to) and Data lines (no events). Of amdgpu:
what its RAS code says of uncorrectable errors, drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c
(amdgpu_ras_error_print_error_data, amdgpu_ras_global_ras_isr) and ras/rascore/ras_aca.c of Linux.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from sentinel.core.text import shortened, visible
from sentinel.gpu import nvlink5, xid_table
from sentinel.gpu.advice import Advice, recovery
from sentinel.gpu.bus import bus_id

_BUS = r"(?:PCI:)?[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \((?:({_BUS})(?: GPU-I:([0-9a-fA-F]+))?|[^)]*)\): ([0-9]{{1,5}})(?:[,\s]\s*(.*))?$"
)
_SXID = re.compile(rf"nvidia-nvswitch([0-9]+): SXid \((?:({_BUS})|[^)]*)\): ([0-9]{{1,6}}), (.*)$")
_LOST = re.compile(rf"NVRM: GPU (?:at )?({_BUS})(?:: GPU)? has fallen off the bus")
_LOST_HEAD = re.compile(rf"NVRM: The NVIDIA GPU ({_BUS})\b")
_LOST_TAIL = re.compile(r"NVRM: .*fallen off the bus and is not|NVRM: fallen off the bus")
_LOST_LINES = 3
_INIT = re.compile(rf"NVRM: (?:GPU[- ](?:at )?({_BUS}): )?RmInitAdapter failed!?(.*)$")
_RAS = re.compile(
    rf"amdgpu ({_BUS}):.*?\b([1-9][0-9]{{0,9}}) (?:new )?"
    r"((?:uncorrectable|deferred|correctable) hardware errors|poison consumption) detected"
    r"(?! in total)(.*)$"
)
_RAS_FATAL = re.compile(rf"amdgpu ({_BUS}):.*?\b(Uncorrectable hardware error ?\(?.*detected.*)$")
_SEVERITY = re.compile(r"Severity ([0-9]{1,3})\b", re.IGNORECASE)
_NEAR = 12
_UUID = re.compile(rf"NVRM: GPU at ({_BUS}): (GPU-[0-9a-fA-F-]{{36}})")
_RECOVERY = re.compile(r"changed from 0x[0-9a-fA-F]+ \(.*?\) to 0x[0-9a-fA-F]+ \((.*?)\)")
_PID = re.compile(r"pid='?(<unknown>|[0-9]{1,10})'?(?:, name=([^,]*))?(?:,\s*)?")
_FATAL = re.compile(r"\b(Non-?fatal|Fatal)\b", re.IGNORECASE)

LONGEST = 400


class Event(Struct, frozen=True, kw_only=True):
    """One line: an Xid of a GPU, an SXid of an NVSwitch, a GPU that could not be started (init), or
    a memory error of an AMD GPU (ras). `bus` as nvidia-smi writes it, empty where not told.

    `code` is 0 for init and ras. `pid` None where the driver does not know it. `fatal` where the
    line says so. `line` is the index of the line it was read from.
    """

    kind: Literal["xid", "sxid", "init", "ras"]
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
        """What the table says of it."""
        if self.kind == "xid":
            return xid_table.row(self.code)
        if self.kind == "init":
            return xid_table.INIT
        rows = xid_table.RAS if self.kind == "ras" else xid_table.SWITCH
        return rows.get(self.fatal, xid_table.UNKNOWN)

    @property
    def meaning(self) -> str:
        """In words: of an Xid of NVLink 5 by its fields."""
        found = nvlink5.decoded(self.code, self.text) if self.kind == "xid" else None
        return found.meaning if found else self.row.meaning

    @property
    def advice(self) -> Advice:
        """NVIDIA's recovery action where the line carries one, else the table's."""
        if self.code == xid_table.RECOVERY and self.kind == "xid":
            found = _RECOVERY.search(self.text)
            return (recovery(found[1]) if found else None) or self.row.advice
        if self.kind == "xid" and self.code in nvlink5.CODES:
            return self._linked()
        return self.row.advice

    def _linked(self) -> Advice:
        """By its fields; where they tell nothing by its words. What the line calls fatal needs no
        less than a reset."""
        found = nvlink5.decoded(self.code, self.text)
        if found is None:
            return Advice.MONITOR if self.fatal is False else self.row.advice
        return found.advice


class Told(Struct, frozen=True, kw_only=True):
    """What a log told: events in order, and which GPU sat at which bus id, by the driver itself."""

    events: tuple[Event, ...] = ()
    uuids: dict[str, str] = {}


def read(lines: Iterable[str]) -> Told:
    """All that the lines say of NVIDIA devices; other lines are passed over."""
    events: list[Event] = []
    uuids: dict[str, str] = {}
    head = ("", 0)
    for number, line in enumerate(lines):
        if not any(mark in line for mark in _MARKS):
            continue
        if found := _UUID.search(line):
            uuids[bus_id(found[1])] = found[2]
        if found := _LOST_HEAD.search(line):
            head = (bus_id(found[1]), number)
        if head[0] and number - head[1] < _LOST_LINES and _LOST_TAIL.search(line):
            events.append(_lost(head[0], number))
            head = ("", 0)
        elif (event := _event(line, number)) and not _repeats(event, events):
            events.append(event)
    return Told(events=tuple(events), uuids=uuids)


_MARKS = ("NVRM: ", "SXid", "amdgpu ")


def _repeats(event: Event, before: Sequence[Event]) -> bool:
    """The Severity line of an SXid follows its words, and those of other switches come between."""
    if event.kind != "sxid" or not _SEVERITY.match(event.text):
        return False
    return any((e.kind, e.code, e.bus) == ("sxid", event.code, event.bus) for e in before[-_NEAR:])


def _event(line: str, number: int) -> Event | None:
    if found := _XID.search(line.rstrip()):
        return _xid(found, number)
    if found := _LOST.search(line):
        return _lost(bus_id(found[1]), number)
    if _LOST_TAIL.search(line):  # whose name stood in a line that is not here
        return _lost("", number)
    if found := _INIT.search(line.rstrip()):
        text = _plain(f"RmInitAdapter failed{found[2]}")
        return Event(kind="init", code=0, bus=bus_id(found[1] or ""), text=text, line=number)
    if "amdgpu " in line:
        return _ras(line.rstrip(), number)
    return _sxid(line.rstrip(), number)


def _ras(line: str, number: int) -> Event | None:
    """Corrected errors are no events: the driver says that no user action is needed."""
    if found := _RAS_FATAL.search(line):
        bus, text, fatal = found[1], found[2], True
    elif (found := _RAS.search(line)) and not found[3].startswith("correctable"):
        bus, text = found[1], f"{found[2]} {found[3]} detected{found[4]}"
        fatal = found[3].startswith("uncorrectable")
    else:
        return None
    return Event(kind="ras", code=0, bus=bus_id(bus), text=_plain(text), fatal=fatal, line=number)


def _sxid(line: str, number: int) -> Event | None:
    found = _SXID.search(line)
    if not found or found[4].lstrip().startswith("Data"):
        return None
    return Event(
        kind="sxid",
        code=int(found[3]),
        bus=bus_id(found[2] or ""),
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
        fatal=_fatal(text),
        line=number,
    )


def _lost(bus: str, number: int) -> Event:
    text = "GPU has fallen off the bus"
    return Event(kind="xid", code=xid_table.LOST, bus=bus, text=text, line=number)


def _fatal(text: str) -> bool | None:
    """By the word; else by NVSWITCH_ERROR_SEVERITY_NONFATAL (0) and _FATAL (1) of the driver."""
    if found := _FATAL.search(text):
        return found[1].lower() == "fatal"
    number = _SEVERITY.search(text)
    return {"0": False, "1": True}.get(number[1]) if number else None


def _plain(text: str) -> str:
    return shortened(visible(text.strip()), LONGEST)
