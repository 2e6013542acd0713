"""AMD GPUs, experimental: JSON of `amd-smi list` and `amd-smi metric`. Pure.

It has no stable form: values are plain or {value, unit}, the list is wrapped in `gpu_data` or
not (https://rocm.docs.amd.com/projects/amdsmi). What is not found is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.core.text import shortened, visible
from sentinel.gpu.bus import bus_id
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Ecc, Gpu, Inventory
from sentinel.gpu.quantities import told

LISTING = ("amd-smi", "list", "--json")
METRICS = ("amd-smi", "metric", "--json")


def parse(listing: str, metrics: str) -> Inventory:
    """From amd-smi's two commands; raises Unreadable, and nothing else."""
    measured = {row.get("gpu"): row for row in _rows(metrics, "metric")}
    gpus = tuple(_gpu(row, measured.get(row.get("gpu"), {})) for row in _rows(listing, "list"))
    if not gpus:
        raise Unreadable("amd-smi lists no GPU")
    return Inventory(gpus=gpus, form="amd-smi", attached=len(gpus))


def _gpu(row: Mapping[str, Any], metric: Mapping[str, Any]) -> Gpu:
    heat = _mapping(metric.get("temperature"))
    ecc = _mapping(metric.get("ecc"))
    gpu = Gpu(
        uuid=_word(row.get("uuid")),
        bus=bus_id(_word(row.get("bdf"))),
        index=_whole(row.get("gpu")),
        model=_word(_mapping(metric.get("asic")).get("market_name")),
        temperature=_first(heat, "hotspot", "edge"),
        memory_temperature=_first(heat, "mem", "vram"),
        power=_first(_mapping(metric.get("power")), "socket_power", "average_socket_power"),
        utilization=_first(_mapping(metric.get("usage")), "gfx_activity", "gfx_usage"),
        ecc=Ecc(
            dram_uncorrected=_whole(ecc.get("total_uncorrectable_count")),
        ),
        untold=() if heat else ("temperature",),
    )
    return replace(gpu, untold=_ALL) if heat and _lost(row, gpu) else gpu


_ALL = ("temperature, power or utilization",)


def _lost(row: Mapping[str, Any], gpu: Gpu) -> bool:
    """Where the driver does not answer for a GPU its values are N/A, and the exit code is 0
    (amdsmi_commands.py catches AmdSmiLibraryException). Of one that is divided, only the first part
    has them."""
    divided = bool(_whole(row.get("partition_id")))
    return not divided and gpu.temperature is gpu.power is gpu.utilization is None


def _rows(text: str, what: str) -> Sequence[Mapping[str, Any]]:
    value = _json(text, f"amd-smi {what}")
    rows = value.get("gpu_data") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unreadable(f"amd-smi {what}: no list of GPUs")
    if any(not isinstance(row.get("gpu"), int) for row in rows):
        raise Unreadable(f"amd-smi {what}: a GPU without a number")
    return rows


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{what}: {visible(shortened(str(error), 100))}") from error


def _first(values: Mapping[str, Any], *names: str) -> float | None:
    return next((v for name in names if (v := _number(values.get(name))) is not None), None)


def _number(value: Any) -> float | None:
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", value):
        value = float(value)
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known and abs(value) < 1e15 else None


def _whole(value: Any) -> int | None:
    found = _number(value)
    return int(found) if found is not None and found == int(found) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str:
    return visible(told(shortened(value, 100))) if isinstance(value, str) else ""
