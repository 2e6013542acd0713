"""Finds what is wrong with one GPU, and which of it goes into the ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.model import Status
from sentinel.gpu.advice import Advice, recovery_action
from sentinel.gpu.model import Ecc, Gpu, RemappedRows, RetiredPages
from sentinel.gpu.smi_words import SLOW

Problem = tuple[Status, str]
RETIRED_MOST = 63
"""Pages, single and double bit together: DCGM_LIMIT_MAX_RETIRED_PAGES in DCGM's
DcgmGPUHardwareLimits.h; at 64 the GPU is replaced (NVIDIA, Dynamic Page Retirement)."""

REMAPPED_MOST = 512
SRAM_MOST = 4
"""NVIDIA's thresholds for an RMA of A100 and later:
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
(rows in all; uncorrectable SRAM errors in a bank, of which the sum is a bound)."""

STATUS = {
    Advice.RECOVER_IMEX: Status.CRITICAL,
    Advice.CONTACT: Status.WARNING,
    Advice.RESET: Status.CRITICAL,
    Advice.REBOOT: Status.CRITICAL,
    Advice.DIAGNOSE: Status.CRITICAL,
    Advice.REPLACE: Status.CRITICAL,
}
"""The status of a GPU that needs this advice; an advice that is missing here is not about the
device."""


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From when on a GPU is too hot, or something streams what it should not.

    temperature: Bad from these degrees Celsius on.
    memory_temperature: Bad when its memory has these degrees Celsius or more.
    pcie_rx: Bad from so many MB/s over PCIe on; something streams what it should not.
    """

    temperature: float | None = None
    memory_temperature: float | None = None
    pcie_rx: float | None = None


WARN = Limits(temperature=85, memory_temperature=95, pcie_rx=20_000)
CRIT = Limits(temperature=95, memory_temperature=105)


def problems(gpu: Gpu, warn: Limits, crit: Limits) -> Iterator[Problem]:
    """All present problems of a GPU, by its own report."""
    yield from _recovery(gpu)
    yield from ((fault.status, fault.text) for fault in _memory(gpu))
    yield from _limits(gpu, warn, crit)
    slow = [reason for reason in gpu.throttled if reason in SLOW]
    if slow:
        yield Status.WARNING, f"slowed down by the hardware ({', '.join(slow)})"
    if gpu.troubles:
        yield _troubles(gpu)
    if gpu.fabric:
        yield Status.WARNING, f"its NVLink fabric is not well ({gpu.fabric})"
    for remark in gpu.remarks:
        yield Status.WARNING, remark
    if gpu.untold:
        what = " and ".join(gpu.untold)
        yield (
            Status.UNKNOWN,
            f"its tool tells no {what} in a form that sentinel knows (is it newer?)",
        )


def _troubles(gpu: Gpu) -> Problem:
    """A field that cannot be read is a warning. A device that does not answer in most fields is
    broken."""
    said = "; ".join(gpu.troubles[:3])
    if not gpu.answers:
        return Status.CRITICAL, f"does not answer properly ({said})"
    return Status.WARNING, f"answers, but {len(gpu.troubles)} of its fields cannot be read ({said})"


def _recovery(gpu: Gpu) -> Iterator[Problem]:
    """The problem that NVIDIA's own recovery action names, which comes first."""
    action = recovery_action(gpu.recovery or "None")
    if action is None:
        yield Status.WARNING, f"the driver asks for '{gpu.recovery}', which sentinel does not know"
    elif action.advice is not Advice.IGNORE:
        said = action.advice.value
        yield Status.CRITICAL, f"the driver asks for: {gpu.recovery} ({said})"


class Fault(NamedTuple):
    """A fault that the memory of a GPU may have."""

    there: bool  # Whether the GPU has the fault.
    status: Status  # How bad it is.
    text: str  # The text for people.
    what: str = ""  # its name in the ledger; empty if it is not stored there
    note: str = ""  # the text of its event in the ledger


def _memory(gpu: Gpu) -> Iterator[Fault]:
    """The faults of a GPU's memory; messages and the ledger use the same list."""
    every = (*_worn_out(gpu), *_waits_for_reset(gpu), *_fresh_errors(gpu))
    yield from (fault for fault in every if fault.there)


