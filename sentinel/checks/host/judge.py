"""Judges memory controllers, arrays, NVMe drives and tasks in state D. Pure.

A trouble is a part of the host, a status, and the reason. A word of the kernel that is not in a table
makes its part unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel.core.host_parts import (
    HostHardware,
    MemoryController,
    NvmeController,
    RaidArray,
    StalledThread,
)
from sentinel.core.model import Status
from sentinel.core.text import shortened
from sentinel.core.values import Rate, duration_text, since_text

Trouble = tuple[str, Status, str]
"""The part, how bad it is, and why."""

BAD_LOOKS = 2
"""At how many looks in a row a state that may pass has to be there."""

TRACK_POINTS = 24
"""How many counts are kept over the window of a rate."""

MAX_NAMED_TASKS = 3

ARRAY_RUNS = ("clean", "active", "write-pending", "active-idle", "read-auto", "readonly")
"""States of md in which an array is there (Documentation/admin-guide/md.rst)."""
ARRAY_STANDS = ("clear", "inactive", "suspended")
NVME_PASSES = ("new", "resetting", "connecting", "deleting", "deleting (no IO)")
"""States of nvme_sysfs_show_state() in drivers/nvme/host/sysfs.c that pass."""

SMART_BITS: Mapping[int, tuple[Status, str]] = {
    0x01: (Status.WARNING, "its spare blocks run out"),
    0x02: (Status.WARNING, "it is too hot or too cold"),
    0x04: (Status.WARNING, "it is worn out or has errors, and is no longer reliable"),
    0x08: (Status.CRITICAL, "it is read-only"),
    0x10: (Status.CRITICAL, "what backs up its memory has failed"),
    0x20: (Status.WARNING, "its persistent memory region is read-only"),
}
"""The critical warning of the SMART log (NVM Express Base Specification 2.0, figure 207)."""

HARMLESS_WAITS = (
    *("__refrigerator", "do_freezer_trap"),  # a cgroup that was frozen
    *("kernel_clone", "_do_fork", "do_fork", "kernel_vfork", "wait_for_vfork_done"),
)
"""Waits in state D that are meant: for who froze the task, or for the child of vfork(2)."""


class StalledPast(Struct, kw_only=True, omit_defaults=True):
    """A thread in state D. `since`: the first look at which it had given up the processor so often."""

    since: float  # In epoch seconds.
    started: int
    switches: int


def judge_memory(
    controller: MemoryController, track: list[tuple[float, int]], most: Rate, now: float
) -> Trouble | None:
    """The trouble of a memory controller; `track` are its earlier counts, and gets this one."""
    rise = note_count(track, controller.corrected, most.window, now)
    which = f" ({controller.name}{', ' + controller.worst if controller.worst else ''})"
    if controller.uncorrected:
        return (
            "memory",
            Status.CRITICAL,
            f"uncorrectable memory errors since the boot: {controller.uncorrected}{which}",
        )
    if rise > most.times:
        return (
            "memory",
            Status.WARNING,
            f"{rise} corrected memory errors in {duration_text(now - track[0][0])}{which}; limit {most}",
        )
    return None


def note_count(track: list[tuple[float, int]], count: int, window: float, now: float) -> int:
    """Note a count, and return how far it rose within the window. A count that is lower than the
    last one began anew."""
    if track and count < track[-1][1]:
        track[:] = [(now, 0)]
    if not track or now - track[-1][0] >= window / TRACK_POINTS:
        track.append((now, count))
    while len(track) > 1 and track[1][0] <= now - window:
        del track[0]
    return count - track[0][1]


def judge_drives(hardware: HostHardware, odd: dict[str, int]) -> Iterator[Trouble]:
    """The troubles of arrays and NVMe controllers; `odd` counts looks at states that may pass."""
    seen = {}
    for array in hardware.raid:
        if found := _judge_array(array):
            seen[array.name] = found
    for drive in hardware.nvme:
        if found := _judge_nvme(drive):
            seen[drive.name] = found
    counts = {name: odd.get(name, 0) + 1 for name, (passes, _, _) in seen.items() if passes}
    odd.clear()
    odd.update(counts)
    for name, (passes, status, text) in seen.items():
        if not passes or odd[name] >= BAD_LOOKS:
            yield name, status, text


def _judge_array(array: RaidArray) -> tuple[bool, Status, str] | None:
    """Whether the state may pass, how bad it is, and why."""
    if array.state == "broken":
        return False, Status.CRITICAL, f"the array ({array.level}) is broken: it lacks a drive"
    if array.missing:
        does = f"; now it does: {array.sync}" if array.sync not in ("", "idle") else ""
        return (
            False,
            Status.WARNING,
            f"the array ({array.level}) runs without {array.missing} of its drives{does}",
        )
    if array.state in ARRAY_STANDS:
        external = array.metadata.startswith("external:") and "/" not in array.metadata
        if array.state == "clear" or external:
            return None  # an array that does not exist, or a container of a BIOS
        return True, Status.WARNING, f"the array does not run (state {array.state})"
    if array.state not in ARRAY_RUNS:
        return (
            False,
            Status.UNKNOWN,
            f"a state of an array that sentinel does not know: {array.state}",
        )
    return None


def _judge_nvme(drive: NvmeController) -> tuple[bool, Status, str] | None:
    if drive.state == "live":
        return None
    if drive.state == "dead":
        return False, Status.CRITICAL, "the kernel has given up the drive (state dead)"
    if drive.state in NVME_PASSES:
        return True, Status.WARNING, f"the drive does not answer (state {drive.state})"
    return False, Status.UNKNOWN, f"a state of a drive that sentinel does not know: {drive.state}"


def judge_smart(warnings: Mapping[str, int | None]) -> Iterator[Trouble]:
    """What NVMe drives warn of themselves."""
    for name, bits in warnings.items():
        if bits is None:
            yield name, Status.UNKNOWN, "the drive does not tell its health (SMART)"
            continue
        known = [SMART_BITS[bit] for bit in SMART_BITS if bits & bit]
        texts = [text for _, text in known]
        worst = max((status for status, _ in known), key=lambda s: s.rank, default=Status.UNKNOWN)
        if strange := bits & ~sum(SMART_BITS):
            texts.append(f"a warning that sentinel does not know (0x{strange:x})")
        if texts:
            yield name, worst, f"the drive says: {'; '.join(texts)}"


def note_stalled(
    threads: Sequence[StalledThread], past: Mapping[str, StalledPast], now: float
) -> dict[str, StalledPast]:
    """What is kept of threads in state D until the next look."""
    kept = {}
    for one in threads:
        if one.wait not in HARMLESS_WAITS:
            before = past.get(key := f"{one.pid}/{one.thread}")
            same = before is not None and (before.started, before.switches) == (
                one.started,
                one.switches,
            )
            kept[key] = (
                before
                if before is not None and same
                else StalledPast(since=now, started=one.started, switches=one.switches)
            )
    return kept


def judge_stalled(
    threads: Sequence[StalledThread], kept: Mapping[str, StalledPast], longest: float, now: float
) -> tuple[int, Trouble | None]:
    """How many threads have not run for `longest` seconds, and the trouble that they are."""
    since = {key: past.since for key, past in kept.items() if longest <= now - past.since}
    stuck = [one for one in threads if f"{one.pid}/{one.thread}" in since]
    if not stuck:
        return 0, None
    named = ", ".join(
        f"{one.name or '?'} (pid {one.pid}, in {_name_wait(one)})"
        for one in stuck[:MAX_NAMED_TASKS]
    )
    more = f" and {len(stuck) - MAX_NAMED_TASKS} more" if len(stuck) > MAX_NAMED_TASKS else ""
    count = "1 task has" if len(stuck) == 1 else f"{len(stuck)} tasks have"
    text = (
        f"{count} not run {since_text(min(since.values()), now)}, in state D: "
        f"{shortened(named, 240)}{more}"
    )
    return len(stuck), ("tasks", Status.WARNING, text)


def _name_wait(thread: StalledThread) -> str:
    hidden = thread.wait in ("-", "0", "?")
    return "a wait that this user may not see" if hidden else thread.wait
