"""This machine's GPUs by NVML, for where nvidia-smi is not installed. Runs as a child:
`python -m sentinel.checks.gpu.nvml` prints an Inventory as JSON, and may hang like nvidia-smi.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from sentinel.gpu.advice import recovery_word
from sentinel.gpu.bus import bus_id
from sentinel.gpu.model import Ecc, Gpu, Inventory, RemappedRows
from sentinel.gpu.quantities import told

MISSING = 69
"""EX_UNAVAILABLE of sysexits(3): there is no nvidia-ml-py or no driver here."""


def inventory() -> Inventory:
    """What NVML tells; a field that a GPU does not have is None. Raises pynvml.NVMLError."""
    import pynvml as nvml

    nvml.nvmlInit()
    try:
        count = nvml.nvmlDeviceGetCount()
        gpus = [_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count)]
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        return Inventory(gpus=tuple(gpus), driver=driver, form="nvml", attached=count)
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: Any, gpu: Any) -> Gpu:
    def ask(name: str, *arguments: Any) -> Any:
        return _asked(nvml, getattr(nvml, name), gpu, *arguments)

    memory = ask("nvmlDeviceGetMemoryInfo", nvml.nvmlMemory_v2)
    power, mig = ask("nvmlDeviceGetPowerUsage"), ask("nvmlDeviceGetMigMode")
    use = ask("nvmlDeviceGetUtilizationRates")
    serial = _text(ask("nvmlDeviceGetSerial"))
    return Gpu(
        uuid=_text(ask("nvmlDeviceGetUUID")),
        bus=bus_id(_text(ask("nvmlDeviceGetPciInfo").busId)),
        serial=serial if serial.strip("0") else "",
        index=ask("nvmlDeviceGetMinorNumber"),
        model=_text(ask("nvmlDeviceGetName")),
        memory_used=memory and memory.used // 2**20 * 2**20,
        temperature=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        memory_temperature=_field(nvml, gpu, "NVML_FI_DEV_MEMORY_TEMP"),
        power=None if power is None else power / 1000,
        utilization=use and use.gpu,
        ecc=_ecc(nvml, gpu, nvml.NVML_VOLATILE_ECC),
        ecc_life=_ecc(nvml, gpu, nvml.NVML_AGGREGATE_ECC),
        remapped=_remapped(nvml, gpu),
        throttled=throttled(nvml, ask("nvmlDeviceGetCurrentClocksThrottleReasons")),
        mig=_yes(mig[0]) if mig else None,
        recovery=_recovery(nvml, gpu),
    )


def _asked(nvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """None where the GPU does not have it; a lost GPU is an error of the whole."""
    try:
        return function(*arguments)
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return None


def _field(nvml: Any, gpu: Any, name: str) -> int | None:
    """A number that NVML tells by field only; None where driver or GPU does not have it."""
    (found,) = nvml.nvmlDeviceGetFieldValues(gpu, [getattr(nvml, name)])
    return None if found.nvmlReturn else int(found.value.uiVal)


REASONS = {
    "gpu_idle": "GpuIdle",
    "applications_clocks_setting": "ApplicationsClocksSetting",
    "sw_power_cap": "SwPowerCap",
    "hw_slowdown": "HwSlowdown",
    "hw_thermal_slowdown": "HwThermalSlowdown",
    "hw_power_brake_slowdown": "HwPowerBrakeSlowdown",
    "sync_boost": "SyncBoost",
    "sw_thermal_slowdown": "SwThermalSlowdown",
    "display_clocks_setting": "DisplayClockSetting",
}
"""nvidia-smi's names of nvmlClocksThrottleReasons (nvml.h), in its order."""


def throttled(nvml: Any, reasons: int | None) -> tuple[str, ...]:
    """Reasons that are active, by the names that nvidia-smi gives them; none where not told."""
    mask = reasons or 0
    return tuple(
        name
        for name, word in REASONS.items()
        if mask & getattr(nvml, f"nvmlClocksThrottleReason{word}")
    )


def _recovery(nvml: Any, gpu: Any) -> str:
    """What NVIDIA says the GPU needs; empty before R565, which cannot tell."""
    number = _field(nvml, gpu, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")
    return "" if number is None else recovery_word(number)


def _ecc(nvml: Any, gpu: Any, since: Any) -> Ecc:
    def count(place: Any) -> int | None:
        bad = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        found = _asked(nvml, nvml.nvmlDeviceGetMemoryErrorCounter, gpu, bad, since, place)
        return None if found is None else int(found)

    return Ecc(
        sram_uncorrected=count(nvml.NVML_MEMORY_LOCATION_SRAM),
        dram_uncorrected=count(nvml.NVML_MEMORY_LOCATION_DRAM),
    )


def _remapped(nvml: Any, gpu: Any) -> RemappedRows | None:
    rows = _asked(nvml, nvml.nvmlDeviceGetRemappedRows, gpu)
    if rows is None:
        return None
    corrected, uncorrected, pending, failed = rows
    banks = _asked(nvml, nvml.nvmlDeviceGetRowRemapperHistogram, gpu)
    names = ("max", "high", "partial", "low", "none")
    return RemappedRows(
        corrected=corrected,
        uncorrected=uncorrected,
        pending=bool(pending),
        failed=bool(failed),
        banks={name: int(getattr(banks, name)) for name in names} if banks is not None else {},
    )


def _yes(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
    return told(text)


def main() -> int:
    """Print it; the reason on stderr where there is nothing to print."""
    try:
        found = inventory()
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is not installed\n")
        return MISSING
    except Exception as error:
        sys.stderr.write(f"NVML: {error}\n".replace("NVML: NVML ", "NVML "))
        return MISSING
    sys.stdout.write(msgspec.json.encode(found).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
