"""What each Xid and SXid means and asks for: data, with the source of every row.

NVIDIA's catalogue is the source wherever it says something (https://docs.nvidia.com/deploy/
xid-errors/analyzing-xid-catalog.html, as of October 2025). A row that asks for something else says
what and why in `differs`. Numbers that are not here ask for NVIDIA's support: an unknown error is never "nothing".
"""

from __future__ import annotations

from msgspec import Struct

from sentinel.gpu.advice import Advice

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
MEMORY = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/"
DRIVER_SOURCE = "https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/src/common/sdk/nvidia/inc/nverror.h"
"""Source for numbers of newer drivers (595.45.04) that NVIDIA's catalogue lacks; only their names
are known."""
FABRIC = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"


class Row(Struct, frozen=True, kw_only=True):
    """Some numbers, what they mean, what to do, and the source. `differs`: what NVIDIA's catalogue
    says instead, and why it is not followed."""

    codes: tuple[int, ...]
    meaning: str
    advice: Advice
    source: str = CATALOGUE
    differs: str = ""


ROWS: tuple[Row, ...] = (
    Row(
        codes=(8, 11, 25, 32),
        meaning="a program's stream of commands stopped, or was not valid",
        advice=Advice.RESTART_APP,
    ),
    Row(codes=(13,), meaning="exception in a program's kernel", advice=Advice.RESTART_APP),
    Row(codes=(31,), meaning="memory page fault of a program", advice=Advice.RESTART_APP),
    Row(codes=(43,), meaning="a program's channel was stopped", advice=Advice.IGNORE),
    Row(
        codes=(45,),
        meaning="a program's channel was stopped",
        advice=Advice.IGNORE,
        differs="WORKFLOW_XID_45: alone it asks to restart the fabric manager; programs that are "
        "killed leave it too, and it follows other Xids, which are told",
    ),
    Row(
        codes=(108, 137),
        meaning="NVLink error of a program",
        advice=Advice.RESTART_APP,
        differs="IGNORE, then XID_137_FLOW: the program that met it has to be started again",
    ),
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
        differs="WORKFLOW_XID_48: what is next depends on the Xids 63, 64, 94 and 95 beside it",
    ),
    Row(
        codes=(54,),
        meaning="auxiliary power is missing",
        advice=Advice.DIAGNOSE,
        differs="CHECK_MECHANICALS: somebody has to go there",
    ),
    Row(
        codes=(78, 142, 159),
        meaning="a vGPU that did not start, NVENC3, or a CHI error",
        advice=Advice.CONTACT,
        differs="UPDATE_SWFW (78), CHECK_UVM (159): not for the one who reads this alone",
    ),
    Row(
        codes=(63,),
        meaning="a row remapping (page retirement) was recorded; active after a reset",
        advice=Advice.RESET,
        source=MEMORY,
        differs="IGNORE: programs go on, so it is a warning; but the row is not replaced before a "
        "reset, and the same memory fails again until then",
    ),
    Row(
        codes=(64,),
        meaning="a row remapping (page retirement) failed",
        advice=Advice.DIAGNOSE,
        source=MEMORY,
        differs="RESET_GPU, then support: no reset brings spare rows back, and it is the condition "
        "for a replacement",
    ),
    Row(
        codes=(74,),
        meaning="NVLink error",
        advice=Advice.DIAGNOSE,
        differs="WORKFLOW_NVLINK_ERR: by registers that people have to read",
    ),
    Row(codes=(79,), meaning="the GPU has fallen off the bus", advice=Advice.REBOOT),
    Row(
        codes=(92,),
        meaning="many single bit memory errors",
        advice=Advice.MONITOR,
        differs="IGNORE, then support: a rate that grows is worth a look",
    ),
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
    Row(
        codes=(121,),
        meaning="corrected error of the link to the CPU",
        advice=Advice.MONITOR,
        differs="IGNORE, then support: a rate that grows is worth a look",
    ),
    Row(codes=(140,), meaning="unrecovered memory error", advice=Advice.RESET),
    Row(codes=(143,), meaning="the GPU cannot be initialised", advice=Advice.RESET),
    Row(
        codes=(144, 145, 146, 147, 148, 149, 150),
        meaning="NVLink 5 error",
        advice=Advice.DIAGNOSE,
        differs="WORKFLOW_NVLINK5_ERR: done here by the line's fields (sentinel.gpu.nvlink_errors); this "
        "holds for a line whose fields are missing or not in NVIDIA's table",
    ),
    Row(codes=(151,), meaning="key rotation error", advice=Advice.REBOOT),
    Row(
        codes=(167, 168),
        meaning="PCIe timeout, or errors in protected memory",
        advice=Advice.REBOOT,
        differs="no action is given: both leave the GPU in a state that outlasts a reset",
    ),
    Row(
        codes=(152, 153, 160, 161, 162, 163, 164, 165),
        meaning="recorded for a later look",
        advice=Advice.MONITOR,
        differs="IGNORE (152, 153, 160, 161), no action (162 to 165): kept for the ledger, no alert",
    ),
    Row(
        codes=(171, 172),
        meaning="where an uncorrectable memory error was (DRAM, SRAM)",
        advice=Advice.DIAGNOSE,
        differs="no action is given: it comes with Xid 48, and is judged as that is",
    ),
    Row(
        codes=(166, 170),
        meaning="an error of encrypted NVLink",
        advice=Advice.CONTACT,
    ),
    Row(codes=(169,), meaning="the GPU's security processor stopped", advice=Advice.CONTACT),
    Row(
        codes=(173,),
        meaning="the link to the CPU (C2C) has failed",
        advice=Advice.REBOOT,
        source=DRIVER_SOURCE,
        differs="no action is given: no reset of the GPU alone trains a link to the CPU",
    ),
    Row(
        codes=(174,),
        meaning="a program's channel was stopped",
        advice=Advice.IGNORE,
        source=DRIVER_SOURCE,
        differs="no action is given: it is Xid 43 of a driver that does not say so to the program",
    ),
    Row(
        codes=(175,),
        meaning="an error of the memory system",
        advice=Advice.CONTACT,
        source=DRIVER_SOURCE,
    ),
    Row(
        codes=(176,),
        meaning="corrected PCIe errors",
        advice=Advice.MONITOR,
        source=DRIVER_SOURCE,
        differs="no action is given: a rate that grows is worth a look",
    ),
    Row(
        codes=(177,),
        meaning="the remapping of a memory bank is pending; active after a reset",
        advice=Advice.RESET,
        source=DRIVER_SOURCE,
        differs="no action is given: it is to banks what Xid 63 is to rows",
    ),
)

