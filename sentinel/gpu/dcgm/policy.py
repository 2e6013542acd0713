"""What each error of dcgmi diag says about the hardware: data.

By error_id (dcgmError_t, dcgmlib/dcgm_errors.h; 1 to 132 as of DCGM 4.6.0), which only ever
grows, and not by severity, which changes: PERSISTENCE_MODE was ISOLATE in 3.1.8 and is CONFIG
since 3.3.9, ROW_REMAP_FAILURE was ISOLATE to 4.5.3 and is RESET in 4.6.0
(dcgmlib/src/dcgm_errors.c). What to do follows that header's next step (`_NEXT`) and its category.
https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html

Differences, and why:
- 80 (a row remapping failed) asks for a replacement, DCGM 4.6 for a reset: the spare rows are used
  up, which no reset mends (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt).
- 20 (fewer GPUs in NVML than in /dev) is hardware, DCGM's category is software: a lost GPU looks so.
- 11, 17, 19, 24, 26, 27, 75, 76 are no faults of the hardware whatever their category: the
  diagnostic could not read or set something; half of them are not used any more.
- 46, 55, 60, 61 and 72 are settings by severity (46 by category PCIe: a link narrower than it
  should be is hardware here, as no setting narrows it).
- 10, 16, 34, 40 to 43 have severity MONITOR; here they ask for a diagnosis, as the test failed.
- 108, 112 and 123: the fabric manager is not ready; 122: IMEX is not: settings of the node.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from sentinel.gpu.advice import Advice

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
    129: _RESET,
    # heat, power, speed, wrong results
    **dict.fromkeys((10, 40, 41, 42, 43, 50, 62, 63, 110, 111), _DIAGNOSE),
    # the device itself
    **dict.fromkeys((9, 20, 95, 101), _DIAGNOSE),
    **dict.fromkeys((33, 34, 35, 36, 38, 39), _DIAGNOSE),
    120: _REBOOT,
    # NVIDIA's own recovery action, as in sentinel.gpu.advice.recovery
    **dict.fromkeys((125, 128), _RESET),
    126: _REBOOT,
    127: _DIAGNOSE,
    # settings
    **dict.fromkeys((12, 18, 22, 23, 28, 29, 55, 60, 61, 72, 89, 90, 96, 108), _CONFIG),
    **dict.fromkeys((112, 122, 123, 124), _CONFIG),
    # somebody else is on the GPU, or DCGM could not do its work
    **dict.fromkeys((11, 17, 19, 21, 24, 25, 26, 27, 32, 37, 44, 47, 48, 49, 53), _ENVIRONMENT),
    **dict.fromkeys((56, 64, 67, 68, 69, 73, 74, 75, 76, 77, 78, 82), _ENVIRONMENT),
    **dict.fromkeys((91, 92, 93, 94, 97), _ENVIRONMENT),
    # no fault: the test was skipped, or is to be run once more
    **dict.fromkeys((117, 130), Rule("none", Advice.MONITOR)),
    # a call to the device failed: the device, its driver or a program, nobody can say
    **dict.fromkeys((1, 2, 51, 54, 59, 65, 66), UNKNOWN),
}

# Messages without a number that is known, by the words they have had since 2.1.
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

# What CUDA says of a call that failed (cudaError_t in the CUDA Runtime API), where DCGM's number tells
# only that one did. 802: the fabric manager does not run; 803 and 35: the driver does not fit; 46: somebody
# else has the GPU; 214: its memory.
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


# dcgmErrorSeverity_t and dcgmErrorCategory_t (dcgmlib/dcgm_errors.h of 4.6.0).
_CONFIGURABLE, _MONITOR, _ISOLATE, _TRIAGE, _RESETTABLE = 5, 1, 2, 4, 6
_BY_SEVERITY = {
    _MONITOR: _WATCH,
    _ISOLATE: _DIAGNOSE,
    _TRIAGE: _DIAGNOSE,
    _RESETTABLE: _RESET,
}
_HARDWARE = (1, 2, 5, *range(9, 16))
"""Performance, Xids, and what is called hardware: heat, memory, links, switches, power, other."""
_SOFTWARE_CONFIG, _INTERNAL = 3, 16


def rule(
    error_id: int | None, text: str, severity: int | None = None, category: int | None = None
) -> Rule:
    """By number; where it says only that a call failed, by CUDA's words for why; where nobody knows it
    (or it is 0, or "unknown") by the words of the message, then by the severity and category of the
    document."""
    known = RULES.get(error_id) if error_id is not None and error_id > 2 else None
    if known and known is not UNKNOWN:
        return known
    words = _CALLS if known else _PATTERNS
    found = next((number for pattern, number in words if pattern.search(text)), None)
    if found is not None:
        return RULES[found]
    return known or _classed(severity, category)


def _classed(severity: int | None, category: int | None) -> Rule:
    if severity == _CONFIGURABLE or category == _SOFTWARE_CONFIG:
        return _CONFIG
    if category == _INTERNAL:
        return _ENVIRONMENT
    if category in _HARDWARE and severity is not None:
        return _BY_SEVERITY.get(severity, UNKNOWN)
    return UNKNOWN
