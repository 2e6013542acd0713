"""Reads AMD GPUs from the JSON of `amd-smi list` and `amd-smi metric`; experimental. Pure.

Its form is not stable: values are plain or {value, unit}, and the list may be wrapped in `gpu_data`
(https://rocm.docs.amd.com/projects/amdsmi). A value that is not found is None."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.core.text import first_lines, shortened, visible
from sentinel.gpu.bus import bus_id
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Ecc, Gpu, Inventory
from sentinel.gpu.quantities import told

LISTING = ("amd-smi", "list", "--json")
METRICS = ("amd-smi", "metric", "--json")


def parse(listing: str, metrics: str) -> Inventory:
    """The GPUs by the output of amd-smi's two commands. Raises Unreadable, and nothing else."""
    rows, around = _rows(listing, "list")
    measures, beside = _rows(metrics, "metric")
    measured = {row.get("gpu"): row for row in measures}
    gpus = tuple(_named([_gpu(row, measured.get(row.get("gpu"), {})) for row in rows]))
    if not gpus:
        raise Unreadable("amd-smi lists no GPU")
    remarks = tuple(dict.fromkeys([*around, *beside]))
    return Inventory(gpus=gpus, form="amd-smi", attached=len(gpus), remarks=remarks)


def _named(gpus: Sequence[Gpu]) -> Iterator[Gpu]:
    """Give the parts of a divided GPU without a UUID that of the whole GPU, whose row is before
    them: a UUID names a device, not a part of it."""
    whole = ""
    for gpu in gpus:
        whole = gpu.uuid or whole
        yield replace(gpu, uuid=whole) if gpu.part and not gpu.uuid else gpu


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
            deferred=_whole(ecc.get("total_deferred_count")),
        ),
        part=bool(_whole(row.get("partition_id"))),
        untold=() if _whole(row.get("partition_id")) else tuple(_untold(heat, metric.get("ecc"))),
    )
    return replace(gpu, untold=_ALL) if heat and _lost(gpu) else gpu


def _untold(heat: Mapping[str, Any], ecc: Any) -> Iterator[str]:
    """What no member of the form tells. A driver that cannot tell says N/A."""
    if not heat:
        yield "temperature"
    elif ecc != "N/A" and not any("uncorrect" in name for name in _mapping(ecc)):
        yield "uncorrectable errors"


_ALL = ("temperature, power or utilization",)


def _lost(gpu: Gpu) -> bool:
    """Whether the driver does not answer for this GPU: then its values are N/A, and the exit code
    is 0 (amdsmi_commands.py catches AmdSmiLibraryException). Of a divided GPU only the first part
    has values."""
    return not gpu.part and gpu.temperature is gpu.power is gpu.utilization is None


def _rows(text: str, what: str) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    """The rows of the JSON, and the lines beside it. Raises Unreadable."""
    value, beside = _json(text, f"amd-smi {what}")
    if denied := next((line for line in beside if _DENIED.search(line)), ""):
        raise Unreadable(f"amd-smi {what}: {' '.join([denied, *_after(beside, denied)])}")
    rows = value.get("gpu_data") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unreadable(f"amd-smi {what}: no list of GPUs")
    if any(not isinstance(row.get("gpu"), int) for row in rows):
        raise Unreadable(f"amd-smi {what}: a GPU without a number")
    return rows, beside


_DENIED = re.compile(r"permission|not permitted|required groups?|must be root", re.IGNORECASE)
_OF_PYTHON = re.compile(r":[0-9]+: \w*Warning: ")
MAX_LINES = 20


def _json(text: str, what: str) -> tuple[Any, list[str]]:
    """The JSON in the text, and the lines before and after it: warnings of Python and of the tool.
    Raises Unreadable."""
    start = _START.search(text)
    at = start.start(1) if start else 0
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        said = visible(shortened(text.strip().partition("\n")[0], 200))
        why = f"no JSON but: {said}" if said and not start else shortened(str(error), 100)
        raise Unreadable(f"{what}: {visible(why)}") from error
    return value, _beside(f"{text[:at]}\n{text[end:]}")


_START = re.compile(r"^[ \t]*(\[|\{)", re.MULTILINE)


def _beside(text: str) -> list[str]:
    """The lines without Python's own warnings and the line of code below each of them."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        if _OF_PYTHON.search(line):
            code = True
        elif line.strip() and not (code and line.startswith("  ")):
            lines.append(visible(shortened(line.strip(), 200)))
            code = False
    return first_lines(lines, MAX_LINES)


def _after(lines: Sequence[str], line: str) -> Sequence[str]:
    at = lines.index(line) + 1
    return lines[at : at + 2]


def _first(values: Mapping[str, Any], *names: str) -> float | None:
    return next((v for name in names if (v := _number(values.get(name))) is not None), None)


_WITH_UNIT = re.compile(r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)(?: ?[A-Za-z%°/]{1,6})?")


def _number(value: Any) -> float | None:
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str) and (found := _WITH_UNIT.fullmatch(value)):
        value = float(found[1])
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known and abs(value) < 1e15 else None


def _whole(value: Any) -> int | None:
    found = _number(value)
    return int(found) if found is not None and found == int(found) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str:
    return visible(told(shortened(value, 100))) if isinstance(value, str) else ""
