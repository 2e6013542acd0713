"""GPUs that are not there: what nvidia-smi and dcgmi print on a node, in their real forms.

The element names, their order and the ways of saying "nothing" follow the DTDs that drivers
name (nvsmi_device_v12.dtd, v13) and DCGM's dcgmi/Diag.cpp; all values are made up.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

ECC = ("sram_correctable", "sram_uncorrectable", "dram_correctable", "dram_uncorrectable")
ECC_13 = (
    "sram_correctable",
    "sram_uncorrectable_parity",
    "sram_uncorrectable_secded",
    "dram_correctable",
    "dram_uncorrectable",
)
MEMORY_MIB = 81559


@dataclass(frozen=True)
class FakeGpu:
    """One GPU as its tools describe it; `ecc` and `life` by the elements' own names."""

    uuid: str
    index: int
    serial: str = "1650000000001"
    bus: str = ""
    model: str = "NVIDIA H100 80GB HBM3"
    temperature: int = 41
    power: float = 71.5
    utilization: int = 0
    pending: bool = False
    failed: bool = False
    remapped: tuple[int, int] = (0, 0)
    ecc: Mapping[str, int] = field(default_factory=dict)
    life: Mapping[str, int] = field(default_factory=dict)
    recovery: str = "None"
    throttled: tuple[str, ...] = ()
    processes: tuple[tuple[int, str], ...] = ()
    trouble: str = ""
    fabric: tuple[str, str] = ("Completed", "Success")

    @property
    def address(self) -> str:
        """`00000000:18:00.0` and so on, unless one was given."""
        return self.bus or f"00000000:{0x18 + 8 * self.index:02X}:00.0"


def gpus_of(node: int, count: int = 8) -> tuple[FakeGpu, ...]:
    """The GPUs with which node number `node` of the lab begins."""
    return tuple(
        FakeGpu(
            uuid=f"GPU-00000000-0000-0000-{node:04x}-{gpu:012x}",
            index=gpu,
            serial=f"16500{node:04}{gpu:04}",
        )
        for gpu in range(count)
    )


def nvidia_smi(gpus: Sequence[FakeGpu], version: str = "v13", driver: str = "580.65.06") -> str:
    """The output of `nvidia-smi -q -x` in the form of that DTD."""
    body = "".join(_gpu(gpu, version) for gpu in gpus)
    return (
        '<?xml version="1.0" ?>\n'
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_{version}.dtd">\n'
        "<nvidia_smi_log>\n"
        "\t<timestamp>Fri Nov 20 21:14:11 2026</timestamp>\n"
        f"\t<driver_version>{driver}</driver_version>\n"
        "\t<cuda_version>13.0</cuda_version>\n"
        f"\t<attached_gpus>{len(gpus)}</attached_gpus>\n{body}</nvidia_smi_log>\n"
    )


def _gpu(gpu: FakeGpu, version: str) -> str:
    number = int(version[1:])
    parts = [
        _leaf("product_name", gpu.model),
        _leaf("persistence_mode", "Enabled"),
        _group("mig_mode", {"current_mig": "Disabled", "pending_mig": "Disabled"}),
        "\t\t<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>\n",
        _leaf("serial", gpu.serial),
        _leaf("uuid", gpu.uuid),
        _leaf("minor_number", str(gpu.index)),
        _leaf("vbios_version", "96.00.74.00.01"),
        _reset(gpu, number),
        _pci(gpu),
        _leaf("fan_speed", "N/A"),
        _leaf("performance_state", "P0"),
        _reasons(gpu, number),
        _group(
            "fb_memory_usage",
            {
                "total": f"{MEMORY_MIB} MiB",
                "reserved": "551 MiB",
                "used": f"{4 + 1000 * len(gpu.processes)} MiB",
                "free": f"{MEMORY_MIB - 555} MiB",
            },
        ),
        _group("utilization", {"gpu_util": f"{gpu.utilization} %", "memory_util": "0 %"}),
        _group("ecc_mode", {"current_ecc": "Enabled", "pending_ecc": "Enabled"}),
        _ecc(gpu, number),
        _remapped(gpu, number),
        _group(
            "temperature",
            {"gpu_temp": gpu.trouble or f"{gpu.temperature} C", "memory_temp": "44 C"},
        ),
        _power(gpu, number),
        _group("clocks", {"sm_clock": "1980 MHz", "mem_clock": "2619 MHz"}),
        _group("fabric", dict(zip(("state", "status"), gpu.fabric, strict=True)))
        if number > 11
        else "",
        _processes(gpu),
    ]
    return f'\t<gpu id="{gpu.address}">\n{"".join(parts)}\t</gpu>\n'


