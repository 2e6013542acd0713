"""Walks a tree in a child process, and makes the finding."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.du.settings import DuSettings
from sentinel.checks.filesystems.limits import FileSystemUsage, SpaceLimits, judge_usage
from sentinel.checks.filesystems.verdict import LARGEST
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import Guidance
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Finding, Sample, Status, Value
from sentinel.core.shown import Cell, Column, SubjectCells
from sentinel.core.struct_types import decode_json
from sentinel.core.text import shortened, visible
from sentinel.core.values import size_text
from sentinel.core.work import drop_progress_lines, is_watched, track_work

GENTLE = 5000
"""Calls per second on file systems that are not on this machine's own disks. One `ls -l` on a login
node makes as many, and a metadata server answers a hundred times as many."""

ANSWER = 2.5
MAX_ANSWER_BYTES = 64 * 2**20  # the answer has a row for each owner and each of the largest folders
HANGS = 3
"""Seconds from the end of the walk to its answer, and the exit code if there is no answer."""

MAX_PATH_CHARS = 1000

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_START = "import sys; sys.path.append(sys.argv.pop(1)); from sentinel.checks.du.walk.program import main; main()"


class TreeRow(Struct, frozen=True):
    """The size of a tree, or of an owner's files in it."""

    allocated: int  # Bytes on disk.
    entries: int  # Files and directories.
    apparent: int = 0  # Bytes as written, including holes.


class TreeSizes(Struct, frozen=True, kw_only=True):
    """The result of a walk.

    If `complete` is False, there is more. `unread` is how many paths could not be read, `deep` how
    many directories were too deep to be entered. `stuck` is
    the pid of the process that was left behind in a part that hangs, 0 if there is none. `owners`
    are by name.
    """

    apparent: int  # Bytes as written, including holes.
    allocated: int  # Bytes on disk.
    entries: int  # Files and directories.
    complete: bool
    unread: int
    errors: Mapping[str, str]  # Errors, by path.
    calls: int  # How many calls the walk made.
    dirs: Mapping[str, TreeRow]  # Largest directories, by path.
    owners: Mapping[str, TreeRow]
    stuck: int = 0
    deep: int = 0


def walk_tree(path: str, du: DuSettings, local: bool, limit: float) -> TreeSizes:
    """Walk a tree for at most `limit` seconds, plus the time that it takes to end a hung child. If
    the tree is `local`, no cap on calls is needed. Raises CannotTell, and TimedOut if the walk
    hangs."""
    within = min(limit - ANSWER, float(du.within or limit))
    order = {
        "path": path,
        "within": max(0.2, within),
        "threads": du.threads,
        "processes": max(1, min(4, os.cpu_count() or 1)),
        "calls": du.calls if du.calls is not None else (0 if local else GENTLE),
        "top": du.top,
        "tells": is_watched(),
    }
    argv = [sys.executable, "-I", "-S", "-c", _START, _ROOT, json.dumps(order)]
    with track_work("walking", "files and directories", place=path) as tracked:
        done = proc.run(
            argv,
            limit=max(0.2, within) + ANSWER,
            max_output=MAX_ANSWER_BYTES,
            hear=tracked.hear_child,
        )
    if done.code == HANGS:
        stuck = proc.remember_process(int(done.out))
        raise proc.TimedOut(f"du of {visible(path)} hangs, and so does process {stuck.pid}", stuck)
    if done.code:
        said = drop_progress_lines(decode_lines(done.err))
        why = visible(said.strip().rpartition("\n")[2])
        raise CannotTell(f"du of {visible(path)}: {why or f'exit code {done.code}'}")
    tree = decode_json(done.out, TreeSizes)
    names = _owner_names(tuple(tree.owners))
    return replace(tree, owners={names.get(uid, uid): row for uid, row in tree.owners.items()})


