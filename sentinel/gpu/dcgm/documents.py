"""Makes a Document from the JSON of `dcgmi diag -j`. Pure.

There is no published schema (docs.nvidia.com/datacenter/dcgm: pin your parser per release). So the
parser is strict: an unknown shape is Unreadable and never skipped. The known shapes are those of
dcgmi/Diag.cpp and nvvs/include/NvvsJsonStrings.h from 2.1 to 4.6."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sentinel.core.text import shortened, visible
from sentinel.gpu.dcgm.model import Document, Fault, Result, Status
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.quantities import told

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_STATUS: Mapping[str, Status] = {
    "pass": "pass",
    "fail": "fail",
    "warn": "fail",
    "skip": "skip",
    "skipped": "skip",
}
_BAD = ("fail", "failed", "warn", "error")
LONGEST = 2000
_MOST = 10_000
_SHOWN = 3


def document(found: Sequence[dict[str, Any]]) -> Document:
    """All JSON objects of one output as one Document. Raises Unreadable."""
    parts = [part for value in found for part in _iterations(value)]
    roots = [(part, _root(part)) for part in parts]
    tests = [result for _, root in roots for result in _results(root)]
    errors = [error for _, root in roots if (error := _text(root.get("runtime_error", "")))]
    serials: dict[int, str] = {}
    gpus: set[int] = set()
    for part, root in roots:
        serials |= _serials(part, root)
        gpus |= _gpus(part, root)
    first, root = roots[0]
    metadata = _mapping(first.get("metadata") or {}, "metadata")
    return Document(
        form=_form(first),
        results=tuple(tests),
        version=_text(metadata.get("version", root.get("version", ""))),
        driver=_text(
            metadata.get("Driver Version Detected", root.get("Driver Version Detected", ""))
        ),
        serials=serials,
        gpus=tuple(sorted(gpus)),
        error="; ".join(dict.fromkeys(errors)),
        failing=any(_says_failed(value) for value in found),
    )


def _iterations(value: Any) -> Iterator[dict[str, Any]]:
    """The documents within an output: `--iterations` puts whole documents into a list."""
    outer = _mapping(value, "document")
    if "iterations" not in outer:
        yield outer
        return
    inner = _list(outer["iterations"], "iterations")
    if not inner:
        raise Unreadable("dcgmi diag: no iteration is in the document")
    for one in inner:
        yield _mapping(one, "iteration")


def _root(part: Mapping[str, Any]) -> dict[str, Any]:
    roots = [name for name in ROOTS if name in part]
    if len(roots) != 1:
        raise Unreadable(f"dcgmi diag: {len(roots) or 'no'} diagnostics in one document")
    return _mapping(part[roots[0]], roots[0])


def _results(root: Mapping[str, Any]) -> Iterator[Result]:
    for category in _list(root.get("test_categories"), "test_categories"):
        if category is None:
            continue
        group = _mapping(category, "category")
        name = _text(group.get("category", ""))
        for test in _list(group.get("tests"), "tests"):
            if test is not None:
                yield from _test(_mapping(test, "test"), name)


def _test(test: Mapping[str, Any], category: str) -> Iterator[Result]:
    name = _text(test.get("name", "")) or "?"
    entries = [r for r in _list(test.get("results"), "results") if r is not None]
    found = [_result(_mapping(r, "result"), name, category) for r in entries]
    yield from found
    summary = _mapping(test.get("test_summary") or {}, "test_summary")
    status = _status(summary) if summary else "other"
    # Since 4.5 the summary repeats every warning of the devices. So it counts only if the devices
    # have none.
    told = _result(summary, name, category)
    known = {(f.error_id, f.text) for r in found for f in r.faults}
    silent = status == "fail" and all(r.status != "fail" for r in found)
    if not found or silent or any((f.error_id, f.text) not in known for f in told.faults):
        yield told


def _result(entry: Mapping[str, Any], test: str, category: str) -> Result:
    return Result(
        test=test,
        category=category,
        status=_status(entry),
        entity=_entity(entry),
        ids=_ids(entry),
        faults=tuple(_faults(entry)),
        info=_info(entry.get("info")),
    )


def _status(entry: Mapping[str, Any]) -> Status:
    word = entry.get("status")
    return _STATUS.get(word.strip().lower(), "other") if isinstance(word, str) else "other"


def _entity(entry: Mapping[str, Any]) -> str:
    if "cpu_id" in entry:
        return "CPU"
    return _text(entry.get("entity_group", "GPU")) or "GPU"


def _ids(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """Device numbers of an entry: `gpu_ids: "0,1"` up to 3.2, `gpu_id: "0"` or 0 in 3.3,
    `entity_id: 0` since 4."""
    for key in ("entity_id", "gpu_id", "gpu_ids", "cpu_id"):
        value = entry.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,) if 0 <= value < _MOST else ()
        if isinstance(value, str):
            words = re.findall(r"(?<![0-9])[0-9]{1,4}(?![0-9])", value)
            return tuple(int(word) for word in words)
    return ()


def _faults(entry: Mapping[str, Any]) -> Iterator[Fault]:
    warnings = entry.get("warnings", entry.get("warning"))
    if isinstance(warnings, str):
        yield Fault(text=_text(warnings), error_id=_number(entry.get("error_id")))
        return
    for warning in _list(warnings, "warnings"):
        if isinstance(warning, str):
            yield Fault(text=_text(warning), error_id=_number(entry.get("error_id")))
        elif warning is not None:
            yield _fault(_mapping(warning, "warning"))


def _fault(warning: Mapping[str, Any]) -> Fault:
    """The fault in a warning. 3.3 has the text of a Deployment test's warning under the key
    `warnings`, by mistake."""
    said = warning.get("warning", warning.get("warnings", ""))
    return Fault(
        text=_text(said if isinstance(said, str) else ""),
        error_id=_number(warning.get("error_id")),
        severity=_number(warning.get("error_severity")),
        category=_number(warning.get("error_category")),
    )


def _serials(part: Mapping[str, Any], root: Mapping[str, Any]) -> dict[int, str]:
    """Serial numbers by DCGM id; hidden ones (`<<<NOT_SUPPORTED>>>`) are left out."""
    old = root.get("GPU Device Serials")
    found: dict[int, str] = {}
    if isinstance(old, dict):
        pairs = ((str(k), v) for k, v in old.items())
        found = {
            int(k): told(v)
            for k, v in pairs
            if re.fullmatch("[0-9]{1,4}", k) and isinstance(v, str)
        }
    found |= {
        number: told(one["serial_num"])
        for number, one in _entities(part)
        if isinstance(one.get("serial_num"), str)
    }
    return {number: visible(serial) for number, serial in found.items() if serial}


def _gpus(part: Mapping[str, Any], root: Mapping[str, Any]) -> set[int]:
    """DCGM ids of the GPUs in the run: since 4 by their ids, before by their number."""
    old = root.get("GPU Device IDs")
    counted = range(len(old)) if isinstance(old, list) else ()
    return {*counted, *(number for number, _ in _entities(part))}


def _entities(part: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The GPUs that a document of DCGM 4 lists."""
    groups = part.get("entity_groups")
    for group in groups if isinstance(groups, list) else ():
        if not isinstance(group, dict) or group.get("entity_group") != "GPU":
            continue
        entities = group.get("entities")
        for one in entities if isinstance(entities, list) else ():
            number = _number(one.get("entity_id")) if isinstance(one, dict) else None
            if number is not None and 0 <= number < _MOST:
                yield number, one


