"""Makes the request for a diagnostic: which job, on which node, with which limits. Pure."""

from __future__ import annotations

import os
import re
import shlex
from typing import ClassVar

from msgspec import Struct

from sentinel.checks.diag import archive
from sentinel.checks.diag.runs import DiagRun
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.core.errors import Invalid
from sentinel.core.model import ActionRequest
from sentinel.slurm.gres import count_gres_gpus as gpus_in

LEVEL_TIME_LIMITS_H = {1: 10 / 60, 2: 0.5, 3: 1.0, 4: 4.0}
"""Time limit of a job by its level, in hours. Others have seen level 2 take up to 10.5 minutes,
level 3 about 10, level 4 up to 2.25 hours (awsome-distributed-training, stas00/ml-engineering).
dcgmi itself has no timeout, and its PCIe test is known to hang (NVIDIA/DCGM issue 247)."""

DCGMI_MARGIN_S = 60
"""Seconds before the end of its job at which dcgmi is ended."""

_TIME_LIMIT_PATTERN = re.compile(
    r"(?:([0-9]{1,3})-)?([0-9]{1,4})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?"
)
_OPTION_PATTERN = re.compile(r"[A-Za-z0-9_.:+@%/-]{1,100}")


class SbatchOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of sbatch(1) for its jobs.

    partition: The partition of the jobs; unset, the one that Slurm takes.
    account: The account that the jobs are charged to.
    qos: The quality of service of the jobs.
    reservation: The reservation in which the jobs run.
    time: The jobs' time limit as Slurm writes it; unset, what suits the level.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    time: str = ""

    FIELDS: ClassVar[tuple[str, ...]] = ("partition", "account", "qos", "reservation")

    def __post_init__(self) -> None:
        for name in self.FIELDS:
            value = getattr(self, name)
            if value and not _OPTION_PATTERN.fullmatch(value):
                raise Invalid(f"{value!r} is no {name} of Slurm", name)
        if self.time:
            parse_time_limit(self.time)

    def get_time_limit_s(self, level: int) -> int:
        """The time limit of the job in seconds: the configured one, or else that of the level."""
        return parse_time_limit(self.time) if self.time else int(LEVEL_TIME_LIMITS_H[level] * 3600)


def parse_time_limit(text: str) -> int:
    """Seconds of `MM`, `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM` or `D-HH:MM:SS` (sbatch(1)). Raises
    Invalid."""
    match = _TIME_LIMIT_PATTERN.fullmatch(text.strip())
    if not match:
        raise Invalid(f"{text!r} is no time limit; write it like 01:30:00", "time")
    days, *rest = match.groups()
    numbers = [int(n) for n in rest if n is not None]
    if days is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        total = ((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds
    else:
        hours, minutes, seconds = {1: [0, *numbers, 0], 2: [0, *numbers], 3: numbers}[len(numbers)]
        total = (hours * 60 + minutes) * 60 + seconds
    if total < 2 * DCGMI_MARGIN_S:
        raise Invalid(f"{text!r} is less than two minutes", "time")
    return total


def make_run(
    node: Node, level: int, place: str, sbatch: SbatchOptions, now: Instant, test: str = ""
) -> DiagRun:
    """A new run. Its names are made once, so that it is found again after a restart."""
    name = archive.make_output_name(level, node.name, now, test)
    return DiagRun(
        node=node.name,
        name=f"sentinel-diag-{node.name}-{now.wall // SECOND}",
        level=level,
        out=os.path.join(place, name),
        asked=now.wall,
        limit=float(sbatch.get_time_limit_s(level)),
        gpus=gpus_in(node.gres) or 0,
        by_ssh="DRAIN" in node.flags,
        test=test,
    )


def request_run(run: DiagRun, sbatch: SbatchOptions, starts_within: float) -> ActionRequest:
    """The request for a run; the action makes sbatch's arguments from its parameters."""
    options = {
        name: getattr(sbatch, name) for name in SbatchOptions.FIELDS if getattr(sbatch, name)
    }
    if run.kept:
        options["reservation"] = run.kept
    return ActionRequest(
        action="diag",
        target=run.node,
        reason=run.display_name,
        params={
            "name": run.name,
            "level": str(run.level),
            "out": run.out,
            "seconds": str(int(run.limit)),
            "within": str(int(starts_within)),
            "gpus": str(run.gpus),
            "ssh": "yes" if run.by_ssh else "",
            "test": run.test,
            "command": shlex.join(run.command),
            **options,
        },
    )
