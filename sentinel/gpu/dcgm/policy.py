"""What each error of dcgmi diag says about the hardware: data, and the order in which it is asked.

A fault counts against the hardware only where all that is told of it agrees: the severity and the
category of the document (dcgmErrorSeverity_t and dcgmErrorCategory_t), then its number (dcgmError_t,
1 to 132 as of DCGM 4.6.0), all in dcgmlib/dcgm_errors.h. The mildest of them decides, and one that is
not known here makes the whole fault unknown. The number comes last, as one number has several
meanings: 33 to 39 are about whatever field the message names (nvbandwidth uses 38 for a copy engine
that was not idle), 101 wraps any Xid, and nccl_tests uses 129 for every line that it did not expect.
What to do follows the header's next step (`_NEXT`).
https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html

Where the table differs from NVIDIA's severities (dcgmlib/src/dcgm_errors.c), and why:
- 80 (a row remapping failed) asks for a replacement, DCGM 4.6 for a reset: the spare rows are used
  up, which no reset mends (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt).
- 11, 17, 19, 24, 26, 27, 75, 76 are no faults of the hardware whatever their category: the
  diagnostic could not read or set something; half of them are not used any more.
- 55, 60, 61 and 72 are settings by severity, not memory or power by category.
- 10, 16, 34, 40 to 43 and 131 have severity MONITOR, which the document tells since 3.3; a table and
  older documents do not, and there the failed test asks for a diagnosis.
- 108, 112 and 123: the fabric manager is not ready; 122: IMEX is not: settings of the node.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from sentinel.gpu import xid_table
from sentinel.gpu.advice import Advice
from sentinel.gpu.nvlink_errors import NVLINK_5

Kind = Literal["hardware", "config", "environment", "none", "unknown"]
"""hardware: the device, its memory, links, cooling, power. config: a setting of the node.
environment: the diagnostic could not do its work. none: no fault, the test did not run or is to
run once more. unknown: it failed, and nobody knows why."""


class Rule(Struct, frozen=True):
    """What an error means."""

    kind: Kind
    advice: Advice


_DIAGNOSE = Rule("hardware", Advice.DIAGNOSE)
_RESET = Rule("hardware", Advice.RESET)
_REBOOT = Rule("hardware", Advice.REBOOT)
_REPLACE = Rule("hardware", Advice.REPLACE)
_WATCH = Rule("hardware", Advice.MONITOR)
_CONFIG = Rule("config", Advice.MONITOR)
_ENVIRONMENT = Rule("environment", Advice.MONITOR)
UNKNOWN = Rule("unknown", Advice.CONTACT)
REMARK = Rule("none", Advice.MONITOR)

RULES: dict[int, Rule] = {
    # memory
    **dict.fromkeys((4, 7, 8, 52, 57, 58, 79, 81, 103, 106, 118, 132), _DIAGNOSE),
    **dict.fromkeys((6, 83, 84, 85, 131), _RESET),
    80: _REPLACE,
    **dict.fromkeys((5, 102, 105), _WATCH),
    # links: PCIe, NVLink, NVSwitch, between GPUs
    **dict.fromkeys((3, 30, 31, 45, 46, 98, 104, 107), _DIAGNOSE),
    **dict.fromkeys((13, 14, 15, 16, 70, 71, 86, 87, 88, 99, 100, 109), _DIAGNOSE),
    **dict.fromkeys((113, 114, 115, 116, 119, 121), _DIAGNOSE),
    # heat, power, speed, wrong results
    **dict.fromkeys((10, 40, 41, 42, 43, 50, 62, 63, 110, 111), _DIAGNOSE),
    # the device itself
    **dict.fromkeys((9, 20, 95), _DIAGNOSE),
    120: _REBOOT,
    # NVIDIA's own recovery action, as in sentinel.gpu.advice.recovery
    **dict.fromkeys((125, 128), _RESET),
    126: _REBOOT,
    127: _DIAGNOSE,
    # settings
    **dict.fromkeys((12, 18, 22, 23, 28, 29, 55, 60, 61, 72, 89, 90, 96, 108), _CONFIG),
    **dict.fromkeys((112, 122, 123, 124), _CONFIG),
    # another program uses the GPU, or DCGM could not do its work
    **dict.fromkeys((11, 17, 19, 21, 24, 25, 26, 27, 32, 37, 44, 47, 48, 49, 53), _ENVIRONMENT),
    **dict.fromkeys((56, 64, 67, 68, 69, 73, 74, 75, 76, 77, 78, 82), _ENVIRONMENT),
    **dict.fromkeys((91, 92, 93, 94, 97), _ENVIRONMENT),
    # no fault: the test was skipped, or has to be run once more
    **dict.fromkeys((117, 130), Rule("none", Advice.MONITOR)),
    # a call to the device failed: because of the device, its driver or a program
    **dict.fromkeys((1, 2, 51, 54, 59, 65, 66), UNKNOWN),
    # only the message shows what these are about
    **dict.fromkeys((33, 34, 35, 36, 38, 39, 101, 129), UNKNOWN),
}

# Texts for messages with an unknown number. They have been the same since 2.1.
_WORDS: tuple[tuple[str, int], ...] = (
    (r"persistence mode.{0,60}(disabled|off|not enabled)", 29),
    (r"graphics processes|is in use by|in use by another", 25),
    (r"row remappings?.{0,30}pending|pending row remap", 85),
    (r"row remapping.{0,30}fail", 80),
    (r"uncorrectable row remap", 84),
    (r"pending retired page|page retirements? (are|is) pending", 6),
    (r"retired pages", 7),
    (r"double.?bit ECC|\bDBE\b", 4),
    (r"thermal violation", 40),
    (r"temperature .{0,80}exceed", 42),
    (r"throttl", 43),
    (r"inforom", 9),
    (r"memory error|faulty memory|memory mismatch", 52),
    (r"PCIe? replay", 3),
    (r"NvLink.{0,60}(error|down|CRC)", 13),
    (r"(bandwidth|GB/s).{0,80}(below|under|less|too low|does not meet)", 30),
    (r"stress level|GFLOPS", 50),
    (r"fallen off the bus|GPU is lost", 120),
    (r"\bXID\b", 101),
    (r"ECC.{0,40}(disabled|not enabled)", 55),
    (r"permission|not running as root|must be root", 18),
    (r"fabric ?manager.{0,40}not", 108),
    (r"internal error during the test", 44),
    (r"host engine|already running|aborted|signal|interrupted|timed out", 47),
)

# CUDA's numbers for failed calls (cudaError_t in the CUDA Runtime API), if DCGM only says that a
# call failed. 802: the fabric manager is not running. 803 and 35: the driver does not fit. 46:
# another process has the GPU. 214: its memory.
# https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html
_CUDA: tuple[tuple[str, int], ...] = (
    (r"system not yet initialized", 108),
    (r"unsupported display driver|driver version is insufficient", 23),
    (r"busy or unavailable", 25),
    (r"uncorrectable ECC error encountered", 57),
    (r"uncorrectable NVLink error", 13),
    (r"'out of memory'", 56),
)


def _compiled(words: tuple[tuple[str, int], ...]) -> tuple[tuple[re.Pattern[str], int], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), number) for pattern, number in words)


_CALLS, _PATTERNS = _compiled(_CUDA), _compiled((*_CUDA, *_WORDS))


_FIELDS = (33, 34, 35, 36, 38, 39)
"""Numbers which say only that the field in the message has a bad value."""

_COUNTERS = re.compile(
    r"ecc|[ds]be|retired_|row_remap|uncorrectable|pcie_replay|nvlink\w{0,40}_(error|crc|replay|recovery)",
    re.IGNORECASE,
)
"""Names of fields (dcgm_fields.c) that count errors of the hardware."""

_BUSY = re.compile(r"copy utili[sz]ation", re.IGNORECASE)
"""The field of such a message if somebody else used the GPU during the test."""

_XIDS, _RECORDED = 101, 63
_XID = re.compile(r"\bXID[ _:=]{0,3}([0-9]{1,4})\b|\b([0-9]{1,4}) XID_?ERRORS?\b", re.IGNORECASE)
_PROVEN = (Advice.RESET, Advice.REBOOT, Advice.DIAGNOSE, Advice.REPLACE)

# dcgmErrorSeverity_t and dcgmErrorCategory_t (dcgmlib/dcgm_errors.h of 4.6.0).
_NO_SEVERITY, _MONITOR, _ISOLATE, _TRIAGE, _CONFIGURABLE, _RESETTABLE = 0, 1, 2, 4, 5, 6
_SOFTWARE_CONFIG, _INTERNAL = 3, 16
_CATEGORIES = range(1, 17)
_SOFTWARE = (4, 6, 8)
"""Libraries, CUDA, other: the hardware, its driver or a program may be the cause."""
_GRAVE = {_ISOLATE: _DIAGNOSE, _TRIAGE: _DIAGNOSE, _RESETTABLE: _RESET}


def rule(
    error_id: int | None, text: str, severity: int | None = None, category: int | None = None
) -> Rule:
    """The meaning of a fault: the milder one of what its severity and category say and what its
    number says. If the number is missing or 0 to 2, the words of the message count in its place."""
    return min(_numbered(error_id, text), _classed(severity, category), key=_weight)


def is_note(error_id: int | None, severity: int | None, category: int | None) -> bool:
    """Whether DCGM itself says that the device works, by values that are known here. Then a warning
    above a `Pass` is only a remark."""
    known = error_id in RULES and category in _CATEGORIES
    return known and severity in (_NO_SEVERITY, _MONITOR)


def _weight(rule: Rule) -> int:
    """How strong the rule is as a proof against the hardware: 0 to 3."""
    if rule.kind == "hardware":
        return 3 if rule.advice.hardware else 2
    return 1 if rule.kind == "unknown" else 0


def _numbered(error_id: int | None, text: str) -> Rule:
    """The rule for the number, or for words that have had that number since 2.1; UNKNOWN for a
    newer number."""
    if error_id is not None and error_id not in RULES and error_id != 0:
        return UNKNOWN
    number = error_id if error_id is not None and error_id > 2 else _worded(_PATTERNS, text)
    if number == _XIDS:
        return _of_xid(text)
    if number in _FIELDS:
        if _COUNTERS.search(text):
            return _DIAGNOSE
        return _ENVIRONMENT if _BUSY.search(text) else UNKNOWN
    found = RULES.get(number, UNKNOWN) if number is not None else UNKNOWN
    if found is UNKNOWN and (said := _worded(_CALLS, text)) is not None:
        return RULES[said]
    return found


def _worded(patterns: tuple[tuple[re.Pattern[str], int], ...], text: str) -> int | None:
    return next((number for pattern, number in patterns if pattern.search(text)), None)


def _of_xid(text: str) -> Rule:
    """The rule for the Xid in the message. An Xid that a program can cause, or that needs more than
    its number to be judged (NVLink 5; a recorded row remapping, after which programs go on), proves
    nothing."""
    found = _XID.search(text)
    code = int(found[1] or found[2]) if found else 0
    advice = xid_table.row(code).advice
    mild = code in NVLINK_5 or code == _RECORDED
    return Rule("hardware", advice) if advice in _PROVEN and not mild else UNKNOWN


def _classed(severity: int | None, category: int | None) -> Rule:
    """The rule for severity and category. If neither decides, the number does."""
    strange = severity is not None and severity not in (_MONITOR, _CONFIGURABLE, *_GRAVE)
    if strange or (category is not None and category not in _CATEGORIES):
        return UNKNOWN
    if severity == _CONFIGURABLE or category == _SOFTWARE_CONFIG:
        return _CONFIG
    if category == _INTERNAL:
        return _ENVIRONMENT
    if severity == _MONITOR:
        return _WATCH
    return UNKNOWN if category in _SOFTWARE else _GRAVE.get(severity or 0, _DIAGNOSE)
