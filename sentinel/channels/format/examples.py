"""Example alerts for authors of templates. Jobs and nodes are invented."""

from sentinel.core.guidance import Guidance
from sentinel.core.model import Notification, Status

_BEGAN, _ENDED = "2026-03-08T03:12:05+01:00", "2026-03-08T03:41:20+01:00"
_LOG = "/gpfs/alice/tr11/slurm-4242.out"
_DIED = "RuntimeError: NCCL communicator was aborted on rank 17"

FIRING = Notification(
    at="2026-03-08T03:12:40+01:00",
    cluster="h100-prod",
    check="training",
    kind="job",
    subject="tr11-176B",
    severity=Status.CRITICAL,
    status=Status.CRITICAL,
    reason="firing",
    summary="job 4242 FAILED with exit code 1 on r12n[01-48] at 03:12 CET after running for 11h 20m; not"
    " running and nothing is queued (alice, 384 GPUs on 48 nodes); 9m of work since checkpoint iter_0079000"
    " at risk",
    since=_BEGAN,
    noticed="2026-03-08T03:12:38+01:00",
    guidance=Guidance(
        impact="The training stands still until somebody submits it again.",
        todo="alice reads the end of its log, mends what ended it, and submits it again.",
    ),
    key="3f9c2a71b0-1",
    alert="3f9c2a71b0",
    details=f"last lines of {_LOG}:\niteration 79300 | lm loss 2.104\niteration 79400 | lm loss 2.101\n"
    f"rank 17: NCCL WARN Call to ibv_modify_qp failed\n{_DIED}",
    commands=(
        "cd /gpfs/alice/tr11 && sbatch --exclude=r12n07 train.slurm",
        "scontrol show job 4242",
        f"tail -n 50 {_LOG}",
    ),
    labels={"job": "tr11-176B", "user": "alice", "partition": "prod", "node": "r12n07"},
    values={
        "cause": _DIED,
        "last_step": "iteration 79400",
        "path": _LOG,
        "gpus": 384,
    },
    runbook="Call the engineer on duty: https://wiki.example.org/oncall",
    links={
        "Acknowledge": f"https://sentinel.example.org/a/{'kSb' * 30}/",
        "Silence": f"https://sentinel.example.org/a/{'Qx7' * 30}/",
    },
)
RESOLVED = Notification(
    at=_ENDED,
    cluster="h100-prod",
    check="training",
    kind="job",
    subject="tr11-176B",
    severity=Status.CRITICAL,
    status=Status.OK,
    reason="resolved",
    summary="job 4243 runs on 48 nodes, 1 more is queued",
    since=_BEGAN,
    key="3f9c2a71b0-2",
    alert="3f9c2a71b0",
    labels=FIRING.labels,
)
_DISK = Notification(
    at=FIRING.at,
    cluster="h100-prod",
    check="scratch",
    kind="fs",
    subject="/scratch",
    severity=Status.WARNING,
    status=Status.WARNING,
    reason="repeat",
    summary="87% used, 41 TB free (warning from 85%)",
    since="2026-03-07T19:02:44+01:00",
    key="b01d9e3345-2",
    alert="b01d9e3345",
    values={"used_percent": 87.1, "free_bytes": 41_000_000_000_000},
    note="acknowledged by alice",
)
_BLIND = Notification(
    at=FIRING.at,
    cluster="h100-prod",
    check="drained",
    kind="drained",
    subject="",
    severity=Status.CRITICAL,
    status=Status.UNKNOWN,
    reason="firing",
    summary="cannot tell: scontrol show node: no answer within 20s",
    since="2026-03-08T03:06:35+01:00",
    key="77ac01f2de-1",
    alert="77ac01f2de",
)

SAMPLES = {
    "firing": (FIRING,),
    "resolved": (RESOLVED,),
    "grouped": (_DISK, FIRING, _BLIND, RESOLVED),
}
"""Example inputs for a channel, each with a name."""
