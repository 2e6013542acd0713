"""Observes paths in one run of the check: their answers, their mounts, and what is remembered of
them."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.filesystems.ext4_errors import read_recorded_errors
from sentinel.checks.filesystems.limits import FileSystemUsage, limit_to_share
from sentinel.checks.filesystems.probe import PathAnswer, probe_all, probe_path, real_path
from sentinel.checks.filesystems.verdict import LOOP, PathObservation, PathState
from sentinel.core.errors import CannotTell
from sentinel.core.mounts import MountTable, unescape_name
from sentinel.core.ports import Context
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.proc.mounts import TABLE, read_mounts

SAME = 0.01
"""Two answers of one file system may differ by this share. XFS and ZFS compute their inodes and
size from what is free."""

ASKED = "asked"
"""The key below which further subjects are remembered, by path."""

FSTAB = "/etc/fstab"
MOST_AWAY = 32
"""For how many points of fstab that are not mounted the real path is asked for, the first by name.
For the others, the path counts as it is written."""


def look_at_paths(
    paths: Sequence[str], ctx: Context, reliable: float = 100
) -> tuple[dict[str, PathState], list[PathObservation]]:
    """The remembered and the observed state of each path (no paths: all local disks). Raises
    CannotTell."""
    seen = _remembered_paths(paths, ctx.memory)
    answers = _ask_paths(seen, ctx.limit)
    mounts = mount_table()
    if paths:
        points = meant_to_be_mounted(mounts, ctx.limit / 4)
        seen = {p: _as_mounted(p, s, answers.get(p), points) for p, s in seen.items()}
    else:  # files that are bind-mounted into a container belong to other disks
        seen = {p: s for p, s in seen.items() if not _is_file(answers.get(p))}
        # Mounts that have been unmounted in the meantime are removed, as the next run will do.
        seen = {p: s for p, s in seen.items() if mounts.is_mount_point(p)}
    return seen, [_observe_path(p, answers.get(p), mounts, ctx, reliable) for p in seen]


def find_own_limits(
    sights: Sequence[PathObservation], ctx: Context, limit: float, reliable: float
) -> tuple[list[PathObservation], dict[str, Any]]:
    """The same observations, with `own_limit` set where a path differs from its mount point in size
    or number of inodes.

    XFS and ext4 answer with the project quota of a directory (xfs_qm_statvfs, ext4_statfs_project
    in Linux), and so do some network file systems. A path is compared only if its mount point is
    watched too, or has several watched paths. Also returns what to remember of mount points that
    hang.
    """
    mains = Counter(s.main for s in sights if s.main and s.answer and s.answer.usage)
    known = {s.path: s.answer for s in sights if s.answer}
    more = {p: _recall_state(ctx.memory, p) for p, n in mains.items() if n > 1 and p not in known}
    asked = (
        {p: _limit_answer(a, reliable) for p, a in _ask_paths(more, limit).items()} if more else {}
    )
    usages = {path: answer.usage for path, answer in {**known, **asked}.items()}

    def has_own_limit(sight: PathObservation) -> bool:
        main, usage = usages.get(sight.main), usages.get(sight.path)
        return bool(main and usage) and not _are_alike(main, usage)

    stuck = {visible(p): to_builtins(PathState(stuck=a.stuck)) for p, a in asked.items() if a.stuck}
    return [replace(s, own_limit=has_own_limit(s)) for s in sights], stuck


def _are_alike(one: FileSystemUsage | None, other: FileSystemUsage | None) -> bool:
    pairs = ((one.size, other.size), (one.inodes, other.inodes)) if one and other else ()
    return all(abs(a - b) <= SAME * max(a, b) for a, b in pairs)


def _limit_answer(answer: PathAnswer, reliable: float) -> PathAnswer:
    if answer.usage is None or reliable >= 100:
        return answer
    return replace(answer, usage=limit_to_share(answer.usage, reliable))


def _observe_path(
    path: str, answer: PathAnswer | None, mounts: MountTable, ctx: Context, reliable: float
) -> PathObservation:
    real = answer.real if answer else ""
    answer = _limit_answer(answer, reliable) if answer else None
    above = mounts.find_mount(path)
    if answer and answer.error == LOOP and above and above.type == "autofs":
        # The kernel tries again until it calls that a loop of links (follow_automount() in fs/namei.c).
        answer = replace(answer, error="its automounter does not mount it")
    mount = mounts.find_mount(real) if real else None
    main = mounts.find_main_mount(mount).point if mount else ""
    errors = read_recorded_errors(mount.device) if mount and mount.type == "ext4" else None
    return PathObservation(
        path=path, answer=answer, mount=mount, main=main, errors=errors, at=ctx.now
    )


def _remembered_paths(paths: Sequence[str], memory: Mapping[str, Any]) -> dict[str, PathState]:
    """The memory of every path to check. A configured one is known as mounted."""
    if paths:
        return {path: _recall_state(memory, path) for path in map(str, paths)}
    listed = [mount.point for mount in mount_table().list_local_mounts()]
    if not listed:
        raise CannotTell(f"{TABLE} names no file system on a local disk; give the paths")
    return {path: replace(_recall_state(memory, path), mounted=True) for path in listed}


def lost_of(
    sights: Sequence[PathObservation], there: Sequence[PathObservation], memory: Mapping[str, Any]
) -> dict[str, list[str]]:
    """For paths that do not answer now: the further subjects (beyond statfs) that the last answer
    had, by path."""
    before = memory.get(ASKED, {})
    dumb = (visible(s.path) for s in sights if s not in there)
    return {path: before[path] for path in dumb if path in before}


def mount_table() -> MountTable:
    """The mounts that this process sees. Raises CannotTell."""
    try:
        return read_mounts()
    except (OSError, ValueError) as error:
        raise CannotTell(f"{TABLE} cannot be read: {error}") from error


def meant_to_be_mounted(table: MountTable, limit: float) -> frozenset[str]:
    """The mount points that fstab(5) mounts at boot. If one is not mounted, its empty directory is
    no file system.

    Each is in the result as the file writes it. Those that are not mounted are also in it as the
    kernel would name them, because a point may have a slash at its end, or be a symbolic link.
    `limit` is the time in seconds for each of those.
    """
    try:
        with open(FSTAB, errors="surrogateescape") as file:
            rows = [line.split() for line in file if not line.lstrip().startswith("#")]
    except OSError:
        return frozenset()
    lasting = (r for r in rows if len(r) > 3 and "noauto" not in r[3].split(","))
    spelt = {os.path.normpath(unescape_name(row[1])) for row in lasting if row[1].startswith("/")}
    away = sorted(point for point in spelt if not table.is_mount_point(point))
    return frozenset(
        spelt.union(filter(None, (real_path(point, limit) for point in away[:MOST_AWAY])))
    )


def _as_mounted(
    path: str, seen: PathState, answer: PathAnswer | None, points: frozenset[str]
) -> PathState:
    names = {os.path.normpath(path), answer.real if answer else ""}
    return replace(seen, mounted=True) if names & points else seen


def _ask_paths(seen: Mapping[str, PathState], limit: float) -> dict[str, PathAnswer]:
    """Ask every path, except those in which an earlier probe still hangs."""
    table = mount_table()

    def ask_path(path: str, patience: float) -> PathAnswer:
        return probe_path(path, patience, plain=table.is_mount_point(path))

    stuck = proc.HangingChildren({p: s.stuck for p, s in seen.items() if s.stuck}).children
    budget = max(0.3 * limit, limit - 1.5 * proc.KILL_GRACE_S)
    fresh = probe_all((p for p in seen if p not in stuck), budget, min(limit / 2, budget), ask_path)
    return {**fresh, **{path: PathAnswer(hung=True, stuck=child) for path, child in stuck.items()}}


def _is_file(answer: PathAnswer | None) -> bool:
    return answer is not None and answer.error == "Not a directory"


def _recall_state(memory: Mapping[str, Any], path: str) -> PathState:
    return decode_memory(memory.get(visible(path)), PathState) or PathState()
