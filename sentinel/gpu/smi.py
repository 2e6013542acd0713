"""Reads `nvidia-smi -q -x` (formats v10 to v13) and `nvidia-smi -q` into an Inventory. Pure.

The element names are those of NVIDIA's DTDs (nvsmi_device_v10.dtd to v13), as drivers from 418 to
610 print them. If a generation renamed an element, all of its names are looked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from sentinel.core.text import first_lines, shortened, visible
from sentinel.gpu import smi_words
from sentinel.gpu.bus import bus_id
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import (
    Ecc,
    Gpu,
    Inventory,
    Occupant,
    RemappedRows,
    RetiredPages,
    UnknownWord,
)
from sentinel.gpu.quantities import complaint, is_absent, number, size, told, whole, yes
from sentinel.gpu.smi_processes import rewrite_processes
from sentinel.gpu.smi_tree import Tree, from_text, from_xml

LONGEST = 8 * 2**20
"""Characters at most: as much as one node may print (`sentinel.nodes.reach`, `sentinel.proc`)."""
BANKS = ("max", "high", "partial", "low", "none")
_NOT_READ = frozenset({"processes", "accounted_processes", "supported_clocks"})
"""Groups in which no trouble is looked for: names of processes are users' text."""


END = "</nvidia_smi_log>"
MAX_REMARKS = 20
EXIT_CODES = {14: "the infoROM of a GPU is corrupted", 15: "a GPU is lost"}
"""Exit codes of nvidia-smi(1) with which it still prints its page."""


def page(out: str, code: int) -> str:
    """The output of nvidia-smi, with its exit code as a remark at the end. A whole page counts with
    any exit code: it is 14 if the infoROM of one GPU is corrupted (NVML_ERROR_CORRUPTED_INFOROM).

    Empty if the exit code is not 0 and the page is not whole."""
    if not code:
        return out
    why = f": {EXIT_CODES[code]}" if code in EXIT_CODES else ""
    return f"{out}\nnvidia-smi ended with exit code {code}{why}\n" if END in out else ""


def parse(text: str) -> Inventory:
    """The GPUs in the output. Raises Unreadable, and nothing else, unless it is one whole output.
    Text before and after the page holds warnings."""
    if len(text) > LONGEST:
        raise Unreadable("nvidia-smi -q prints more than 8 MB")
    start = text.find("<?xml")
    start = text.find("<nvidia_smi_log") if start < 0 else start
    if start < 0:
        return _inventory(from_text(text), "text", _remarks(text, only_warnings=True))
    end = text.rfind(END) + len(END)
    whole = end > start
    page, lines = rewrite_processes(text[start:end] if whole else text[start:])
    root, form = from_xml(page)
    if root.name != "nvidia_smi_log":
        raise Unreadable(f"no output of nvidia-smi but a <{visible(shortened(root.name, 40))}>")
    around = f"{text[:start]}\n{text[end:]}" if whole else text[:start]
    if lines not in (None, len(root.all("gpu"))):
        raise Unreadable("nvidia-smi -q -x: a process's name may pose as a GPU")
    return _inventory(root, form or "xml", _remarks(around))


def _remarks(text: str, only_warnings: bool = False) -> list[str]:
    """Lines that are not a part of the page."""
    lines = (line.strip() for line in text.splitlines())
    said = [line for line in lines if line and not line.startswith("<")]
    warnings = [line for line in said if not only_warnings or line.upper().startswith("WARNING")]
    return first_lines([visible(shortened(line, 200)) for line in warnings], MAX_REMARKS)


_ABOUT = re.compile(r"\b(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\b")


def _with_remarks(gpus: Sequence[Gpu], remarks: Sequence[str]) -> tuple[tuple[Gpu, ...], list[str]]:
    """The GPUs, each with the remarks that name its address, and the remarks that name none of
    them."""
    said: dict[str, list[str]] = {gpu.bus: [] for gpu in gpus if gpu.bus}
    others: list[str] = []
    for remark in remarks:
        found = _ABOUT.search(remark)
        said.get(bus_id(found[0]) if found else "", others).append(remark)
    return tuple(replace(gpu, remarks=tuple(said.get(gpu.bus, ()))) for gpu in gpus), others


def _inventory(root: Tree, form: str, remarks: Sequence[str]) -> Inventory:
    attached = whole(root.at("attached_gpus"))
    gpus, others = _with_remarks([_gpu(node, form) for node in root.all("gpu")], remarks)
    _refuse_forged(gpus, attached)
    return Inventory(
        gpus=gpus,
        remarks=tuple(others),
        driver=told(_first(root, "kmd_version", "driver_version")),
        cuda=told(_first(root, "cuda_umd_version", "cuda_version")),
        form=form,
        attached=attached,
    )


