"""The declarations of a kind of check about itself. The web page, metrics, `top` and help read
them, so that none of them has to guess."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

Panel = Literal["jobs", "disks", "nodes", "gpus", "none"]
"""The part of the page and of `top` in which the findings of the kind are shown."""

Unit = Literal["", "percent", "bytes", "seconds", "celsius"]
_UNIT_ENDINGS = {
    "percent": "_ratio",
    "bytes": "_bytes",
    "seconds": "_seconds",
    "celsius": "_celsius",
}
ANY = "*"


class Metric(Struct, frozen=True):
    """A number of a kind's findings for Prometheus: `sentinel_<name>{check,<labels>}`.

    `value`: the key in the finding's `values`. ANY: every number there is, with its key in the
        label `value`.
    `unit`: the unit of the number. The name ends with it
        (https://prometheus.io/docs/practices/naming/), and a percentage becomes a ratio.
    `subject`: the name of the label that holds the finding's subject. Empty: there is no such
        label.
    `labels`: labels of the finding that the series has too.
    `moves`: how the number changes until the next run: a time that grows (`up`) or shrinks
        (`down`). `rate`: its growth per second in the last minutes is exported.

    Raises ValueError for a name that Prometheus does not accept.
    """

    value: str
    name: str  # Its name without `sentinel_`.
    help: str  # What it is, one sentence.
    unit: Unit = ""
    subject: str = "subject"
    labels: tuple[str, ...] = ()
    moves: Literal["", "up", "down", "rate"] = ""

    def __post_init__(self) -> None:
        for word in (self.name, *self.all_labels):
            if not re.fullmatch(r"[a-z][a-z0-9_]*", word):
                raise ValueError(f"metric {self.name!r}: {word!r} is no name that Prometheus takes")
        if len(set(self.all_labels)) < len(self.all_labels):
            raise ValueError(f"metric {self.name!r}: two labels have one name")
        if self.name.endswith("_total"):
            raise ValueError(f"metric {self.name!r}: only what never falls may end with _total")
        if self.unit and self.unit not in _UNIT_ENDINGS:
            known = ", ".join(_UNIT_ENDINGS)
            raise ValueError(f"metric {self.name!r}: no unit {self.unit!r}; it is one of {known}")
        ending = _UNIT_ENDINGS.get(self.unit, "")
        if not self.name.endswith(ending):
            raise ValueError(f"metric {self.name!r}: what is in {self.unit} ends with {ending}")

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Every label of its series."""
        subject = (self.subject,) if self.subject else ()
        return ("check", *subject, *self.labels, *(("value",) if self.value == ANY else ()))


OWN_METRIC_NAMES = frozenset(
    [
        "build_info",
        "last_look_timestamp_seconds",
        "check_status",
        "check_duration_seconds",
        "check_last_run_timestamp_seconds",
        "check_next_run_timestamp_seconds",
        "check_blind_seconds",
        "check_seen_timestamp_seconds",
        "alerts",
        "alerts_quiet",
        "silences",
        "outbox_messages",
        "outbox_failing_messages",
        "outbox_oldest_seconds",
        "nodes",
        "nodes_with_reason",
        "nodes_seen_timestamp_seconds",
        "jobs",
        "gpus",
        "actions_last_hour",
        "run_gpu_seconds",
        "failures",
        "loop_lag_seconds",
        "slurm_requests",
        "slurm_request_failures",
        "slurm_request_seconds",
    ]
)
"""Names of metrics about sentinel itself (docs/metrics.md). No kind of check can have them."""

FILESYSTEM = (
    Metric("used_percent", "filesystem_used_ratio", "Space used, 0 to 1.", "percent", "path"),
    Metric("used_bytes", "filesystem_used_bytes", "Space used.", "bytes", "path"),
    Metric("free_bytes", "filesystem_free_bytes", "Space free.", "bytes", "path"),
    Metric("size_bytes", "filesystem_size_bytes", "Its size.", "bytes", "path"),
    Metric(
        "inodes_used_percent",
        "filesystem_inodes_used_ratio",
        "Inodes used, 0 to 1.",
        "percent",
        "path",
    ),
    Metric(
        "full_in_s",
        "filesystem_full_seconds",
        "Time until it is full, where that is foreseen.",
        "seconds",
        "path",
        moves="down",
    ),
)
"""The metrics of every kind whose findings are file systems, quotas or trees."""

TRAINING = (
    Metric("running", "training_running_jobs", "Jobs that run."),
    Metric("queued", "training_queued_jobs", "Jobs that wait behind it."),
    Metric("progress", "training_progress", "The progress: the number that its log counts up."),
    Metric(
        "progress",
        "training_progress_per_second",
        "Progress per second over the last minutes; 0 where it stands still.",
        moves="rate",
    ),
    Metric(
        "quiet_seconds",
        "training_quiet_seconds",
        "Time since the progress last changed.",
        "seconds",
        moves="up",
    ),
    Metric(
        "limit_seconds",
        "training_quiet_limit_seconds",
        "Time without progress after which there is an alert.",
        "seconds",
    ),
)
"""The metrics of every kind whose findings are trainings."""
