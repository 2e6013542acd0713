"""The `slurm` kind: does slurmctld answer, how fast, and are its backups there."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.cluster import Controller
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.model import Coverage, Finding, Report, Sample, Status, Value
from sentinel.core.ports import Context
from sentinel.core.settings import refuse_reversed
from sentinel.core.text import visible
from sentinel.core.values import Duration, duration_text
from sentinel.plugin import Check

# What Slurm's clients print when the credential is the trouble (plugins/auth/munge).
_MUNGE_PATTERN = ("munge", "authentication")


class LatencyLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad when an answer takes this long.

    latency: Bad when an answer takes this long.
    """

    latency: Duration | None = None


class SlurmCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Slurm itself: controller, backup controllers, latency, munge.

    warn: The limits of a warning.
    crit: The limits of what is critical.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60
    METRICS = (
        Metric("up", "slurm_controller_up", "1 where it answers.", "", "controller"),
        Metric(
            "latency_seconds",
            "slurm_controller_latency_seconds",
            "How long it took.",
            "seconds",
            "controller",
        ),
    )
    SOURCES = ("`scontrol ping` once a run, and munge where that does not answer.",)
    RUNBOOK = "docs/slurm-check.md"

    warn: LatencyLimits = LatencyLimits(latency=Duration(2))
    crit: LatencyLimits = LatencyLimits(latency=Duration(10))

    def __post_init__(self) -> None:
        refuse_reversed(self.warn, self.crit, ("latency",))

    def run(self, ctx: Context) -> Report:
        """One finding per controller. That none answers is the finding; not to be able to ask
        (no client commands) raises CannotAsk.
        """
        known = _known_primary(ctx.memory)
        try:
            controller = ctx.slurm.controller()
        except CannotAsk:
            raise
        except CannotTell as error:
            return Report(
                findings=(_nothing_answers(known, str(error)),), coverage=_controllers_coverage(1)
            )
        seen = controller if controller.primary else replace(controller, primary=known)
        if _is_munge(seen):
            return Report(findings=(_munge_finding(seen),), coverage=_controllers_coverage(1))
        return Report(
            findings=(self._judge_primary(seen), *map(_judge_backup, seen.backups)),
            coverage=_controllers_coverage(1 + len(seen.backups)),
            samples=_latency_samples(seen),
            memory={"primary": seen.primary},
        )

    def _judge_primary(self, seen: Controller) -> Finding:
        if not seen.primary_up:
            return _primary_down(seen)
        status, limit = self._latency_status(seen.latency)
        slow = f" ({status.value} from {limit})" if status.bad else ""
        return Finding(
            subject=visible(seen.primary),
            status=status,
            summary=f"slurmctld answers in {duration_text(seen.latency)}{slow}",
            values=_controller_values(seen),
            commands=("sdiag", "scontrol ping") if status.bad else (),
        )

    def _latency_status(self, latency: float) -> tuple[Status, Duration | None]:
        for status, limit in (
            (Status.CRITICAL, self.crit.latency),
            (Status.WARNING, self.warn.latency),
        ):
            if limit is not None and latency >= limit:
                return status, limit
        return Status.OK, None


def _controllers_coverage(count: int) -> Coverage:
    """One that does not answer was looked at: its silence is the finding."""
    return Coverage(of="controllers", meant=count)


def _primary_down(seen: Controller) -> Finding:
    """The primary does not answer; whether a backup took over."""
    takers = [visible(host) for host, up in seen.backups if up]
    status = Status.WARNING if takers else Status.CRITICAL
    instead = f"; {' and '.join(takers)} answers in its place" if takers else ""
    because = f": {visible(seen.trouble)}" if seen.trouble else ""
    return Finding(
        subject=visible(seen.primary),
        status=status,
        summary=f"slurmctld does not answer{instead}{because}",
        values=_controller_values(seen),
        commands=("scontrol ping", f"ssh {visible(seen.primary)} systemctl status slurmctld"),
    )


def _nothing_answers(primary: str, error: str) -> Finding:
    """Nothing answers at all; `error` says what the client met."""
    return Finding(
        subject=visible(primary),
        status=Status.CRITICAL,
        summary=f"slurmctld does not answer: {visible(error)}",
        commands=("scontrol ping", "munge -n | unmunge", "systemctl status munge"),
    )


def _is_munge(seen: Controller) -> bool:
    """Whether nobody was asked at all, for want of a credential."""
    up = seen.primary_up or any(up for _, up in seen.backups)
    return not up and any(word in seen.trouble.lower() for word in _MUNGE_PATTERN)


def _munge_finding(seen: Controller) -> Finding:
    """Munge on this host fails: no slurmctld believes, or is even sent, the question."""
    return Finding(
        subject=visible(seen.primary),
        status=Status.CRITICAL,
        summary=f"slurmctld cannot be asked, munge on this host fails: {visible(seen.trouble)}",
        commands=("munge -n | unmunge", "systemctl status munge", "scontrol ping"),
    )


def _judge_backup(backup: tuple[str, bool]) -> Finding:
    host, up = backup
    return Finding(
        subject=visible(host),
        status=Status.OK if up else Status.WARNING,
        summary=f"the backup slurmctld {'answers' if up else 'does not answer'}",
        values={"up": up},
        commands=() if up else (f"ssh {visible(host)} systemctl status slurmctld",),
    )


def _controller_values(seen: Controller) -> Mapping[str, Value]:
    return {
        "up": seen.primary_up,
        "latency_seconds": round(seen.latency, 4),
        "cluster": visible(seen.cluster),
        "version": visible(seen.version),
    }


def _latency_samples(seen: Controller) -> tuple[Sample, ...]:
    if not seen.primary_up:
        return ()
    return (Sample(visible(seen.primary), "latency_seconds", seen.latency),)


def _known_primary(memory: Mapping[str, Any]) -> str:
    """The primary's name as of the last answer, so that the alert stays one."""
    return str(memory.get("primary") or "slurmctld")
