"""The settings of a `log` check in the form that a run needs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sentinel.checks.log.gather import (
    LogSource,
)
from sentinel.checks.log.judge import StaleRules
from sentinel.checks.log.requests import (
    ActionParams,
)
from sentinel.checks.log.settings import CloserLookMode
from sentinel.checks.log.topics import Thresholds
from sentinel.core.checkpoints import CheckpointPlace


class LogPlan(Struct, frozen=True, kw_only=True):
    """The check's settings in the form that a run needs."""

    subject: str  # What the alert is about.
    source: LogSource  # Which logs are read, and how.
    rules: StaleRules  # When a quiet time counts as a hang.
    wishes: Thresholds  # Limits of losses and speed.
    heartbeat: str = ""  # Path of the heartbeat file; empty: none.
    ask_nodes: bool = True  # Whether the job's nodes are asked.
    looks: CloserLookMode = "off"  # Whose jobs get a closer look.
    trial: float = 0.0  # Seconds for which closer looks notify nobody.
    checkpoints: CheckpointPlace | None = None  # Where checkpoints lie.
    learn_from: Sequence[str] = ()  # Logs of earlier jobs.
    means: ActionParams = ActionParams()  # Actions that a hang requests.
