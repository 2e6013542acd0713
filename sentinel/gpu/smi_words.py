"""Fields of `nvidia-smi -q -x` that tell of a GPU's health, and the words that are known in them.

One table: what a newer driver says in another field, or by another word, is found by it and told
once for each word. Nothing is concluded from it, and the fields beside it are judged.

Names are those of drivers R418 to R615 (nvsmi_device_v10.dtd to v13). Pages of real machines, among
them R570 to R615: https://github.com/NVIDIA/k8s-test-infra, tests/e2e/go/assertions/nvidiasmi. Words
of the fabric's health: NVML_GPU_FABRIC_HEALTH_* of nvml.h,
https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

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
"""Flags of repairs that the next reset makes (nvmlDeviceGetRepairStatus)."""

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
_HARDWARE_REASONS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")

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
"""By field of the fabric's health: how it is called in a message, and the words that are bad."""

_FABRIC_GOOD = ("Healthy", "Full", "Connected")

# A path, where {} stands for one or more names, and what is read there.
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
    "fabric/status": _is_any,  # the words of any NVML error; but for Success they are told
    "fabric/health/incorrect_configuration": _is_any,  # but for None they are told
    **{
        f"fabric/health/{name}": _one_of(*bad, *_FABRIC_GOOD, *("True", "False", "Yes", "No"))
        for name, (_, bad) in _FABRIC_BAD.items()
    },
    **{
        f"clocks_{word}_reasons/clocks_{word}_reason_{name}": _is_flag
        for word in ("event", "throttle")
        for name in (*_BENIGN_REASONS, *_HARDWARE_REASONS)
    },
}

_FREE = re.compile(
    r"ecc_errors/(volatile|aggregate)/(single|double)_bit/|ecc_errors/aggregate_uncorrectable_sram_"
    r"|remapped_(rows|banks)/\w+_histogram(/|$)|retired_pages/\w+/retired_page|remapped_rows$"
    r"|remapped_banks$|ecc_errors$|fabric/(cliqueId|clusterUuid|cliques)"
)
"""Fields beside them that are identities, lists, or parts of a sum that is judged."""

_GROUPS = frozenset(path.partition("/")[0] for path in _FIELDS)
_OF_HEALTH = re.compile(
    r"fail|error|unhealth|repair|retire|remap|degrad|exceed|(?<!de)fault|recover|uncorrect|corrupt|unreli"
    r"|(required|pending)$"
)
"""Names outside of those groups that sound like health."""

_NOT_OF_IT = ("processes", "accounted_processes", "supported_clocks", "mig_devices")
"""Users' text, long lists, and parts whose errors the GPU's own counters have too."""

_MILD = re.compile(r"(no|none|false|0|0 .*|off|not active|disabled|inactive)$", re.IGNORECASE)
MAX_WORDS = 20
"""Of one GPU."""


def unknown_words(gpu: Tree) -> Iterator[UnknownWord]:
    """Fields and words of its health that are not known here, in the order of the page."""
    found = 0
    for child in gpu.children:
        if child.name in _NOT_OF_IT:
            continue
        for path, text in _fields(child, child.name):
            if found < MAX_WORDS and _is_unknown(path, text):
                found += 1
                yield UnknownWord(
                    field=visible(shortened(path, 120)),
                    word=visible(shortened(text, 60)),
                    mild=bool(_MILD.match(text)),
                )


def _fields(node: Tree, path: str) -> Iterator[tuple[str, str]]:
    if text := node.text.strip():
        yield path, text
    for child in node.children:
        yield from _fields(child, f"{path}/{child.name}")


def _is_unknown(path: str, text: str) -> bool:
    if is_absent(text) or complaint(text):
        return False
    if reads := _FIELDS.get(path):
        return not reads(text)
    if path.partition("/")[0] in _GROUPS:
        return not _FREE.match(path)
    return bool(_OF_HEALTH.search(path.rpartition("/")[2]))


def fabric_faults(gpu: Tree) -> Iterator[str]:
    """What the fabric's health says is not well, each with its words."""
    health = gpu.find("fabric/health") or Tree("none", children=[])
    for name, (title, bad) in _FABRIC_BAD.items():
        text = health.at(name)
        if text.lower() in {word.lower() for word in bad}:
            yield f"{title}: {text}"
    wrong = health.at("incorrect_configuration")
    if not is_absent(wrong) and not complaint(wrong):
        yield f"incorrect configuration: {visible(shortened(wrong, 60))}"
