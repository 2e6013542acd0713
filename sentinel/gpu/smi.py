"""`nvidia-smi -q -x` (formats v10 to v13) and `nvidia-smi -q` into an Inventory. Pure.

The element names are those of NVIDIA's own DTDs (nvsmi_device_v10.dtd to v13) as drivers from 418
to 610 print them; where a generation renamed one, every name is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from sentinel.core.text import shortened, visible
from sentinel.gpu.bus import bus_id
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Ecc, Gpu, Inventory, Occupant, RemappedRows, RetiredPages
from sentinel.gpu.quantities import complaint, number, size, told, whole, yes
from sentinel.gpu.tree import Tree, from_text, from_xml

LONGEST = 32 * 2**20
BANKS = ("max", "high", "partial", "low", "none")


def parse(text: str) -> Inventory:
    """Raises Unreadable, and nothing else, for whatever is not one whole output."""
    if len(text) > LONGEST:
        raise Unreadable("nvidia-smi -q prints more than 32 MB")
    start = text.find("<?xml")
    start = text.find("<nvidia_smi_log") if start < 0 else start
    if start >= 0:
        root, form = from_xml(text[start:])
        if root.name != "nvidia_smi_log":
            raise Unreadable(f"no output of nvidia-smi but a <{visible(shortened(root.name, 40))}>")
        return _inventory(root, form or "xml")
    return _inventory(from_text(text), "text")


def _inventory(root: Tree, form: str) -> Inventory:
    gpus = tuple(_gpu(node) for node in root.all("gpu"))
    return Inventory(
        gpus=gpus,
        driver=told(_first(root, "kmd_version", "driver_version")),
        cuda=told(_first(root, "cuda_umd_version", "cuda_version")),
        form=form,
        attached=whole(root.at("attached_gpus")),
    )


def _gpu(node: Tree) -> Gpu:
    power = _power(node)
    link = node.find("pci/pci_gpu_link_info") or node.find("pci/gpu_link_info") or Tree("none")
    return Gpu(
        uuid=told(node.at("uuid")),
        bus=bus_id(node.mark) or bus_id(node.at("pci/pci_bus_id")),
        serial=_serial(node.at("serial")),
        index=whole(node.at("minor_number")),
        model=told(node.at("product_name")),
        vbios=told(node.at("vbios_version")),
        memory_total=size(node.at("fb_memory_usage/total")),
        memory_used=size(node.at("fb_memory_usage/used")),
        temperature=number(node.at("temperature/gpu_temp")),
        memory_temperature=number(node.at("temperature/memory_temp")),
        power=number(_first(power, "instant_power_draw", "power_draw", "instantaneous_power_draw")),
        power_limit=number(
            _first(power, "current_power_limit", "power_limit", "enforced_power_limit")
        ),
        sm_clock=number(node.at("clocks/sm_clock")),
        memory_clock=number(_first(node, "clocks/mem_clock", "clocks/memory")),
        utilization=number(node.at("utilization/gpu_util")),
        pcie_rx=_rate(_first(node, "pci/rx_util", "pci/rx_throughput")),
        pcie_generation=whole(_first(link, "pcie_gen/current_link_gen", "pcie_generation/current")),
        pcie_generation_most=whole(
            _first(link, "pcie_gen/max_device_link_gen", "pcie_gen/max_link_gen")
        ),
        pcie_width=whole(_first(link, "link_widths/current_link_width", "link_width/current")),
        pcie_width_most=whole(_first(link, "link_widths/max_link_width", "link_width/max")),
        pcie_replays=whole(_first(node, "pci/replay_counter", "pci/replays_since_reset")),
        persistence=yes(node.at("persistence_mode")),
        ecc_enabled=yes(_first(node, "ecc_mode/current_ecc", "ecc_mode/current")),
        ecc=_ecc(node.find("ecc_errors/volatile")),
        ecc_life=_ecc(node.find("ecc_errors/aggregate")),
        sram_threshold=yes(node.at("ecc_errors/aggregate/sram_threshold_exceeded")),
        remapped=_remapped(node.find("remapped_rows")),
        retired=_retired(node.find("retired_pages")),
        throttled=tuple(_throttled(node)),
        fabric=_fabric(node),
        mig=yes(_first(node, "mig_mode/current_mig", "mig_mode/current")),
        mig_devices=len((node.find("mig_devices") or Tree("none")).all("mig_device")),
        recovery=_recovery(node),
        reset_required=yes(node.at("gpu_reset_status/reset_required")),
        processes=tuple(_processes(node)),
        troubles=tuple(dict.fromkeys(_troubles(node))),
        untold=() if node.at("temperature/gpu_temp") else ("temperature",),
    )


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
        sram_corrected=whole(node.at("sram_correctable")),
        sram_uncorrected=sum(split) if split else whole(node.at("sram_uncorrectable")),
        dram_corrected=whole(_first(node, "dram_correctable", "single_bit/total")),
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


def _fabric(node: Tree) -> str:
    state, status = told(node.at("fabric/state")), told(node.at("fabric/status"))
    return " ".join(filter(None, [state, status]))


def _recovery(node: Tree) -> str:
    """What NVIDIA says it needs: since R565 one field, before that two."""
    said = node.at("gpu_recovery_action")
    if said:
        return "None" if said == "None" else told(said)
    if yes(node.at("gpu_reset_status/reset_required")):
        return "Reset"
    return "Drain and Reset" if yes(node.at("gpu_reset_status/drain_and_reset_recommended")) else ""


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
    """Fields in which the driver complains; process names are users' text and left out."""
    for child in node.children:
        if child.name in ("processes", "accounted_processes"):
            continue
        said = complaint(child.text)
        if said and said.lower() not in ("insufficient permissions", "not found"):
            yield f"{visible(shortened(child.name, 60))}: {said}"
        yield from _troubles(child)
