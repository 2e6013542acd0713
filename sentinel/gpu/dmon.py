"""Reads `nvidia-smi dmon` tables, from a pipe or a recorder's file. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sentinel.gpu.errors import Unreadable
from sentinel.gpu.quantities import number

MOST = 2_000_000
"""Lines at most: eight GPUs every 15 seconds for 43 days."""


class Sample(Struct, frozen=True, kw_only=True):
    """One line: a GPU's index, when (as the tool has it, empty without -o), values by column.

    Columns as nvidia-smi names them: pwr W, gtemp and mtemp C, sm and mem %, mclk and pclk MHz,
    rxpci and txpci MB/s. What the GPU does not support is left out, never a zero.
    """

    gpu: int
    at: str = ""
    values: Mapping[str, float] = {}


def parse(text: str) -> tuple[Sample, ...]:
    """The samples. Raises Unreadable if no header names the columns, or a line does not match it.

    The header is repeated every few lines. The last line of a file that is still written may be
    cut, and is then left out."""
    columns: list[str] = []
    samples: list[Sample] = []
    lines = text.split("\n")
    if len(lines) > MOST:
        raise Unreadable(f"dmon: more than {MOST} lines")
    for count, line in enumerate(lines, 1):
        words = line.replace(",", " ").split()
        if line.lstrip().startswith("#"):
            columns = _columns(words) or columns
        elif words:
            sample = _sample(words, columns)
            if sample is None and count < len(lines):
                raise Unreadable(f"dmon: line {count} does not fit its header")
            samples += [sample] if sample else []
    if not columns:
        raise Unreadable("dmon: no header line names the columns")
    return tuple(samples)


def _columns(words: list[str]) -> list[str]:
    """Names of the columns in lower case; empty for the second header line, which has the units."""
    names = [word.lower() for word in words]
    names = names[1:] if names[0] == "#" else [names[0].lstrip("#"), *names[1:]]
    return names if "gpu" in names else []


def _sample(words: list[str], columns: list[str]) -> Sample | None:
    if len(words) != len(columns):
        return None
    found = dict(zip(columns, words, strict=True))
    gpu = number(found.pop("gpu"))
    when = [found.pop(name) for name in ("date", "time") if name in found]
    if gpu is None or gpu < 0:
        return None
    numbers = {name: number(word) for name, word in found.items() if word != "-"}
    if any(value is None for value in numbers.values()):
        return None
    values = {name: value for name, value in numbers.items() if value is not None}
    return Sample(gpu=int(gpu), at=" ".join(when), values=values)
