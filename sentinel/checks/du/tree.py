"""How much lies in a tree, for what has no quota: the question and the finding."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.du.settings import DuSettings
from sentinel.checks.filesystems.limits import FileSystemUsage, SpaceLimits, judge_usage
from sentinel.checks.filesystems.verdict import LARGEST
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Sample, Status, Value
from sentinel.core.text import visible
from sentinel.core.values import size_text

GENTLE = 5000
"""Calls a second on file systems that are not this machine's own disks: a login node's `ls -l`
asks as much, a metadata server answers a hundred times that."""

ANSWER = 2.5
HANGS = 3
"""Seconds from the end of the walk to its answer, and its exit code where there is none."""

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_START = "import sys; sys.path.append(sys.argv.pop(1)); from sentinel.checks.du.walk.program import main; main()"


class TreeRow(Struct, frozen=True):
    """A tree or an owner: bytes as written, bytes on disk, files and directories."""

    allocated: int
    entries: int
    apparent: int = 0


class TreeSizes(Struct, frozen=True, kw_only=True):
    """What the walk found. `complete` False: there is more. `unread`: what nobody could look at.
    `stuck`: the process that was left behind in a part that hangs, 0 for none. `owners` by name."""

    apparent: int
    allocated: int
    entries: int
    complete: bool
    unread: int
    errors: Mapping[str, str]
    calls: int
    dirs: Mapping[str, TreeRow]
    owners: Mapping[str, TreeRow]
    stuck: int = 0


def walk_tree(path: str, du: DuSettings, local: bool, limit: float) -> TreeSizes:
    """Walk a tree for at most `limit` seconds and what proc takes to end a hung child.

    `local`: the cap on calls is not needed. Raises CannotTell, and TimedOut where it hangs.
    """
    within = min(limit - ANSWER, float(du.within or limit))
    order = {
        "path": path,
        "within": max(0.2, within),
        "threads": du.threads,
        "processes": max(1, min(4, os.cpu_count() or 1)),
        "calls": du.calls if du.calls is not None else (0 if local else GENTLE),
        "top": du.top,
    }
    argv = [sys.executable, "-I", "-S", "-c", _START, _ROOT, json.dumps(order)]
    done = proc.run(argv, limit=max(0.2, within) + ANSWER)
    if done.code == HANGS:
        stuck = proc.remember_process(int(done.out))
        raise proc.TimedOut(f"du of {visible(path)} hangs, and so does process {stuck.pid}", stuck)
    if done.code:
        why = visible(os.fsdecode(done.err).strip().rpartition("\n")[2])
        raise CannotTell(f"du of {visible(path)}: {why or f'exit code {done.code}'}")
    tree = msgspec.json.decode(done.out, type=TreeSizes)
    names = _owner_names(tuple(tree.owners))
    return replace(tree, owners={names.get(uid, uid): row for uid, row in tree.owners.items()})


def tree_finding(
    path: str, tree: TreeSizes, du: DuSettings, warn: SpaceLimits, crit: SpaceLimits
) -> Finding:
    """What the tree weighs against its allowed size; one that was not walked to its end, or not
    everywhere, is never called well against a limit."""
    usage = _tree_usage(tree, du.size)
    status, text = judge_usage(usage, warn, crit) if du.size else (Status.OK, "")
    whole = tree.complete and not tree.unread
    least = "" if whole else "at least "
    text = f"{text}: " if text else ""
    text += f"{least}{size_text(tree.allocated)} in {least}{tree.entries} files and directories"
    if not tree.complete:
        text += " (partial: the time was over)"
    if not whole and du.size and not status.bad:
        status = Status.UNKNOWN
    if tree.stuck:
        text += f"; a part of it hangs (process {tree.stuck})"
        status = max(status, Status.WARNING, key=lambda s: s.rank)
    if tree.unread:
        text += f"; {tree.unread} could not be read"
    return Finding(
        subject=visible(f"{path} tree"),
        status=status,
        summary=text,
        values=_tree_values(tree, usage if du.size else None),
        details=_tree_details(tree),
    )


def tree_samples(subject: str, tree: TreeSizes) -> list[Sample]:
    """Its largest directories and owners, for the history of who grew; nothing of a walk that saw only some
    of it, whose numbers would look as if they shrank."""
    if not tree.complete or tree.unread:
        return []
    named = [(f"dir {p}", r) for p, r in [*tree.dirs.items()][:LARGEST]]
    named += [(f"owner {o}", r) for o, r in [*tree.owners.items()][:LARGEST]]
    return [Sample(subject, visible(name), float(row.allocated)) for name, row in named]


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
    rows = [f"{size_text(r.allocated):>8}  {r.entries:>9}  {p}" for p, r in tree.dirs.items()]
    rows += [
        f"{size_text(r.allocated):>8}  {r.entries:>9}  owner {o}" for o, r in tree.owners.items()
    ]
    rows += [f"not read: {path}: {why}" for path, why in tree.errors.items()]
    return "\n".join(visible(row) for row in rows)


def _owner_names(uids: tuple[str, ...]) -> dict[str, str]:
    """As far as the directory service says; a number is good enough where it hangs."""
    try:
        done = proc.run(["getent", "passwd", "--", *uids], limit=2.0)
    except CannotTell:
        return {}
    rows = (line.split(":") for line in os.fsdecode(done.out).splitlines())
    return {row[2]: row[0] for row in rows if len(row) > 2}
