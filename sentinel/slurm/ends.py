"""How a job ended: the questions to squeue and sacct, and their answers.

`scontrol show job` is not used: it prints a job's name raw and before the state, so a job named `x
JobState=COMPLETED ExitCode=0:0` could forge its own end. The -O names used exist from 20.11 to
26.05 (src/squeue/opts.c); each is followed by a mark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from sentinel.core.cluster import JobEnd, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_document
from sentinel.slurm.gres import count_job_gpus
from sentinel.slurm.job_states import JOB_STATES, Phase
from sentinel.slurm.queue import record_chunks
from sentinel.slurm.words import (
    MAX_NUMBER,
    decode_optional_text,
    decode_text,
    parse_count,
    parse_epoch,
)

LIVE = frozenset(s for s, m in JOB_STATES.items() if m.phase not in (Phase.OVER, Phase.UNCLEAR))
"""States in which a job has not ended."""

# When slurmctld itself ends a job (a node or the launch failed, its partition or script is gone),
# it writes `exit_code = 1` (src/slurmctld/job_mgr.c, 20.11 to 26.05). That is the wait status of a
# SIGHUP, `0:1`, which nobody sent. A job that did get a SIGHUP is FAILED with
# a reason about its exit (job_reason_string(), src/common/slurm_protocol_defs.c).
HANGUP = 1
_BY_ITSELF = ("NonZeroExitCode", "RaisedSignal", "None")

FIRST_WHOLE_CODES = (25, 11)
"""The first sacct that prints exit codes above 127 as they are. An older one prints them less 128
(PRINT_EXITCODE and PRINT_DERIVED_EC in src/sacct/print.c): `9:0` is 9 or 137, which is what a shell
returns for a child that was killed by signal 9. squeue never does so."""
_OWN_CODES, _SIGNALS_END = 3, 32
"""Exit codes up to the first are nearly always a program's own (1: an error, 2: wrong usage), so an
old sacct's `1:0` stays 1. From the second on, a code stands for no signal that a shell would report."""

_SQUEUE = [
    "JobID",
    "JobArrayID",
    "State",
    "Reason",
    "NodeList",
    "StartTime",
    "EndTime",
    "exit_code",
    "ArrayJobID",
    "Name",
    "UserName",
    "Partition",
    "SubmitTime",
    "WorkDir",
    "DerivedEC",
    "NumNodes",
    "NumTasks",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "tres-per-task",
    "tres-per-socket",
    "STDOUT",
]
_SACCT = (
    *("JobIDRaw", "JobID", "State", "ExitCode", "Start", "End", "NodeList", "Reason"),
    *("JobName", "User", "Partition", "Submit"),
)
_SACCT_MORE = {"NNodes": "node_count", "AllocTRES": "allocated", "FailedNode": "failed_node"}
"""Optional fields of sacct, and their names in `_from_sacct`; FailedNode exists since 23.02."""
_MARK_CHARS = 60
FAILED_STATES = "BF,CA,DL,F,NF,OOM,TO"
"""sacct's names of the states of jobs that are over and did not complete (sacct(1), 20.11 on)."""
_NO_NODES = (b"None assigned", b"(null)", b"")


def squeue_columns(nonce: str) -> str:
    """The value of squeue's `-O` whose answer `read_squeue` understands."""
    fields = [f"{name}:{nonce}|" for name in _SQUEUE[:-1]]
    return ",".join([*fields, f"{_SQUEUE[-1]}:{nonce}."])


def read_squeue(out: bytes, nonce: str, start: int = 0) -> tuple[JobRun, ...]:
    """Read the rows of the job and of its array's other elements, from offset `start` on. Raises
    CannotTell if the answer has another form."""
    mark, last = f"{nonce}|".encode(), f"{nonce}.\n".encode()
    records = (record for piece in record_chunks(out, last, start) for record in piece.split(last))
    return _parse_records((record.split(mark) for record in records), _from_squeue, "squeue")


def sacct_columns(known: Iterable[str]) -> tuple[str, ...]:
    """The fields to ask sacct for, out of `known`, the fields that this sacct lists. sacct refuses
    the whole question if it does not know one of the fields."""
    listed = set(known)
    return (*_SACCT, *(name for name in _SACCT_MORE if name in listed))


