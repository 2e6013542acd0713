"""All that is stored, as text, as the last release has it: `python -m tests.store.pinned` writes it.

A change that an older or a newer sentinel reads as it was meant (a new field that may be missing, a new
word, a new noun) is written down by that command, with a release. It refuses any other one: that needs
a migration, a higher schema version, and `--step`.
"""

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import inspect

from sentinel.alerting.handover import Handover
from sentinel.core.actions import ActionRecord, ActionSwitch, NodeReading
from sentinel.core.clock import Instant
from sentinel.core.gpu_ledger import GpuEvent, LedgerEntry, Stay
from sentinel.core.model import Alert, CheckRun, Outgoing, Transition
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.stored_memory import decode_memory
from sentinel.store.backlog import PendingWrite
from sentinel.store.lease import Lease
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION
from sentinel.store.rows import DeliveryOutcome, OutboxAddress, StoredMemory, StoredOrder
from sentinel.store.spare_journals import JournalHead
from tests.lab.systemd import ROOT

GOLDEN = Path(__file__).parent / "states" / "nouns.txt"
NOUNS: tuple[Any, ...] = (
    Alert, CheckRun, Outgoing, OutboxAddress, Transition, DeliveryOutcome, StoredMemory, StoredOrder,
    Lease, Handover, ActionRecord, ActionSwitch, NodeReading, GpuEvent, LedgerEntry, Stay,
    JournalHead, PendingWrite, LedgerRow,
)  # fmt: skip


FORGOTTEN = ("log memory.logs[].course",)
"""Memory that no version needs any more: an older one that does not find it begins anew."""


def find_memories() -> Iterator[tuple[str, Any]]:
    """What kinds remember: the kind, and the type that it asks `decode_memory` for."""
    for path in sorted((ROOT / "sentinel" / "checks").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if f"{decode_memory.__name__}(" not in text:
            continue
        way = path.relative_to(ROOT).with_suffix("").parts
        module = import_module(".".join(way))
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == decode_memory.__name__:
                where = ast.unparse(call.args[0]).replace("self.", "").replace("ctx.", "")
                yield f"{way[2]} {where}", _resolve(call.args[1], module)


def _resolve(argument: ast.expr, module: Any) -> Any:
    if ast.unparse(argument) == "kind":  # of a helper that is called with each of these
        return tuple[module.Memory, module.TrainingsMemory]
    return eval(ast.unparse(argument), vars(module))


def describe_all() -> list[str]:
    """A line for each stored field, by its way from the noun. Names of classes are not stored."""
    lines: list[str] = []
    for noun in NOUNS:
        lines += _describe(noun.__name__, inspect.type_info(noun))
    for name, kind in find_memories():
        lines += _describe(name, inspect.type_info(kind))
    for field in inspect.type_info(Instant).fields:  # type: ignore[attr-defined]
        lines += _describe(f"Instant.{field.encode_name}", field.type)
    return [f"schema {NEWEST_SCHEMA_VERSION}", *sorted(set(lines))]


def _describe(way: str, info: inspect.Type, may: str = "") -> Iterator[str]:
    yield f"{way}: {_name(info)}{may}"
    yield from _descend(way, info)


def _descend(way: str, info: inspect.Type) -> Iterator[str]:
    if isinstance(info, inspect.StructType) and info.cls is not Instant:
        for field in info.fields:
            default = "" if field.required else f" = {_show_default(field)}"
            yield from _describe(f"{way}.{field.encode_name}", field.type, default)
    for mark, part in _parts(info):
        yield from _descend(f"{way}{mark}", part)


def _parts(info: inspect.Type) -> Iterator[tuple[str, inspect.Type]]:
    for name in ("item_type", "key_type", "value_type", "type"):
        if isinstance(part := getattr(info, name, None), inspect.Type):
            yield "[]", part
    for number, part in enumerate(getattr(info, "item_types", ())):
        yield f"[{number}]", part
    for part in getattr(info, "types", ()):
        yield "", part


def _show_default(field: inspect.Field) -> str:
    """What an older row is taken to say. A default that is made anew is as empty as its type is."""
    simple = isinstance(field.default, int | float | str | bool | tuple) or field.default is None
    return repr(field.default) if simple else "made"


def _name(info: inspect.Type) -> str:
    if isinstance(info, inspect.StructType):
        return "instant" if info.cls is Instant else "object"
    if isinstance(info, inspect.EnumType):
        return "|".join(sorted(repr(m.value) for m in info.cls))
    if isinstance(info, inspect.LiteralType):
        return "|".join(sorted(map(repr, info.values)))
    inner = [_name(part) for _, part in _parts(info)]
    name = type(info).__name__.removesuffix("Type").lower()
    if isinstance(info, inspect.UnionType):
        return "|".join(sorted(inner))
    return f"{name}[{', '.join(inner)}]" if inner else name


def find_incompatible(before: list[str], now: list[str]) -> list[str]:
    """Changes that need a step: what another version would not read as it was meant."""
    old, new = (
        dict(line.split(": ", 1) for line in side if ": " in line) for side in (before, now)
    )
    known = {name.rpartition(".")[0] for name in old}
    wrong = []
    for name, what in old.items():
        if name not in new and not name.startswith(FORGOTTEN):
            wrong.append(f"{name} is gone")
        elif name in new and not _may_become(what, new[name]):
            wrong.append(f"{name} was {what}, is {new[name]}")
    for name, what in new.items():
        inside = "." in name and name.rpartition(".")[0] in known  # else it is a new noun
        if name not in old and inside and " = " not in what:
            wrong.append(f"{name} is new, and an older row has none: it needs a default")
    return wrong


def _may_become(before: str, now: str) -> bool:
    """The same; or more words; or no more required."""
    old, _, _ = before.partition(" = ")
    new, _, default = now.partition(" = ")
    more_words = old.startswith("'") and set(old.split("|")) <= set(new.split("|"))
    return (old == new or more_words) and (bool(default) or " = " not in before)


def main(words: list[str]) -> int:
    """0 when it was written; 1 where a step is needed."""
    now = describe_all()
    before = GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.exists() else now
    wrong = find_incompatible(before, now)
    if wrong and ("--step" not in words or before[0] == now[0]):
        print("\n".join([*wrong, "needs a migration, a higher schema version, and --step"]))
        return 1
    GOLDEN.write_text("\n".join(now) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
