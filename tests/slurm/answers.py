"""Answers of Slurm's commands, made from fields: what a test means, in the form Slurm prints."""

from sentinel.core.cluster import Job
from sentinel.slurm.queue import make_marks

NONCE = "xQm9uY2UxMjM"
OWN = ("id", "job", "array", "task", "submitted", "started", "ends", "nodes")
SHARED = ("user", "account", "partition", "state", "reason", "limit", "count", "exclude")
PLAIN = {
    "id": b"15",
    "job": b"15",
    "array": b"15",
    "task": b"N/A",
    "submitted": b"1790000000",
    "started": b"N/A",
    "ends": b"N/A",
    "nodes": b"",
    "user": b"alice",
    "account": b"(null)",
    "partition": b"main",
    "state": b"PENDING",
    "reason": b"Priority",
    "limit": b"1-02:00:00",
    "count": b"16",
    "exclude": b"",
    "name": b"train",
    "dependency": b"(null)",
    "workdir": b"/work",
    "command": b"/work/train.sh",
    "comment": b"(null)",
}
PLAIN_JOB = Job(
    id="15",
    job_id="15",
    array_id="15",
    task="",
    name="train",
    user="alice",
    partition="main",
    state="PENDING",
    reason="Priority",
    nodes="",
    node_count=16,
    dependency="",
    submitted=1790000000,
    started=None,
    ends=None,
    time_limit=93600,
    elements=1,
    exclude="",
    workdir="/work",
    account="",
    command="/work/train.sh",
)


def listed(*rows: bytes) -> bytes:
    """A list of jobs as squeue prints it: its header, then the rows."""
    ends = make_marks(NONCE)
    titles = [
        b" ".join([b"JOBID"] * 2 + [b"X"] * 6),
        ends.field.join([b"X"] * 8),
        b"NAME",
        b"X",
        b"COMMENT",
    ]
    header = ends.group.join([*titles, ends.field.join((b"WORK_DIR", b"COMMAND"))])
    return b"".join((header + ends.record, *rows))


def row(**fields: bytes) -> bytes:
    """A record of squeue: a plain pending job but for the fields given."""
    job, ends = PLAIN | fields, make_marks(NONCE)
    groups = [
        b" ".join(job[name] for name in OWN),
        ends.field.join(job[name] for name in SHARED),
        job["name"],
        job["dependency"],
        job["comment"],
        ends.field.join((job["workdir"], job["command"])),
    ]
    return ends.group.join(groups) + ends.record
