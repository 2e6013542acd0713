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

from sentinel.core.text import shortened, visible
from sentinel.gpu import xid_table
from sentinel.gpu.advice import Advice, recovery
from sentinel.gpu.bus import bus_id

_BUS = r"(?:PCI:)?[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \((?:({_BUS})(?: GPU-I:([0-9a-fA-F]+))?|[^)]*)\): ([0-9]{{1,5}})(?:[,\s]\s*(.*))?$"
)
_SXID = re.compile(rf"nvidia-nvswitch([0-9]+): SXid \((?:({_BUS})|[^)]*)\): ([0-9]{{1,6}}), (.*)$")
_LOST = re.compile(
    rf"NVRM: GPU (?:at )?({_BUS}|[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}(?:\.[0-7])?)(?:: GPU)? has fallen off the bus"
)
_LOST_HEAD = re.compile(rf"NVRM: The NVIDIA GPU ({_BUS})\b")
_LOST_TAIL = re.compile(r"NVRM: .*fallen off the bus and is not|NVRM: fallen off the bus")
_LOST_LINES = 3
_INIT = re.compile(rf"NVRM: (?:GPU[- ](?:at )?({_BUS}): )?RmInitAdapter failed!?(.*)$")
_INIT_AMD = re.compile(
    rf"amdgpu ({_BUS}): (?:amdgpu: )?(Fatal error during GPU init|GPU reset end with ret = -[0-9]+)"
)
_RAS = re.compile(
    rf"amdgpu ({_BUS}):.*?\b([1-9][0-9]{{0,9}}) (?:new )?"
    r"((?:uncorrectable|deferred|correctable) hardware errors|poison consumption) detected"
    r"(?! in total)(.*)$"
)
_RAS_FATAL = re.compile(rf"amdgpu ({_BUS}):.*?\b(Uncorrectable hardware error ?\(?.*detected.*)$")
_SEVERITY = re.compile(r"Severity ([0-9]{1,3})\b", re.IGNORECASE)
_NEAR = 12
_UUID = re.compile(rf"NVRM: GPU at ({_BUS}): (GPU-[0-9a-fA-F-]{{36}})")
_RECOVERY = re.compile(
    r"GPU recovery action changed from 0x[0-9a-fA-F]{1,8} \([^()]{0,60}\)"
    r" to 0x([0-9a-fA-F]{1,8}) \(([^()]{0,60})\)"
)
_PID = re.compile(r"pid='?(<unknown>|[0-9]{1,10})'?(?:, name=([^,]*))?(?:,\s*)?")
_FATAL = re.compile(r"\b(Non-?fatal|Fatal)\b", re.IGNORECASE)

LONGEST = 400


