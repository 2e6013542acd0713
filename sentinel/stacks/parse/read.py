"""Parses the output of stacks.sh on a node. Pure.

Names, paths and environments are chosen by users. The script keeps each on one line, and nothing
here takes them for anything but text.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.text import shortened, visible
from sentinel.stacks.parse.model import (
    BlockedThread,
    JobProcess,
    NodeStacks,
    ProcessUsage,
    StackFrame,
    ThreadStack,
)

MOST = 64 * 2**20
"""How many bytes the answer of one node may have when it is unpacked."""

_DENIED = ("permission denied", "operation not permitted", "elevated permissions")
_GONE = ("no such file or directory", "no such process", "failed to get process executable")
_BARE = "-"
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_ABOUT_PROCESSES = frozenset(
    {"exe", "python", "stack", "blocked", "waits", "failed", "other", "env", "frame", "spent"}
)


def packed_by_node(out: bytes, mark: str) -> dict[str, bytes]:
    """The packed answers of the nodes whose answer is complete, by name. Lines from other sources
    are skipped."""
    pieces: dict[str, dict[str, bytes]] = {}
    for line in out.split(b"\n"):
        head, _, rest = line.partition(b" ")
        if head == mark.encode("ascii") and rest.count(b" ") == 2:
            node, number, piece = rest.split(b" ")
            pieces.setdefault(node.decode("utf-8", "replace"), {})[number.decode()] = piece
    found = {node: _join_parts(parts) for node, parts in pieces.items()}
    return {node: data for node, data in found.items() if data}


def unpack_node(data: bytes) -> str:
    """The text of one node. Raises CannotTell if it is not complete, because a process that is cut
    off would be taken for gone. Unpack one node at a time: in a large job, all together are
    gigabytes."""
    packed = zlib.decompressobj(wbits=31)
    try:
        raw = packed.decompress(b64decode(data, validate=True), MOST)
    except (zlib.error, NotBase64) as error:
        raise CannotTell(f"its answer was damaged on the way: {error}") from None
    if not packed.eof:
        raise CannotTell("its answer was cut off on the way, or is longer than 64 MiB")
    return decode_document(raw)


def _join_parts(parts: Mapping[str, bytes]) -> bytes:
    last = parts.get("end", b"")
    if not last.isdigit() or any(str(n) not in parts for n in range(1, int(last) + 1)):
        return b""
    return b"".join(parts[str(n)] for n in range(1, int(last) + 1))


def read_node(text: str, node: str) -> NodeStacks:
    """The processes of one node. Raises CannotTell if the answer has another form."""
    found: dict[str, dict[str, Any]] = {}
    about: dict[str, str] = {}
    try:
        for line in text.split("\n"):
            word, *fields = line.split("\t")
            _take_record(word, fields, found, about)
        told = _about_node(node, about)
        if "cut" in about:
            raise CannotTell(f"{node} does not tell all processes of the job")
        if about.keys().isdisjoint({"seen", "none"}):
            raise ValueError("the list of its processes has no end")
        return replace(told, processes=tuple(_make_process(node, f, told) for f in found.values()))
    except (KeyError, IndexError, ValueError) as error:
        raise CannotTell(f"{node} answered in a form that is not understood: {error}") from None


def _about_node(node: str, about: Mapping[str, str]) -> NodeStacks:
    if "node" not in about:
        raise ValueError("it does not say which node it is")
    return NodeStacks(
        node=node,
        tool=about.get("tool", ""),
        no_tool=about.get("no-tool", ""),
        scope=about.get("scope", ""),
        uid=about.get("uid", ""),
        user=about.get("user", ""),
        witness=about.get("witness", ""),
        ras=_decode_base64_text(about.get("ras", "")),
        kernel=_decode_base64_text(about.get("kernel", "")),
        gpus=_decode_base64_text(about.get("gpus", "")),
    )


def _decode_base64_text(packed: str) -> str:
    try:
        return decode_lines(b64decode(packed, validate=True))
    except NotBase64:
        return ""


def _take_record(
    word: str, fields: list[str], found: dict[str, dict[str, Any]], about: dict[str, str]
) -> None:
    if word == "proc":
        keys = ("pid", "parent", "step", "task", "rank", "state", "name")
        found[fields[0]] = {**dict(zip(keys, fields, strict=True)), "env": {}, "native": []}
    elif word == "node":
        about["node"] = fields[0]
    elif word == "witness":
        about["witness"], about["uid"], about["user"] = (f.strip() for f in fields)
    elif word in ("tool", "no-tool", "scope", "ras", "kernel", "gpus"):
        about[word] = visible(fields[-1].strip())
    elif word in ("seen", "none", "cut"):
        about[word] = ""
    elif word in _ABOUT_PROCESSES:
        _add_field(word, found[fields[0]], fields[1:])


def _add_field(word: str, entry: dict[str, Any], fields: list[str]) -> None:
    if word == "env":
        entry["env"][fields[0]] = fields[1].strip()
    elif word == "frame":
        entry["native"].append(visible(fields[0]))
    else:
        entry[word] = fields


def _make_process(node: str, entry: Mapping[str, Any], told: NodeStacks) -> JobProcess:
    exe = str((entry.get("exe") or [""])[0]).strip()
    base = exe.rpartition("/")[2]
    read, why = _parse_threads(entry)
    return JobProcess(
        node=node,
        pid=int(entry["pid"]),
        parent=int(entry["parent"]),
        step="" if entry["step"] == _BARE else visible(str(entry["step"])),
        task=_optional_number(str(entry["rank"])),
        state=str(entry["state"]),
        name=visible(str(entry["name"]).strip()),
        exe=visible(exe),
        env={k: visible(v) for k, v in entry["env"].items()},
        threads=read,
        blocked=_make_blocked(entry),
        native=tuple(entry["native"]),
        python="other" not in entry and ("python" in entry or base.startswith(("python", "pypy"))),
        why=why or _why_no_stack(entry, told),
        spent=_make_usage(entry),
        doing=(entry.get("waits") or [""])[0].strip(),
        path=visible((entry.get("waits") or ["", ""])[1].strip()),
    )


def _parse_threads(entry: Mapping[str, Any]) -> tuple[tuple[ThreadStack, ...], str]:
    if "stack" not in entry:
        return (), ""
    try:
        parsed = json.loads("\t".join(entry["stack"]))
        return tuple(_make_thread(t) for t in parsed if isinstance(t, dict)), ""
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return (), f"py-spy's answer is not understood: {shortened(visible(str(error)), 100)}"


def _make_thread(raw: Mapping[str, Any]) -> ThreadStack:
    frames = tuple(
        _make_frame(
            str(f["name"]),
            str(f["filename"]),
            str(f.get("short_filename") or ""),
            int(f.get("line") or 0),
        )
        for f in raw["frames"]
    )
    return ThreadStack(
        name=visible(str(raw.get("thread_name") or "")),
        id=int(raw.get("os_thread_id") or 0),
        frames=_share_frames(frames),
        active=bool(raw.get("active")),
        gil=bool(raw.get("owns_gil")),
    )


@lru_cache(maxsize=50_000)
def _make_frame(function: str, path: str, short: str, line: int) -> StackFrame:
    """Make a frame. The ranks of a large job, their workers and threads stand at few places, so
    each frame is made once."""
    if _ADDRESS.fullmatch(function):  # an address differs between processes, and helps nobody
        function = "??"
    return StackFrame(visible(function), visible(short or path), line, visible(path))


@lru_cache(maxsize=10_000)
def _share_frames(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
    return frames


def _make_blocked(entry: Mapping[str, Any]) -> BlockedThread | None:
    if "blocked" not in entry:
        return None
    thread, wchan, kernel = (str(f).strip() for f in entry["blocked"])
    doing, path = (str(f).strip() for f in entry.get("waits", ("", "")))
    return BlockedThread(
        thread=int(thread), wchan=wchan, kernel=kernel, doing=doing, path=visible(path)
    )


def _make_usage(entry: Mapping[str, Any]) -> ProcessUsage | None:
    ticks, clock, at, moved = (entry.get("spent") or [""] * 4)[:4]
    if not (ticks.isdigit() and clock.isdigit() and int(clock) and at):
        return None
    count = int(moved) if moved.strip().isdigit() else None
    return ProcessUsage(cpu=int(ticks) / int(clock), at=float(at), moved=count)


def _why_no_stack(entry: Mapping[str, Any], told: NodeStacks) -> str:
    if "failed" in entry:
        code, said = entry["failed"]
        return _py_spy_complaint(code, said.strip(), told)
    if any(key in entry for key in ("stack", "other", "blocked")):
        return ""
    return told.no_tool


def _py_spy_complaint(code: str, said: str, told: NodeStacks) -> str:
    """py-spy's error in one line. Its back traces help nobody."""
    low = said.lower()
    if any(words in low for words in _DENIED):
        return f"no permission to read it as uid {told.uid}{_ptrace_scope_words(told.scope)}"
    if any(words in low for words in _GONE):
        return "it ended during the dump"
    if code in ("124", "137"):
        return said or "py-spy did not finish in time"
    first = said.partition("Stack backtrace")[0].removeprefix("Error: ").strip()
    return shortened(visible(first) or f"py-spy failed with exit code {code}", 200)


def _ptrace_scope_words(scope: str) -> str:
    """The setting of Yama on the node, in words:
    https://docs.kernel.org/admin-guide/LSM/Yama.html"""
    if scope.strip() in ("", "0"):
        return ""
    return f" (kernel.yama.ptrace_scope={visible(scope.strip())} there)"


def _optional_number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
