"""Which steps of a run were lost, and which are in the model. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.run_ledger import LedgerRow
from sentinel.report.gpu_time import STEP_SCALE, scale_step

OVERLAP_US = 5_000_000
"""Two jobs whose times overlap by less than this ran one after the other: Slurm's times are whole
seconds."""

Start = tuple[int, int]
"""The step from which a start went on (thousandths), and when it was seen (µs UTC)."""

NO_START: Start = (1 << 62, 0)


class JobSteps(Struct, frozen=True):
    """One start of a job: its rows with steps in their order, and the row of its beginning."""

    held: LedgerRow
    steps: tuple[LedgerRow, ...] = ()
    startup: LedgerRow | None = None


class StepHistory(Struct, frozen=True):
    """What became of the steps of a run.

    floors: For each row of each job: the lowest step from which a later start went on.
    went_back: Every start that went on below a step that had been reached.
    safe: The newest step that is in the model (thousandths). None: nothing is known of any.
    """

    floors: Mapping[tuple[int, int], Start]
    went_back: tuple[Start, ...]
    safe: int | None
    knows_checkpoints: bool


def trace_steps(jobs: Sequence[JobSteps], checkpoints: Sequence[Start]) -> StepHistory:
    """Follow the steps of a run through its jobs, which are ordered by their beginning.

    Only a start after the end of a job says what became of its steps. So two jobs of one name that
    run at once take nothing from each other.
    """
    starts = [_list_starts(job, checkpoints) for job in jobs]
    lowest = [*(min(own, default=NO_START) for own in starts), NO_START]
    for at in reversed(range(len(starts))):
        lowest[at] = min(lowest[at], lowest[at + 1])
    begins = [job.held.began for job in jobs]
    floors, went_back, proven = dict[tuple[int, int], Start](), list[Start](), list[Start]()
    for number, job in enumerate(jobs):
        later = max(number + 1, bisect_left(begins, job.held.ended - OVERLAP_US))
        floor = lowest[later]
        if floor is not NO_START and job.steps:
            reached = max(scale_step(row.last_step) for row in job.steps)
            proven.append((min(floor[0], reached), floor[1]))
            if floor[0] < reached:
                went_back.append(floor)
        for at in reversed(range(len(job.steps))):
            row = job.steps[at]
            if floor[0] < scale_step(row.last_step):
                floors[number, at] = floor
            own = starts[number][at]
            if at and own[0] < scale_step(job.steps[at - 1].last_step):
                went_back.append(own)
                proven.append(own)
            floor = min(floor, own)
    safe = _find_safe_step([*checkpoints, *proven], went_back)
    return StepHistory(floors, tuple(went_back), safe, bool(checkpoints))


def add_unseen_first_steps(
    jobs: Sequence[JobSteps], checkpoints: Sequence[Start]
) -> list[JobSteps]:
    """The jobs, with the steps that each made before its log showed the first number.

    A log shows a number only now and then, and it takes some lines until it is clear which number
    counts. The steps between the checkpoint that was loaded and the first number took as long as
    those after it, so the beginning of the job ends earlier by that.
    """
    found = list[JobSteps]()
    for number, job in enumerate(jobs):
        if not job.steps or job.startup is None:
            found.append(job)
            continue
        from_step = _find_loaded(checkpoints, _get_first(job.steps[0]), job.held.began)
        if from_step is None and not number:
            from_step = 0
        found.append(job if from_step is None else _add_first_steps(job, from_step))
    return found


def _add_first_steps(job: JobSteps, loaded: int) -> JobSteps:
    row, startup = job.steps[0], job.startup
    made = scale_step(row.last_step) - _get_first(row)
    if made <= 0 or startup is None or not startup.began < row.began <= startup.ended:
        return job
    time = row.ended - row.began - row.checkpoint_us - row.evaluation_us
    began = max(startup.began, row.began - time * (_get_first(row) - loaded) // made)
    if began >= row.began:
        return job
    return replace(
        job, steps=(replace(row, began=began, first_step=loaded / STEP_SCALE), *job.steps[1:])
    )


def _get_first(row: LedgerRow) -> int:
    return scale_step(row.first_step)


def _list_starts(job: JobSteps, checkpoints: Sequence[Start]) -> list[Start]:
    """From which step each row went on. The first number in a log comes some steps later than the
    checkpoint that was loaded, so where steps went back the newest checkpoint below it counts."""
    found, reached = list[Start](), None
    for row in job.steps:
        step = scale_step(row.first_step)
        if reached is None or step < reached:
            loaded = _find_loaded(checkpoints, step, row.began)
            step = step if loaded is None else loaded
        found.append((step, row.began))
        reached = scale_step(row.last_step)
    return found


def _find_loaded(checkpoints: Sequence[Start], step: int, at: int) -> int | None:
    """The newest checkpoint at that time that is not above the step."""
    for place in reversed(range(bisect_right(checkpoints, at, key=lambda one: one[1]))):
        if checkpoints[place][0] <= step:
            return checkpoints[place][0]
    return None


def place_checkpoints(jobs: Sequence[JobSteps], saved: Iterable[LedgerRow]) -> list[Start]:
    """Each complete checkpoint, by time: its step in the count of the log, and when it was written.

    The number in its name counts where the log had reached it by then. Otherwise it may count
    something else, as epochs, and the step that the log had reached at that time is used.
    """
    rows = sorted((row for job in jobs for row in job.steps), key=attrgetter("began"))
    lowest = scale_step(rows[0].first_step) if rows else 0
    begins, found = [row.began for row in rows], list[Start]()
    for one in saved:
        at = bisect_right(begins, one.ended) - 1
        if at < 0:
            continue
        step = reached = _get_step_at(rows[at], one.ended)
        if one.last_step is not None:
            named = scale_step(one.last_step)
            if named <= reached:
                step = named if named >= lowest else reached
            elif named <= _get_highest(rows, at):
                step = named
        found.append((step, one.ended))
    return sorted(found, key=itemgetter(1))


def _get_highest(rows: Sequence[LedgerRow], at: int) -> int:
    """The step at the end of this row, or a little later: the log may be behind the disk."""
    return max(scale_step(row.last_step) for row in rows[at : at + 2])


def _get_step_at(row: LedgerRow, at: int) -> int:
    first, last = scale_step(row.first_step), scale_step(row.last_step)
    if at >= row.ended or row.ended <= row.began:
        return last
    return first + (last - first) * (at - row.began) // (row.ended - row.began)


def _find_safe_step(known: Sequence[Start], went_back: Sequence[Start]) -> int | None:
    """The newest step that is in the model: below a checkpoint, or below a later start, that no
    start after it went back from."""
    back = sorted(went_back, key=lambda start: start[1])
    times = [start[1] for start in back]
    lowest = [NO_START[0]] * (len(back) + 1)
    for at in reversed(range(len(back))):
        lowest[at] = min(back[at][0], lowest[at + 1])
    good = [step for step, at in known if step <= lowest[bisect_right(times, at)]]
    return max(good, default=None)
