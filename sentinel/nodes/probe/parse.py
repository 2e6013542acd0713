"""Parses the output of probe.sh: first the frame, then each section separately. Pure.

The frame is strict: only text between a begin and an end with this call's mark was printed by the
script. A section that has not its known form becomes Unread as a whole, never half a list."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from sentinel.core.errors import SentinelError
from sentinel.core.long_lines import decode_lines
from sentinel.core.node_probe import NodeProbe, ProbeRequest, Unread, Unseen
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import activity, host, kernel, sections

VERSION = "1"

_HEADER = re.compile(r"([a-z_]+(?:\.[0-9]+)?) ([a-z]+) ([0-9]{1,7})(?: (.*))?")
_HOLDER = re.compile(r"pid=([0-9]{1,9}) since=([0-9]{1,11}) ")
_STATES: Mapping[str, Unseen] = {
    "denied": "denied",
    "missing": "missing",
    "failed": "failed",
    "late": "late",
    "hung": "hung",
}
_PARSERS: Mapping[str, Callable[[list[str]], Any]] = {
    "identity": sections.identity,
    "processes": sections.processes,
    "commands": sections.commands,
    "blocked": sections.blocked,
    "mounts": sections.mounts,
    "steps": sections.steps,
    "gpu_processes": sections.gpu_processes,
    "gpus": sections.gpus,
    "gpu_use": activity.gpu_use,
    "nvlink": sections.nvlink,
    "infiniband": sections.infiniband,
    "network": sections.network,
    "traffic": activity.traffic,
    "hwmon": sections.hwmon,
    "ipmi": sections.ipmi,
    "memory": sections.memory,
    "disk": sections.disk,
    "waits": sections.waits,
    "hardware": host.hardware,
    "smart": host.smart,
    "stalled": host.stalled,
    "clock": host.clock,
    "gpu_memory": host.gpu_memory,
    "dcgm": host.dcgm,
}


class NoProbe(SentinelError):
    """The output is not that of a probe: the script did not run."""


class CutShort(SentinelError):
    """The script began, and its end is missing. `seen`: the sections that were complete until
    then."""

    def __init__(self, message: str, seen: NodeProbe) -> None:
        super().__init__(message)
        self.seen = seen


class _Part(Struct):
    """A section of the output: the words of its header, and its lines."""

    name: str
    state: str
    count: int
    why: str
    lines: list[str]


def parse(out: bytes, mark: str, wants: ProbeRequest) -> NodeProbe:
    """Parse a probe. Raises NoProbe or CutShort and nothing else, whatever `out` is."""
    said = decode_lines(out).split("\n")
    begin = f"{mark} begin "
    start = next((i for i, line in enumerate(said) if line.startswith(begin)), None)
    if start is None:
        raise NoProbe(f"no probe answered, but: {_shown(next(filter(str.strip, said), 'nothing'))}")
    if said[start] != begin + VERSION:
        raise NoProbe(f"a probe of another version answered: {_shown(said[start][len(begin) :])}")
    # Text after the last newline is not a whole line, even if it is the end mark.
    whole = said[start + 1 : -1]
    end = next((i for i, line in enumerate(whole) if line == f"{mark} end"), None)
    probe = _probe(_parts(whole[:end], mark), wants)
    if end is None:
        raise CutShort("the answer ended before the probe did", probe)
    return probe


def _parts(lines: list[str], mark: str) -> dict[str, _Part]:
    parts: dict[str, _Part] = {}
    current: list[str] = []
    for line in lines:
        if line.startswith(" "):
            current.append(line[1:])
        elif part := _header(line.removeprefix(f"{mark} ")) if line.startswith(mark) else None:
            current = part.lines
            parts.setdefault(part.name, part)
    return parts


def _header(text: str) -> _Part | None:
    if text.startswith("trouble "):
        return _Part("trouble", "failed", 0, text.removeprefix("trouble "), [])
    match = _HEADER.fullmatch(text)
    return _Part(match[1], match[2], int(match[3]), match[4] or "", []) if match else None


def _probe(parts: Mapping[str, _Part], wants: ProbeRequest) -> NodeProbe:
    trouble = parts.get("trouble")
    told: dict[str, Any] = {}
    for name in wants.section_names:
        told[name] = _told(name, parts.get(name, trouble))
    if "kernel" in told:
        boot = "" if isinstance(told["identity"], Unread) else told["identity"].boot
        part = parts.get("kernel")
        if part and not isinstance(told["kernel"], Unread):
            told["kernel"] = _guarded(lambda: kernel.log(part.lines, boot, wants.since))
    commands = told.pop("commands", None)
    if isinstance(commands, dict):
        told["processes"] = sections.named(told["processes"], commands)
    on_gpus, known = told.get("gpu_processes"), told.get("processes")
    if isinstance(on_gpus, tuple) and isinstance(known, tuple):
        told["gpu_processes"] = sections.named_gpu_processes(on_gpus, known)
    disks = {path: told.pop(f"disk.{i}") for i, path in enumerate(wants.disks, 1)}
    return NodeProbe(
        **told,
        disks=disks,
        commands=commands if isinstance(commands, Unread) else None,
        squatter=_shown(parts["squatter"].why) if "squatter" in parts else "",
    )


def _told(name: str, part: _Part | None) -> Any:
    if part is None:
        return Unread(kind="absent", why="the answer holds nothing of it")
    if part.state in _STATES:
        return _unread(_STATES[part.state], part.why)
    if part.state != "ok":
        return Unread(kind="garbage", why=f"unknown state {_shown(part.state)}")
    if part.count != len(part.lines):
        return Unread(kind="cut", why=f"{len(part.lines)} of {part.count} lines came")
    parser = _PARSERS.get(name.partition(".")[0])
    return _guarded(lambda: parser(part.lines)) if parser else None


def _guarded(parse_it: Callable[[], Any]) -> Any:
    try:
        return parse_it()
    except sections.StrangeLine as strange:
        return Unread(kind="garbage", why=_shown(str(strange)))


def _unread(kind: Unseen, why: str) -> Unread:
    holder = _HOLDER.match(why)
    if not holder:
        return Unread(kind=kind, why=_shown(why))
    pid, since = int(holder[1]), int(holder[2])
    return Unread(kind=kind, why=_shown(why[holder.end() :]), pid=pid, since=since)


def _shown(text: str) -> str:
    return shortened(visible(text.strip()), 300)
