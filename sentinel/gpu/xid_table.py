"""What each Xid and SXid means and asks for: data, with the source of every row.

NVIDIA's catalogue is the source wherever it says something; where public checkers differ from
it, the milder reading of NVIDIA wins and the row says so. Numbers that are not here ask for
NVIDIA's support: an unknown error is never "nothing".
"""

from __future__ import annotations

from msgspec import Struct

from sentinel.gpu.advice import Advice

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
MEMORY = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/"
GPUD = "https://github.com/leptonai/gpud (components/accelerator/nvidia/xid)"
NOTES = "https://github.com/stas00/ml-engineering (compute/accelerator/nvidia/debug.md)"
FABRIC = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"


class Row(Struct, frozen=True, kw_only=True):
    """Some numbers, what they mean, what to do, and who says so."""

    codes: tuple[int, ...]
    meaning: str
    advice: Advice
    source: str = CATALOGUE


ROWS: tuple[Row, ...] = (
    Row(
        codes=(8, 11, 25, 32),
        meaning="a program's stream of commands stopped, or was not valid",
        advice=Advice.RESTART_APP,
    ),
    Row(codes=(13,), meaning="exception in a program's kernel", advice=Advice.RESTART_APP),
    Row(codes=(31,), meaning="memory page fault of a program", advice=Advice.RESTART_APP),
    Row(codes=(43, 45), meaning="a program's channel was stopped", advice=Advice.IGNORE),
    Row(codes=(137,), meaning="NVLink error of a program", advice=Advice.RESTART_APP),
    Row(
        codes=(14, 37, 38, 44, 66, 67, 93, 106, 107, 141, 157),
        meaning="for information",
        advice=Advice.IGNORE,
    ),
    Row(
        codes=(
            *(39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89),
            *range(96, 106),
            *range(126, 136),
            139,
        ),
        meaning="exception in an engine (copy, video)",
        advice=Advice.RESTART_APP,
    ),
    Row(
        codes=(46, 62, 109, 110, 136, 155, 156, 158),
        meaning="the GPU or its firmware stopped working",
        advice=Advice.RESET,
    ),
    Row(
        codes=(48,),
        meaning="double bit (uncorrectable) memory error",
        advice=Advice.DIAGNOSE,
        source=MEMORY,
    ),
    Row(codes=(54,), meaning="auxiliary power is missing", advice=Advice.DIAGNOSE),
    Row(
        codes=(63,),
        meaning="a row remapping (page retirement) was recorded; active after a reset",
        advice=Advice.RESET,
        source=MEMORY,
    ),
    Row(
        codes=(64,),
        meaning="a row remapping (page retirement) failed",
        advice=Advice.DIAGNOSE,
        source=MEMORY,
    ),
    Row(codes=(74,), meaning="NVLink error", advice=Advice.DIAGNOSE),
    Row(codes=(79,), meaning="the GPU has fallen off the bus", advice=Advice.REBOOT),
    Row(codes=(92,), meaning="many single bit memory errors", advice=Advice.MONITOR),
    Row(
        codes=(94,),
        meaning="contained memory error: only the program on it is hit",
        advice=Advice.RESTART_APP,
        source=MEMORY,
    ),
    Row(
        codes=(95,),
        meaning="uncontained memory error: every program on it is hit",
        advice=Advice.RESET,
        source=MEMORY,
    ),
    Row(
        codes=(119, 120),
        meaning="the GPU's system processor (GSP) does not answer; counts are rate limited",
        advice=Advice.RESET,
    ),
    Row(codes=(121,), meaning="corrected error of the link to the CPU", advice=Advice.MONITOR),
    Row(codes=(140,), meaning="unrecovered memory error", advice=Advice.DIAGNOSE, source=MEMORY),
    Row(codes=(143,), meaning="the GPU cannot be initialised", advice=Advice.DIAGNOSE),
    Row(
        codes=(144, 145, 146, 147, 148, 149, 150),
        meaning="NVLink 5 error",
        advice=Advice.DIAGNOSE,
    ),
    Row(codes=(151, 167, 168), meaning="PCIe or key rotation error", advice=Advice.REBOOT),
    Row(
        codes=(152, 153, 160, 162, 163, 164, 165),
        meaning="recorded for a later look",
        advice=Advice.MONITOR,
    ),
    Row(codes=(161,), meaning="memory channel retirement failed", advice=Advice.DIAGNOSE),
    Row(
        codes=(171, 172),
        meaning="where an uncorrectable memory error was (DRAM, SRAM)",
        advice=Advice.DIAGNOSE,
    ),
)

LOST = 79
RECOVERY = 154
NVLINK5 = range(144, 151)
"""Their text says whether they are fatal; those that are not need only be watched."""

_BY_CODE = {code: row for row in ROWS for code in row.codes}
UNKNOWN = Row(codes=(), meaning="not in the table", advice=Advice.CONTACT, source=CATALOGUE)
RECOVERED = Row(
    codes=(RECOVERY,), meaning="NVIDIA's recovery action changed", advice=Advice.CONTACT
)
SWITCH_FATAL = Row(codes=(), meaning="fatal NVSwitch error", advice=Advice.DIAGNOSE, source=FABRIC)
SWITCH_MILD = Row(
    codes=(), meaning="non-fatal NVSwitch error", advice=Advice.MONITOR, source=FABRIC
)


def row(code: int) -> Row:
    """The row of an Xid; UNKNOWN's for one that is in no table."""
    return RECOVERED if code == RECOVERY else _BY_CODE.get(code, UNKNOWN)
