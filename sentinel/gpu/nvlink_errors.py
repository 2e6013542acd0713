"""What the fields of Xid 144 to 150 say: the decode table of NVIDIA's catalogue, as data. Pure.

`149, NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6 0x00000000 …)`: unit, severity, link, then
intrinfo and error status. Of 144 to 148 and 150 the bits of the status decide, of 149 the unit,
its status and for a link that went down the reason (bits 20 to 25 of intrinfo).
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html ("XID 144-150 Decode")
"""

from __future__ import annotations

import re

from msgspec import Struct

from sentinel.gpu.advice import Advice

NVLINK_5 = range(144, 151)
"""The numbers of the Xids of NVLink 5."""
_FIELDS = re.compile(
    r"\b([A-Z][A-Z0-9_]+(?:/[A-Z0-9_]+)?)\s+(?:Link )?(?:Non-?fatal|Fatal)\b.{0,120}?"
    r"\((0x[0-9a-fA-F]{1,8})[ ,]+(0x[0-9a-fA-F]{1,8})",
    re.IGNORECASE,
)


class Decoded(Struct, frozen=True, kw_only=True):
    """The meaning of a line, and what to do."""

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
"""Reasons of a lost link after which NVIDIA asks for no reset."""

_MFDE_FATAL, _MFDE_MILD = (1, 4, 5, 7), (3,)


def decoded(code: int, text: str) -> Decoded | None:
    """The meaning of a line by its fields; None if it has none or they are not in the table. Then
    the words of the line count."""
    found = _FIELDS.search(text) if code in NVLINK_5 else None
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
