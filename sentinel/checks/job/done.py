"""Whether a training that no longer runs has finished."""

from sentinel.checks.job.ends import is_completed, recency_key
from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.rhythm import find_delays_after
from sentinel.checks.job.settings import DoneWhen
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.user_files.whose import Whose

MAX_LOG_TAIL_BYTES = 2**20  # bytes of the log in which the line is looked for


def find_proof_of_finish(when: DoneWhen, memory: Memory, files: JobFiles, *, one_shot: bool) -> str:
    """What proves that it has finished, or "" when nothing does. Raises CannotTell."""
    if when.file:
        there = files.path_exists(when.file, get_proof_viewer(memory))
        return f"{visible(when.file)} is there" if there else ""
    if when.log:
        return _find_log_line(
            when, files.read_tail(when.log, MAX_LOG_TAIL_BYTES, get_proof_viewer(memory)) or ""
        )
    return _describe_success(last_run(memory), one_shot)


def get_proof_viewer(memory: Memory) -> Whose:
    """The operator wrote the path out; the user of the last job is told what it holds."""
    last = last_run(memory)
    return Whose(user=last.seen.user if last else "", literal=True)


def find_proof_of_success(memory: Memory) -> str:
    """As `find_proof_of_finish` where nobody has said what proves it: the last job COMPLETED.

    Raises CannotTell while it is not known of every job how it ended.
    """
    unknown = next((g for g in memory.gone if not g.asked), None)
    return _describe_success(unknown or last_run(memory), one_shot=False)


def seems_finished(memory: Memory) -> bool:
    """Whether all that was seen says so where nobody has said what proves it: the last job COMPLETED
    with exit code 0, its output shows progress and no trouble, and no end of this kind was ever
    followed by another job."""
    last = last_run(memory)
    if last is None or not is_completed(last) or not last.clean_output:
        return False
    return not (
        find_delays_after(last, memory) or any(_may_have_led_to(g, last) for g in memory.gone)
    )


def _may_have_led_to(one: GoneJob, last: GoneJob) -> bool:
    """Whether the last job came after this one, and this one may have ended well, too."""
    if one is last or not one.has_run or (one.end is not None and not is_completed(one)):
        return False
    ended = one.end.ended if one.end else None
    return ended is None or last.started_at_s is None or ended <= last.started_at_s


def last_run(memory: Memory) -> GoneJob | None:
    """Of the jobs that are gone, the one that began last; of an array whose elements ran side by
    side one that failed, if any did."""
    ran = [g for g in memory.gone if g.has_run]
    last = max(ran, key=recency_key, default=None)
    if last is None or not is_completed(last):
        return last
    failed = [g for g in ran if g.end and not is_completed(g) and _ran_side_by_side(g, last)]
    return max(failed, key=recency_key, default=last)


def _ran_side_by_side(one: GoneJob, last: GoneJob) -> bool:
    """Whether both are of one array, and it had not ended before the last one began."""
    ended = one.end.ended if one.end else None
    return one.seen.array_id == last.seen.array_id and (ended or 0) > (last.started_at_s or 0)


def _find_log_line(when: DoneWhen, text: str) -> str:
    for line in reversed(text.splitlines()):
        if when.pattern and when.pattern.search(line):
            return f"its log says {shortened(visible(line.strip()), 120)!r}"
    return ""


def _describe_success(last: GoneJob | None, one_shot: bool) -> str:
    if last is None:
        if one_shot:
            raise CannotTell(
                "nothing runs, and a single look cannot tell whether it has finished:"
                " `done_when: {state: completed}` needs the job to be seen before it ends"
            )
        return ""
    if not last.asked:
        raise CannotTell(
            f"nothing runs, and Slurm does not say yet how job {visible(last.seen.id)} ended"
        )
    return f"job {visible(last.seen.id)} COMPLETED with exit code 0" if is_completed(last) else ""