def _leaf(name: str, text: str) -> str:
    return f"\t\t<{name}>{text}</{name}>\n"


def _group(name: str, leaves: Mapping[str, str]) -> str:
    inner = "".join(f"\t\t\t<{key}>{value}</{key}>\n" for key, value in leaves.items())
    return f"\t\t<{name}>\n{inner}\t\t</{name}>\n"


def _reset(gpu: FakeGpu, number: int) -> str:
    gone = "Requested functionality has been deprecated"
    if number > 12:
        old = _group(
            "gpu_reset_status", {"reset_required": gone, "drain_and_reset_recommended": gone}
        )
        return old + _leaf("gpu_recovery_action", gpu.recovery)
    required = {"Reset": "Yes"}.get(gpu.recovery, "No")
    drain = {"Drain and Reset": "Yes"}.get(gpu.recovery, "No")
    status = {"reset_required": required, "drain_and_reset_recommended": drain}
    return _group("gpu_reset_status", status) if number == 12 else ""


def _pci(gpu: FakeGpu) -> str:
    return (
        "\t\t<pci>\n"
        f"\t\t\t<pci_bus_id>{gpu.address}</pci_bus_id>\n"
        "\t\t\t<pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen>"
        "<current_link_gen>5</current_link_gen></pcie_gen><link_widths>"
        "<max_link_width>16x</max_link_width><current_link_width>16x</current_link_width>"
        "</link_widths></pci_gpu_link_info>\n"
        "\t\t\t<replay_counter>0</replay_counter>\n"
        "\t\t\t<rx_util>4000 KB/s</rx_util>\n\t\t</pci>\n"
    )


