"""How a job ended: what squeue and sacct are asked for it, and the answers.

squeue and not `scontrol show job`, which asks slurmctld the same but prints a job's name
raw before its state: a job named `x JobState=COMPLETED ExitCode=0:0` forges its own end.
The -O names used exist from 20.11 to 26.05 (src/squeue/opts.c), each with a mark behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sentinel.core.cluster import JobEnd, JobRun
from sentinel.core.errors import CannotTell
from sentinel.slurm.job_states import JOB_STATES, Phase
from sentinel.slurm.queue import record_chunks
from sentinel.slurm.words import MAX_NUMBER, decode_optional_text, decode_text, parse_epoch

LIVE = frozenset(s for s, m in JOB_STATES.items() if m.phase not in (Phase.OVER, Phase.UNCLEAR))
"""States in which a job has not ended."""

# Where slurmctld itself ends a job (a node that fails, a launch that does, a partition or a
# script that is gone) it writes `exit_code = 1` (src/slurmctld/job_mgr.c, 20.11 to 26.05), which
# is the wait status of a SIGHUP, `0:1`, that nobody sent. A job that did get one is FAILED with
# a reason about its exit (job_reason_string(), src/common/slurm_protocol_defs.c).
HANGUP = 1
_BY_ITSELF = ("NonZeroExitCode", "RaisedSignal", "None")

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
    "STDOUT",
]
_SACCT = (
    *("JobIDRaw", "JobID", "State", "ExitCode", "Start", "End", "NodeList", "Reason"),
    *("JobName", "User", "Partition", "Submit"),
)
_NO_NODES = (b"None assigned", b"(null)", b"")


def squeue_columns(nonce: str) -> str:
    """The value of squeue's `-O` whose answer `read_squeue` understands."""
    fields = [f"{name}:{nonce}|" for name in _SQUEUE[:-1]]
    return ",".join([*fields, f"{_SQUEUE[-1]}:{nonce}."])


def read_squeue(out: bytes, nonce: str, start: int = 0) -> tuple[JobRun, ...]:
    """The job and its array's other elements, from `start` on; CannotTell when the form is another."""
    mark, last = f"{nonce}|".encode(), f"{nonce}.\n".encode()
    records = (record for piece in record_chunks(out, last, start) for record in piece.split(last))
    return _parse_records((record.split(mark) for record in records), _from_squeue, "squeue")


def sacct_columns(known: Iterable[str]) -> tuple[str, ...]:
    """The fields to ask sacct for; `known` are those it lists (FailedNode is 23.02+)."""
    return (*_SACCT, "FailedNode") if "FailedNode" in known else _SACCT


def read_sacct(out: bytes, nonce: str, columns: int) -> tuple[JobRun, ...]:
    """Every run, oldest first, of an answer in which the mark ends each column, also the last of
    a line (`-p`): a name may hold line ends. CannotTell when the form is another."""
    *fields, rest = out.split(nonce.encode())
    if rest != (b"\n" if fields else b"") or len(fields) % columns:
        raise CannotTell("sacct's answer is cut off")
    lines = [fields[at : at + columns] for at in range(0, len(fields), columns)]
    # The line end that closed the line before; the first line has none before it.
    own = ([line[0].removeprefix(b"\n"), *line[1:]] for line in lines)
    return _parse_records(own, _from_sacct, "sacct")


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


def failed_step(raw: bytes) -> str:
    """DerivedExitCode as `1:0` where a step failed, else empty. What is no number says nothing."""
    try:
        code, signal = exit_status(b"" if raw in (b"N/A", b"(null)") else raw.strip())
    except ValueError:
        return ""
    return f"{code or 0}:{signal or 0}" if code or signal else ""


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
    stdout: bytes,
) -> JobRun:
    told = _RunFields(job_id, form, state, reason, nodes, start, end, status)
    whose = _owner_fields(name, user, partition, submitted)
    array_id = job_id if array in (b"N/A", b"0", b"") else array
    files = {"workdir": decode_optional_text(workdir), "stdout": decode_optional_text(stdout)}
    more = {**whose, **files, "array_id": decode_text(array_id), "source": "squeue"}
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
    return _make_run(told, {**whose, **more})


class _RunFields(NamedTuple):
    """What both commands say of a run."""

    job_id: bytes
    form: bytes
    state: bytes
    reason: bytes
    nodes: bytes
    start: bytes
    end: bytes
    status: bytes


def _owner_fields(name: bytes, user: bytes, partition: bytes, submitted: bytes) -> dict[str, Any]:
    return {
        "name": decode_text(name),
        "user": decode_text(user),
        "partition": decode_optional_text(partition),
        "submitted": parse_epoch(submitted),
    }


def _make_run(told: _RunFields, more: dict[str, Any]) -> JobRun:
    word, _, who = decode_text(told.state).partition(" by ")
    live = word in LIVE
    exit_code, signal = (None, None) if live else exit_status(told.status)
    if word == "NODE_FAIL" and exit_code == 1:  # the same, as accounting tells it
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
        nodes="" if told.nodes in _NO_NODES else decode_text(told.nodes),
        started=None if word == "PENDING" else parse_epoch(told.start),
        ended=None if live else parse_epoch(told.end),
        **more,
    )