LOST = 79
RECOVERY = 154

_BY_CODE = {code: row for row in ROWS for code in row.codes}
UNKNOWN = Row(codes=(), meaning="not in the table", advice=Advice.CONTACT, source=CATALOGUE)
RECOVERED = Row(
    codes=(RECOVERY,), meaning="NVIDIA's recovery action changed", advice=Advice.CONTACT
)
INIT = Row(
    codes=(),
    meaning="the driver could not start or reset the GPU",
    advice=Advice.DIAGNOSE,
    source="https://docs.nvidia.com/deploy/gpu-debug-guidelines/",
)
DRIVER = Row(
    codes=(),
    meaning="the driver reports an error that sentinel does not know",
    advice=Advice.CONTACT,
    source="https://docs.kernel.org/gpu/amdgpu/index.html",
)
UVM = Row(
    codes=(),
    meaning="the driver's memory manager (UVM) has stopped on all GPUs of the node",
    advice=Advice.REBOOT,
    source="https://github.com/NVIDIA/open-gpu-kernel-modules",
)
SWITCH: dict[bool | None, Row] = {
    True: Row(codes=(), meaning="fatal NVSwitch error", advice=Advice.DIAGNOSE, source=FABRIC),
    False: Row(codes=(), meaning="non-fatal NVSwitch error", advice=Advice.MONITOR, source=FABRIC),
    None: Row(
        codes=(),
        meaning="NVSwitch error that does not say whether it is fatal",
        advice=Advice.CONTACT,
        source=FABRIC,
    ),
}
"""Rows for SXids, by whether the line calls it fatal."""

AMD = "https://docs.kernel.org/gpu/amdgpu/ras.html"
RAS: dict[bool | None, Row] = {
    True: Row(
        codes=(),
        meaning="uncorrectable memory error of an AMD GPU; the driver resets it",
        advice=Advice.RESET,
        source=AMD,
    ),
    False: Row(
        codes=(),
        meaning="memory error of an AMD GPU that only its reader meets",
        advice=Advice.MONITOR,
        source=AMD,
    ),
}
"""Rows for RAS errors, by whether the error is uncorrectable (else it is deferred)."""


def row(code: int) -> Row:
    """The row of an Xid; UNKNOWN for a number that is in no table."""
    return RECOVERED if code == RECOVERY else _BY_CODE.get(code, UNKNOWN)
