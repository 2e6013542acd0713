"""Reads the dump of PyTorch's flight recorder for one rank, without running any code in it. Pure.

The format: torch/csrc/distributed/c10d/FlightRecorder.hpp (constants) and FlightRecorderDetail.hpp
(`dump`: pickle; `dump_json`). `state` may stay "scheduled" for ever, because events on a GPU are
only asked for if timing is on. `retired` and `pg_status` show what has ended.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.text import shorten_to_line

MOST = 32 * 2**20
"""Bytes of one dump. A full buffer (2000 entries, with stacks) has a few MiB."""
KEPT = 512
"""How many of the operations in a dump that have not ended are kept. The oldest are kept."""
LAST = 32
"""How many of the ended operations in a dump are kept. The newest are kept."""
LONGEST = 100
"""How many characters a name in the dump may have."""

_PEER = re.compile(r"(?:^|[:_ ])(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})$")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_FOREIGN = ("/torch/", "site-packages/", "dist-packages/", "/lib/python", "<frozen")


class PendingOp(Struct, frozen=True, kw_only=True):
    """An operation of a rank.

    `seq`: the number of the collective in its group.
    `peer`: for a send or receive, the position of the other rank in the group.
    `shape`: number of elements and type of the input.
    `place`: the line that called it. Empty if the dump has no stacks.
    """

    group: str
    seq: int
    name: str
    desc: str = ""
    sends: bool = False
    peer: int | None = None
    shape: str = ""
    place: str = ""


class GroupMembership(Struct, frozen=True, kw_only=True):
    """A group as one rank sees it.

    `ranks`: its global ranks. Empty if the dump does not name them.
    `enqueued`, `completed`: the last collective that this rank has enqueued, and the last that has
        ended. None: the dump does not say it.
    `pairs`: whether the rank sends and receives in it.
    """

    ranks: tuple[int, ...] = ()
    desc: str = ""
    enqueued: int | None = None
    completed: int | None = None
    pairs: bool = False


class Recording(Struct, frozen=True, kw_only=True):
    """The dump of one rank, with its groups by name. `ops` have not ended. `ended` are the last
    that have ended or failed."""

    rank: int
    groups: Mapping[str, GroupMembership]
    ops: tuple[PendingOp, ...] = ()
    ended: tuple[PendingOp, ...] = ()


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles dicts, lists, tuples, texts and numbers. A dump needs nothing else. A pickle that
    names a class or a function is a program (docs.python.org/3/library/pickle.html, Restricting
    Globals)."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"it would run {module_name}.{global_name}")

    def persistent_load(self, _pid: Any) -> Any:
        raise pickle.UnpicklingError("it names an object outside of itself")


def read_recording(data: bytes, rank: int) -> Recording:
    """One dump, pickle or JSON. Raises CannotTell if it is none, would run code, or is too long.

    The dump may be hostile. The caller limits the memory, because a pickle of a few bytes can ask
    for gigabytes.
    """
    if len(data) > MOST:
        raise CannotTell(f"longer than {MOST // 2**20} MiB")
    raw = _load_dump(data)
    try:
        return _make_recording(raw, rank)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise CannotTell(f"no dump of the flight recorder: {_error_words(error)}") from None


def _load_dump(data: bytes) -> Any:
    try:
        if data[:1] == b"{":
            return json.loads(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:
        # pickle: "other exceptions may also be raised during unpickling"
        raise CannotTell(f"refused: {_error_words(error)}") from None


def _error_words(error: Exception) -> str:
    return shorten_to_line(str(error), 200) or type(error).__name__


def _make_recording(raw: Any, rank: int) -> Recording:
    if not isinstance(raw, dict) or not isinstance(raw.get("pg_config"), dict):
        raise TypeError("it has no process groups")
    entries = [entry for entry in raw.get("entries") or () if isinstance(entry, dict)]
    by_group: dict[str, list[Any]] = defaultdict(list)
    for entry in entries:
        by_group[_group_name(entry)].append(entry)
    groups = {_bounded_text(name): _read_group(found) for name, found in raw["pg_config"].items()}
    if any(groups) and not any(rank in group.ranks for group in groups.values()):
        raise ValueError(f"rank {rank} of its name is in none of its groups")
    groups.pop("", None)  # gloo puts all its groups under this name, with the ranks of the last one
    groups |= {
        name: GroupMembership(desc=_group_description(own[0]))
        for name, own in by_group.items()
        if name not in groups
    }
    status = _group_status(raw.get("pg_status"), groups, entries)
    ops = [_read_op(entry) for entry in entries if not _has_ended(entry)]
    return Recording(
        rank=rank,
        groups={
            name: _count_group(group, status.get(name), by_group.get(name, []))
            for name, group in groups.items()
        },
        ops=tuple(ops[:KEPT]),
        ended=tuple(_read_op(entry) for entry in [e for e in entries if _has_ended(e)][-LAST:]),
    )


def _read_group(found: Mapping[str, Any]) -> GroupMembership:
    """Read a group. Its ranks are printed as the text of a list."""
    return GroupMembership(
        ranks=_parse_rank_list(str(found["ranks"])), desc=_bounded_text(found.get("desc") or "")
    )


@lru_cache(maxsize=1000)
def _parse_rank_list(text: str) -> tuple[int, ...]:
    return tuple(int(rank) for rank in json.loads(text))


def _count_group(
    group: GroupMembership, status: Mapping[str, Any] | None, own: list[Any]
) -> GroupMembership:
    """The group with its counters. `pg_status` counts sends and receives in the same fields as
    collectives, with numbers of their own. So for a group that has both, only its entries count.
    Each entry has the number of collectives until then."""
    pairs = any(_is_send_or_recv(entry) for entry in own)
    seen = [_parse_int(entry["collective_seq_id"]) for entry in own]
    ended = [
        _parse_int(e["collective_seq_id"]) for e in own if _has_ended(e) and not _is_send_or_recv(e)
    ]
    enqueued = max(seen, default=None)
    completed = max(ended, default=None)
    if status and not pairs:
        enqueued = max(_parse_int(status["last_enqueued_collective"]), enqueued or -1)
        completed = max(_parse_int(status["last_completed_collective"]), completed or -1)
    return GroupMembership(
        ranks=group.ranks, desc=group.desc, enqueued=enqueued, completed=completed, pairs=pairs
    )


def _group_status(
    told: Any, groups: Mapping[str, GroupMembership], entries: Iterable[Any]
) -> dict[str, Any]:
    """The status of each group, by its name.

    `pg_status` has the rank's own numbers, and an entry has both. The other groups follow in the
    order in which they were made, if that fits every entry.
    """
    if not isinstance(told, dict):
        return {}
    known = {str(entry["pg_id"]): _group_name(entry) for entry in entries if "pg_id" in entry}
    found = {name: told[number] for number, name in known.items() if number in told}
    if len(told) != len(groups) or not all(n.isdecimal() for n in (*groups, *map(str, told))):
        return found
    ordered = dict(zip(sorted(map(str, told), key=int), sorted(groups, key=int), strict=True))
    if any(ordered.get(number) != name for number, name in known.items()):
        return found
    return {name: told[number] for number, name in ordered.items()}


def _read_op(entry: Mapping[str, Any]) -> PendingOp:
    name = _bounded_text(entry["profiling_name"])
    pair = _PEER.search(name)
    return PendingOp(
        group=_group_name(entry),
        desc=_group_description(entry),
        seq=_parse_int(entry["collective_seq_id"]),
        name=(pair[1] if pair else name).rpartition(":")[2],
        sends=pair is not None and pair[1] == "send",
        peer=int(pair[3]) if pair else None,
        shape=_tensor_shape(entry),
        place=_user_frame(entry.get("frames")),
    )


def _tensor_shape(entry: Mapping[str, Any]) -> str:
    sizes, types = entry.get("input_sizes"), entry.get("input_dtypes")
    if not (isinstance(sizes, list | tuple) and sizes and isinstance(sizes[0], list | tuple)):
        return ""
    kind = _bounded_text(types[0]) if isinstance(types, list | tuple) and types else ""
    return f"{'x'.join(str(_parse_int(n)) for n in sizes[0][:8])} {kind}".strip()


def _user_frame(frames: Any) -> str:
    """The innermost frame of the user's own code."""
    for frame in frames if isinstance(frames, list | tuple) else ():
        path = str(frame.get("filename", "")) if isinstance(frame, dict) else ""
        if path and ".so" not in path and not any(part in path for part in _FOREIGN):
            return f"{_bounded_text(path.rpartition('/')[2])}:{_parse_int(frame.get('line') or 0)}"
    return ""


def _has_ended(entry: Mapping[str, Any]) -> bool:
    """Whether the operation has ended: `retired` since torch 2.3, before that `state`."""
    retired = entry.get("retired")
    return retired is True or entry.get("state") == "completed"


def _is_send_or_recv(entry: Mapping[str, Any]) -> bool:
    return entry.get("is_p2p") is True or bool(_PEER.search(str(entry.get("profiling_name"))))


def _group_name(entry: Mapping[str, Any]) -> str:
    """The name of the group. `process_group` is (name, description)."""
    return _bounded_text(entry["process_group"][0])


def _group_description(entry: Mapping[str, Any]) -> str:
    desc = _bounded_text(entry["process_group"][1]) if len(entry["process_group"]) > 1 else ""
    return "" if desc == "undefined" else desc


def _parse_int(value: Any) -> int:
    """The number. Some numbers of the JSON form are texts."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise TypeError("a number is none")
    return value


def _bounded_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is no text")
    return shorten_to_line(value, LONGEST)