def _reasons(gpu: FakeGpu, number: int) -> str:
    word = "clocks_event_reason" if number > 11 else "clocks_throttle_reason"
    names = ("gpu_idle", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown")
    leaves = {f"{word}_{n}": "Active" if n in gpu.throttled else "Not Active" for n in names}
    return _group(f"{word}s", leaves)


def _ecc(gpu: FakeGpu, number: int) -> str:
    names = ECC_13 if number > 12 else ECC
    if number == 10:
        return _old_ecc(gpu)
    volatile = "".join(f"<{n}>{gpu.ecc.get(n, 0)}</{n}>" for n in names)
    life = "".join(f"<{n}>{gpu.life.get(n, 0)}</{n}>" for n in names)
    flag = "<sram_threshold_exceeded>No</sram_threshold_exceeded>" if number > 12 else ""
    return (
        f"\t\t<ecc_errors>\n\t\t\t<volatile>{volatile}</volatile>\n"
        f"\t\t\t<aggregate>{life}{flag}</aggregate>\n\t\t</ecc_errors>\n"
    )


def _old_ecc(gpu: FakeGpu) -> str:
    """Single and double bits, as Volta and older have them."""
    groups = []
    for name, counts in (("volatile", gpu.ecc), ("aggregate", gpu.life)):
        single, double = counts.get("dram_correctable", 0), counts.get("dram_uncorrectable", 0)
        groups.append(
            f"<{name}><single_bit><device_memory>{single}</device_memory><total>{single}</total>"
            f"</single_bit><double_bit><device_memory>{double}</device_memory>"
            f"<total>{double}</total></double_bit></{name}>"
        )
    return f"\t\t<ecc_errors>{''.join(groups)}</ecc_errors>\n"


def _remapped(gpu: FakeGpu, number: int) -> str:
    if number == 10:
        return (
            "\t\t<retired_pages><multiple_single_bit_retirement><retired_count>2</retired_count>"
            "</multiple_single_bit_retirement><double_bit_retirement><retired_count>1"
            "</retired_count></double_bit_retirement>"
            f"<pending_retirement>{'Yes' if gpu.pending else 'No'}</pending_retirement>"
            "</retired_pages>\n\t\t<remapped_rows>N/A</remapped_rows>\n"
        )
    banks = {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0}
    histogram = "".join(
        f"<row_remapper_histogram_{n}>{c} bank(s)</row_remapper_histogram_{n}>"
        for n, c in banks.items()
    )
    return _group(
        "remapped_rows",
        {
            "remapped_row_corr": str(gpu.remapped[0]),
            "remapped_row_unc": str(gpu.remapped[1]),
            "remapped_row_pending": "Yes" if gpu.pending else "No",
            "remapped_row_failure": "Yes" if gpu.failed else "No",
            "row_remapper_histogram": histogram,
        },
    )


def _power(gpu: FakeGpu, number: int) -> str:
    if number < 12:
        return _group("power_readings", {"power_draw": f"{gpu.power} W", "power_limit": "700.00 W"})
    draw = "instant_power_draw" if number > 12 else "power_draw"
    return _group("gpu_power_readings", {draw: f"{gpu.power} W", "current_power_limit": "700.00 W"})


def _processes(gpu: FakeGpu) -> str:
    inner = "".join(
        f"<process_info><gpu_instance_id>N/A</gpu_instance_id><pid>{pid}</pid><type>C</type>"
        f"<process_name>{name}</process_name><used_memory>1000 MiB</used_memory></process_info>"
        for pid, name in gpu.processes
    )
    return f"\t\t<processes>{inner}</processes>\n"


@dataclass(frozen=True)
class Failure:
    """A test that fails on one GPU, with DCGM's number and words."""

    gpu: int
    test: str = "memory"
    text: str = "Memory error: a stuck bit was detected on the GPU."
    error_id: int = 58
    severity: int = 2
    category: int = 10


PERSISTENCE = Failure(
    gpu=0,
    test="software",
    text="Persistence mode for GPU 0 is disabled. Enable persistence mode.",
    error_id=29,
    severity=5,
    category=8,
)


def dcgmi_json(
    generation: str = "4",
    failures: Sequence[Failure] = (),
    *,
    gpus: int = 8,
    node: int = 0,
    skipped: Sequence[str] = (),
    level: int = 2,
) -> str:
    """The output of `dcgmi diag -r LEVEL -j`; generation "2" (to 3.2), "3" (3.3) or "4"."""
    serials = [gpu.serial for gpu in gpus_of(node, gpus)]
    return json.dumps(_document(generation, failures, serials, skipped, level), indent=2)


TESTS = {
    "Deployment": {1: ["software"]},
    "Hardware": {2: ["memory"], 3: ["diagnostic", "nvbandwidth"], 4: ["memtest", "pulse_test"]},
    "Integration": {2: ["pcie"]},
    "Stress": {3: ["memory_bandwidth", "targeted_stress", "targeted_power"]},
}
"""By category and level, as DCGM 4 has them (FillTestVectors in NvidiaValidationSuite.cpp)."""


def _document(
    generation: str,
    failures: Sequence[Failure],
    serials: Sequence[str],
    skipped: Sequence[str],
    level: int,
) -> dict[str, object]:
    gpus = len(serials)
    categories = [
        {
            "category": category,
            "tests": [
                _test(generation, name, failures, gpus, name in skipped)
                for least, names in tests.items()
                for name in names
                if least <= level
            ],
        }
        for category, tests in TESTS.items()
        if min(tests) <= level
    ]
    if generation == "4":
        return {
            "DCGM Diagnostic": {"test_categories": categories},
            "entity_groups": [
                {
                    "entities": [
                        {"device_id": "2330", "entity_id": i, "serial_num": serial}
                        for i, serial in enumerate(serials)
                    ],
                    "entity_group": "GPU",
                    "entity_group_id": 1,
                }
            ],
            "metadata": {"Driver Version Detected": "580.65.06", "version": "4.2.3"},
        }
    return {
        "DCGM GPU Diagnostic": {
            "Driver Version Detected": "535.104.12",
            "GPU Device IDs": ["2330"] * gpus,
            "GPU Device Serials": {str(i): serial for i, serial in enumerate(serials)},
            "test_categories": categories,
            "version": "3.3.9" if generation == "3" else "2.4.7",
        }
    }


def _test(
    generation: str, name: str, failures: Sequence[Failure], gpus: int, skipped: bool
) -> dict[str, object]:
    mine = {f.gpu: f for f in failures if f.test == name}
    results: list[object] = []
    for gpu in range(gpus):
        status = "Fail" if gpu in mine else "Skip" if skipped else "Pass"
        results.append(_result(generation, gpu, status, mine.get(gpu), name == "software"))
    if generation != "4":
        return {"name": name, "results": [*results, None]}
    statuses = [r["status"] for r in results if isinstance(r, dict)]
    summary: dict[str, object] = {
        "status": "Fail" if "Fail" in statuses else "Skip" if skipped else "Pass"
    }
    if mine:  # 4.5 and later repeat all of them here
        summary["warnings"] = [_warning(f) for f in mine.values()]
    return {"name": name, "results": results, "test_summary": summary}


def _result(
    generation: str, gpu: int, status: str, failure: Failure | None, software: bool
) -> dict[str, object]:
    if generation == "4":
        entry: dict[str, object] = {
            "entity_group": "GPU",
            "entity_group_id": 1,
            "entity_id": gpu,
            "status": status,
        }
        return {**entry, "warnings": [_warning(failure)]} if failure else entry
    if generation == "2":
        entry = {"gpu_ids": str(gpu), "status": status}
        return {**entry, "warnings": failure.text} if failure else entry
    entry = {"gpu_id": gpu if software else str(gpu), "status": status}
    if not failure:
        return {**entry, "info": "Allocated 79 GB (97.3%)"}
    warning = _warning(failure)
    if software:  # the key of the text is misnamed there in 3.3.3 to 3.3.9
        warning["warnings"] = warning.pop("warning")
    return {**entry, "warnings": [warning]}


def _warning(failure: Failure) -> dict[str, object]:
    return {
        "warning": failure.text,
        "error_id": failure.error_id,
        "error_category": failure.category,
        "error_severity": failure.severity,
    }


def dcgmi_table(failures: Sequence[Failure] = (), *, gpus: int = 8, version: str = "3") -> str:
    """The output of `dcgmi diag -r 2` without -j."""
    rows = ["Successfully ran diagnostic for group.", _line(), _cells("Diagnostic", "Result")]
    rows += ["+===========================+" + "=" * 48 + "+", _head("Metadata", "|")]
    rows += [_cells("DCGM Version", "3.3.9" if version == "3" else "4.2.3")]
    rows += [_head("Deployment", "|"), _cells("Denylist", "Pass"), _cells("Inforom", "Pass")]
    for section, test in (("Integration", "PCIe"), ("Hardware", "GPU Memory")):
        rows.append(_head(section, "+"))
        mine = [f for f in failures if (f.test == "pcie") == (test == "PCIe")]
        rows += _statuses(test, mine, gpus, version)
    return "\n".join([*rows, _line()]) + "\n"


def _statuses(test: str, mine: Sequence[Failure], gpus: int, version: str) -> list[str]:
    bad = [f.gpu for f in mine]
    if version == "4":
        rows = [_cells(test, "Fail" if mine else "Pass")]
        rows += [_cells("", f"GPU{i}: {'Fail' if i in bad else 'Pass'}") for i in range(gpus)]
        return rows + [line for f in mine for line in _wrapped(f"Warning: GPU{f.gpu}", f.text)]
    good = [i for i in range(gpus) if i not in bad]
    said = [
        f"{word} - {_devices(some, gpus)}" for word, some in (("Pass", good), ("Fail", bad)) if some
    ]
    rows = [_cells(test if not n else "", text) for n, text in enumerate(said)]
    return rows + [line for f in mine for line in _wrapped("Warning", f"GPU {f.gpu} {f.text}")]


def _devices(some: Sequence[int], gpus: int) -> str:
    """As HelperDisplayGpuResults of dcgmi/Diag.cpp (3.3.9) names them."""
    if len(some) == gpus:
        return "All"
    return f"GPU{'' if len(some) == 1 else 's'}: {', '.join(map(str, some))}   "


def _wrapped(name: str, text: str) -> list[str]:
    pieces = [text[i : i + 45] for i in range(0, len(text), 45)]
    return [_cells(name if not n else "", piece) for n, piece in enumerate(pieces)]


def _line() -> str:
    return "+" + "-" * 27 + "+" + "-" * 48 + "+"


def _head(name: str, edge: str) -> str:
    left = f"{edge}-----  {name}  "
    return left.ljust(28, "-") + "+" + "-" * 48 + edge


def _cells(name: str, text: str) -> str:
    return f"| {name:<25} | {text:<45}  |"


def moved(gpus: Sequence[FakeGpu], start: int = 0) -> tuple[FakeGpu, ...]:
    """The same devices in other slots."""
    return tuple(replace(gpu, index=n, bus="") for n, gpu in enumerate(gpus, start))
