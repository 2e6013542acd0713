"""Judges what the kernel says of memory, processors and drives in its log. Pure.

Each row names its source in Linux: the text is the kernel's, the meaning is ours. A row has to match
the whole first line of a record, from text that only the kernel prints and that is longer than the
name of a process. Users can make the kernel print such names, see `sentinel.core.kernel_lines`. So a
line is a trouble only if the kernel wrote it as a warning or worse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from sentinel.core.kernel_lines import ERROR_LEVEL, is_warning
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import KernelLine

COUNTED, IGNORED = Status.OK, None
"""Statuses of rows: a corrected error, of which only many are told; and what is no trouble."""

MAX_RECORD_LINES = 16
"""How many records after the severity of an error of the firmware may name what it is about."""


class KernelWord(Struct, frozen=True):
    """A line of the kernel, the part of the host that it is about, and how bad it is."""

    pattern: str
    """Its only group, if any, is the name of the part."""
    part: str  # `memory`, `processor`; empty: the pattern's group.
    status: Status | None
    meaning: str  # What it means, for people.
    source: str  # The file of Linux that prints it.


class SaidWord(Struct, frozen=True, kw_only=True):
    """What one record says. `at` is in seconds since boot."""

    at: float
    part: str
    status: Status
    text: str


_ON = r"(?:[A-Za-z][A-Za-z -]{0,80} )?on .{1,300} \(.{1,900}\)"
"""What edac_mc_handle_error() prints behind the severity. `EDAC MC0: 1 UE ` is as long as the name of
a process may be; behind a name the kernel goes on with a bracket, a colon or a word with a hyphen."""
_LOST = "memory lost data, and a program or the kernel may have used it"
_BROKEN = "the processor could not correct an error"
_DRIVE = r"(nvme[0-9]{1,6})"
_BLOCK = r"((?:sd|vd|nvme|md)[a-z0-9]{1,16})"
_VOLUME = r"((?:sd|vd|nvme|md|dm-)[a-z0-9]{1,16})"
_REQUEST = r"(?:blk_update_request: |print_req_error: |end_request: )?"

_STORM_REGEX = (
    r"(?:mce: )?CMCI storm detected: switching to poll mode"
    r"|mce: CPU[0-9]{1,5} BANK[0-9]{1,3} CMCI storm detected"
)
"""A notice, of which each byte is the kernel's own."""

