"""Lines of the kernel's log about NVIDIA devices, into events. Pure; never raises.

Every documented form is read: with and without `PCI:`, MIG instances, `pid='<unknown>'`, GPUs
that fell off the bus without an Xid, SXid of NVSwitches and their Data lines (no events).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from sentinel.core.text import shortened, visible
from sentinel.gpu import xid_table
from sentinel.gpu.advice import Advice, recovery
from sentinel.gpu.bus import bus_id

_BUS = r"(?:PCI:)?[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \(({_BUS})(?: GPU-I:([0-9a-fA-F]+))?\): ([0-9]{{1,5}})(?:,\s*(.*))?$"
)
_SXID = re.compile(rf"nvidia-nvswitch([0-9]+): SXid \(({_BUS})\): ([0-9]{{1,6}}), (.*)$")
_LOST = re.compile(rf"NVRM: GPU (?:at )?({_BUS}): GPU has fallen off the bus")
_LOST_HEAD = re.compile(rf"NVRM: The NVIDIA GPU ({_BUS})\s*$")
_LOST_TAIL = re.compile(r"NVRM: fallen off the bus and is not responding")
_UUID = re.compile(rf"NVRM: GPU at ({_BUS}): (GPU-[0-9a-fA-F-]{{36}})")
_RECOVERY = re.compile(r"changed from 0x[0-9a-fA-F]+ \(.*?\) to 0x[0-9a-fA-F]+ \((.*?)\)")
_PID = re.compile(r"pid='?(<unknown>|[0-9]{1,10})'?(?:, name=([^,]*))?(?:,\s*)?")
_FATAL = re.compile(r"\b(Non-?fatal|Fatal)\b", re.IGNORECASE)

LONGEST = 400


class Event(Struct, frozen=True, kw_only=True):
    """One line: an Xid of a GPU, or an SXid of an NVSwitch. `bus` as nvidia-smi writes it.

    `pid` None where the driver does not know it. `fatal` where the line says so. `line` is the
    index of the line it was read from.
    """

    kind: Literal["xid", "sxid"]
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
        if self.kind == "sxid":
            return xid_table.SWITCH_FATAL if self.fatal else xid_table.SWITCH_MILD
        return xid_table.row(self.code)

    @property
    def advice(self) -> Advice:
        """NVIDIA's recovery action where the line carries one, else the table's."""
        if self.code == xid_table.RECOVERY and self.kind == "xid":
            found = _RECOVERY.search(self.text)
            return (recovery(found[1]) if found else None) or self.row.advice
        if self.code in xid_table.NVLINK5 and self.fatal is False:
            return Advice.MONITOR
        return self.row.advice


class Told(Struct, frozen=True, kw_only=True):
    """What a log told: events in order, and which GPU sat at which bus id, by the driver itself."""

    events: tuple[Event, ...] = ()
    uuids: dict[str, str] = {}


def read(lines: Iterable[str]) -> Told:
    """All that the lines say of NVIDIA devices; other lines are passed over."""
    events: list[Event] = []
    uuids: dict[str, str] = {}
    head = ""
    for number, line in enumerate(lines):
        if "NVRM: " not in line and "SXid" not in line:
            continue
        if found := _UUID.search(line):
            uuids[bus_id(found[1])] = found[2]
        elif found := _LOST_HEAD.search(line):
            head = bus_id(found[1])
        elif _LOST_TAIL.search(line) and head:
            events.append(_lost(head, number))
            head = ""
        elif event := _event(line, number):
            events.append(event)
    return Told(events=tuple(events), uuids=uuids)


def _event(line: str, number: int) -> Event | None:
    if found := _XID.search(line.rstrip()):
        return _xid(found, number)
    if found := _LOST.search(line):
        return _lost(bus_id(found[1]), number)
    found = _SXID.search(line.rstrip())
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
        bus=bus_id(found[1]),
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
    found = _FATAL.search(text)
    return None if not found else found[1].lower() == "fatal"


def _plain(text: str) -> str:
    return shortened(visible(text.strip()), LONGEST)
