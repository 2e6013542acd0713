"""Finds subjects that were in trouble and cannot be seen now: they are UNKNOWN, which ends no
alert. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sentinel.checks.gpu.sight import Sight
from sentinel.core.guidance import look
from sentinel.core.model import Finding, Status


def unseen(
    before: Mapping[str, object],
    found: Iterable[Finding],
    sights: Mapping[str, Sight],
    nodes: Collection[str],
) -> Iterator[Finding]:
    """Findings for subjects that were not well at the last run (`before`, with their nodes) and
    that this run cannot see, because their node, still one of `nodes`, does not show its GPUs.

    A lemon (`GPU-…@node`) that is seen in another node is left out."""
    said = {finding.subject for finding in found}
    elsewhere = {gpu.uuid for sight in sights.values() for gpu in sight.gpus}
    for subject, node in ((str(s), str(n)) for s, n in before.items()):
        sight, (uuid, at, _) = sights.get(node), subject.partition("@")
        shown = sight is not None and sight.inventory is not None
        if shown or subject in said or node not in nodes or (at and uuid in elsewhere):
            continue
        yield Finding(
            subject=subject,
            status=Status.UNKNOWN,
            summary=f"the GPUs of {node} cannot be seen now; it was not well when they last could",
            labels={"node": node},
            commands=(look("sentinel nodes probe --gpus {}", node),),
        )


def told(findings: Iterable[Finding], before: Mapping[str, object]) -> dict[str, str]:
    """The memory for the next run: each subject that is not well, with its node. An UNKNOWN one is
    kept only if it was not well before."""
    return {
        f.subject: f.labels["node"]
        for f in findings
        if "node" in f.labels
        and (f.status.bad or (f.status is Status.UNKNOWN and f.subject in before))
    }
