"""The lab itself: each fault that tests rely on is real."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import accounts, claim, ledger, paths
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

HOLDER = """\
import signal, sys
from tests.lab.cluster import Lab
with Lab(nodes=1) as lab:
    lab.user("orphan")
    print(lab.index, flush=True)
    signal.pause()
"""


def test_a_job_runs_on_all_four_nodes(fresh: Lab) -> None:
    """srun starts one task on each node, and each sees a host name of its own."""
    hosts = fresh.ask(["srun", "--nodes=4", "hostname"]).split()
    assert sorted(hosts) == ["node-0", "node-1", "node-2", "node-3"]


def test_a_batch_job_is_seen_running_and_cancelled(fresh: Lab) -> None:
    """sbatch, squeue and scancel of the lab are Slurm's own."""
    job = fresh.sbatch("exec sleep 600", name="größe 10b", nodes=4)
    fresh.wait_state(job, "RUNNING")
    assert fresh.ask(["squeue", "-h", "-j", job, "-o", "%j|%D"]) == "größe 10b|4\n"
    fresh.scancel(job)
    fresh.wait_state(job, "CANCELLED")


def test_nodes_have_eight_gpus_each(fresh: Lab) -> None:
    """A job gets the GPUs it asks for; the ninth of a node is refused."""
    told = fresh.ask(["srun", "--gres=gpu:8", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"])
    assert told.strip() == "0,1,2,3,4,5,6,7"
    assert fresh.run(["srun", "--gres=gpu:9", "true"]).returncode != 0


def test_ssh_reaches_every_node_and_its_own_stand_ins(fresh: Lab) -> None:
    """nvidia-smi on a node is that node's, and prints what the test wrote."""
    fresh.nodes[2].stand_in("dcgmi", "all is well\n", code=3)
    argv = [
        "ssh",
        "-F",
        str(fresh.ssh_config),
        "node-2",
        "hostname; nvidia-smi | wc -l; dcgmi diag",
    ]
    done = fresh.run(argv)
    assert (done.stdout, done.returncode) == ("node-2\n8\nall is well\n", 3)


def test_ordinary_users_submit_but_may_not_update_nodes(fresh: Lab) -> None:
    """Slurm knows the user by munge, and answers "Invalid user id" to what is not allowed."""
    user = fresh.user(f"u{time.monotonic_ns() % 10**6}", groups=(fresh.group("six"),))
    job = fresh.sbatch("id -un; id -Gn", user=user, wait=True)
    told = (fresh.work / f"slurm-{job}.out").read_text()
    assert told.split() == [user.name, user.name, f"{paths.prefix(fresh.index)}-six"]
    update = ["scontrol", "update", "nodename=node-0", "state=drain", "reason=x"]
    denied = fresh.run(update, user=user)
    assert denied.returncode == 1
    assert "Invalid user id" in denied.stderr


def test_nobody_gets_the_number_of_a_user_whose_processes_still_end(fresh: Lab) -> None:
    """useradd gives the highest that is free once more."""
    first = fresh.user("gone")
    accounts.remove_user(first.name)
    assert fresh.user("next").uid != first.uid


def test_a_forged_job_name_is_taken_as_it_is(fresh: Lab) -> None:
    """Slurm 22.05 prints the newline of a job name raw: a row that nobody submitted."""
    fresh.sbatch("exec sleep 600", name="x\n999|my-training|RUNNING", hold=True)
    rows = fresh.ask(["squeue", "-h", "-o", "%A|%j|%T"]).splitlines()
    assert "999|my-training|RUNNING|PENDING" in rows


@pytest.mark.long
def test_a_stopped_controller_lets_squeue_fail_after_ten_seconds(fresh: Lab) -> None:
    """SIGSTOP: exit 1 with "Socket timed out", not before MessageTimeout; then all is well."""
    fresh.stop_controller()
    begin = time.monotonic()
    asked = fresh.run(["squeue"])
    assert (asked.returncode, asked.stdout) == (1, "")
    assert "Socket timed out" in asked.stderr
    assert time.monotonic() - begin > 9
    fresh.cont_controller()
    assert fresh.run(["squeue"]).returncode == 0


def test_a_killed_controller_comes_back_with_its_jobs(fresh: Lab) -> None:
    """A restart by SIGTERM keeps the queue, as on a real cluster; meanwhile clients fail."""
    job = fresh.sbatch("exec sleep 600", hold=True)
    fresh.kill_controller(sig=15)
    ping = fresh.run(["scontrol", "ping"])
    assert ping.returncode != 0
    fresh.start_controller()
    assert fresh.states(job) == ["PENDING"]


def test_an_unreachable_controller_leaves_connections_hanging(fresh: Lab) -> None:
    """`cut_controller` loses its answers: nothing refuses the connection."""
    fresh.cut_controller()
    with pytest.raises(subprocess.TimeoutExpired):
        fresh.run(["squeue"], limit=3)
    fresh.join_controller()
    assert fresh.run(["squeue"]).returncode == 0


def test_without_munge_clients_fail(fresh: Lab) -> None:
    """A killed munged is named in what squeue prints."""
    fresh.munge.kill()
    asked = fresh.run(["squeue"])
    assert asked.returncode == 1
    assert "Munge encode failed" in asked.stderr


def test_a_hung_munge_holds_clients(fresh: Lab) -> None:
    """A stopped munged makes squeue wait far beyond any limit of Slurm's."""
    fresh.munge.stop()
    with pytest.raises(subprocess.TimeoutExpired):
        fresh.run(["squeue"], limit=3)
    fresh.munge.cont()
    assert fresh.run(["squeue"]).returncode == 0


@pytest.mark.long
def test_a_crashed_node_goes_down_and_comes_back(fresh: Lab) -> None:
    """DOWN after SlurmdTimeout; booted again it is idle, and the job on it failed or requeued. Also where
    slurmd has started itself anew at a reconfigure, as from 24.11 on."""
    fresh.ask(["scontrol", "reconfigure"])
    fresh.wait_ready()
    job = fresh.sbatch("exec sleep 600", nodelist="node-3", no_requeue=True)
    fresh.wait_state(job, "RUNNING")
    fresh.crash_node(3)
    fresh.wait_node("node-3", "DOWN", limit=60)
    fresh.wait_state(job, "NODE_FAIL")
    fresh.boot_node(3)
    fresh.wait_node("node-3", "IDLE")


@pytest.mark.long
def test_a_cut_node_stops_responding(fresh: Lab) -> None:
    """The link is gone: Slurm notices at its next ping, ssh does not connect."""
    fresh.cut_node(1)
    fresh.wait_node("node-1", "NOT_RESPONDING", limit=40)
    fresh.join_node(1)
    fresh.wait_ready()


def test_a_node_that_was_cut_until_it_is_down_comes_back(fresh: Lab) -> None:
    """slurmctld asks it again after two minutes; who waits for the lab resumes it."""
    fresh.cut_node(1)
    fresh.ask(["scontrol", "update", "nodename=node-1", "state=down", "reason=gone"])
    fresh.join_node(1)
    fresh.wait_ready()


@pytest.mark.long
def test_a_job_that_cannot_be_killed_drains_its_node(fresh: Lab) -> None:
    """Slurm itself writes "Kill task failed"; the process ends once the file system answers."""
    job = fresh.unkillable_job(nodelist="node-0")
    fresh.wait_state(job, "RUNNING")
    fresh.scancel(job)
    fresh.wait_node("node-0", "DRAIN", limit=40)
    assert fresh.node("node-0")["Reason"].startswith("Kill task failed")
    count = ["ssh", "-F", str(fresh.ssh_config), "node-0", "pgrep -c -x cat"]
    assert fresh.run(count).stdout == "1\n"
    fresh.fuse.release()
    wait_until(lambda: fresh.run(count).stdout == "0\n", "the end of the stuck process")


def test_settings_can_be_changed_and_are_put_back(fresh: Lab) -> None:
    """`configure` has slurmctld read new lines; `reset` takes them back."""
    assert "PrivateData             = none" in fresh.ask(["scontrol", "show", "config"])
    fresh.configure(PrivateData="jobs")
    assert "PrivateData             = jobs" in fresh.ask(["scontrol", "show", "config"])
    fresh.reset()
    assert "PrivateData             = none" in fresh.ask(["scontrol", "show", "config"])


@pytest.mark.lab
def test_two_labs_live_side_by_side() -> None:
    """A fault of one is not felt in the other."""
    with Lab(nodes=1) as one, Lab(nodes=1) as other:
        assert one.index != other.index
        one.munge.kill()
        one.kill_controller()
        assert other.ask(["srun", "hostname"]) == "node-0\n"


@pytest.mark.lab
def test_an_index_is_held_by_one_lab_only() -> None:
    """A second claim is refused with the place to look."""
    index, held = claim.claim()
    with pytest.raises(claim.Taken, match=f"lab {index} is in use"):
        Lab(index=index)
    os.close(held)


@pytest.mark.lab
def test_nothing_is_left_of_a_lab_that_ended() -> None:
    """Processes, links, namespaces, mounts, users and the folder are gone."""
    with Lab(nodes=1) as lab:
        lab.user("gone")
        entries = ledger.Ledger(lab.folder).entries()
    assert {kind for kind, *_ in entries} == {"pid", "link", "netns", "mount", "user"}
    assert left(entries, lab.folder) == []


@pytest.mark.lab
def test_nothing_is_left_of_a_lab_whose_process_was_killed() -> None:
    """SIGKILL to the test process: the reaper takes the lab down."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, cwd=paths.ROOT
    )
    with holder:
        assert holder.stdout is not None
        folder = paths.directory(int(holder.stdout.readline()))
        entries = ledger.Ledger(folder).entries()
        holder.kill()
    wait_until(lambda: not folder.exists(), f"{folder} removed", 20.0)
    assert left(entries, folder) == []


def test_a_process_that_reused_the_number_is_not_killed() -> None:
    """The ledger knows a process by number and start time."""
    with subprocess.Popen(["sleep", "60"]) as other:
        began = ledger.started(other.pid)
        ledger.end([(other.pid, began - 1)], limit=1.0)
        assert ledger.alive((other.pid, began))
        ledger.end([(other.pid, began)], limit=5.0)
        assert not ledger.alive((other.pid, began))


def left(entries: list[ledger.Entry], folder: Path) -> list[ledger.Entry]:
    """The entries whose thing is still on this machine."""
    there: dict[str, Callable[..., bool]] = {
        "pid": lambda pid, began, _: ledger.alive((int(pid), int(began))),
        "link": lambda name: Path(f"/sys/class/net/{name}").exists(),
        "netns": lambda name: Path(f"/run/netns/{name}").exists(),
        "mount": lambda point: f" {point} " in Path("/proc/mounts").read_text(errors="replace"),
        "user": lambda name: f"\n{name}:" in Path("/etc/passwd").read_text(),
    }
    still = [(kind, *words) for kind, *words in entries if there[kind](*words)]
    return [*still, ("folder", str(folder))] if folder.exists() else still