KERNEL_WORDS = (
    KernelWord(
        rf"EDAC MC[0-9]{{1,4}}: [1-9][0-9]{{0,9}} UE {_ON}",
        "memory",
        Status.CRITICAL,
        _LOST,
        "drivers/edac/edac_mc.c",
    ),
    KernelWord(
        rf"EDAC MC[0-9]{{1,4}}: (?:[0-9]{{1,10}} CE|0 UE) {_ON}",
        "memory",
        IGNORED,
        "the counters of the controller have it",
        "drivers/edac/edac_mc.c",
    ),
    KernelWord(
        rf"EDAC MC[0-9]{{1,4}}: [0-9]{{1,10}} [A-Z]{{2,8}} {_ON}",
        "memory",
        Status.UNKNOWN,
        "an error of memory of a severity that sentinel does not know",
        "drivers/edac/edac_mc.c",
    ),
    KernelWord(
        r"EDAC DEVICE[0-9]{1,4}: UE: .{1,900}",
        "processor",
        Status.CRITICAL,
        _BROKEN,
        "drivers/edac/edac_device.c",
    ),
    KernelWord(
        r"EDAC DEVICE[0-9]{1,4}: CE: .{1,900}",
        "processor",
        COUNTED,
        "the processor corrected an error",
        "drivers/edac/edac_device.c",
    ),
    KernelWord(
        r"mce: Uncorrected hardware memory error in user-access at [0-9a-f]{1,16}"
        r"|mce: Memory error not recovered"
        r"|Memory failure: 0x[0-9a-f]{1,16}: .{1,300}",
        "memory",
        Status.CRITICAL,
        _LOST,
        "arch/x86/kernel/cpu/mce/core.c, mm/memory-failure.c",
    ),
    KernelWord(
        r"mce: \[Hardware Error\]: Machine check: .{1,200}"
        r"|\[Hardware Error\]: (?:Uncorrected, software (?:restartable|containable) error"
        r"|System Fatal error)\.",
        "processor",
        Status.CRITICAL,
        _BROKEN,
        "arch/x86/kernel/cpu/mce/core.c, drivers/edac/mce_amd.c",
    ),
    KernelWord(
        r"\[Hardware Error\]: Deferred error, no action required\.",
        "processor",
        Status.WARNING,
        "data is damaged that nobody has used yet",
        "drivers/edac/mce_amd.c",
    ),
    KernelWord(
        r"\[Hardware Error\]: Corrected error, no action required\.",
        "processor",
        COUNTED,
        "the processor corrected an error",
        "drivers/edac/mce_amd.c",
    ),
    KernelWord(
        _STORM_REGEX,
        "processor",
        Status.WARNING,
        "so many errors are corrected that the kernel only samples them",
        "arch/x86/kernel/cpu/mce/intel.c",
    ),
    KernelWord(
        rf"nvme {_DRIVE}: (?:Removing after probe failure status: |Disabling device after reset failure: )"
        r"-[0-9]{1,4}",
        "",
        Status.CRITICAL,
        "the kernel has given up the drive",
        "drivers/nvme/host/pci.c",
    ),
    KernelWord(
        rf"nvme {_DRIVE}: Device not ready; aborting (?:reset|initiali[sz]ation)(?:, CSTS=0x[0-9a-f]{{1,8}})?",
        "",
        Status.CRITICAL,
        "the drive does not start any more",
        "drivers/nvme/host/core.c",
    ),
    KernelWord(
        rf"nvme {_DRIVE}: failed to set APST feature(?: \([0-9]{{1,5}}\))?",
        "",
        IGNORED,
        "the drive does not save power as it was told",
        "drivers/nvme/host/core.c",
    ),
    KernelWord(
        rf"nvme {_DRIVE}: resetting controller due to persistent internal error",
        "",
        Status.WARNING,
        "the drive reports an error of its own, and the kernel resets it",
        "drivers/nvme/host/core.c",
    ),
    KernelWord(
        rf"nvme {_DRIVE}: controller is down; will reset: .{{1,120}}",
        "",
        Status.WARNING,
        "the drive has stopped, and the kernel resets it",
        "drivers/nvme/host/pci.c",
    ),
    KernelWord(
        rf"nvme {_DRIVE}: I/O (?:tag )?[0-9]{{1,10}} .{{0,120}}timeout(?:, .{{1,120}})?",
        "",
        Status.WARNING,
        "the drive did not answer in time",
        "drivers/nvme/host/pci.c",
    ),
    KernelWord(
        rf"{_REQUEST}critical medium error, dev {_BLOCK}, sector [0-9]{{1,20}}(?: .{{1,200}})?",
        "",
        Status.WARNING,
        "the drive cannot read or write a place of it any more",
        "block/blk-mq.c",
    ),
    KernelWord(
        rf"{_REQUEST}I/O error, dev {_BLOCK}, sector [0-9]{{1,20}}(?: .{{1,200}})?",
        "",
        Status.WARNING,
        "the drive did not do what it was told",
        "block/blk-mq.c",
    ),
    KernelWord(
        r"md/raid[0-9]{0,3}:(md[0-9]{1,6}): (?:Disk failure on \S{1,40} detected, failing array"
        r"|Cannot continue operation \([0-9]{1,4}/[0-9]{1,4} failed\))\.",
        "",
        Status.CRITICAL,
        "the array has lost more drives than it can do without",
        "drivers/md/raid0.c, raid5.c",
    ),
    KernelWord(
        r"md/raid[0-9]{0,3}:(md[0-9]{1,6}): (?:Disk failure on \S{1,40}, disabling device\."
        r"|read error NOT corrected!! .{1,120})",
        "",
        Status.WARNING,
        "the array has lost a drive, or a part of one",
        "drivers/md/raid1.c, raid5.c, raid10.c",
    ),
    KernelWord(
        rf"[A-Za-z0-9-]{{3,12}}:? (?:error|critical) \(device {_VOLUME}[^()]{{0,40}}\)(?: in |: ).{{1,900}}",
        "",
        Status.WARNING,
        "the file system has found an error in itself: check it (fsck)",
        "fs/ext4/super.c, fs/btrfs/messages.c",
    ),
    KernelWord(
        rf"Buffer I/O error on dev {_VOLUME}, logical block [0-9]{{1,20}}, lost .{{1,60}}",
        "",
        Status.WARNING,
        "what was written there is lost",
        "fs/buffer.c",
    ),
)

_STORM_PATTERN = re.compile(_STORM_REGEX)
_COMPILED_WORDS = [(row, re.compile(row.pattern)) for row in KERNEL_WORDS]

_LOGGED = "mce: [Hardware Error]: Machine check events logged"
"""Said beside any event of a processor; where a daemon takes the events, it is all that is said."""

_HEAT_PATTERN = re.compile(
    r"(?:mce: )?CPU[0-9]{1,5}: (?:Core|Package) temperature(?: above threshold.{0,100}|/speed normal)"
)
"""drivers/thermal/intel/therm_throt.c. Older kernels log heat as a machine check, too. The kind
`sensors` tells it."""

_MACHINE_CHECK_PATTERN = re.compile(
    r"mce: \[Hardware Error\]: CPU [0-9]{1,5}: Machine Check(?: Exception)?: [0-9a-f]{1,16} "
    r"Bank [0-9]{1,3}: ([0-9a-f]{16})"
)
"""print_mce() in arch/x86/kernel/cpu/mce/core.c; the last number is MCi_STATUS."""
UNCORRECTED_BIT = 1 << 61
"""MCI_STATUS_UC of arch/x86/include/asm/mce.h."""

