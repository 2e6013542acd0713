"""How a job ended: what squeue and sacct are asked for it, and the answers.

squeue and not `scontrol show job`, which asks slurmctld the same but prints a job's name
raw before its state: a job named `x JobState=COMPLETED ExitCode=0:0` forges its own end.
The -O names used exist from 20.11 to 26.05 (src/squeue/opts.c), each with a mark behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.slurm import JobEnd
from sentinel.slurm.words import epoch, optional_text, text

LIVE = frozenset(
    [
        "PENDING",
        "RUNNING",
        "SUSPENDED",
        "COMPLETING",
        "CONFIGURING",
        "STAGE_OUT",
        "STOPPED",
        "SIGNALING",
        "RESIZING",
        "EXPEDITING",
        "REQUEUED",
        "REQUEUE_HOLD",
        "REQUEUE_FED",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
    ]
)

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
    "STDOUT",
]
_SACCT = ["JobIDRaw", "JobID", "State", "ExitCode", "Start", "End", "NodeList", "Reason"]
_NO_NODES = (b"None assigned", b"(null)", b"")


class Row(Struct, frozen=True):
    """One line of squeue or sacct about a job: its two ids, and how it ended."""

    job_id: str
    array_form: str
    end: JobEnd

    @property
    def live(self) -> bool:
        """Whether that run of the job is not over."""
        return self.end.state in LIVE


def squeue_columns(nonce: str) -> str:
    """The value of squeue's `-O` whose answer `read_squeue` understands."""
    fields = [f"{name}:{nonce}|" for name in _SQUEUE[:-1]]
    return ",".join([*fields, f"{_SQUEUE[-1]}:{nonce}."])


def read_squeue(out: bytes, nonce: str) -> tuple[Row, ...]:
    """The job and its array's other elements; CannotTell when the form is another."""
    mark, last = f"{nonce}|".encode(), f"{nonce}.\n".encode()
    records = out.split(last)
    if records.pop():
        raise CannotTell("squeue's answer about a job is cut off")
    return _rows((record.split(mark) for record in records), _from_squeue, "squeue")


def sacct_columns(known: Iterable[str]) -> tuple[str, ...]:
    """The fields to ask sacct for; `known` are those it lists (FailedNode is 23.02+)."""
    return (*_SACCT, "FailedNode") if "FailedNode" in known else tuple(_SACCT)


def read_sacct(out: bytes, nonce: str) -> tuple[Row, ...]:
    """Every run of the job, oldest first; CannotTell when the form is another.

    No field asked for holds a user's text, so a line is a row.
    """
    if out and not out.endswith(b"\n"):
        raise CannotTell("sacct's answer is cut off")
    lines = out.split(b"\n")[:-1]
    return _rows((line.split(nonce.encode()) for line in lines), _from_sacct, "sacct")


def chosen(rows: Sequence[Row], job_id: str) -> JobEnd | None:
    """The newest run of that very job that is over, else the live one, else None.

    `job_id` may be a number or an array element such as `15_3`.
    """
    mine = [row for row in rows if job_id in (row.job_id, row.array_form)]
    over = [row for row in mine if not row.live]
    return (over or mine)[-1].end if mine else None


def exit_status(raw: bytes) -> tuple[int | None, int | None]:
    """Exit code and signal: `1:0`, `0:9`, or the wait status that squeue prints up to 22.05."""
    if not raw:
        return None, None
    code, colon, signal = raw.partition(b":")
    if not colon:
        return int(raw) >> 8, int(raw) & 0x7F or None
    return int(code), int(signal) or None


def _rows(
    records: Iterable[list[bytes]], read: Callable[..., Row], command: str
) -> tuple[Row, ...]:
    try:
        return tuple(read(*record) for record in records)
    except (ValueError, TypeError) as error:
        raise CannotTell(f"{command}'s answer about a job is not understood: {error}") from None


def _from_squeue(
    job_id: bytes,
    array_form: bytes,
    state: bytes,
    reason: bytes,
    nodes: bytes,
    start: bytes,
    end: bytes,
    status: bytes,
    stdout: bytes,
) -> Row:
    return _row(job_id, array_form, state, reason, nodes, start, end, status, stdout=stdout)


def _from_sacct(
    job_id: bytes,
    array_form: bytes,
    state: bytes,
    status: bytes,
    start: bytes,
    end: bytes,
    nodes: bytes,
    reason: bytes,
    failed_node: bytes = b"",
) -> Row:
    return _row(job_id, array_form, state, reason, nodes, start, end, status, failed=failed_node)


def _row(
    job_id: bytes,
    array_form: bytes,
    state: bytes,
    reason: bytes,
    nodes: bytes,
    start: bytes,
    end: bytes,
    status: bytes,
    *,
    stdout: bytes | None = None,
    failed: bytes = b"",
) -> Row:
    word, _, who = text(state).partition(" by ")
    live = word in LIVE
    exit_code, signal = (None, None) if live else exit_status(status)
    if signal == HANGUP and not (word == "FAILED" and text(reason).startswith(_BY_ITSELF)):
        exit_code, signal = None, None
    return Row(
        text(job_id),
        text(array_form),
        JobEnd(
            job_id=text(job_id),
            state=word,
            exit_code=exit_code,
            signal=signal,
            cancelled_by=who,
            reason="" if reason == b"None" else optional_text(reason),
            nodes="" if nodes in _NO_NODES else text(nodes),
            failed_node=optional_text(failed),
            started=None if word == "PENDING" else epoch(start),
            ended=None if live else epoch(end),
            stdout=optional_text(stdout or b""),
            source="sacct" if stdout is None else "squeue",
        ),
    )
