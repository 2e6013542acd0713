"""Parses the sections of a probe about the host itself. Pure.

Each ends with a line of its own, so one that is cut is not taken for a healthy host."""

from collections.abc import Mapping

from msgspec.structs import replace

from sentinel.core.host_parts import (
    ClockSync,
    HostEngine,
    HostHardware,
    MemoryController,
    NvmeController,
    RaidArray,
    StalledThread,
    StalledThreads,
)
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.section_lines import StrangeLine, match_line

_VALUE = lazy_pattern(
    r"(memory|raid|nvme) ([a-z0-9_]{1,64}(?:/[a-z0-9]{1,32})?) ([a-z_]{1,32}) (.*)"
)
_COUNT = lazy_pattern(r"[0-9]{1,18}")
_WARNING = lazy_pattern(r"(nvme[0-9]{1,6}) (?:(0x[0-9a-fA-F]{1,2}|[0-9]{1,3})|none .*)")
_THREAD = lazy_pattern(
    r"([0-9]{1,10}) ([0-9]{1,10}) ([0-9]{1,20}) ([0-9]{1,20}) ([^ ]{1,64}) ?(.{0,64})"
)
_CLOCK = lazy_pattern(r"(?:chrony|timedatectl) (.{1,60})")
_OFFSET = lazy_pattern(r"offset ([0-9]{1,12}(?:\.[0-9]{1,12})?) (slow|fast)")
_GPU_MEMORY = lazy_pattern(r"(GPU-[0-9A-Za-z-]{1,60}), (?:([0-9]{1,9})|\[.{1,60}\])")
_ENGINE = lazy_pattern(r"engine ([0-9]{1,10}) ([0-9]{1,15})")
_ANSWER = lazy_pattern(r"answer (ok|none) ([0-9]{1,6})")
_LOG = lazy_pattern(r"log ([0-9]{1,18}) (/.{1,200})")
_TOTAL = lazy_pattern(r"all ([0-9]{1,9})")


def _without_end(lines: list[str]) -> list[str]:
    if not lines or lines[-1] != "end":
        raise StrangeLine("the end is missing")
    return lines[:-1]


def hardware(lines: list[str]) -> HostHardware:
    """Memory controllers, arrays and NVMe controllers, from lines of one value each."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for line in _without_end(lines):
        of, name, what, value = match_line(_VALUE, line).groups()
        found.setdefault((of, name), {})[what] = value.strip()
    modules: dict[str, dict[str, dict[str, str]]] = {}
    for (of, name), told in found.items():
        controller, slash, module = name.partition("/")
        if of == "memory" and slash:
            modules.setdefault(controller, {})[module] = told
    return HostHardware(
        memory=tuple(
            MemoryController(
                name=name,
                corrected=_read_count(told, "ce_count"),
                uncorrected=_read_count(told, "ue_count"),
                worst=_name_worst_module(modules.get(name, {})),
            )
            for (of, name), told in found.items()
            if of == "memory" and "/" not in name
        ),
        raid=tuple(
            RaidArray(
                name=name,
                state=told.get("array_state", ""),
                level=told.get("level", ""),
                missing=_read_count(told, "degraded") if "degraded" in told else 0,
                sync=told.get("sync_action", ""),
                metadata=told.get("metadata_version", ""),
            )
            for (of, name), told in found.items()
            if of == "raid"
        ),
        nvme=tuple(
            NvmeController(
                name=name, state=told.get("state", ""), transport=told.get("transport", "")
            )
            for (of, name), told in found.items()
            if of == "nvme"
        ),
    )


def _read_count(told: Mapping[str, str], what: str) -> int:
    return int(match_line(_COUNT, told.get(what, ""))[0])


def _name_worst_module(modules: Mapping[str, Mapping[str, str]]) -> str:
    """The label of the module with the most errors; uncorrectable ones count more."""
    rows = [
        (
            _read_count(told, "dimm_ue_count") if "dimm_ue_count" in told else 0,
            _read_count(told, "dimm_ce_count") if "dimm_ce_count" in told else 0,
            told.get("dimm_label") or name,
        )
        for name, told in modules.items()
    ]
    worst = max(rows, default=(0, 0, ""))
    return worst[2] if worst[0] or worst[1] else ""


def smart(lines: list[str]) -> dict[str, int | None]:
    """The critical warning of each drive; None if it gave none."""
    rows = [match_line(_WARNING, line) for line in _without_end(lines)]
    return {row[1]: int(row[2], 0) if row[2] else None for row in rows}


def clock(lines: list[str]) -> ClockSync:
    """Whether the clock is kept in step, and chrony's offset."""
    word, offset = "", None
    for line in _without_end(lines):
        if match := _OFFSET.fullmatch(line):
            offset = float(match[1]) * (1 if match[2] == "fast" else -1)
        else:
            word = match_line(_CLOCK, line)[1].strip()
    if not word:
        raise StrangeLine("nothing was said of the clock")
    return ClockSync(word=word, offset=offset)


def gpu_memory(lines: list[str]) -> dict[str, int | None]:
    """Bytes in use of each GPU by its UUID; None if the driver does not tell."""
    rows = [match_line(_GPU_MEMORY, line.strip()) for line in _without_end(lines)]
    return {row[1]: int(row[2]) * 2**20 if row[2] else None for row in rows}


def dcgm(lines: list[str]) -> HostEngine:
    """DCGM's daemon, whether it answers, and its logs."""
    found, logs = HostEngine(), dict[str, int]()
    for line in _without_end(lines):
        if match := _LOG.fullmatch(line):
            logs[match[2]] = int(match[1])
        elif match := _ANSWER.fullmatch(line):
            found = replace(found, answers=match[1] == "ok", patience=int(match[2]))
        else:
            match = match_line(_ENGINE, line)
            found = replace(found, pid=int(match[1]), memory=int(match[2]) * 1024)
    return replace(found, logs=logs)


def stalled(lines: list[str]) -> StalledThreads:
    """Threads in state D, and the number of all."""
    if not lines:
        raise StrangeLine("the end is missing")
    threads = [_make_thread(line) for line in lines[:-1]]
    return StalledThreads(
        threads=tuple(threads), total=max(len(threads), int(match_line(_TOTAL, lines[-1])[1]))
    )


def _make_thread(line: str) -> StalledThread:
    match = match_line(_THREAD, line)
    pid, thread, started, switches = (int(match[n]) for n in range(1, 5))
    return StalledThread(
        pid=pid, thread=thread, started=started, switches=switches, wait=match[5], name=match[6]
    )
