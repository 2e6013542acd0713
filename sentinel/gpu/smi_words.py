"""Fields of `nvidia-smi -q -x` that report a GPU's health, and the words that are known in them.

This is one table. If a newer driver reports health in another field or by another word, that word
is found by this table and reported once. Nothing is concluded from it, and the other fields are
judged.

Names are those of drivers R418 to R615 (nvsmi_device_v10.dtd to v13). Pages of real machines, among
them R570 to R615: https://github.com/NVIDIA/k8s-test-infra, tests/e2e/go/assertions/nvidiasmi.
Words of the fabric's health: NVML_GPU_FABRIC_HEALTH_* of nvml.h,
https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from sentinel.core.text import shortened, visible
from sentinel.gpu.advice import recovery
from sentinel.gpu.model import UnknownWord
from sentinel.gpu.quantities import complaint, is_absent, whole, yes
from sentinel.gpu.smi_tree import Tree

REPAIRS: Mapping[str, str] = {
    "ecc_errors/channel_repair_pending": "memory channel",
    "ecc_errors/tpc_repair_pending": "TPC",
    "remapped_banks/bank_remapper_pending": "memory bank",
}
"""Flags of repairs that the next reset does (nvmlDeviceGetRepairStatus)."""

_BENIGN_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "sync_boost",
    "sw_thermal_slowdown",
    "display_clocks_setting",
    "board_limit",
    "reliability",
    "user_defined_clocks",
    "unknown",
    "none",
)
SLOW = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")

Reads = Callable[[str], bool]


def _is_count(text: str) -> bool:
    return whole(text.replace("bank(s)", "").replace("group(s)", "")) is not None


def _is_flag(text: str) -> bool:
    return yes(text) is not None


def _is_any(text: str) -> bool:
    return True


def _one_of(*words: str) -> Reads:
    known = {word.lower() for word in words}
    return lambda text: text.lower() in known


_FABRIC_BAD: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "summary": ("health", ("Unhealthy", "Limited Capacity")),
    "bandwidth": ("bandwidth", ("Degraded",)),
    "route_recovery_in_progress": ("route recovery in progress", ("True", "Yes")),
    "route_unhealthy": ("route unhealthy", ("True", "Yes")),
    "access_timeout_recovery": ("access timeout recovery", ("True", "Yes")),
    "partition_assigned": ("partition assigned", ("False", "No")),
    "gfm_state": ("global fabric manager", ("Disconnected", "Not Connected")),
}
"""By field of the fabric's health: its name in messages, and the words that are bad."""

_FABRIC_GOOD = ("Healthy", "Full", "Connected")

# For each path, the function that knows its words. {} stands for one or more names.
_FIELDS: Mapping[str, Reads] = {
    **{
        f"ecc_errors/{since}/{name}": _is_count
        for since in ("volatile", "aggregate")
        for name in (
            "sram_correctable",
            "sram_uncorrectable",
            "sram_uncorrectable_parity",
            "sram_uncorrectable_secded",
            "dram_correctable",
            "dram_uncorrectable",
        )
    },
    "ecc_errors/aggregate/sram_threshold_exceeded": _is_flag,
    "ecc_errors/unrepairable_memory": _is_flag,
    **dict.fromkeys(REPAIRS, _is_flag),
    "remapped_rows/remapped_row_pending": _is_flag,
    "remapped_rows/remapped_row_failure": _is_flag,
    **{
        f"remapped_rows/remapped_row_{name}": _is_count
        for name in ("corr", "corr_inactive", "unc", "unc_inactive")
    },
    "remapped_banks/bank_remapper_active_remappings": _is_count,
    "remapped_banks/bank_remapper_inactive_remappings": _is_count,
    "retired_pages/multiple_single_bit_retirement/retired_count": _is_count,
    "retired_pages/double_bit_retirement/retired_count": _is_count,
    "retired_pages/pending_blacklist": _is_flag,
    "retired_pages/pending_retirement": _is_flag,
    "gpu_reset_status/reset_required": _is_flag,
    "gpu_reset_status/drain_and_reset_recommended": _is_flag,
    "gpu_recovery_action": lambda text: recovery(text) is not None,
    "fabric/state": _one_of("Completed", "In Progress", "Not Started"),
    "fabric/status": _is_any,  # the words of any NVML error; all but Success are reported
    "fabric/health/incorrect_configuration": _is_any,  # all but None are reported
    **{
        f"fabric/health/{name}": _one_of(*bad, *_FABRIC_GOOD, *("True", "False", "Yes", "No"))
        for name, (_, bad) in _FABRIC_BAD.items()
    },
    **{
        f"clocks_{word}_reasons/clocks_{word}_reason_{name}": _is_flag
        for word in ("event", "throttle")
        for name in (*_BENIGN_REASONS, *SLOW)
    },
}

