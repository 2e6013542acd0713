"""`nvidia-smi -q -x` (formats v10 to v13) and `nvidia-smi -q` into an Inventory. Pure.

The element names are those of NVIDIA's own DTDs (nvsmi_device_v10.dtd to v13) as drivers from 418
to 610 print them; where a generation renamed one, every name is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sentinel.core.text import shortened, visible
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
from sentinel.gpu.smi_tree import Tree, from_text, from_xml

LONGEST = 32 * 2**20
BANKS = ("max", "high", "partial", "low", "none")


END = "</nvidia_smi_log>"
MAX_REMARKS = 20
EXIT_CODES = {14: "the infoROM of a GPU is corrupted", 15: "a GPU is lost"}
"""Those of nvidia-smi(1) with which it prints its page all the same."""


def page(out: str, code: int) -> str:
    """What nvidia-smi printed, with its exit code as a remark behind it. A whole page is one whatever
    the code: it is 14 where the infoROM of one GPU is corrupted (NVML_ERROR_CORRUPTED_INFOROM).

    Empty where it ended with a code other than 0 and without a whole page."""
    if not code:
        return out
    why = f": {EXIT_CODES[code]}" if code in EXIT_CODES else ""
    return f"{out}\nnvidia-smi ended with exit code {code}{why}\n" if END in out else ""


def parse(text: str) -> Inventory:
    """Raises Unreadable, and nothing else, for whatever is not one whole output.

    Text before and after the page is none of it: warnings are printed there."""
    if len(text) > LONGEST:
        raise Unreadable("nvidia-smi -q prints more than 32 MB")
    start = text.find("<?xml")
    start = text.find("<nvidia_smi_log") if start < 0 else start
    if start < 0:
        return _inventory(from_text(text), "text", _remarks(text, only_warnings=True))
    end = text.rfind(END) + len(END)
    whole = end > start
    root, form = from_xml(text[start:end] if whole else text[start:])
    if root.name != "nvidia_smi_log":
        raise Unreadable(f"no output of nvidia-smi but a <{visible(shortened(root.name, 40))}>")
    around = f"{text[:start]}\n{text[end:]}" if whole else text[:start]
    return _inventory(root, form or "xml", _remarks(around))


def _remarks(text: str, only_warnings: bool = False) -> list[str]:
    """Lines that are no part of the page, as they stand there."""
    lines = (line.strip() for line in text.splitlines())
    said = [line for line in lines if line and not line.startswith("<")]
    warnings = [line for line in said if not only_warnings or line.upper().startswith("WARNING")]
    return [visible(shortened(line, 200)) for line in warnings[:MAX_REMARKS]]


_ABOUT = re.compile(r"\b(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\b")


def _with_remarks(gpus: Sequence[Gpu], remarks: Sequence[str]) -> tuple[tuple[Gpu, ...], list[str]]:
    """Each remark with the GPU whose address it names; those that name none that is here."""
    said: dict[str, list[str]] = {gpu.bus: [] for gpu in gpus if gpu.bus}
    others: list[str] = []
    for remark in remarks:
        found = _ABOUT.search(remark)
        said.get(bus_id(found[0]) if found else "", others).append(remark)
    return tuple(replace(gpu, remarks=tuple(said.get(gpu.bus, ()))) for gpu in gpus), others


def _inventory(root: Tree, form: str, remarks: Sequence[str]) -> Inventory:
    gpus, others = _with_remarks([_gpu(node, form) for node in root.all("gpu")], remarks)
    return Inventory(
        gpus=gpus,
        remarks=tuple(others),
        driver=told(_first(root, "kmd_version", "driver_version")),
        cuda=told(_first(root, "cuda_umd_version", "cuda_version")),
        form=form,
        attached=whole(root.at("attached_gpus")),
    )


def _gpu(node: Tree, form: str) -> Gpu:
    power = _power(node)
    troubles = tuple(dict.fromkeys(_troubles(node)))
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
        unknown=tuple(_unknown(node, form)),
        untold=() if _tells_heat(node) or _tells_use(node) else ("temperature",),
    )


def _unknown(node: Tree, form: str) -> Iterator[UnknownWord]:
    """Every known form tells the heat, if only as N/A: one that does not calls it otherwise."""
    if _tells_use(node) and not _tells_heat(node):
        yield UnknownWord(field="temperature/gpu_temp", word="nothing")
    if form != "text":
        yield from smi_words.unknown_words(node)


def _tells_heat(node: Tree) -> bool:
    return bool(node.at("temperature/gpu_temp"))


def _tells_use(node: Tree) -> bool:
    return bool(node.at("utilization/gpu_util") or node.at("fb_memory_usage/used"))


def _first(node: Tree, *paths: str) -> str:
    return next((text for path in paths if (text := node.at(path))), "")


def _serial(text: str) -> str:
    """Empty where it is hidden: redacted ones are all zeros."""
    serial = told(text)
    return serial if serial.strip("0") else ""


def _power(node: Tree) -> Tree:
    return node.find("gpu_power_readings") or node.find("power_readings") or Tree("none")


def _rate(text: str) -> float | None:
    """Bytes a second of `4000 KB/s`."""
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
    """Reasons that are active, by the names NVML gives them."""
    for group in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for child in (node.find(group) or Tree("none")).children:
            if child.text.strip() == "Active":
                yield child.name.removeprefix("clocks_event_reason_").removeprefix(
                    "clocks_throttle_reason_"
                )


def _recovery(node: Tree) -> str:
    """What NVIDIA says it needs: since R565 one field, before that two."""
    said = node.at("gpu_recovery_action")
    if said:
        return "None" if said == "None" else told(said)
    if yes(node.at("gpu_reset_status/reset_required")):
        return "Reset"
    return "Drain and Reset" if yes(node.at("gpu_reset_status/drain_and_reset_recommended")) else ""


def _fabric(node: Tree) -> str:
    """What is not well with its NVLink fabric: how far it is, how that ended, and since R570 what
    its health says. https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html."""
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


def _troubles(node: Tree) -> Iterator[str]:
    """Fields in which the driver complains."""
    for child in _leaves(node):
        said = complaint(child.text)
        if said and said.lower() not in ("insufficient permissions", "not found"):
            yield f"{visible(shortened(child.name, 60))}: {said}"


def _leaves(node: Tree) -> Iterator[Tree]:
    """Fields with a text; process names are users' text and left out, lists of clocks are long."""
    for child in node.children:
        if child.name in ("processes", "accounted_processes", "supported_clocks"):
            continue
        if child.text.strip():
            yield child
        yield from _leaves(child)


MEASURED = (
    "temperature/gpu_temp",
    "utilization/gpu_util",
    "clocks/sm_clock",
    "fb_memory_usage/used",
)
"""What every GPU can tell at any time, beside its power."""


def _is_mute(node: Tree, power: Tree) -> bool:
    """Whether the driver complains in most of what is measured: names and numbers of the device
    stand in its memory and are told of a dead one too."""
    said = [node.at(path) for path in MEASURED]
    said.append(_first(power, "instant_power_draw", "power_draw", "instantaneous_power_draw"))
    told_of = [text for text in said if text and not is_absent(text)]
    bad = sum(1 for text in told_of if complaint(text))
    return bad > 1 and 2 * bad > len(told_of)


def _is_lost(troubles: Sequence[str]) -> bool:
    """What the driver says in every field of a device that is gone, or that waits for a reset."""
    return any(t.lower().endswith(("gpu is lost", "gpu requires reset")) for t in troubles)
