"""With a real slurmdbd: how jobs ended, by whom, and who may see what."""

from pathlib import Path

import pytest

from sentinel.clock import SystemClock
from sentinel.core.cluster import JobEnd
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.slurm.stand_ins import StandIns


def slurm(lab: Lab, as_user: User | None = None, limit: float = 20.0) -> SlurmSnapshot:
    prefix = ("runuser", "-u", as_user.name, "--") if as_user else ()
    client = SlurmClient(limit=limit, prefix=prefix, environ=lab.env)
    return SlurmSnapshot(client, SystemClock(), users=None, max_age=30.0)


def forgetful(lab: Lab, stand_ins: StandIns) -> SlurmSnapshot:
    """slurmctld forgets ended jobs after MinJobAge (300 s): here it has, all else is real."""
    stand_ins.says("squeue", err="slurm_load_jobs error: Invalid job id specified\n", code=1)
    client = SlurmClient(environ={**lab.env, **stand_ins.env})
    return SlurmSnapshot(client, SystemClock(), users=None, max_age=30.0)


def booked(port: SlurmSnapshot, job: str, state: str) -> JobEnd:
    """The end as soon as slurmdbd has it: slurmctld sends it seconds later."""

    def look() -> JobEnd | None:
        end = port.job_end(job)
        return end if end and end.state == state else None

    end = wait_until(look, f"accounting has job {job} as {state}", 30.0)
    assert end is not None
    return end


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "state", "exit_code", "signal"),
    [("exit 3", "FAILED", 3, None), ("true", "COMPLETED", 0, None), ("kill -9 $$", "FAILED", 0, 9)],
)
def test_an_end_that_slurmctld_forgot(
    fresh_accounting: Lab,
    stand_ins: StandIns,
    script: str,
    state: str,
    exit_code: int,
    signal: int | None,
) -> None:
    """sacct's answer means the same as squeue's, whatever the job is called."""
    job = fresh_accounting.sbatch(script, name="x|COMPLETED|0:0\n1|1|FAILED|9:9")
    end = booked(forgetful(fresh_accounting, stand_ins), job, state)
    assert (end.exit_code, end.signal, end.source) == (exit_code, signal, "sacct")
    assert end.nodes.startswith("node-")
    assert (end.ended or 0) >= (end.started or 1)


def test_a_job_neither_remembers(fresh_accounting: Lab) -> None:
    """No row in both is None."""
    assert slurm(fresh_accounting).job_end("999999") is None


def test_who_cancelled_it(fresh_accounting: Lab, stand_ins: StandIns) -> None:
    """Only accounting knows; the name is that of the user, not of the job's owner."""
    alice = fresh_accounting.user("alice")
    job = fresh_accounting.sbatch("exec sleep 600", user=alice)
    fresh_accounting.wait_state(job, "RUNNING")
    fresh_accounting.ask(["scancel", job], user=alice)
    fresh_accounting.wait_state(job, "CANCELLED")  # slurmdbd has it so while squeue: COMPLETING
    end = booked(forgetful(fresh_accounting, stand_ins), job, "CANCELLED")
    assert end.cancelled_by == alice.name
    both = slurm(fresh_accounting).job_end(job)
    assert both is not None
    assert (both.source, both.cancelled_by) == ("squeue", alice.name)


def test_the_run_that_a_failed_node_ended(fresh_accounting: Lab, stand_ins: StandIns) -> None:
    """Slurm requeued it: only sacct -D still lists the first run."""
    job = fresh_accounting.sbatch("exec sleep 600", requeue=True)
    fresh_accounting.wait_state(job, "RUNNING")
    [node] = fresh_accounting.ask(["squeue", "-h", "-j", job, "-o", "%N"]).split()
    fresh_accounting.ask(
        ["scontrol", "update", f"nodename={node}", "state=down", "reason=power supply"]
    )
    end = booked(forgetful(fresh_accounting, stand_ins), job, "NODE_FAIL")
    assert end.nodes == node


def test_an_operator_sees_what_private_data_hides(fresh_accounting: Lab) -> None:
    """AdminLevel=Operator is enough for the whole queue; taken away, it is refused."""
    bob = fresh_accounting.user("bob")
    manager = ["sacctmgr", "-i"]
    fresh_accounting.ask([*manager, "add", "account", "ops"])
    fresh_accounting.ask([*manager, "add", "user", bob.name, "account=ops"])
    job = fresh_accounting.sbatch("sleep 1", hold=True)
    fresh_accounting.configure(PrivateData="jobs")
    assert not slurm(fresh_accounting, as_user=bob).rights().admin
    fresh_accounting.ask([*manager, "modify", "user", bob.name, "set", "adminlevel=Operator"])
    port = slurm(fresh_accounting, as_user=bob)
    assert port.rights().admin
    assert [one.job_id for one in port.jobs()] == [job]


def test_a_slurmdbd_that_hangs(fresh_accounting: Lab, tmp_path: Path) -> None:
    """What slurmctld itself knows is told without it, and in time."""
    job = fresh_accounting.sbatch("exec sleep 600")
    fresh_accounting.wait_state(job, "RUNNING")
    fresh_accounting.scancel(job)
    fresh_accounting.wait_state(job, "CANCELLED")
    fresh_accounting.accounting.stop()
    end = slurm(fresh_accounting, limit=2).job_end(job)
    assert end is not None
    assert (end.state, end.cancelled_by) == ("CANCELLED", "")


def test_who_gave_a_node_a_reason_that_is_gone(fresh_accounting: Lab) -> None:
    """slurmdbd keeps it although the node is back; of other reasons it knows nobody."""
    update = ["scontrol", "update", "nodename=node-1"]
    fresh_accounting.ask([*update, "state=drain", "reason=RMA|4711"])
    fresh_accounting.ask([*update, "state=undrain"])
    hands = SlurmHands(slurm(fresh_accounting))
    assert hands.author("node-1", "RMA|4711") == "root"
    assert hands.author("node-0", "RMA|4711") == ""
