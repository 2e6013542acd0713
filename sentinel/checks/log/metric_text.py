"""Files of metrics as lines of text, so that what reads logs reads them too. Pure, and run in the
child that reads texts."""

import os
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from sentinel.checks.log.metric_points import (
    MetricPoint,
    NoMessage,
    read_event,
    read_json_line,
    read_wandb_record,
)
from sentinel.checks.log.metric_records import (
    MAX_RECORD_BYTES,
    WANDB_IDENT,
    SplitRecords,
    split_tfrecords,
    split_wandb_records,
)
from sentinel.checks.log.scan import LogPatterns
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.errors import CannotTell
from sentinel.core.patterns import compile_by_line
from sentinel.core.text import visible

STEP_NAME = "step"
"""The name of the number that has to advance."""

MAX_TAG_CHARS = 80
"""How many characters of the name of a number are read."""

_STEP_PATTERN = compile_by_line(re.compile(r"^step (-?\d[\d.e+]*)"))
METRIC_PATTERNS = LogPatterns(
    numbers={STEP_NAME: _STEP_PATTERN}, phases={}, loss=None, finder=TroubleFinder({}, [], False)
)
"""What is searched in the lines. An error has no place in them."""

SHOWN_NAMES = {
    "mfu": re.compile(r"(?:^|_)mfu(?:_|$)"),
    "tokens_per_second": re.compile(
        r"(?:^|_)(?:tok(?:en)?s?_(?:per_)?s(?:ec(?:onds?)?)?|tps|wps|tgs)(?:_|$)"
    ),
}
"""Numbers that are kept beside the step, by how their names are written with `_` in place of all
else than letters and digits."""


class MetricLines(Struct, frozen=True):
    """The steps and numbers, a line each, the last numbers worth keeping, and how many bytes were read."""

    text: str
    shown: dict[str, float]
    size: int


def read_metrics(data: bytes, path: str, start: int, is_cut: bool = False) -> MetricLines:
    """The new points of a file, from position `start` on. `is_cut`: it was not read up to there, so
    a line may begin in its middle. Raises CannotTell if the file is of another form than its name
    says."""
    name = os.path.basename(path)
    if name.endswith(".wandb"):
        if not start and data and not data.startswith(WANDB_IDENT[: len(data)]):
            raise CannotTell(f"{visible(path)} is no file of W&B: it does not begin with :W&B")
        split, read = split_wandb_records(data, start), read_wandb_record
    elif "tfevents" in name:
        split, read = split_tfrecords(data), read_event
        if not start and not split.records and len(data) > 2**12:
            raise CannotTell(f"{visible(path)} is no event file: no record can be read in it")
    else:
        return _read_json_lines(data, path, is_cut=is_cut)
    points = list[MetricPoint]()
    for record in split.records:
        try:
            if point := read(record):
                points.append(point)
        except NoMessage:
            continue
    return _describe_points(points, split)


def _read_json_lines(data: bytes, path: str, *, is_cut: bool) -> MetricLines:
    size = data.rfind(b"\n") + 1
    points, bad = list[MetricPoint](), 0
    lines = data[:size].split(b"\n")
    for line in lines[1:] if is_cut else lines:
        if not line.strip() or len(line) > MAX_RECORD_BYTES:
            continue
        try:
            if point := read_json_line(line.decode("utf-8", "replace")):
                points.append(point)
        except (ValueError, RecursionError):
            bad += 1
    if bad and not points:
        raise CannotTell(f"{visible(path)} is no file of metrics: its lines are no JSON objects")
    return _describe_points(points, SplitRecords([], size))


def _describe_points(points: list[MetricPoint], split: SplitRecords) -> MetricLines:
    shown = dict[str, float]()
    for point in points:
        shown |= _select_shown(point.values)
    return MetricLines("".join(map(_format_point, points)), shown, split.size)


def _format_point(point: MetricPoint) -> str:
    step = [] if point.step is None or point.step != point.step else [f"step {point.step:.15g}"]
    values = (f"{_plain_tag(tag)}: {value:.9g}" for tag, value in point.values.items())
    return "".join(f"{line}\n" for line in (*step, *values))


def _plain_tag(tag: str) -> str:
    return re.sub(r"[^\w./@%()-]", "_", tag[:MAX_TAG_CHARS])


def _select_shown(values: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for tag, value in values.items():
        word = re.sub(r"[^a-z0-9]+", "_", tag.lower())
        for name, pattern in SHOWN_NAMES.items():
            if value == value and pattern.search(word):
                yield name, value