_FREE = re.compile(
    r"ecc_errors/(volatile|aggregate)/(single|double)_bit/|ecc_errors/aggregate_uncorrectable_sram_"
    r"|remapped_(rows|banks)/\w+_histogram(/|$)|retired_pages/\w+/retired_page|remapped_rows$"
    r"|remapped_banks$|ecc_errors$|fabric/(cliqueId|clusterUuid|cliques)"
)
"""Fields that are identities, lists, or parts of a sum that is judged: any word is fine there."""

_GROUPS = frozenset(path.partition("/")[0] for path in _FIELDS)
_OF_HEALTH = re.compile(
    r"fail|error|unhealth|repair|retire|remap|degrad|exceed|(?<!de)fault|recover|uncorrect|corrupt|unreli"
    r"|(required|pending)$"
)
"""Names of other fields that sound like health."""

_PARTS = "mig_devices"
"""The group that is skipped: parts whose errors the GPU's own counters include."""

_MILD = re.compile(r"(no|none|false|0|0 .*|off|not active|disabled|inactive)$", re.IGNORECASE)
MAX_CACHED_PATH_CHARS = 200
MAX_WORDS = 20
"""Unknown words of one GPU that are reported at most."""


def unknown_words(fields: Iterable[tuple[str, str]]) -> Iterator[UnknownWord]:
    """The fields and words about health that are not known here, of those of one GPU."""
    found = 0
    for path, text in fields:
        if not _is_unknown(path, text):
            continue
        found += 1
        if found <= MAX_WORDS:
            yield UnknownWord(
                field=visible(shortened(path, 120)),
                word=visible(shortened(text, 60)),
                mild=bool(_MILD.match(text)),
            )
    if found > MAX_WORDS:
        rest = found - MAX_WORDS
        yield UnknownWord(field="further fields", word=f"{rest} more words", mild=False)


def _is_unknown(path: str, text: str) -> bool:
    is_judged = _is_judged if len(path) <= MAX_CACHED_PATH_CHARS else _is_judged.__wrapped__
    if not is_judged(path):
        return False
    reads = _FIELDS.get(path)
    if reads and reads(text):
        return False
    return not (is_absent(text) or complaint(text))


@lru_cache(maxsize=2**12)
def _is_judged(path: str) -> bool:
    """Whether the words of this field are judged. Pages of all nodes have the same fields."""
    if path in _FIELDS:
        return True
    group = path.partition("/")[0]
    if group == _PARTS:
        return False
    if group in _GROUPS:
        return not _FREE.match(path)
    return bool(_OF_HEALTH.search(path.rpartition("/")[2]))


def fabric_faults(gpu: Tree) -> Iterator[str]:
    """What is wrong by the fabric's health, each with its words."""
    health = gpu.find("fabric/health") or Tree("none", children=[])
    for name, (title, bad) in _FABRIC_BAD.items():
        text = health.at(name)
        if text and text.lower() in {word.lower() for word in bad}:
            yield f"{title}: {text}"
    wrong = health.at("incorrect_configuration")
    if not is_absent(wrong) and not complaint(wrong):
        yield f"incorrect configuration: {visible(shortened(wrong, 60))}"