def _refuse_forged(gpus: Sequence[Gpu], attached: int | None) -> None:
    """Raises Unreadable if there are more GPUs than attached ones, or one of them twice: then a
    process's name may pose as a GPU. Fewer is how a lost GPU looks."""
    if attached is not None and len(gpus) > attached:
        raise Unreadable(f"nvidia-smi -q shows {len(gpus)} GPUs of {attached} attached ones")
    for known in ([gpu.bus for gpu in gpus], [gpu.uuid for gpu in gpus]):
        for one in filter(None, known):
            if known.count(one) > 1:
                raise Unreadable(f"nvidia-smi -q shows a GPU twice: {visible(shortened(one, 60))}")


def _gpu(node: Tree, form: str) -> Gpu:
    power = _power(node)
    fields = node.list_fields(_NOT_READ)
    troubles = tuple(dict.fromkeys(_troubles(fields)))
    return Gpu(
        uuid=told(node.at("uuid")),
        bus=bus_id(node.mark) or bus_id(node.at("pci/pci_bus_id")),
        serial=_serial(node.at("serial")),
        index=whole(node.at("minor_number")),
        model=told(node.at("product_name")),
        memory_used=size(node.at("fb_memory_usage/used")),
        temperature=number(node.at("temperature/gpu_temp")),
        memory_temperature=number(node.at("temperature/memory_temp")),
        power=number(_first(power, "instant_power_draw", "power_draw", "instantaneous_power_draw")),
        utilization=number(node.at("utilization/gpu_util")),
        pcie_rx=_rate(_first(node, "pci/rx_util", "pci/rx_throughput")),
        ecc=_ecc(node.find("ecc_errors/volatile")),
        ecc_life=_ecc(node.find("ecc_errors/aggregate")),
        sram_threshold=yes(node.at("ecc_errors/aggregate/sram_threshold_exceeded")),
        remapped=_remapped(node.find("remapped_rows")),
        retired=_retired(node.find("retired_pages")),
        throttled=tuple(_throttled(node)),
        mig=yes(_first(node, "mig_mode/current_mig", "mig_mode/current")),
        recovery=_recovery(node),
        unrepairable=yes(node.at("ecc_errors/unrepairable_memory")),
        repairs=tuple(what for path, what in smi_words.REPAIRS.items() if yes(node.at(path))),
        fabric=_fabric(node),
        processes=tuple(_processes(node)),
        troubles=troubles,
        answers=not (_is_lost(troubles) or _is_mute(node, power)),
        unknown=tuple(_unknown(node, fields, form)),
        untold=() if _tells_heat(node) or _tells_use(node) else ("temperature",),
    )


def _unknown(node: Tree, fields: Iterable[tuple[str, str]], form: str) -> Iterator[UnknownWord]:
    """Words that are not known here. Every known form reports the temperature, if only as N/A, so a
    form without it uses another name."""
    if _tells_use(node) and not _tells_heat(node):
        yield UnknownWord(field="temperature/gpu_temp", word="nothing")
    if form != "text":
        yield from smi_words.unknown_words(fields)


def _tells_heat(node: Tree) -> bool:
    return bool(node.at("temperature/gpu_temp"))


def _tells_use(node: Tree) -> bool:
    return bool(node.at("utilization/gpu_util") or node.at("fb_memory_usage/used"))


def _first(node: Tree, *paths: str) -> str:
    return next((text for path in paths if (text := node.at(path))), "")


def _serial(text: str) -> str:
    """The serial number; empty if it is hidden (then it is all zeros)."""
    serial = told(text)
    return serial if serial.strip("0") else ""


def _power(node: Tree) -> Tree:
    return node.find("gpu_power_readings") or node.find("power_readings") or Tree("none")


def _rate(text: str) -> float | None:
    """Bytes per second of `4000 KB/s`; None for any other text."""
    found = size(text.removesuffix("/s"))
    return None if found is None else float(found)


def _ecc(node: Tree | None) -> Ecc:
    if node is None:
        return Ecc()
    parts = [
        whole(node.at(name)) for name in ("sram_uncorrectable_parity", "sram_uncorrectable_sec_ded")
    ]
    parts += [whole(node.at("sram_uncorrectable_secded"))]
    split = [part for part in parts if part is not None]
    return Ecc(
        sram_uncorrected=sum(split) if split else whole(node.at("sram_uncorrectable")),
        dram_uncorrected=whole(_first(node, "dram_uncorrectable", "double_bit/total")),
    )