_SEVERITY_PATTERN = re.compile(r"(\{[0-9]{1,9}\})?\[Hardware Error\]: event severity: (\S{1,32})")
_SECTION_PATTERN = re.compile(
    r"(\{[0-9]{1,9}\})?\[Hardware Error\]: {1,4}section_type: ([A-Za-z0-9/ ]{1,60})"
)
"""cper_estatus_print() in drivers/firmware/efi/cper.c, for errors that the firmware hands over."""
_PARTS = {
    "memory error": "memory",
    "PCIe error": "pcie",
    "ARM processor error": "processor",
    "general processor error": "processor",
    "IA32/X64 processor error": "processor",
}
_SEVERITIES = {
    "corrected": COUNTED,
    "info": IGNORED,
    "recoverable": Status.CRITICAL,
    "fatal": Status.CRITICAL,
}

_DRIVE_LINE_PATTERN = re.compile(rf"(?!.{{12,15}}\[[0-9]{{1,10}}\])nvme {_DRIVE}: .{{1,400}}")
_VOLUME_LINE_PATTERN = re.compile(
    rf"(?!.{{12,15}}\[[0-9]{{1,10}}\])[A-Za-z0-9-]{{3,12}} \({_VOLUME}\): .{{1,900}}"
)
"""A line of a file system's driver. One that was tried and does not fit is told with KERN_ERR: only what is
graver counts, and of that the kernel's own level."""
UNKNOWN_DRIVE_TEXT = "the driver reports an error of the drive that sentinel does not know"


def find_said_words(lines: Sequence[KernelLine]) -> Iterator[SaidWord]:
    """What each record says that is of interest, corrected errors too (status ok)."""
    logged = []
    corrected = 0
    hot = False
    for number, line in enumerate(lines):
        first = line.text.partition("\n")[0].rstrip()
        if first == _LOGGED:
            logged.append(line)
            continue
        judged = _judge_line(first, line.level) or _judge_firmware(
            first, lines[number + 1 : number + 1 + MAX_RECORD_LINES]
        )
        hot = hot or bool(_HEAT_PATTERN.fullmatch(first))
        part, status, meaning = judged or ("", IGNORED, "")
        if status is not None and (
            status is COUNTED or is_warning(line.level) or _STORM_PATTERN.fullmatch(first)
        ):
            corrected += part == "processor" and status is COUNTED
            yield SaidWord(
                at=line.at,
                part=part,
                status=status,
                text=f"{meaning} ({shortened(visible(first.strip()), 200)})",
            )
    for line in logged[corrected:] if not hot else ():
        yield SaidWord(at=line.at, part="processor", status=COUNTED, text=_LOGGED)


def _judge_line(text: str, level: int | None) -> tuple[str, Status | None, str] | None:
    if found := _MACHINE_CHECK_PATTERN.fullmatch(text):
        if int(found[1], 16) & UNCORRECTED_BIT:
            return "processor", Status.CRITICAL, _BROKEN
        return "processor", COUNTED, "the processor corrected an error"
    for row, pattern in _COMPILED_WORDS:
        if found := pattern.fullmatch(text):
            return row.part or _name_drive(found[1]), row.status, row.meaning
    if (
        level is not None
        and level < ERROR_LEVEL
        and (found := _VOLUME_LINE_PATTERN.fullmatch(text))
    ):
        status = Status.WARNING if level == ERROR_LEVEL - 1 else Status.CRITICAL
        return _name_drive(found[1]), status, "the file system reports a grave error of its own"
    if (
        level is not None
        and level <= ERROR_LEVEL
        and (found := _DRIVE_LINE_PATTERN.fullmatch(text))
    ):
        return found[1], Status.UNKNOWN, UNKNOWN_DRIVE_TEXT
    return None


def _name_drive(name: str) -> str:
    """The controller of an NVMe drive's name space, so that both are one part."""
    found = re.match(_DRIVE, name)
    return found[1] if found else name


def _judge_firmware(
    text: str, later: Sequence[KernelLine]
) -> tuple[str, Status | None, str] | None:
    """An error that the firmware reports: its severity stands before what it is about."""
    found = _SEVERITY_PATTERN.fullmatch(text)
    if found is None:
        return None
    sections = (_SECTION_PATTERN.fullmatch(k.text.partition("\n")[0].rstrip()) for k in later)
    kind = next((s[2] for s in sections if s and s[1] == found[1]), "")
    part = _PARTS.get(kind, "firmware")
    if found[2] not in _SEVERITIES:
        return (
            part,
            Status.UNKNOWN,
            "the firmware reports an error of a severity that sentinel does not know",
        )
    status = _SEVERITIES[found[2]]
    if status is COUNTED and part not in ("memory", "processor"):
        return part, IGNORED, ""
    if part == "pcie" and found[2] == "recoverable":
        status = Status.WARNING
    return part, status, f"the firmware reports a {kind or 'hardware error'}"