def _form(part: Mapping[str, Any]) -> str:
    return "json-4" if "DCGM Diagnostic" in part else "json-3"


def _says_failed(value: Any) -> bool:
    return next(_failed(value), None) is not None


def _failed(value: Any) -> Iterator[dict[str, Any]]:
    """Every object at any depth whose `status` says that it failed; a safety net below the
    parser."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            status = one.get("status")
            if isinstance(status, str) and status.strip().lower() in _BAD:
                yield one
            stack += one.values()
        elif isinstance(one, list):
            stack += one


def salvage(found: Sequence[dict[str, Any]]) -> str:
    """What can be read from a document of unknown form, in words: its version, and what failed.
    Empty if nothing can."""
    version = next(filter(None, map(_version, found)), "")
    bad = [one for value in found for one in _failed(value)]
    words = dict.fromkeys(w for one in bad for f in _loose(one) if (w := f.text))
    said = [f"it is of DCGM {version}"] if version else []
    if bad:
        shown = "; ".join(list(words)[:_SHOWN])
        said.append(f"a test in it failed{': ' if shown else ''}{shown}")
    return ", ".join(said)


def _version(value: Any) -> str:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if re.match("v?[0-9]{1,4}[.]", said := _text(one.get("version"))):
                return said
            stack += one.values()
    return ""


def _loose(entry: Mapping[str, Any]) -> list[Fault]:
    try:
        return list(_faults(entry))
    except Unreadable:
        return []


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"dcgmi diag: {what} is no object")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unreadable(f"dcgmi diag: {what} is no list")
    return value


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    return visible(shortened(value.strip(), LONGEST)) if isinstance(value, str) else ""


def _info(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    return "; ".join(filter(None, (_text(line) for line in lines[:20])))
