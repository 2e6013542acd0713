"""Checks file systems as nodes see them: with the same limits, by one probe of each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sentinel.checks.filesystems.limits import FileSystemUsage, judge_usage, usage_from_statfs
from sentinel.checks.filesystems.remedies import (
    GONE,
    NOT_THERE,
    guide_full,
    guide_hang,
    guide_lost,
    guide_read_only,
    guide_refusal,
    is_short_of_inodes,
    list_lost_commands,
    list_mount_commands,
    list_usage_commands,
    may_be_walked,
)
from sentinel.checks.filesystems.verdict import (
    DO_NOT_LOOK,
    VerdictSettings,
    explain_question,
)
from sentinel.checks.nodes_asked import ChosenNodes, probe_nodes, silent_finding, unread_finding
from sentinel.core.guidance import Guidance, LookingCommand, look
from sentinel.core.model import Finding, Report, Status, get_worst_status
from sentinel.core.mounts import READ_ONLY_OPTIONS
from sentinel.core.text import visible
from sentinel.nodes.probe import Disk, NodeMount, NodeProbe, ProbeRequest, Unread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sentinel.core.node_answers import Unreached
    from sentinel.core.ports import Context


def on_nodes(
    asked: ChosenNodes,
    paths: Sequence[str],
    rules: VerdictSettings,
    kept: Sequence[str],
    ctx: Context,
) -> Report:
    """A finding for each node and path (`node-3:/tmp`). It is UNKNOWN if the node did not answer.
    `kept` are the names of the numbers for the history. A path that was a mount point has to stay
    one."""
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
    if not isinstance(answer, NodeProbe):  # a node without an answer keeps its former status
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
        if isinstance(probe.mounts, Unread):
            text = f"not read ({probe.mounts.kind_words})"
            return _make_node_finding(node, subject, Status.UNKNOWN, text)
        lost = NodeRemedy(guide_lost(visible(path), node), list_lost_commands(path))
        return _make_node_finding(node, subject, Status.CRITICAL, "is not mounted", lost)
    try:
        usage = _probe_usage(disk)
    except ValueError as error:
        return _make_node_finding(node, subject, Status.UNKNOWN, f"cannot tell: {error}")
    status, summary = judge_usage(usage, rules.warn, rules.crit)
    remedy = (
        _find_usage_remedy(node, path, usage, status, rules)
        if status.bad
        else NodeRemedy(guide_read_only(visible(path), node), list_mount_commands(path, hung=False))
    )
    if isinstance(mount, NodeMount) and mount.options & READ_ONLY_OPTIONS:
        status, summary = get_worst_status([status, rules.read_only]), f"{summary}; is read-only"
    return _make_node_finding(node, subject, status, summary, remedy, usage)


class NodeRemedy(Struct, frozen=True):
    """What to do about a path of a node, and the commands that are run there."""

    guidance: Guidance = Guidance()
    commands: tuple[LookingCommand, ...] = ()


def _find_usage_remedy(
    node: str, path: str, usage: FileSystemUsage, status: Status, rules: VerdictSettings
) -> NodeRemedy:
    inodes = is_short_of_inodes(usage, rules.warn, rules.crit)
    walked = may_be_walked(usage.type)
    looks = list_usage_commands(path, inodes=inodes) if walked else (look("df -h {}", path),)
    guidance = guide_full(
        visible(path), node, status=status, inodes=inodes, walked=walked, kind=usage.type
    )
    return NodeRemedy(guidance, looks)


def _make_node_finding(
    node: str,
    subject: str,
    status: Status,
    summary: str,
    remedy: NodeRemedy = NodeRemedy(),  # noqa: B008 - frozen
    usage: FileSystemUsage | None = None,
) -> Finding:
    return Finding(
        subject=subject,
        status=status,
        summary=summary,
        values={} if usage is None else _usage_values(usage),
        labels={"node": node},
        commands=tuple(one.on_node(node) for one in remedy.commands) if status.bad else (),
        guidance=remedy.guidance if status.bad else Guidance(),
    )


def _unread_path_finding(node: str, subject: str, disk: Unread, path: str) -> Finding:
    """CRITICAL if the path hangs, does not exist or gives an error of its file system.

    UNKNOWN if it was not asked, or if the error says nothing about the file system
    (explain_question).
    """
    if disk.kind in ("hung", "late"):
        why = disk.why.partition(";")[0]
        why = why if why.startswith("no answer") else f"no answer ({why})"
        text = visible(f"{why}; {DO_NOT_LOOK}")
        hang = NodeRemedy(guide_hang(visible(path), node), list_mount_commands(path, hung=True))
        return _make_node_finding(node, subject, Status.CRITICAL, text, hang)
    if disk.kind == "failed" and not explain_question(disk.why):
        why = visible(NOT_THERE if GONE in disk.why else f"cannot be read: {disk.why}")
        guidance = guide_refusal(visible(path), why, node)
        refusal = NodeRemedy(guidance, list_mount_commands(path, hung=False))
        return _make_node_finding(node, subject, Status.CRITICAL, why, refusal)
    return unread_finding(node, disk, subject)


def _probe_mount(probe: NodeProbe, path: str) -> NodeMount | None:
    """The last mount on exactly that point, which hides the others. None if there is none."""
    if not isinstance(probe.mounts, tuple):
        return None
    point = path.rstrip("/") or "/"
    return next((m for m in reversed(probe.mounts) if m.point == point), None)


def _probe_usage(disk: Disk) -> FileSystemUsage:
    """The usage, from the output of `stat -f`, which the local probe also reads. Raises ValueError."""
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
    """The paths that have been mount points, by node. This is not forgotten while a path is
    watched, because after a reboot a node comes back, but a mount may not."""
    before: Mapping[str, Any] = memory.get("mounted", {})
    known = {}
    for node in dict.fromkeys((*before, *answers)):
        answer = answers.get(node)
        now = {p for p in paths if isinstance(answer, NodeProbe) and _probe_mount(answer, p)}
        if both := sorted(now.union(before.get(node, [])).intersection(paths)):
            known[node] = both
    return {"mounted": known}
