"""Which steps of a run were lost, and which are in the model. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.run_ledger import LedgerRow
from sentinel.report.gpu_time import STEP_SCALE, StepRow, make_step_row, scale_step

OVERLAP_US = 5_000_000
"""Two jobs whose times overlap by less than this ran one after the other: Slurm's times are whole
seconds."""

Start = tuple[int, int]
"""The step from which a start went on (thousandths), and when it was seen (µs UTC)."""

NO_START: Start = (1 << 62, 0)


class JobSteps(Struct, frozen=True):
    """One start of a job: its rows with steps in their order, and the row of its beginning.

    is_steady: Each of its rows went on where the one before it ended, or above.
    """

    held: LedgerRow
    steps: tuple[StepRow, ...]
    startup: LedgerRow | None
    is_steady: bool


def make_job_steps(
    held: LedgerRow, steps: tuple[StepRow, ...], startup: LedgerRow | None
) -> JobSteps:
    """A start of a job with its rows."""
    reached, is_steady = steps[0].first if steps else 0, True
    for row in steps:
        if not reached <= row.first <= row.last:
            is_steady = False
            break
        reached = row.last
    return JobSteps(held, steps, startup, is_steady)


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
            reached = max([row.last for row in job.steps])
            proven.append((min(floor[0], reached), floor[1]))
            if floor[0] < reached:
                went_back.append(floor)
        for at in reversed(range(len(job.steps))):
            if floor[0] < job.steps[at].last:
                floors[number, at] = floor
            elif job.is_steady:
                break  # no row before it reached the floor either
            own = starts[number][at]
            if at and own[0] < job.steps[at - 1].last:
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
        from_step = _find_loaded(checkpoints, job.steps[0].first, job.held.began)
        if from_step is None and not number:
            from_step = 0
        found.append(job if from_step is None else _add_first_steps(job, from_step))
    return found


def _add_first_steps(job: JobSteps, loaded: int) -> JobSteps:
    first, startup = job.steps[0], job.startup
    made, row = first.last - first.first, first.row
    if made <= 0 or startup is None or not startup.began < row.began <= startup.ended:
        return job
    time = row.ended - row.began - row.checkpoint_us - row.evaluation_us
    began = max(startup.began, row.began - time * (first.first - loaded) // made)
    if began >= row.began:
        return job
    longer = make_step_row(replace(row, began=began, first_step=loaded / STEP_SCALE))
    return make_job_steps(job.held, (longer, *job.steps[1:]), startup)


def _list_starts(job: JobSteps, checkpoints: Sequence[Start]) -> list[Start]:
    """From which step each row went on. The first number in a log comes some steps later than the
    checkpoint that was loaded, so where steps went back the newest checkpoint below it counts."""
    found, reached = list[Start](), None
    for row in job.steps:
        step = row.first
        if reached is None or step < reached:
            loaded = _find_loaded(checkpoints, step, row.began)
            step = step if loaded is None else loaded
        found.append((step, row.began))
        reached = row.last
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
    lowest = rows[0].first if rows else 0
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


def _get_highest(rows: Sequence[StepRow], at: int) -> int:
    """The step at the end of this row, or a little later: the log may be behind the disk."""
    return max(row.last for row in rows[at : at + 2])


def _get_step_at(row: StepRow, at: int) -> int:
    if at >= row.ended or row.ended <= row.began:
        return row.last
    return row.first + (row.last - row.first) * (at - row.began) // (row.ended - row.began)


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
