"""Reads the step and the numbers of one record of metrics: of TensorBoard's `Event`, of W&B's
`Record`, and of a JSON object. Pure.

Only the few fields that are needed are read, by their numbers in event.proto, summary.proto and
tensor.proto of TensorFlow, and in wandb_internal.proto of W&B 0.31."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from math import nan
from struct import unpack
from typing import Any

from msgspec import Struct

MAX_VALUES = 512
"""How many numbers of one record are read."""

MAX_NAME_CHARS = 256
"""How many characters of the name of a number are kept. All numbers within an object begin with its
name, so 64 KiB could hold 160 MB of names."""

STEP_KEYS = (
    "_step", "global_step", "train/global_step", "trainer/global_step", "step", "steps",
    "current_steps", "iteration", "iter", "num_updates", "update", "epoch",
)  # fmt: skip
"""Keys of JSON that hold the step; the first that is there counts."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EVENT_STEP, _EVENT_SUMMARY, _SUMMARY_VALUE = 2, 5, 1
_VALUE_TAG, _VALUE_SIMPLE, _VALUE_TENSOR = 1, 2, 8
_TENSOR_TYPE, _TENSOR_CONTENT, _TENSOR_FLOATS, _TENSOR_DOUBLES = 1, 4, 5, 6
_FLOAT, _DOUBLE = 1, 2
_RECORD_HISTORY, _HISTORY_ITEM, _HISTORY_STEP = 2, 1, 2
_ITEM_KEY, _ITEM_NESTED_KEY, _ITEM_JSON = 1, 2, 16

Fields = list[tuple[int, int | bytes]]


class MetricPoint(Struct, frozen=True):
    """The numbers that were written for one step."""

    step: float | None
    values: dict[str, float]


class NoMessage(ValueError):
    """The bytes are no message of Protocol Buffers."""


def read_event(record: bytes) -> MetricPoint | None:
    """The point of an `Event`; None if it tells no number. Raises NoMessage."""
    step, values = 0.0, dict[str, float]()
    for number, value in _read_fields(record):
        if number == _EVENT_STEP and isinstance(value, int):
            step = float(value if value < 2**63 else value - 2**64)
        elif number == _EVENT_SUMMARY and isinstance(value, bytes):
            values |= dict(_read_summary(value))
    return MetricPoint(step, values) if values else None


def read_wandb_record(record: bytes) -> MetricPoint | None:
    """The point of a `Record` of history; None for any other. Raises NoMessage."""
    for number, value in _read_fields(record):
        if number == _RECORD_HISTORY and isinstance(value, bytes):
            return _read_history(value)
    return None


def read_json_line(line: str) -> MetricPoint | None:
    """The point of a JSON object; None if the line is none. Raises ValueError."""
    found = json.loads(line)
    if not isinstance(found, dict):
        return None
    values = dict(islice(_flatten(found, "", 0), MAX_VALUES))
    step = next((values[key] for key in STEP_KEYS if key in values), None)
    return MetricPoint(step, {k: v for k, v in values.items() if k not in STEP_KEYS})


def _read_history(history: bytes) -> MetricPoint:
    values, step = dict[str, float](), None
    for number, value in _read_fields(history):
        if not isinstance(value, bytes):
            continue
        if number == _HISTORY_STEP:
            step = next(
                (float(v) for n, v in _read_fields(value) if n == 1 and isinstance(v, int)), 0.0
            )
        elif number == _HISTORY_ITEM and len(values) < MAX_VALUES:
            values |= dict(islice(_read_history_item(value), MAX_VALUES))
    step = values.get("_step", step)
    return MetricPoint(step, {k: v for k, v in values.items() if not k.startswith("_")})


def _read_history_item(item: bytes) -> Iterator[tuple[str, float]]:
    keys, text = list[str](), ""
    for number, value in _read_fields(item):
        if isinstance(value, bytes):
            if number in (_ITEM_KEY, _ITEM_NESTED_KEY):
                keys.append(value.decode("utf-8", "replace"))
            elif number == _ITEM_JSON:
                text = value.decode("utf-8", "replace")
    try:
        yield from _flatten({"/".join(keys): json.loads(text)}, "", 0)
    except (ValueError, RecursionError):
        return


def _flatten(found: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, float]]:
    """The numbers of an object, then of those within it. W&B writes NaN and Infinity as texts."""
    inner = list[tuple[str, Mapping[str, Any]]]()
    for key, value in islice(found.items(), MAX_VALUES):
        name = f"{before}{key}"[:MAX_NAME_CHARS]
        if isinstance(value, dict) and depth < 3:
            inner.append((f"{name}/", value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, _to_float(value)
        elif value in ("NaN", "Infinity", "-Infinity"):
            yield name, float(value)
    for name, value in inner:
        yield from _flatten(value, name, depth + 1)


def _to_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return nan


def _read_summary(summary: bytes) -> Iterator[tuple[str, float]]:
    for count, (number, value) in enumerate(_read_fields(summary)):
        if number == _SUMMARY_VALUE and isinstance(value, bytes) and count < MAX_VALUES:
            tag, told = "", None
            for field, content in _read_fields(value):
                if field == _VALUE_TAG and isinstance(content, bytes):
                    tag = content.decode("utf-8", "replace")
                elif field == _VALUE_SIMPLE and isinstance(content, bytes) and len(content) == 4:
                    told = unpack("<f", content)[0]
                elif field == _VALUE_TENSOR and isinstance(content, bytes):
                    told = _read_scalar_tensor(content)
            if told is not None:
                yield tag, told


def _read_scalar_tensor(tensor: bytes) -> float | None:
    """The number of a tensor with one; None for any other."""
    fields = _read_fields(tensor)
    kind = next((v for n, v in fields if n == _TENSOR_TYPE), 0)
    for number, value in fields:
        if isinstance(value, bytes) and number in (
            _TENSOR_CONTENT,
            _TENSOR_FLOATS,
            _TENSOR_DOUBLES,
        ):
            if kind == _FLOAT and len(value) == 4:
                return float(unpack("<f", value)[0])
            if kind == _DOUBLE and len(value) == 8:
                return float(unpack("<d", value)[0])
    return None


def _read_fields(message: bytes) -> Fields:
    """The fields of a message, each with its number. Numbers of fixed width stay bytes."""
    found, at = Fields(), 0
    while at < len(message):
        head, at = _read_varint(message, at)
        wire = head & 7
        if wire == _VARINT:
            value, at = _read_varint(message, at)
            found.append((head >> 3, value))
            continue
        if wire == _BYTES:
            size, at = _read_varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise NoMessage(f"wire type {wire}")
        if at + size > len(message):
            raise NoMessage("a field is longer than its message")
        found.append((head >> 3, message[at : at + size]))
        at += size
    return found


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    raise NoMessage("a number has no end")