def sacct_mark(nonce: str) -> str:
    """The delimiter of a question to sacct. No variable can take it, so every user of the host can
    read it in time to rename a job. A name in accounting has at most 255 bytes (`job_name tinytext`
    in as_mysql), so it holds at most four such marks: too few to end a line."""
    return nonce.ljust(_MARK_CHARS, "-")


def sacct_format(columns: Iterable[str]) -> str:
    """The fields for sacct. The job id ends the line as well: that shows where a line is whole."""
    return ",".join([*columns, _SACCT[0]])


def read_sacct(out: bytes, mark: str, columns: Sequence[str]) -> tuple[JobRun, ...]:
    """Read every run, the oldest first, from an answer with these `sacct_columns`.

    The mark ends each column, also the last of a line (`-p`), because a name may hold line ends. A
    line with marks in its name is left out. Raises CannotTell if the answer has another form."""
    *fields, rest = out.split(mark.encode())
    if rest != (b"\n" if fields else b""):
        raise CannotTell("sacct's answer is cut off")
    lines = [*_split_lines(fields, len(columns) + 1)]
    if fields and not lines:
        raise CannotTell("sacct's answer is not in the form asked for")
    more = [_SACCT_MORE[name] for name in columns[len(_SACCT) :]]
    return _parse_records(lines, partial(_read_sacct_record, more), "sacct")