def tree_finding(
    path: str, tree: TreeSizes, du: DuSettings, warn: SpaceLimits, crit: SpaceLimits
) -> Finding:
    """The finding about a tree by its allowed size. A tree that was not walked completely is never
    OK if it has a limit."""
    usage = _tree_usage(tree, du.size)
    status, text = judge_usage(usage, warn, crit) if du.size else (Status.OK, "")
    whole = tree.complete and not tree.unread
    least = "" if whole and not tree.deep else "at least "
    told = f"{least}{size_text(tree.allocated)} in {least}{tree.entries} files and directories"
    within = du.size and tree.allocated <= du.size  # otherwise the text names the limit
    limit = f", limit {size_text(du.size)}" if du.size and within else ""
    if du.size:  # what is wrong comes first
        text = f"{text}; {told}{limit}" if status.bad else f"{told}{limit}: {text}"
    else:
        text = told
    if not tree.complete:
        text += " (partial: the time was over)"
    if not whole and du.size and not status.bad:
        status = Status.UNKNOWN
    if tree.stuck:
        text += f"; a part of it hangs (process {tree.stuck})"
        status = max(status, Status.WARNING, key=lambda s: s.rank)
    if tree.deep:
        text += f"; {tree.deep} not entered, which are too deep: somebody may hide files there"
        status = max(status, Status.WARNING, key=lambda s: s.rank)
    if tree.unread:
        text += f"; {tree.unread} could not be read"
    return Finding(
        subject=visible(f"{path} tree"),
        status=status,
        summary=text,
        values=_tree_values(tree, usage if du.size else None),
        details=_tree_details(tree),
        guidance=Guidance(
            impact="Nothing fails yet: the limit is set in this check. If it goes on growing, the disk may fill.",
            todo="Remove or move what is largest; the details name it.",
        )
        if status.bad
        else Guidance(),
    )


def tree_samples(subject: str, tree: TreeSizes) -> list[Sample]:
    """Sizes of the largest directories and owners, for the history of growth. Empty after an
    incomplete walk, because its numbers would look like a decrease."""
    if not tree.complete or tree.unread:
        return []
    named = [(f"dir {p}", r) for p, r in [*tree.dirs.items()][:LARGEST]]
    named += [(f"owner {o}", r) for o, r in [*tree.owners.items()][:LARGEST]]
    return [Sample(subject, visible(name), float(row.allocated)) for name, row in named]


TREE_COLUMNS = (
    Column("tree", "subject"),
    Column("size", "used_bytes", "size"),
    Column("files", "entries", "count"),
    Column("change", "used_bytes", "change"),
    Column("of its limit", "used_percent", "bar"),
    Column("full in", "full_in_s", "full", optional=True),
    Column("status", "status", "status"),
)
TREE_ROW_COLUMNS = (
    Column("size", "bytes", "size"),
    Column("share", "share", "bar"),
    Column("files", "entries", "count"),
    Column("largest directories and owners", "name"),
)


def show_tree(tree: TreeSizes) -> SubjectCells:
    """Cells for a terminal: the largest directories and owners, one row each."""
    named = [*tree.dirs.items(), *((f"owner {o}", row) for o, row in tree.owners.items())]
    named += [("total", TreeRow(tree.allocated, tree.entries))] if named else []
    rows: list[Mapping[str, Cell]] = [
        {
            "bytes": row.allocated,
            "share": round(100 * row.allocated / max(1, tree.allocated), 1),
            "entries": row.entries,
            "name": visible(name),
        }
        for name, row in named
    ]
    return SubjectCells(rows=tuple(rows), notes="\n".join(_list_unread(tree)))


def _list_unread(tree: TreeSizes) -> list[str]:
    return [
        shortened(visible(f"not read: {path}: {why}"), MAX_PATH_CHARS)
        for path, why in tree.errors.items()
    ]


def _tree_values(tree: TreeSizes, usage: FileSystemUsage | None) -> dict[str, Value]:
    return {
        "used_percent": usage.used_percent if usage else None,
        "free_bytes": usage.free if usage else None,
        "used_bytes": tree.allocated,
        "apparent_bytes": tree.apparent,
        "entries": tree.entries,
        "complete": tree.complete,
        "unread": tree.unread,
        "calls": tree.calls,
        "type": "tree",
    }


def _tree_usage(tree: TreeSizes, size: int | None) -> FileSystemUsage:
    whole = size or 0
    return FileSystemUsage(
        size=whole,
        used=tree.allocated,
        free=max(0, whole - tree.allocated),
        inodes=0,
        inodes_free=0,
        type="tree",
    )


def _tree_details(tree: TreeSizes) -> str:
    head = f"{'size':>8}  {'files':>9}  largest directories and owners"
    rows = [f"{size_text(r.allocated):>8}  {r.entries:>9}  {p}" for p, r in tree.dirs.items()]
    rows += [
        f"{size_text(r.allocated):>8}  {r.entries:>9}  owner {o}" for o, r in tree.owners.items()
    ]
    rows = [head, *rows] if rows else []
    return "\n".join([*(visible(row) for row in rows), *_list_unread(tree)])


def _owner_names(uids: tuple[str, ...]) -> dict[str, str]:
    """Names by uid, as far as the directory service answers. Where it does not, the number is
    shown."""
    try:
        done = proc.run(["getent", "passwd", "--", *uids], limit=2.0)
    except CannotTell:
        return {}
    rows = (line.split(":") for line in decode_lines(done.out).split("\n"))
    return {row[2]: row[0] for row in rows if len(row) > 2}
