"""Subjects that were in trouble and cannot be seen now: unknown, which ends no alert. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sentinel.checks.gpu.sight import Sight
from sentinel.core.model import Finding, Status


def unseen(
    told: Mapping[str, object],
    found: Iterable[Finding],
    sights: Mapping[str, Sight],
    nodes: Collection[str],
) -> Iterator[Finding]:
    """Of the subjects `told` as not well by the last run, with their nodes, those of which this
    run says nothing although their node is still one of `nodes`, and did not show its GPUs.

    A lemon (`GPU-…@node`) that is seen elsewhere is no longer there.
    """
    said = {finding.subject for finding in found}
    elsewhere = {gpu.uuid for sight in sights.values() for gpu in sight.gpus}
    for subject, node in ((str(s), str(n)) for s, n in told.items()):
        sight, (uuid, at, _) = sights.get(node), subject.partition("@")
        shown = sight is not None and sight.inventory is not None
        if shown or subject in said or node not in nodes or (at and uuid in elsewhere):
            continue
        yield Finding(
            subject=subject,
            status=Status.UNKNOWN,
            summary=f"the GPUs of {node} cannot be seen now; it was not well when they last could",
            labels={"node": node},
            commands=(f"sentinel nodes probe --gpus {node}",),
        )


def told(findings: Iterable[Finding]) -> dict[str, str]:
    """What the next run shall know: each subject that is not well, with its node."""
    return {
        f.subject: f.labels["node"]
        for f in findings
        if f.status is not Status.OK and "node" in f.labels
    }