class Event(Struct, frozen=True, kw_only=True):
    """One line: an Xid of a GPU, an SXid of an NVSwitch, a GPU that could not be started or reset
    (init), or a memory error of an AMD GPU (ras). `bus` as nvidia-smi writes it, empty where not told.

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
        found = decoded(self.code, self.text) if self.kind == "xid" else None
        return found.meaning if found else self.row.meaning

    @property
    def advice(self) -> Advice:
        """NVIDIA's recovery action where the line carries one, else the table's."""
        if self.code == xid_table.RECOVERY and self.kind == "xid":
            found = _RECOVERY.search(self.text)
            known = recovery(found[2], int(found[1], 16)) if found else None
            return known or self.row.advice
        if self.kind == "xid" and self.code in CODES:
            return self._linked()
        return self.row.advice

    def _linked(self) -> Advice:
        """By its fields; where they tell nothing by its words. What the line calls fatal needs no
        less than a reset."""
        found = decoded(self.code, self.text)
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
        return _init(found[1] or "", f"RmInitAdapter failed{found[2]}", number)
    if found := _INIT_AMD.search(line):
        return _init(found[1], found[2], number)
    if "amdgpu " in line:
        return _ras(line.rstrip(), number)
    return _sxid(line.rstrip(), number)


def _init(bus: str, text: str, number: int) -> Event:
    return Event(kind="init", code=0, bus=bus_id(bus), text=_plain(text), line=number)


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


# What the fields of Xid 144 to 150 say: the decode table of NVIDIA's catalogue, as data. Pure.
#
# `149, NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6 0x00000000 …)`: unit, severity, link, then
# intrinfo and error status. Of 144 to 148 and 150 the bits of the status decide, of 149 the unit,
# its status and for a link that went down the reason (bits 20 to 25 of intrinfo).
# https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html ("XID 144-150 Decode")


CODES = range(144, 151)
_FIELDS = re.compile(
    r"\b([A-Z][A-Z0-9_]+(?:/[A-Z0-9_]+)?)\s+(?:Link )?(?:Non-?fatal|Fatal)\b.*?"
    r"\((0x[0-9a-fA-F]{1,8})[ ,]+(0x[0-9a-fA-F]{1,8})",
    re.IGNORECASE,
)


class Decoded(Struct, frozen=True, kw_only=True):
    """What a line means, and what to do."""

    meaning: str
    advice: Advice


_NVLINK_FATAL: dict[str, tuple[int, int]] = {
    "SAW_MVB": (0x12, 0x2D),
    "RLW_CTRL": (0, 0x80000000),
    "RLW_REMAP": (0xC0, 0x8000033F),
    "RLW_RSPCOL": (0x2, 0x80000001),
    "RLW_RXPIPE": (0, 0x8000000F),
    "RLW_SRC_TRACK": (0x31, 0x8000000E),
    "RLW_TAGSTATE": (0x120002, 0x80010001),
    "TLW_CTRL": (0x4, 0x80000003),
    "TLW_RX": (0x4, 0x80000003),
    "TLW_TX": (0x4, 0x80000003),
    "TREX": (0, 0x80000001),
    "NVLPW": (0, 0x80000000),
}
"""By unit: bits of the error status that are fatal (RESET_GPU), and those that are not (IGNORE, or
what Xid 154 says)."""

_SIGNAL = "look at the link's signal and cables"
_PEER = "look at the device at the other end"
_USER = "look at what software or a user did"
_DOWN: dict[int, str] = {
    0: "the other end may know why",
    1: "report it if it comes more than once a day",
    **dict.fromkeys((2, 4, 10, 42, 43), _SIGNAL),
    **dict.fromkeys((15, 17, 22), _USER),
    **dict.fromkeys((16, 18), f"{_USER}, then at the link"),
    **dict.fromkeys((21, 32, 33, 34, 35, 36, 37), _PEER),
}
_IGNORED: dict[int, str] = {38: _USER, 40: "look at the host"}
"""Reasons of a link that went down after which NVIDIA asks for no reset."""

_MFDE_FATAL, _MFDE_MILD = (1, 4, 5, 7), (3,)


def decoded(code: int, text: str) -> Decoded | None:
    """None where the fields are not there, or not in the table: then the words of the line count."""
    found = _FIELDS.search(text) if code in CODES else None
    if not found:
        return None
    unit, intrinfo, status = found[1].upper(), int(found[2], 16), int(found[3], 16)
    if code == 149:
        return _netir(unit, intrinfo, status)
    if unit.startswith("MSE_WATCHDOG"):
        return _reset("its engine's watchdog ran out")
    fatal, mild = next((v for k, v in _NVLINK_FATAL.items() if unit.startswith(k)), (0, 0))
    if status & fatal:
        return _reset(f"a fatal error of {unit}")
    known = status and not status & ~mild
    return _watch(f"an error of {unit} that is not fatal") if known else None


def _netir(unit: str, intrinfo: int, status: int) -> Decoded | None:
    if unit.startswith("NETIR_LINK"):
        return _link((intrinfo >> 20) & 0x3F)
    if unit.startswith("NETIR_BER"):
        return _watch(f"many bit errors: {_SIGNAL}")
    if unit.startswith("NETIR_MFDE"):
        if status in _MFDE_FATAL:
            return _reset("a fatal error of the link's firmware")
        return _watch("an event of the link's firmware") if status in _MFDE_MILD else None
    return _reset("a link went down: the other end may know why") if unit[:5] == "NETIR" else None


def _link(reason: int) -> Decoded | None:
    if reason in _IGNORED:
        return _watch(f"a link went down: {_IGNORED[reason]}")
    return _reset(f"a link went down: {_DOWN[reason]}") if reason in _DOWN else None


def _reset(meaning: str) -> Decoded:
    return Decoded(meaning=f"NVLink 5: {meaning}", advice=Advice.RESET)


def _watch(meaning: str) -> Decoded:
    return Decoded(meaning=f"NVLink 5: {meaning}", advice=Advice.MONITOR)
