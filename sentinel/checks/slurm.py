"""The `slurm` kind: does slurmctld answer, how fast, and are its backups there."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.cluster import Controller
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Coverage, Finding, Report, Sample, Status, Value
from sentinel.core.ports import Context
from sentinel.core.settings import refuse_reversed
from sentinel.core.text import visible
from sentinel.core.values import Duration, duration_text
from sentinel.plugin import Check

# What Slurm's commands print if the credential is at fault (plugins/auth/munge).
_UNKNOWN_PRIMARY = "slurmctld"
_MUNGE_LOOKS = (look("munge -n | unmunge"), look("systemctl status munge"))
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
    TELLS_HOST: ClassVar[bool] = True
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
        """One finding for each controller. If no controller answers, that is the finding. If none
        can be asked (there are no commands of Slurm), CannotAsk is raised."""
        # that of the last answer, so that the subject of the alert stays the same
        known = str(ctx.memory.get("primary") or _UNKNOWN_PRIMARY)
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
            summary=f"slurmctld on {visible(seen.primary)} took {duration_text(seen.latency)} to answer{slow}"
            if slow
            else f"slurmctld answers in {duration_text(seen.latency)}",
            values=_controller_values(seen),
            commands=(look("sdiag"), look("scontrol ping")) if status.bad else (),
            guidance=_guide_slow(seen) if status.bad else Guidance(),
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
    """The coverage. A controller that does not answer counts as seen, because its silence is the
    finding."""
    return Coverage(of="controllers", meant=count)


def _primary_down(seen: Controller) -> Finding:
    """The finding about a primary that does not answer, with the backup that took over."""
    takers = [visible(host) for host, up in seen.backups if up]
    status = Status.WARNING if takers else Status.CRITICAL
    backups = f"the backup{'s' if len(takers) > 1 else ''} {' and '.join(takers)}"
    answer = "answer" if len(takers) > 1 else "answers"
    instead = f"; {backups} {answer} in its place, jobs go on" if takers else ""
    because = f": {visible(seen.trouble)}" if seen.trouble else ""
    return Finding(
        subject=visible(seen.primary),
        status=status,
        summary=f"slurmctld does not answer{instead}{because}",
        values=_controller_values(seen),
        commands=(
            look("scontrol ping"),
            look("systemctl status slurmctld").on_node(seen.primary),
        ),
        guidance=_guide_silence(visible(seen.primary), taken_over=bool(takers)),
    )


def _nothing_answers(primary: str, error: str) -> Finding:
    """The finding if no controller answers. `error` is the error of the client."""
    return Finding(
        subject=visible(primary),
        status=Status.CRITICAL,
        # If the host was never known, the subject already is "slurmctld".
        summary=f"{'' if primary == _UNKNOWN_PRIMARY else 'slurmctld '}does not answer: {visible(error)}",
        commands=(look("scontrol ping"), *_MUNGE_LOOKS),
        guidance=_guide_silence(visible(primary), taken_over=False),
    )


def _guide_silence(host: str, *, taken_over: bool) -> Guidance:
    where = f" on {host}" if host != _UNKNOWN_PRIMARY else ""
    down = "Nobody can submit, start or cancel jobs until it answers; running jobs go on."
    return Guidance(
        impact="Jobs go on; but if the backup fails too, nobody can submit or start any."
        if taken_over
        else down,
        todo=_look_at_controller(host) if taken_over else _ping_elsewhere(host),
        ask=f"look at slurmctld{where}: it does not answer",
    )


def _ping_elsewhere(host: str) -> str:
    return (
        "Run `scontrol ping` on another host too. If slurmctld answers there, the fault is this host's: its"
        f" network, or munge (`munge -n | unmunge` tests it). If not: {_look_at_controller(host)}"
    )


def _look_at_controller(host: str) -> str:
    known = host != _UNKNOWN_PRIMARY
    there = host if known else "the host of slurmctld (`scontrol ping` names it)"
    return (
        f"`systemctl status slurmctld`, as root on {there}, shows whether it runs. If it does not, its log"
        " (SlurmctldLogFile in slurm.conf) says why. Mend that, then start it: `systemctl start slurmctld`."
    )


def _guide_slow(seen: Controller) -> Guidance:
    return Guidance(
        impact="Commands of Slurm are slow or fail, and jobs start late; running jobs go on.",
        todo="Stop scripts of yours that call squeue, sinfo or scontrol often. Administrators: `sdiag`"
        " lists which users ask most.",
        ask=f"look at slurmctld on {visible(seen.primary)}: it took "
        f"{duration_text(seen.latency)} to answer",
    )


def _is_munge(seen: Controller) -> bool:
    """Whether the question was never sent, because there was no credential."""
    up = seen.primary_up or any(up for _, up in seen.backups)
    return not up and any(word in seen.trouble.lower() for word in _MUNGE_PATTERN)


def _munge_finding(seen: Controller) -> Finding:
    """The finding if munge on this host fails. Then slurmctld does not believe the question, or
    does not even get it."""
    return Finding(
        subject=visible(seen.primary),
        status=Status.CRITICAL,
        summary=f"slurmctld cannot be asked, munge on this host fails: {visible(seen.trouble)}",
        commands=(*_MUNGE_LOOKS, look("scontrol ping")),
        guidance=Guidance(
            impact="No command of Slurm works on this host; running jobs go on.",
            todo="Use Slurm from another host meanwhile.",
            ask="look at munge on that host: slurmctld cannot be asked from there",
        ),
    )


def _judge_backup(backup: tuple[str, bool]) -> Finding:
    host, up = backup
    return Finding(
        subject=visible(host),
        status=Status.OK if up else Status.WARNING,
        summary=f"the backup slurmctld {'answers' if up else 'does not answer'}",
        values={"up": up},
        commands=() if up else (look("systemctl status slurmctld").on_node(host),),
        guidance=Guidance()
        if up
        else Guidance(
            impact="Jobs go on; if the primary fails too, nobody takes over.",
            todo=_look_at_controller(visible(host)),
            ask=f"start the backup slurmctld on {visible(host)}: it does not answer",
        ),
    )


def _controller_values(seen: Controller) -> Mapping[str, Value]:
    return {
        "up": seen.primary_up,
        # If a backup answers, its latency is not that of the primary.
        "latency_seconds": round(seen.latency, 4) if seen.primary_up else None,
        "cluster": visible(seen.cluster),
        "version": visible(seen.version),
    }


def _latency_samples(seen: Controller) -> tuple[Sample, ...]:
    if not seen.primary_up:
        return ()
    return (Sample(visible(seen.primary), "latency_seconds", seen.latency),)