def _split_lines(fields: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    """The whole lines, without their last field."""
    ids = [field.rpartition(b"\n")[2] for field in fields]
    at = 0
    while at + size <= len(fields):
        after = at + size
        ends = after == len(fields) or fields[after].startswith(b"\n")
        begins = not at or fields[at].startswith(b"\n")
        if begins and ends and ids[at] == fields[after - 1]:
            yield [ids[at], *fields[at + 1 : after - 1]]
            at = after
        else:
            at += 1


def _read_sacct_record(more: Sequence[str], *fields: bytes) -> JobRun:
    needed = len(_SACCT)
    return _from_sacct(*fields[:needed], **dict(zip(more, fields[needed:], strict=True)))


def choose_end(rows: Sequence[JobRun], job_id: str) -> JobEnd | None:
    """The newest run of that very job that is over, else the live one, else None.

    `job_id` may be a number or an array element such as `15_3`.
    """
    mine = [row for row in rows if job_id in (row.job_id, row.id)]
    over = [row for row in mine if row.state not in LIVE]
    return (over or mine)[-1].run_end if mine else None


def exit_status(raw: bytes) -> tuple[int | None, int | None]:
    """Exit code and signal: `1:0`, `0:9`, or the wait status that squeue prints up to 22.05."""
    code, colon, signal = raw.partition(b":")
    if not raw or int(code) >= MAX_NUMBER:
        return None, None
    if not colon:
        return int(raw) >> 8, int(raw) & 0x7F or None
    return int(code), int(signal) or None


def other_exit_code(code: int | None, signal: int | None) -> int | None:
    """The exit code that a sacct before 25.11 prints as `code` too, if a signal would explain it."""
    killed = code is not None and not signal and _OWN_CODES < code < _SIGNALS_END
    return code + 128 if killed and code is not None else None


def with_other_code(run: JobRun) -> JobRun:
    """The run as a sacct before 25.11 printed it, with what its exit code may be as well."""
    other = other_exit_code(run.exit_code, run.signal)
    return run if other is None else replace(run, or_exit_code=other)


def failed_step(raw: bytes, *, whole: bool = True) -> str:
    """DerivedExitCode as `1:0` if a step failed; empty if none did or the text is not a number.
    `137:0 or 9:0` where sacct does not print it `whole` and it may be either."""
    try:
        code, signal = exit_status(b"" if raw in (b"N/A", b"(null)") else raw.strip())
    except ValueError:
        return ""
    other = None if whole else other_exit_code(code, signal)
    either = f"{other}:0 or " if other else ""
    return f"{either}{code or 0}:{signal or 0}" if code or signal else ""


def _parse_records(
    records: Iterable[list[bytes]], read: Callable[..., JobRun], command: str
) -> tuple[JobRun, ...]:
    try:
        return tuple(read(*record) for record in records)
    except (ValueError, TypeError) as error:
        raise CannotTell(f"{command}'s answer about a job is not understood: {error}") from None


def _from_squeue(
    job_id: bytes,
    form: bytes,
    state: bytes,
    reason: bytes,
    nodes: bytes,
    start: bytes,
    end: bytes,
    status: bytes,
    array: bytes,
    name: bytes,
    user: bytes,
    partition: bytes,
    submitted: bytes,
    workdir: bytes,
    derived: bytes,
    node_count: bytes,
    tasks: bytes,
    allocated: bytes,
    per_job: bytes,
    per_node: bytes,
    per_task: bytes,
    per_socket: bytes,
    stdout: bytes,
) -> JobRun:
    told = _RunFields(job_id, form, state, reason, nodes, start, end, status)
    whose = _owner_fields(name, user, partition, submitted)
    array_id = job_id if array in (b"N/A", b"0", b"") else array
    files = {"workdir": decode_optional_text(workdir), "stdout": decode_optional_text(stdout)}
    size = _size_fields(node_count, tasks, allocated, per_job, per_node, per_task, per_socket)
    more = {**whose, **files, **size, "array_id": decode_text(array_id), "source": "squeue"}
    return _make_run(told, {**more, "step_failed": failed_step(derived)})


def _from_sacct(
    job_id: bytes,
    form: bytes,
    state: bytes,
    status: bytes,
    start: bytes,
    end: bytes,
    nodes: bytes,
    reason: bytes,
    name: bytes,
    user: bytes,
    partition: bytes,
    submitted: bytes,
    node_count: bytes = b"",
    allocated: bytes = b"",
    failed_node: bytes = b"",
) -> JobRun:
    told = _RunFields(job_id, form, state, reason, nodes, start, end, status)
    whose = _owner_fields(name, user, partition, submitted)
    array_id = decode_text(form.partition(b"_")[0])
    more = {
        "array_id": array_id,
        "failed_node": decode_optional_text(failed_node),
        "source": "sacct",
    }
    size = _size_fields(node_count, b"0", allocated)
    if b"gres/gpu" not in allocated:  # accounting may not count GPUs (AccountingStorageTRES)
        size["gpus"] = None
    return _make_run(told, {**whose, **size, **more})


class _RunFields(NamedTuple):
    """The fields of a run that both squeue and sacct print."""

    job_id: bytes  # Id of the job.
    form: bytes  # Id as squeue prints it.
    state: bytes  # State.
    reason: bytes  # Reason.
    nodes: bytes  # Host list.
    start: bytes  # When it started.
    end: bytes  # When it ended.
    status: bytes  # Exit code and signal.


def _owner_fields(name: bytes, user: bytes, partition: bytes, submitted: bytes) -> dict[str, Any]:
    return {
        "name": decode_text(name),
        "user": decode_text(user),
        "partition": decode_optional_text(partition),
        "submitted": parse_epoch(submitted),
    }


def _size_fields(nodes: bytes, tasks: bytes, allocated: bytes, *asked: bytes) -> dict[str, Any]:
    """`node_count` and `gpus` of a run. Both are None if a field cannot be read: how the job ended
    counts all the same."""
    per_job, per_node, per_task, per_socket = map(decode_text, asked or (b"",) * 4)
    try:
        count, several = parse_count(nodes), parse_count(tasks)
        told = decode_text(allocated), per_job, per_node, per_task, per_socket
        gpus = count_job_gpus(*told, count, several)
    except ValueError:
        return {"node_count": None, "gpus": None}
    return {"node_count": count, "gpus": gpus}


def _make_run(told: _RunFields, more: dict[str, Any]) -> JobRun:
    word, _, who = decode_text(told.state).partition(" by ")
    live = word in LIVE
    exit_code, signal = (None, None) if live else exit_status(told.status)
    if word == "NODE_FAIL" and exit_code in (0, 1):  # the same case in accounting's words
        exit_code = None
    if signal == HANGUP and not (
        word == "FAILED" and decode_text(told.reason).startswith(_BY_ITSELF)
    ):
        exit_code, signal = None, None
    return JobRun(
        job_id=decode_text(told.job_id),
        id=decode_text(told.form),
        state=word,
        exit_code=exit_code,
        signal=signal,
        cancelled_by=who,
        reason="" if told.reason == b"None" else decode_optional_text(told.reason),
        nodes="" if told.nodes in _NO_NODES else decode_document(told.nodes),
        started=None if word == "PENDING" else parse_epoch(told.start),
        ended=None if live else parse_epoch(told.end),
        **more,
    )