def _worn_out(gpu: Gpu) -> Iterator[Fault]:
    """Faults that no reset can repair."""
    rows, pages = gpu.remapped or RemappedRows(), gpu.retired or RetiredPages()
    sram = gpu.ecc_life.sram_uncorrected or 0
    yield Fault(
        bool(rows.failed),
        Status.CRITICAL,
        "row remapping failed: replace it (RMA) once a diagnosis confirms it",
        "remap failed",
    )
    yield Fault(
        bool(gpu.unrepairable),
        Status.CRITICAL,
        "its memory cannot be repaired any more: replace it (RMA)",
        "memory unrepairable",
    )
    yield Fault(
        bool(gpu.sram_threshold),
        Status.CRITICAL,
        "SRAM errors are over NVIDIA's threshold: diagnose it for an RMA",
        "sram threshold",
    )
    yield Fault(
        sram > SRAM_MOST and not gpu.sram_threshold,
        Status.WARNING,
        f"{sram} uncorrectable SRAM errors in its life",
    )
    yield Fault(
        (rows.corrected or 0) + (rows.uncorrected or 0) >= REMAPPED_MOST,
        Status.CRITICAL,
        "all spare rows are used: diagnose it for an RMA",
    )
    yield Fault(
        (pages.single_bit or 0) + (pages.double_bit or 0) >= RETIRED_MOST,
        Status.CRITICAL,
        f"{RETIRED_MOST} or more retired pages: diagnose it for an RMA",
        "retired pages",
    )


def _waits_for_reset(gpu: Gpu) -> Iterator[Fault]:
    """Faults that a reset or a reboot repairs."""
    rows, pages = gpu.remapped or RemappedRows(), gpu.retired or RetiredPages()
    yield Fault(
        bool(rows.pending),
        Status.WARNING,
        "a row remapping is pending: reset it when it is idle",
        "remap pending",
        f"{rows.uncorrected or 0} uncorrectable rows",
    )
    yield Fault(
        bool(gpu.repairs),
        Status.WARNING,
        f"a repair is pending ({', '.join(gpu.repairs)}): reset it when it is idle",
        "repair pending",
        ", ".join(gpu.repairs),
    )
    yield Fault(
        bool(pages.pending),
        Status.WARNING,
        "a page retirement is pending: reset it when it is idle",
        "retired pending",
    )


def _fresh_errors(gpu: Gpu) -> Iterator[Fault]:
    """Errors since the driver was loaded."""
    fresh = uncorrected(gpu.ecc)
    yield Fault(
        (gpu.ecc.deferred or 0) > 0,
        Status.WARNING,
        f"{gpu.ecc.deferred} deferred memory errors since its driver was loaded",
        "ecc deferred",
        f"{gpu.ecc.deferred} since the driver was loaded",
    )
    yield Fault(
        fresh > 0,
        Status.WARNING,
        f"{fresh} uncorrectable memory errors since its driver was loaded",
        "ecc uncorrected",
        f"{fresh} since the driver was loaded",
    )


def _limits(gpu: Gpu, warn: Limits, crit: Limits) -> Iterator[Problem]:
    rx = None if gpu.pcie_rx is None else gpu.pcie_rx / 1e6
    for value, name, text, unit in (
        (gpu.temperature, "temperature", "temperature ", "°C"),
        (gpu.memory_temperature, "memory_temperature", "memory at ", "°C"),
        (rx, "pcie_rx", "receives over PCIe ", " MB/s"),
    ):
        for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
            limit = getattr(limits, name)
            if value is not None and limit is not None and value >= limit:
                yield status, f"{text}{value:g}{unit} ({status.value} from {limit:g}{unit})"
                break


def uncorrected(ecc: Ecc) -> int:
    """Uncorrected errors of DRAM and SRAM together."""
    return (ecc.dram_uncorrected or 0) + (ecc.sram_uncorrected or 0)


def values(gpu: Gpu) -> dict[str, float | int | str | bool | None]:
    """The values of a GPU for messages and the history."""
    found: Mapping[str, float | int | str | bool | None] = {
        "temperature_c": gpu.temperature,
        "power_w": gpu.power,
        "utilization_percent": gpu.utilization,
        "memory_used_bytes": gpu.memory_used,
        "ecc_uncorrected": uncorrected(gpu.ecc),
        "ecc_uncorrected_life": uncorrected(gpu.ecc_life),
        "remapped_uncorrected": gpu.remapped.uncorrected if gpu.remapped else None,
        "serial": gpu.serial or None,
        "slot": gpu.bus,
        "model": gpu.model,
        "fabric": gpu.fabric or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def events(gpu: Gpu, node: str, boot: str, now: Instant) -> Iterator[GpuEvent]:
    """Events of a GPU's state for the ledger: each once a boot, a counter once for each value."""
    told = [(fault.what, fault.note) for fault in _memory(gpu) if fault.what]
    if gpu.recovery not in ("", "None"):
        known = recovery_action(gpu.recovery)
        word = known.word if known else gpu.recovery
        told.append((f"recovery {word}", "" if word == gpu.recovery else gpu.recovery))
    if not gpu.answers:
        told.append(("unreadable", "; ".join(gpu.troubles[:3])))
    for what, text in told:
        yield GpuEvent(
            id=f"{boot} {gpu.uuid} {what} {text}",
            subject=gpu.uuid,
            what=what,
            at=now,
            node=node,
            text=text,
        )
