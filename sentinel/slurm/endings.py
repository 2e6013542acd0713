"""How jobs ended. Slurm is asked once for each job, and the answer is remembered."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.cluster import Job, JobEnd, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.ports import Clock
from sentinel.core.turns import interleave
from sentinel.core.values import duration_text
from sentinel.slurm import control, ends
from sentinel.slurm.answer import CachedAnswer, FailurePause
from sentinel.slurm.array_ends import SubmissionEnd, end_of_array, is_array
from sentinel.slurm.client import AskTimedOut, SlurmClient
from sentinel.slurm.words import decode_text, make_nonce, split_arguments

MOST_REMEMBERED = 1000
SLOW_ANSWER_S = 0.25
"""An answer that took more than this share of the question's limit is slow: no second question is
asked then."""
FIRST_PIECES, MOST_PIECES = 3, 8
"""How many questions a pass asks accounting: while slurmdbd is slow, and at most. The rest is asked
in the next pass."""
AFTER_NOW = "now+1hour"
"""The end of sacct's time window. It is in the future, because sacct leaves out jobs of the last
second and clocks differ."""
_UNKNOWN_JOB = b"Invalid job id specified"  # ESLURM_INVALID_JOB_ID, src/common/slurm_errno.c
# only accounting knows who cancelled it, and which node failed
WORTH_A_LOOK = ("CANCELLED", "NODE_FAIL")
_Answer = TypeVar("_Answer")

Piece = tuple[str, tuple[str, ...], tuple[str, ...]]
"""A question to sacct: an option, the words of its value, and the arguments behind it."""


class SacctForm(Struct, frozen=True):
    """How the sacct of this host is asked, and how it answers."""

    columns: tuple[str, ...] = ()  # The fields to ask for; none without accounting.
    whole_codes: bool = True  # Exit codes above 127 are printed as they are.


class BookedRuns(Struct, frozen=True):
    """What accounting answered. `left_out` has the ids and names that it was not asked about, and
    `unasked` says why."""

    runs: tuple[JobRun, ...] = ()
    unasked: str = ""
    left_out: frozenset[str] = frozenset()


class JobEndings:
    """Asks slurmctld first, and accounting for jobs that slurmctld does not know any more."""

    def __init__(
        self,
        client: SlurmClient,
        clock: Clock,
        config: CachedAnswer[control.SlurmConfig],
        *,
        settled: float,
    ) -> None:
        self._client, self._clock, self._config = client, clock, config
        self._patience = 4 * client.limit
        self._form = CachedAnswer(self._ask_form, clock, max_age=settled, patience=self._patience)
        self._lock = allocate_lock()
        self._known: dict[str, JobEnd] = {}
        self._names: dict[str, str] = {}
        self._pause, self._books = FailurePause(), FailurePause()
        self._turns = Counter[
            str
        ]()  # questions by option: the next piece comes first in the next pass

    def find_end(self, job_id: str) -> JobEnd | None:
        """How the job ended, or that it is still there (with a live state); None if nothing
        remembers it. Raises CannotTell."""
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked about another job, and has not answered yet")
        try:
            return self._known.get(job_id) or self._learn_end(job_id)
        finally:
            self._lock.release()

    def find_submission_end(self, job_id: str) -> SubmissionEnd | None:
        """Like `find_end` for what sbatch returned: an array counts with all its elements. Nothing
        is remembered. Raises CannotTell."""
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked about another job, and has not answered yet")
        try:
            return self._ask_unless_paused(lambda: self._ask_submission(job_id))
        finally:
            self._lock.release()

    def forget_ends(self, jobs: Iterable[Job]) -> None:
        """Forget how these jobs ended, since their ids are in the queue again: requeued, or given
        again by a slurmctld that had lost its state."""
        if self._known:
            for job in jobs:
                self._known.pop(job.job_id, None)

    def _learn_end(self, job_id: str) -> JobEnd | None:
        end = self._ask_unless_paused(lambda: self._ask_end(job_id))
        if end and end.state not in ends.LIVE:
            self._remember_end(job_id, end)
        return end

    def _ask_unless_paused(self, ask: Callable[[], _Answer]) -> _Answer:
        self._pause.raise_while_paused(self._clock.now())
        try:
            answer = ask()
        except CannotTell as error:
            self._pause.record_failure(self._clock.now(), error)
            raise
        self._pause.record_success()
        return answer

    def _remember_end(self, job_id: str, end: JobEnd) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[job_id] = end

    def _ask_end(self, job_id: str) -> JobEnd | None:
        return self._end_of_rows(job_id, self._from_slurmctld(job_id))

    def _ask_submission(self, job_id: str) -> SubmissionEnd | None:
        rows = self._from_slurmctld(job_id)
        if rows and not is_array(rows, job_id):
            end = self._end_of_rows(job_id, rows)
            return SubmissionEnd(end) if end else None
        booked = self._ask_sacct("-j", job_id)
        if is_array((*rows, *booked), job_id):
            return end_of_array(merge_runs(rows, booked), job_id)
        end = self._name_end(ends.choose_end(booked, job_id))
        return SubmissionEnd(end) if end else None

    def _end_of_rows(self, job_id: str, rows: Sequence[JobRun]) -> JobEnd | None:
        end = ends.choose_end(rows, job_id)
        if end is None:
            return self._name_end(self._from_accounting(job_id))
        if end.state not in WORTH_A_LOOK:
            return end
        try:
            booked = self._from_accounting(job_id)
        except CannotTell:  # slurmctld's answer is useful without accounting's
            return end
        return self._name_end(_merge_end(end, booked))

    def _from_slurmctld(self, job_id: str) -> tuple[JobRun, ...]:
        mark = make_nonce()
        columns = ends.squeue_columns(mark)
        done = self._client.run_command(
            "squeue", "-h", "-a", "-t", "all", "-j", job_id, "-O", columns
        )
        if _UNKNOWN_JOB in done.err:
            return ()
        return ends.read_squeue(self._client.believe_output("squeue", done), mark)

    def _from_accounting(self, job_id: str) -> JobEnd | None:
        return ends.choose_end(self._ask_sacct("-j", job_id), job_id)

    def accounted_runs(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        whose: Sequence[str],
        failed_within: float = 0.0,
    ) -> BookedRuns:
        """Runs in accounting: of these job ids, of jobs with these names in the last `since`
        seconds, and of all jobs that failed in the last `failed_within` seconds.

        Raises CannotTell if no question is answered, also while slurmdbd is slow."""
        if not (job_ids or names or failed_within) or not self._form.get_answer().columns:
            return BookedRuns()
        now = self._clock.now()
        self._books.raise_while_paused(now)
        named = {name for name in names if is_askable_name(name)}
        window = (*_window_options(since), *(whose or ("-a",)))
        by_id = self._list_pieces("--jobs", job_ids, ())
        by_name = self._list_pieces("--name", named, window)
        pieces = interleave([*by_id, *by_name], lambda piece: piece[0])
        if failed_within:
            when = (*_window_options(failed_within), *(whose or ("-a",)))
            pieces.insert(2, ("--state", (ends.FAILED_STATES,), when))
        booked = self._ask_pieces(pieces, now)
        runs = self._add_step_codes(tuple(dict.fromkeys(booked.runs)))
        return replace(booked, runs=tuple(self._name_canceller(run) for run in runs))

    def _list_pieces(self, option: str, words: Iterable[str], more: tuple[str, ...]) -> list[Piece]:
        """The questions about these words, first the one whose turn it is."""
        found = [(option, some, more) for some in split_arguments(words)]
        first = self._turns[option] % max(1, len(found))
        return [*found[first:], *found[:first]]

    def _ask_pieces(self, pieces: Sequence[Piece], now: Instant) -> BookedRuns:
        """Ask one piece after the other. A piece that fails leaves out only its own jobs. If
        slurmdbd is slow, only the first three are asked. Raises CannotTell if none is answered."""
        started, slow = time.monotonic(), SLOW_ANSWER_S * self._client.limit
        runs, left_out, failed = list[JobRun](), set[str](), list[CannotTell]()
        answered, hangs = False, False
        for number, (option, words, more) in enumerate(pieces):
            late = number >= FIRST_PIECES and time.monotonic() - started > slow
            if hangs or late or number >= MOST_PIECES:
                left_out.update(words)
                continue
            self._turns[option] += 1
            try:
                runs += self._ask_sacct(f"{option}={','.join(words)}", *more)
                answered = True
            except CannotTell as error:
                failed.append(error)
                left_out.update(words)
                hangs = isinstance(error, AskTimedOut)
        if failed and (hangs or not answered):
            self._books.record_failure(now, failed[-1])
        elif (took := time.monotonic() - started) > slow:
            why = f"slurmdbd took {duration_text(took)} to answer; it is left alone for a while"
            self._books.record_failure(now, CannotTell(why))
        else:
            self._books.record_success()
        if failed and not answered:
            raise failed[-1]
        why = str(failed[-1]) if failed else "too many jobs to ask accounting about at once"
        return BookedRuns(tuple(runs), why if left_out else "", frozenset(left_out))

    def _add_step_codes(self, runs: tuple[JobRun, ...]) -> tuple[JobRun, ...]:
        """The runs with the worst exit code of their steps, for those that COMPLETED. Unchanged
        where sacct does not answer."""
        codes: dict[str, bytes] = {}
        whole = self._form.get_answer().whole_codes
        ids = {run.job_id for run in runs if run.state == "COMPLETED"}
        for some in split_arguments(ids)[:MOST_PIECES]:
            mark = make_nonce()
            form = ("-n", "-p", "-X", "-D", f"--delimiter={mark}", "-o", "JobIDRaw,DerivedExitCode")
            try:
                out = self._client.ask_slurm("sacct", *form, "-j", ",".join(some))
            except CannotTell:
                break
            fields = [field.strip() for field in out.split(mark.encode())]
            codes |= dict(zip(map(decode_text, fields[::2]), fields[1::2], strict=False))
        return tuple(
            replace(run, step_failed=ends.failed_step(codes[run.job_id], whole=whole))
            if run.state == "COMPLETED" and run.job_id in codes
            else run
            for run in runs
        )

    def submit_line(self, job_id: str) -> str:
        """The command that submitted the job, by accounting (SubmitLine, 21.08 on); empty if
        accounting has none."""
        mark = make_nonce()
        form = ("-n", "-p", "-X", f"--delimiter={mark}", "-o", "SubmitLine")
        try:
            found = self._client.ask_slurm("sacct", *form, "-j", job_id).split(mark.encode())
        except CannotTell:
            return ""
        return decode_text(found[-2]).strip() if len(found) > 1 else ""

    def _name_canceller(self, run: JobRun) -> JobRun:
        return replace(run, cancelled_by=self._user_name(run.cancelled_by))

    def _ask_sacct(self, *which: str) -> tuple[JobRun, ...]:
        dialect = self._form.get_answer()
        columns = dialect.columns
        if not columns:
            return ()
        mark = ends.sacct_mark(make_nonce())
        form = ("-n", "-p", "-X", "-D", f"--delimiter={mark}", "-o", ends.sacct_format(columns))
        out = self._client.ask_slurm("sacct", *form, *which)
        runs = ends.read_sacct(out, mark, columns)
        return runs if dialect.whole_codes else tuple(map(ends.with_other_code, runs))

    def _ask_form(self) -> SacctForm:
        """How this sacct is asked and answers; no columns if there is no accounting."""
        config = self._config.get_answer()
        if not config.accounting:
            return SacctForm()
        columns = ends.sacct_columns(
            decode_lines(self._client.ask_slurm("sacct", "--helpformat")).split()
        )
        return SacctForm(columns, self._prints_whole_codes(config.version))

    def _prints_whole_codes(self, version: str) -> bool:
        """Whether sacct prints exit codes above 127 as they are. slurmctld talks to clients of its own
        release and to older ones, so only a new one leaves open which sacct this is."""
        if control.parse_release(version) < ends.FIRST_WHOLE_CODES:
            return False
        try:
            said = decode_lines(self._client.ask_slurm("sacct", "--version"))
        except CannotTell:
            return False  # then a code may be either
        return control.parse_release(said.rpartition(" ")[2]) >= ends.FIRST_WHOLE_CODES

    def _name_end(self, end: JobEnd | None) -> JobEnd | None:
        """The end with the user's name in place of the uid that sacct gives for who cancelled the
        job, if the name is known."""
        return end and replace(end, cancelled_by=self._user_name(end.cancelled_by))

    def _user_name(self, uid: str) -> str:
        if not uid.isdigit():
            return uid
        if uid not in self._names:
            done = self._client.run_command("id", "-nu", uid)
            name = decode_text(done.out).strip()
            self._names[uid] = name if name and done.code == 0 else uid
        return self._names[uid]


def is_askable_name(name: str) -> bool:
    """Whether sacct can search for jobs of that name. It cuts its list at commas. A quote at the
    beginning of the list ends it at the next such quote, so that all names behind it are not
    searched for (slurm_addto_char_list() in src/common/slurm_protocol_util.c; seen on 22.05)."""
    return bool(name) and "," not in name and name[0] not in "\"'"


def _window_options(seconds: float) -> tuple[str, ...]:
    """Options of sacct for the jobs of the last `seconds` seconds."""
    return ("-S", f"now-{max(60, int(seconds))}seconds", "-E", AFTER_NOW)


def merge_runs(runs: Sequence[JobRun], booked: Sequence[JobRun]) -> tuple[JobRun, ...]:
    """All runs, the oldest first: those of slurmctld, completed from accounting (who cancelled the
    job, which node failed), and those that only accounting has."""
    by_id: dict[str, list[JobRun]] = {}
    for run in booked:
        by_id.setdefault(run.job_id, []).append(run)
    known, same = list[JobRun](), set[int]()
    for run in runs:
        mine = [one for one in by_id.get(run.job_id, ()) if is_same_run(run, one)]
        same.update(map(id, mine))
        known.append(_add_accounting(run, mine[-1] if mine else None))
    return (*(run for run in booked if id(run) not in same), *known)


def is_same_run(run: JobRun, booked: JobRun) -> bool:
    """Whether accounting's record is about this run of slurmctld's: by its start, else by its submission,
    since a requeued job keeps its id and is submitted anew. For one that was cancelled while it waited
    slurmctld gives the end as the start, and accounting gives none."""
    if run.job_id != booked.job_id:
        return False
    if run.started is not None and booked.started is not None:
        return run.started == booked.started
    waited = run.started in (None, run.ended) and booked.started is None
    return waited and run.submitted is not None and run.submitted == booked.submitted


def _add_accounting(run: JobRun, booked: JobRun | None) -> JobRun:
    if booked is None or booked.state != run.state:
        return run
    return replace(run, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)


def _merge_end(end: JobEnd, booked: JobEnd | None) -> JobEnd:
    if booked is None or booked.state != end.state:
        return end
    return replace(end, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)
