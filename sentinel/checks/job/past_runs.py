"""Selects the past runs that a check means, by the same rules as for jobs in the queue. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sentinel.checks.job.settings import JobSettings
from sentinel.core.cluster import JobRun


def group_runs(
    runs: Sequence[JobRun], settings: JobSettings, users: Collection[str] | None
) -> dict[str, list[JobRun]]:
    """The runs that the check means, by subject. If the check requires a size, a run of unknown
    size is left out."""
    large = _find_large_runs(runs, settings) if settings.has_size_limit else None
    found: dict[str, list[JobRun]] = {}
    for run in runs:
        if (
            settings.is_watched_name(run.name)
            and run.id.partition("+")[2] in ("", "0")
            and (users is None or run.user in users)
            and (settings.partition in (None, *run.partition.split(",")))
            and (large is None or _get_whole_run(run) in large)
        ):
            found.setdefault(settings.subject_of(run.user, run.name), []).append(run)
    return found


def _get_whole_run(run: JobRun) -> tuple[str, int | None]:
    """The key that the parts of a heterogeneous job share. A requeued job has several runs."""
    return run.id.partition("+")[0], run.started


def _find_large_runs(runs: Iterable[JobRun], settings: JobSettings) -> set[tuple[str, int | None]]:
    """The runs that reach the required size. The sizes of the parts of a heterogeneous job are
    added."""
    parts: dict[tuple[str, int | None], list[JobRun]] = {}
    for run in runs:
        parts.setdefault(_get_whole_run(run), []).append(run)
    return {
        whole
        for whole, some in parts.items()
        if _is_size_reached([run.node_count for run in some], settings.min_nodes)
        and _is_size_reached([run.gpus for run in some], settings.min_gpus)
    }


def _is_size_reached(counts: Sequence[int | None], least: int) -> bool:
    """Whether the known counts reach the required size."""
    return not least or sum(count or 0 for count in counts) >= least
