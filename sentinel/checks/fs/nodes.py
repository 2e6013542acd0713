"""File systems as nodes see them: the same limits, asked by one probe of each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.checks.filesystems.limits import Usage, judge, usage_of
from sentinel.checks.filesystems.verdict import Rules, commands
from sentinel.checks.nodes_asked import Chosen, probed, silent, unread
from sentinel.core.model import Finding, Report, Status, worst
from sentinel.core.mounts import WRITES_NOTHING
from sentinel.core.text import visible
from sentinel.nodes.probe import Disk, Mount, NodeProbe, Unread, Wants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sentinel.core.node_answers import Unreached
    from sentinel.core.ports import Context

_GONE = "No such file or directory"


def on_nodes(
    asked: Chosen, paths: Sequence[str], rules: Rules, kept: Sequence[str], ctx: Context
) -> Report:
    """A finding per node and path (`node-3:/tmp`), unknown where the node told nothing.

    `kept`: the numbers worth a history. Where a path was a mount point it has to stay one.
    """
    answers = probed(ctx, asked.names, Wants(parts=("mounts",), disks=tuple(paths)))
    findings: list[Finding] = []
    for name, answer in answers.items():
        findings += _of_node(name, answer, paths, rules, ctx.memory)
    blind = {f.labels["node"] for f in findings if f.status is Status.UNKNOWN}
    return Report(
        findings=tuple(findings),
        coverage=asked.coverage(name for name in asked.names if name not in blind),
        samples=tuple(s for f in findings for s in f.samples(kept)),
        memory={**_remembered(answers, paths, ctx.memory), **asked.memory},
    )


def _of_node(
    node: str,
    answer: NodeProbe | Unreached,
    paths: Sequence[str],
    rules: Rules,
    memory: Mapping[str, Any],
) -> list[Finding]:
    if not isinstance(answer, NodeProbe):  # what was bad there is bad until somebody sees it
        return [silent(node, answer, visible(f"{node}:{path}")) for path in paths]
    mounted = memory.get("mounted", {}).get(node, [])
    return [_of_path(node, answer, path, path in mounted, rules) for path in paths]


def _of_path(node: str, probe: NodeProbe, path: str, was: bool, rules: Rules) -> Finding:
    subject = visible(f"{node}:{path}")
    disk = probe.disks.get(path, Unread(kind="absent"))
    if isinstance(disk, Unread):
        return _unread(node, subject, disk, path)
    mount = _mount(probe, path)
    must = was if rules.mounted is None else rules.mounted
    if must and mount is None:
        text = f"not read ({probe.mounts.kind})" if isinstance(probe.mounts, Unread) else ""
        status = Status.UNKNOWN if text else Status.CRITICAL
        return _finding(node, subject, status, text or "is not mounted", path)
    try:
        usage = _usage(disk)
    except ValueError as error:
        return _finding(node, subject, Status.UNKNOWN, f"cannot tell: {error}", path)
    status, summary = judge(usage, rules.warn, rules.crit)
    if isinstance(mount, Mount) and mount.options & WRITES_NOTHING:
        status, summary = worst([status, rules.read_only]), f"{summary}; is read-only"
    return _finding(node, subject, status, summary, path, usage)


def _finding(
    node: str, subject: str, status: Status, summary: str, path: str, usage: Usage | None = None
) -> Finding:
    values = {} if usage is None else _values(usage)
    return Finding(
        subject=subject,
        status=status,
        summary=summary,
        values=values,
        labels={"node": node},
        commands=commands(path, False, node) if status.bad else (),
    )


def _unread(node: str, subject: str, disk: Unread, path: str) -> Finding:
    """A path that hangs or is not there is bad; one that could not be asked is unknown."""
    if disk.kind in ("hung", "late"):
        found = _finding(node, subject, Status.CRITICAL, visible(f"hangs: {disk.why}"), path)
        return replace(found, commands=commands(path, True, node))
    if disk.kind == "failed" and "Permission denied" not in disk.why:
        why = "does not exist" if _GONE in disk.why else f"cannot be read: {disk.why}"
        return _finding(node, subject, Status.CRITICAL, visible(why), path)
    return unread(node, disk, subject)


def _mount(probe: NodeProbe, path: str) -> Mount | None:
    """The last mount on that very point, which is the one that shows."""
    if not isinstance(probe.mounts, tuple):
        return None
    point = path.rstrip("/") or "/"
    return next((m for m in reversed(probe.mounts) if m.point == point), None)


def _usage(disk: Disk) -> Usage:
    """Of the same numbers that a probe here reads: `stat -f`. Raises ValueError."""
    return usage_of(disk.total, disk.free, disk.available, disk.inodes, disk.inodes_free, disk.type)


def _values(usage: Usage) -> dict[str, float | int | str | bool | None]:
    return {
        "used_percent": usage.used_percent,
        "free_bytes": usage.free,
        "inodes_used_percent": usage.inodes_used_percent,
        "size_bytes": usage.size,
        "type": usage.type,
    }


def _remembered(
    answers: Mapping[str, NodeProbe | Unreached], paths: Sequence[str], memory: Mapping[str, Any]
) -> dict[str, Any]:
    """Which of the paths have been mount points on which node. Never forgotten while a path is
    asked about: a node comes back from a reboot, and a mount does not."""
    before: Mapping[str, Any] = memory.get("mounted", {})
    known = {}
    for node in dict.fromkeys((*before, *answers)):
        answer = answers.get(node)
        now = {p for p in paths if isinstance(answer, NodeProbe) and _mount(answer, p)}
        if both := sorted(now.union(before.get(node, [])).intersection(paths)):
            known[node] = both
    return {"mounted": known}