def _remapped(node: Tree | None) -> RemappedRows | None:
    if node is None or not node.children:
        return None
    banks = node.find("row_remapper_histogram") or node.find("bank_remap_availability_histogram")
    counts = {
        name: _banks(_first(banks, f"row_remapper_histogram_{name}", name)) if banks else None
        for name in BANKS
    }
    return RemappedRows(
        corrected=whole(_first(node, "remapped_row_corr", "correctable_error")),
        uncorrected=whole(_first(node, "remapped_row_unc", "uncorrectable_error")),
        pending=yes(_first(node, "remapped_row_pending", "pending")),
        failed=yes(_first(node, "remapped_row_failure", "remapping_failure_occurred")),
        banks={name: count for name, count in counts.items() if count is not None},
    )


def _banks(text: str) -> int | None:
    return whole(text.partition(" bank")[0])


def _retired(node: Tree | None) -> RetiredPages | None:
    if node is None:
        return None
    found = RetiredPages(
        single_bit=whole(
            _first(node, "multiple_single_bit_retirement/retired_count", "single_bit_ecc")
        ),
        double_bit=whole(_first(node, "double_bit_retirement/retired_count", "double_bit_ecc")),
        pending=yes(
            _first(node, "pending_retirement", "pending_blacklist", "pending_page_blacklist")
        ),
    )
    return None if found == RetiredPages() else found


def _throttled(node: Tree) -> Iterator[str]:
    """Reasons for throttling that are active, by their names in NVML."""
    for group in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for child in (node.find(group) or Tree("none")).children:
            if child.text.strip() == "Active":
                yield child.name.removeprefix("clocks_event_reason_").removeprefix(
                    "clocks_throttle_reason_"
                )


def _recovery(node: Tree) -> str:
    """What the GPU needs, in NVIDIA's words: since R565 in one field, before that in two."""
    said = node.at("gpu_recovery_action")
    if said:
        return "None" if said == "None" else told(said)
    if yes(node.at("gpu_reset_status/reset_required")):
        return "Reset"
    return "Drain and Reset" if yes(node.at("gpu_reset_status/drain_and_reset_recommended")) else ""


def _fabric(node: Tree) -> str:
    """What is wrong with the NVLink fabric: its progress, its result, and since R570 its health.
    Empty if it is well. https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html."""
    state, result = told(node.at("fabric/state")), told(node.at("fabric/status"))
    if state != "Completed":
        return state
    ended = f"{state}: {result}" if result not in ("", "Success") else ""
    return ", ".join(filter(None, [ended, *smi_words.fabric_faults(node)]))


def _processes(node: Tree) -> Iterator[Occupant]:
    for child in (node.find("processes") or Tree("none")).all("process_info"):
        pid = whole(child.at("pid"))
        if pid is not None:
            yield Occupant(
                pid=pid,
                name=child.at("process_name"),
                kind=child.at("type"),
                memory=size(child.at("used_memory")),
            )


def _troubles(fields: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Fields in which the driver complains, with its words."""
    for path, text in fields:
        said = complaint(text)
        if path in MEASURED and not is_absent(text) and number(text) is None:
            said = said or visible(shortened(text, 60))  # the words of any NVML error
        if said and said.lower() not in ("insufficient permissions", "not found"):
            yield f"{visible(shortened(path.rpartition('/')[2], 60))}: {said}"


MEASURED = (
    "temperature/gpu_temp",
    "utilization/gpu_util",
    "clocks/sm_clock",
    "fb_memory_usage/used",
)
"""Values that every GPU can report at any time, beside its power."""


def _is_mute(node: Tree, power: Tree) -> bool:
    """Whether the driver complains in most of the measured values. Names and numbers of the device
    are in the driver's memory and are reported for a dead one too."""
    said = [node.at(path) for path in MEASURED]
    said.append(_first(power, "instant_power_draw", "power_draw", "instantaneous_power_draw"))
    told_of = [text for text in said if text and not is_absent(text)]
    bad = sum(1 for text in told_of if number(text) is None)
    return bad > 1 and 2 * bad > len(told_of)


def _is_lost(troubles: Sequence[str]) -> bool:
    """Whether the driver says of the device that it is gone, or that it waits for a reset."""
    return any(t.lower().endswith(("gpu is lost", "gpu requires reset")) for t in troubles)
