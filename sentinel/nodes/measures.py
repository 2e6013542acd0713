"""Reads what fio, STREAM, nccl-tests and perftest print. Pure.

Their output is text of a node: numbers are taken from it and nothing else."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping

from sentinel.core.errors import CannotTell

UNITS: Mapping[str, str] = {"disk": "MB/s", "memory": "MB/s", "nccl": "GB/s", "ib": "Gb/s"}
"""The unit of the measures of a test, as its program prints them."""

MAX_MEASURES = 64
MAX_VALUE = 1e9
MAX_HEADER_CHARS = 400
_NUMBER = r"(\d{1,12}(?:\.\d{0,12})?)(?![\w.])"
_STREAM_ROW = re.compile(rf"^(Triad): {{1,40}}{_NUMBER}", re.MULTILINE)
_NCCL_AVERAGE = re.compile(rf"\bAvg bus bandwidth {{0,8}}: {{0,8}}{_NUMBER}")
_NCCL_WRONG = re.compile(r"\bOut of bounds values {0,8}: {0,8}(\d{1,12}) (OK|FAILED)")
_FIO_BEGIN = re.compile(r"^\{", re.MULTILINE)
_IB_DEVICE = re.compile(r"\bDevice {1,40}: {0,8}([A-Za-z0-9_.-]{1,64})")
_IB_SIZE = re.compile(r" {0,8}\d{1,12}\s")
_IB_AVERAGE = re.compile(_NUMBER)
_IB_COLUMN = "BW average[Gb/sec]"


class WrongResult(Exception):
    """The program says that the node computed wrongly."""


def read_measures(test: str, text: str) -> Mapping[str, float]:
    """What the program of the test measured. Raises CannotTell if the text is not understood, and
    WrongResult if the program found wrong data."""
    found = _READERS[test](text)
    if not found or len(found) > MAX_MEASURES:
        raise CannotTell(f"what {PROGRAMS[test]} printed is not understood")
    if not all(math.isfinite(value) and 0 <= value <= MAX_VALUE for value in found.values()):
        raise CannotTell(f"what {PROGRAMS[test]} printed has an impossible number")
    return found


def _read_fio(text: str) -> Mapping[str, float]:
    """`--output-format=json`, behind lines of warnings: megabytes a second of each job."""
    begin = _FIO_BEGIN.search(text)
    try:
        answer, _ = json.JSONDecoder().raw_decode(text, begin.start() if begin else 0)
        jobs = [(str(job["jobname"]), job) for job in answer["jobs"]]
        errors = [int(job["error"]) for _, job in jobs]
        found = {
            name: float(job[name]["bw_bytes"]) / 1e6
            for name, job in jobs
            if name in ("write", "read")
        }
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}
    if any(errors):
        raise CannotTell("fio reports an error")
    return found


def _read_stream(text: str) -> Mapping[str, float]:
    """The best rate of the triad, of stream.c from version 5.10."""
    if "Failed Validation" in text:
        raise WrongResult("STREAM computed wrongly")
    if "Solution Validates" not in text:
        return {}
    return {name.lower(): float(value) for name, value in _STREAM_ROW.findall(text)}


def _read_nccl(text: str) -> Mapping[str, float]:
    """The bus bandwidth, which counts what the links carried."""
    wrong = _NCCL_WRONG.search(text)
    if wrong and (wrong[2] == "FAILED" or int(wrong[1])):
        raise WrongResult(f"all_reduce gave {wrong[1]} wrong values")
    average = _NCCL_AVERAGE.search(text)
    return {"all_reduce": float(average[1])} if average and wrong else {}


def _read_ib(text: str) -> Mapping[str, float]:
    """The average of each device, in the column of that name: how many there are depends on the version
    and on options. A warning about the CPU's clock may stand before the row."""
    found, device, column = dict[str, float](), "", None
    for line in text.splitlines():
        if named := _IB_DEVICE.search(line):
            device, column = named[1], None
        elif "#bytes" in line:
            column = _find_column(line)
        elif device and column and _IB_SIZE.match(line):
            cells = line.split(None, column + 1)
            average = _IB_AVERAGE.fullmatch(cells[column]) if len(cells) > column else None
            if average:
                found[device] = float(average[1])
    return found


def _find_column(header: str) -> int | None:
    """The number of the column with the average, from 0; None if it has another unit."""
    names = re.split(r"[ \t]{2,}", header[:MAX_HEADER_CHARS].strip())
    return names.index(_IB_COLUMN) if _IB_COLUMN in names else None


_READERS: Mapping[str, Callable[[str], Mapping[str, float]]] = {
    "disk": _read_fio,
    "memory": _read_stream,
    "nccl": _read_nccl,
    "ib": _read_ib,
}

PROGRAMS: Mapping[str, str] = {
    "disk": "fio",
    "memory": "STREAM",
    "nccl": "all_reduce_perf",
    "ib": "ib_write_bw",
}
"""The program of each test."""
