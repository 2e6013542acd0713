"""Reads the GPUs of this machine by NVML, if nvidia-smi is not installed.

It runs in a child process, because it may hang as nvidia-smi may: `python -m
sentinel.checks.gpu.nvml` prints an Inventory in JSON.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.gpu.advice import recovery_word
from sentinel.gpu.bus import bus_id
from sentinel.gpu.model import Ecc, Gpu, Inventory, RemappedRows
from sentinel.gpu.quantities import told

try:
    import pynvml as nvml
except ModuleNotFoundError:  # main() reports it
    nvml = None

MISSING = 69
"""EX_UNAVAILABLE of sysexits(3): there is no nvidia-ml-py or no driver here."""


def inventory() -> Inventory:
    """The GPUs by NVML. A field that a GPU does not have is None; one that cannot be read is a
    trouble of that GPU. Raises pynvml.NVMLError if NVML itself does not answer."""
    nvml.nvmlInit()
    try:
        count = nvml.nvmlDeviceGetCount()
        gpus = tuple(Device(nvml, index).gpu() for index in range(count))
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        return Inventory(gpus=gpus, driver=driver, form="nvml", attached=count)
    finally:
        nvml.nvmlShutdown()


ABSENT = (
    "NotSupported",
    "FunctionNotFound",
    "InvalidArgument",
    "NoPermission",
    "ArgumentVersionMismatch",
    "Deprecated",
)
"""Errors which say that device, driver or rights have no such value (nvmlReturn_t)."""

FI_DEV_MEMORY_TEMP = 82
FI_DEV_GET_GPU_RECOVERY_ACTION = 230
"""NVML_FI_* of nvml.h. An nvidia-ml-py that is older than the driver has no name for the newer ones."""

MEASURED = ("Temperature", "UtilizationRates", "MemoryInfo", "PowerUsage")


class Device:
    """One GPU, whose fields are read one by one. `troubles` lists the fields that NVML cannot
    read."""

    def __init__(self, nvml: Any, index: int) -> None:
        self.nvml, self.troubles = nvml, list[str]()
        self.absent = tuple(
            error for name in ABSENT if (error := getattr(nvml, f"NVMLError_{name}", None))
        )
        try:
            self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            self.handle = None
            self.troubles.append(f"device {index}: {error}")

    def ask(self, name: str, *arguments: Any) -> Any:
        """The value of a field; None if the GPU or this NVML does not have it, or if it cannot be
        read."""
        function = getattr(self.nvml, f"nvmlDeviceGet{name}", None)
        if function is None or self.handle is None:
            return None
        try:
            return function(self.handle, *arguments)
        except self.absent:
            return None
        except self.nvml.NVMLError as error:
            self.troubles.append(f"{name}: {error}")
            return None

    def field(self, number: int) -> int | None:
        """A number that NVML knows only by a field id; None if driver or GPU does not have it."""
        found = self.ask("FieldValues", [number])
        return None if not found or found[0].nvmlReturn else int(found[0].value.uiVal)

    @property
    def answers(self) -> bool:
        """Whether more than half of the measured values can be read, and the device is not lost."""
        lost = any("lost" in said or "requires reset" in said for said in self.troubles)
        mute = sum(said.partition(":")[0] in MEASURED for said in self.troubles)
        return self.handle is not None and not lost and 2 * mute <= len(MEASURED)

    def gpu(self) -> Gpu:
        """The GPU with all its values."""
        ask, nvml = self.ask, self.nvml
        memory = ask("MemoryInfo", nvml.nvmlMemory_v2)
        power, mig, use = ask("PowerUsage"), ask("MigMode"), ask("UtilizationRates")
        serial, pci = _text(ask("Serial")), ask("PciInfo")
        found = Gpu(
            uuid=_text(ask("UUID")),
            bus=bus_id(_text(pci.busId)) if pci is not None else "",
            serial=serial if serial.strip("0") else "",
            index=ask("MinorNumber"),
            model=_text(ask("Name")),
            memory_used=memory and memory.used // 2**20 * 2**20,
            temperature=ask("Temperature", nvml.NVML_TEMPERATURE_GPU),
            memory_temperature=self.field(FI_DEV_MEMORY_TEMP),
            power=None if power is None else power / 1000,
            utilization=use and use.gpu,
            ecc=_ecc(self, nvml.NVML_VOLATILE_ECC),
            ecc_life=_ecc(self, nvml.NVML_AGGREGATE_ECC),
            remapped=_remapped(self),
            throttled=throttled(nvml, ask("CurrentClocksThrottleReasons")),
            unrepairable=_yes(ask("UnrepairableMemoryFlag_v1")),
            repairs=_repairs(ask("RepairStatus")),
            fabric=_fabric(self),
            mig=_yes(mig[0]) if mig else None,
            recovery=_recovery(self),
        )
        return replace(found, troubles=tuple(self.troubles), answers=self.answers)


def _repairs(pending: Any) -> tuple[str, ...]:
    names = ("memory channel", "TPC")
    return tuple(name for name, yes in zip(names, pending or (), strict=False) if yes)


FABRIC_STATES = {1: "Not Started", 2: "In Progress", 3: "Completed"}
FABRIC_FAULTS = (
    (0, 3, {1: "bandwidth: Degraded"}),
    (2, 3, {1: "route recovery in progress: True"}),
    (4, 3, {1: "route unhealthy: True"}),
    (6, 3, {1: "access timeout recovery: True"}),
    (8, 15, {n: f"incorrect configuration: {n}" for n in range(2, 16)}),
    (12, 3, {2: "partition assigned: False"}),
    (14, 3, {2: "global fabric manager: Disconnected"}),
)
"""NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_* and _WIDTH_* of nvml.h, and the bad values."""

SUMMARIES = {2: "health: Unhealthy", 3: "health: Limited Capacity"}


def _fabric(device: Device) -> str:
    """The trouble of the NVLink fabric, in the words of smi.py. Empty if there is no trouble or no
    fabric."""
    nvml = device.nvml
    if not hasattr(nvml, "c_nvmlGpuFabricInfo_v3_t"):
        return ""
    info = nvml.c_nvmlGpuFabricInfo_v3_t()
    if device.ask("GpuFabricInfoV", nvml.byref(info)) is None or not info.state:
        return ""
    state = FABRIC_STATES.get(info.state, f"state {info.state}")
    if state != "Completed":
        return state
    ended = f"{state}: {nvml.NVMLError(info.status)}" if info.status else ""
    mask = info.healthMask
    bad = [words.get(mask >> shift & width, "") for shift, width, words in FABRIC_FAULTS]
    return ", ".join(filter(None, [ended, SUMMARIES.get(info.healthSummary, ""), *bad]))


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
    "board_limit": "BoardLimit",
    "reliability": "Reliability",
}
"""nvidia-smi's names of nvmlClocksThrottleReasons (nvml.h), in its order."""


