"""File systems as nodes see them: the same limits, asked by one probe of each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.checks.filesystems.limits import FileSystemUsage, judge_usage, usage_from_statfs
from sentinel.checks.filesystems.verdict import VerdictSettings, next_commands
from sentinel.checks.nodes_asked import ChosenNodes, probe_nodes, silent_finding, unread_finding
from sentinel.core.model import Finding, Report, Status, get_worst_status
from sentinel.core.mounts import READ_ONLY_OPTIONS
from sentinel.core.text import visible
from sentinel.nodes.probe import Disk, NodeMount, NodeProbe, ProbeRequest, Unread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sentinel.core.node_answers import Unreached
    from sentinel.core.ports import Context

_GONE = "No such file or directory"


def on_nodes(
    asked: ChosenNodes,
    paths: Sequence[str],
    rules: VerdictSettings,
    kept: Sequence[str],
    ctx: Context,
) -> Report:
    """A finding per node and path (`node-3:/tmp`), unknown where the node told nothing.

    `kept`: the numbers worth a history. Where a path was a mount point it has to stay one.
    """
    answers = probe_nodes(ctx, asked.names, ProbeRequest(parts=("mounts",), disks=tuple(paths)))
    findings: list[Finding] = []
    for name, answer in answers.items():
        findings += _node_findings(name, answer, paths, rules, ctx.memory)
    blind = {f.labels["node"] for f in findings if f.status is Status.UNKNOWN}
    return Report(
        findings=tuple(findings),
        coverage=asked.nodes_coverage(name for name in asked.names if name not in blind),
        samples=tuple(s for f in findings for s in f.samples(kept)),
        memory={**_remember_mounts(answers, paths, ctx.memory), **asked.memory},
    )


def _node_findings(
    node: str,
    answer: NodeProbe | Unreached,
    paths: Sequence[str],
    rules: VerdictSettings,
    memory: Mapping[str, Any],
) -> list[Finding]:
    if not isinstance(answer, NodeProbe):  # what was bad there is bad until somebody sees it
        return [silent_finding(node, answer, visible(f"{node}:{path}")) for path in paths]
    mounted = memory.get("mounted", {}).get(node, [])
    return [_node_path_finding(node, answer, path, path in mounted, rules) for path in paths]


def _node_path_finding(
    node: str, probe: NodeProbe, path: str, was: bool, rules: VerdictSettings
) -> Finding:
    subject = visible(f"{node}:{path}")
    disk = probe.disks.get(path, Unread(kind="absent"))
    if isinstance(disk, Unread):
        return _unread_path_finding(node, subject, disk, path)
    mount = _probe_mount(probe, path)
    must = was if rules.mounted is None else rules.mounted
    if must and mount is None:
        text = f"not read ({probe.mounts.kind})" if isinstance(probe.mounts, Unread) else ""
        status = Status.UNKNOWN if text else Status.CRITICAL
        return _make_node_finding(node, subject, status, text or "is not mounted", path)
    try:
        usage = _probe_usage(disk)
    except ValueError as error:
        return _make_node_finding(node, subject, Status.UNKNOWN, f"cannot tell: {error}", path)
    status, summary = judge_usage(usage, rules.warn, rules.crit)
    if isinstance(mount, NodeMount) and mount.options & READ_ONLY_OPTIONS:
        status, summary = get_worst_status([status, rules.read_only]), f"{summary}; is read-only"
    return _make_node_finding(node, subject, status, summary, path, usage)


def _make_node_finding(
    node: str,
    subject: str,
    status: Status,
    summary: str,
    path: str,
    usage: FileSystemUsage | None = None,
) -> Finding:
    values = {} if usage is None else _usage_values(usage)
    return Finding(
        subject=subject,
        status=status,
        summary=summary,
        values=values,
        labels={"node": node},
        commands=next_commands(path, False, node) if status.bad else (),
    )


def _unread_path_finding(node: str, subject: str, disk: Unread, path: str) -> Finding:
    """A path that hangs or is not there is bad; one that could not be asked is unknown."""
    if disk.kind in ("hung", "late"):
        found = _make_node_finding(
            node, subject, Status.CRITICAL, visible(f"hangs: {disk.why}"), path
        )
        return replace(found, commands=next_commands(path, True, node))
    if disk.kind == "failed" and "Permission denied" not in disk.why:
        why = "does not exist" if _GONE in disk.why else f"cannot be read: {disk.why}"
        return _make_node_finding(node, subject, Status.CRITICAL, visible(why), path)
    return unread_finding(node, disk, subject)


def _probe_mount(probe: NodeProbe, path: str) -> NodeMount | None:
    """The last mount on that very point, which is the one that shows."""
    if not isinstance(probe.mounts, tuple):
        return None
    point = path.rstrip("/") or "/"
    return next((m for m in reversed(probe.mounts) if m.point == point), None)


def _probe_usage(disk: Disk) -> FileSystemUsage:
    """Of the same numbers that a probe here reads: `stat -f`. Raises ValueError."""
    return usage_from_statfs(
        disk.total, disk.free, disk.available, disk.inodes, disk.inodes_free, disk.type
    )


def _usage_values(usage: FileSystemUsage) -> dict[str, float | int | str | bool | None]:
    return {
        "used_percent": usage.used_percent,
        "free_bytes": usage.free,
        "inodes_used_percent": usage.inodes_used_percent,
        "size_bytes": usage.size,
        "type": usage.type,
    }


def _remember_mounts(
    answers: Mapping[str, NodeProbe | Unreached], paths: Sequence[str], memory: Mapping[str, Any]
) -> dict[str, Any]:
    """Which of the paths have been mount points on which node. Never forgotten while a path is
    asked about: a node comes back from a reboot, and a mount does not."""
    before: Mapping[str, Any] = memory.get("mounted", {})
    known = {}
    for node in dict.fromkeys((*before, *answers)):
        answer = answers.get(node)
        now = {p for p in paths if isinstance(answer, NodeProbe) and _probe_mount(answer, p)}
        if both := sorted(now.union(before.get(node, [])).intersection(paths)):
            known[node] = both
    return {"mounted": known}