def throttled(nvml: Any, reasons: int | None) -> tuple[str, ...]:
    """Reasons for throttling that are active, by nvidia-smi's names; empty if they are not
    reported."""
    mask = reasons or 0
    return tuple(
        name
        for name, word in REASONS.items()
        if mask & getattr(nvml, f"nvmlClocksThrottleReason{word}", 0)
    )


def _recovery(device: Device) -> str:
    """NVIDIA's recovery action for the GPU; empty before R565, which does not have it."""
    number = device.field(FI_DEV_GET_GPU_RECOVERY_ACTION)
    return "" if number is None else recovery_word(number)


def _ecc(device: Device, since: Any) -> Ecc:
    nvml = device.nvml

    def count(place: Any) -> int | None:
        bad = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        found = device.ask("MemoryErrorCounter", bad, since, place)
        return None if found is None else int(found)

    return Ecc(
        sram_uncorrected=count(nvml.NVML_MEMORY_LOCATION_SRAM),
        dram_uncorrected=count(nvml.NVML_MEMORY_LOCATION_DRAM),
    )


def _remapped(device: Device) -> RemappedRows | None:
    rows = device.ask("RemappedRows")
    if rows is None:
        return None
    corrected, uncorrected, pending, failed = rows
    banks = device.ask("RowRemapperHistogram")
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
    """Print the inventory, or the reason on stderr if there is none. Returns the exit code."""
    if nvml is None:
        sys.stderr.write("nvidia-ml-py is not installed\n")
        return MISSING
    try:
        found = inventory()
    except Exception as error:
        sys.stderr.write(f"NVML: {error}\n".replace("NVML: NVML ", "NVML "))
        return MISSING
    sys.stdout.write(msgspec.json.encode(found).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
