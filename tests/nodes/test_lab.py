"""Real nodes, a real sshd on each, real faults: what is told apart, and what is left behind."""

import time
from pathlib import Path

import pytest

from sentinel.core.node_answers import (
    Answered,
    Garbage,
    NotAsked,
    Refused,
    TimedOut,
    Unreachable,
)
from sentinel.core.values import Duration
from sentinel.nodes.probe import (
    ALL_PARTS_REQUEST,
    Disk,
    NodeProbe,
    ProbeRequest,
    StepTraces,
    Unread,
)
from sentinel.nodes.reach import Reach
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.srun import Srun
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes, saying

GPU = ProbeRequest(parts=("gpu_processes", "memory"))
ONE_PROCESS = "#!/bin/sh\necho 'GPU-0-1, 4711, 1024, python train.py, with a comma'\n"
OTHER_KEY = "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIDkBYqJEdc5UpjPSnFVi3QAcvkuB1XWIGaN2uP0pYhn\n"


@pytest.fixture
def nodes(fresh: Lab, tmp_path: Path) -> Nodes:
    """The lab's four nodes, a process on each one's GPUs."""
    for node in fresh.nodes:
        (node.bin / "nvidia-smi").write_text(ONE_PROCESS)
    return Nodes(fresh, tmp_path)


def whole(answer: object) -> NodeProbe:
    assert isinstance(answer, NodeProbe), answer
    return answer


@pytest.mark.long
def test_four_nodes_are_told_apart_in_one_round_trip_each(nodes: Nodes) -> None:
    """Healthy, cut off, sshd talking nonsense, nvidia-smi hanging: four different answers.

    The second probe says that nvidia-smi hangs, since when and as which process, and starts
    none of its own; the healthy node and the one with the hang saw one login a probe.
    """
    lab, names = nodes.lab, [node.name for node in nodes.lab.nodes]
    started = nodes.folder / "started"
    hanging = f"#!/bin/sh\necho $$ >>{started}\nexec cat {lab.fuse.point}/data\n"
    (lab.nodes[3].bin / "nvidia-smi").write_text(hanging)
    lab.fuse.hold("open")
    lab.cut_node(1)
    logins = [nodes.logins(name) for name in names]
    with saying(b"SSH-2.0-nonsense\r\n" + b"\0\xff" * 4000) as port:
        nodes.divert("node-2", port)
        first = nodes.reach().probe(names, GPU, limit=30)
        second = nodes.reach().probe(names, GPU, limit=30)
    for answers in (first, second):
        assert not whole(answers["node-0"]).unread_parts
        assert isinstance(answers["node-1"], Unreachable)
        assert isinstance(answers["node-2"], Garbage)
        hung = whole(answers["node-3"]).gpu_processes
        assert isinstance(hung, Unread)
        assert (hung.kind, [str(hung.pid)]) == ("hung", started.read_text().split())
        assert hung.since is not None
        assert abs(hung.since - time.time()) < 60
    assert "none was started" in whole(second["node-3"]).unread_parts["gpu_processes"].why
    assert [nodes.logins(name) - n for name, n in zip(names, logins, strict=True)] == [2, 0, 0, 2]


@pytest.mark.long
def test_a_tool_that_came_back_is_asked_again(nodes: Nodes) -> None:
    """Once the process that hung has ended, the next probe starts one and reads it."""
    tool = nodes.lab.nodes[3].bin / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nexec cat {nodes.lab.fuse.point}/data\n")
    nodes.lab.fuse.hold("open")
    hung = whole(nodes.reach().probe(["node-3"], GPU, limit=30)["node-3"])
    assert hung.unread_parts["gpu_processes"].kind == "hung"
    tool.write_text(ONE_PROCESS)
    nodes.lab.fuse.release()
    wait_until(lambda: not _blocked(nodes), "the end of the stuck process")
    found = whole(nodes.reach().probe(["node-3"], GPU, limit=30)["node-3"]).gpu_processes
    assert isinstance(found, tuple)
    assert (found[0].pid, found[0].name) == (4711, "python train.py, with a comma")


def _blocked(nodes: Nodes) -> bool:
    probe = whole(
        nodes.reach().probe(["node-3"], ProbeRequest(parts=("blocked",)), limit=30)["node-3"]
    )
    assert isinstance(probe.blocked, tuple)
    return any(thread.name == "cat" for thread in probe.blocked)


@pytest.mark.long
def test_a_hanging_tool_is_in_state_d_and_a_hanging_disk_hides_no_other(nodes: Nodes) -> None:
    """Each path is asked by itself; the thread that waits is listed with its wait channel."""
    nodes.lab.fuse.hold("statfs", "open")
    point = str(nodes.lab.fuse.point)
    # FUSE waits in state D only once the reader was killed.
    stuck = f"cat {point}/data </dev/null >/dev/null 2>&1 & sleep 0.3; kill -9 $!"
    nodes.on("node-0", stuck)
    wants = ProbeRequest(parts=("blocked", "mounts"), disks=(point, "/tmp"))
    probe = whole(nodes.reach().probe(["node-0"], wants, limit=30)["node-0"])
    assert isinstance(probe.blocked, tuple)
    assert ("cat", False) in {(thread.name, thread.kernel) for thread in probe.blocked}
    assert probe.unread_parts[f"disks.{point}"].kind == "hung"
    assert isinstance(probe.disks["/tmp"], Disk)
    assert isinstance(probe.mounts, tuple)
    assert {point, "/"} <= {mount.point for mount in probe.mounts}


def test_every_part_of_a_probe_is_read_or_says_why_not(nodes: Nodes) -> None:
    """On a lab node all is there but InfiniBand; a running job shows in the steps."""
    job = nodes.lab.sbatch("exec sleep 300", nodelist="node-0")
    nodes.lab.wait_state(job, "RUNNING")
    probe = whole(nodes.reach().probe(["node-0"], ALL_PARTS_REQUEST, limit=30)["node-0"])
    assert set(probe.unread_parts) == {"infiniband"}
    assert probe.identity.hostname == "node-0"  # type: ignore[union-attr]
    assert isinstance(probe.processes, tuple)
    slurmd = next(p for p in probe.processes if p.command.startswith("slurmd "))
    pid = nodes.on("node-0", "pgrep -xo slurmd").stdout
    assert (slurmd.pid, slurmd.uid, slurmd.user) == (int(pid), 0, "root")
    assert abs(slurmd.started - time.time()) < 3600
    assert isinstance(probe.steps, StepTraces)
    witnesses = {(step.job, step.witness) for step in probe.steps.processes}
    assert witnesses == {(job, "daemon"), (job, "environment")}
    assert probe.steps.blind == ()


def test_the_kernel_log_is_read_from_where_it_was_left(nodes: Nodes) -> None:
    """A cursor of the same boot brings only what came after it, and nothing was lost."""
    nodes.lab.nodes[0].kernel_says("eth0: link up")
    first = whole(nodes.reach().probe(["node-0"], ALL_PARTS_REQUEST, limit=30)["node-0"]).kernel
    assert not isinstance(first, Unread | None)
    assert [line.text for line in first.lines] == ["eth0: link up"]
    nodes.lab.nodes[0].kernel_says("NVRM: Xid (PCI:0000:10:1c): 79, sentinel's test", level=3)
    wants = ProbeRequest(parts=("kernel",), since=first.cursor)
    second = whole(nodes.reach().probe(["node-0"], wants, limit=30)["node-0"]).kernel
    assert not isinstance(second, Unread | None)
    ours = [line for line in second.lines if "sentinel's test" in line.text]
    assert [(line.level, line.text[:4]) for line in ours] == [(3, "NVRM")]
    assert (second.source, second.lost) == ("kmsg", 0)
    assert second.cursor.position > first.cursor.position


def test_a_node_that_pam_closes_to_us_refused(nodes: Nodes) -> None:
    """What pam_slurm_adopt does to whoever has no job there, by PAM of the node itself."""
    (nodes.folder / "words").write_text("Access denied by pam_slurm_adopt: no active jobs here\n")
    (nodes.folder / "pam").write_text(
        f"auth required pam_permit.so\naccount required pam_echo.so file={nodes.folder}/words\n"
        "account required pam_deny.so\nsession required pam_permit.so\n"
    )
    config = nodes.lab.ssh_config.parent / "sshd_config"
    started = nodes.on(
        "node-1",
        f"mount --bind {nodes.folder}/pam /etc/pam.d/sshd && "
        f"/usr/sbin/sshd -f {config} -o UsePAM=yes -p 2222 -E /dev/null",
    )
    assert started.returncode == 0, started.stderr
    nodes.divert("node-1", 2222, nodes.lab.nodes[1].address)
    told = nodes.reach().run(["node-1"], ["true"], limit=60)["node-1"]
    nodes.on("node-1", "umount /etc/pam.d/sshd; pkill -f 'UsePAM=ye[s]'")
    assert isinstance(told, Refused)
    assert "pam_slurm_adopt" in told.why


def test_an_ordinary_user_sees_less_and_is_told_so(nodes: Nodes) -> None:
    """What only root may read is Unread or blind, and the lock lies in a place of its own."""
    user = nodes.lab.user(f"probe{time.monotonic_ns() % 10**6}")
    nodes.lab.ask(["usermod", "-p", "*", user.name])
    nodes.lab.sbatch("exec sleep 300", nodelist="node-0")
    answer = nodes.reach(options=f"-l {user.name}").probe(["node-0"], ALL_PARTS_REQUEST, limit=30)
    probe = whole(answer["node-0"])
    assert probe.identity.uid == user.uid  # type: ignore[union-attr]
    assert isinstance(probe.steps, StepTraces)
    assert probe.steps.blind == ("environments: only root may read them",)
    assert not isinstance(probe.memory, Unread | None)
    place = Path(f"/tmp/sentinel-{user.uid}.node-0")
    assert (place.stat().st_mode & 0o777, place.stat().st_uid) == (0o700, user.uid)
    nodes.lab.ask(["rm", "-rf", str(place)])


def test_srun_asks_nodes_that_take_jobs(nodes: Nodes) -> None:
    """The same probe by srun, as a job of its own; a node that Slurm does not give is told."""
    settings = RemoteSettings(via="srun", connect_timeout=Duration(5))
    reach = Reach(Srun(settings, environ=nodes.lab.env), fanout=4, patience=20)
    nodes.lab.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=test"])
    told = reach.probe(["node-0", "node-3", "no-such-node"], GPU, limit=30)
    assert whole(told["node-0"]).identity.hostname == "node-0"  # type: ignore[union-attr]
    assert isinstance(told["node-3"], Unreachable), told["node-3"]
    assert isinstance(told["no-such-node"], Unreachable)


def test_srun_enters_a_running_job_without_taking_its_gpus(nodes: Nodes) -> None:
    """`job` makes the question a step of that job, beside one that has all of the node."""
    job = nodes.lab.sbatch(
        "exec srun --cpus-per-task=4 sleep 300", nodelist="node-0", exclusive=True, gres="gpu:8"
    )
    step = ["squeue", "-h", "-s", "-j", job, "-o", "%i"]
    wait_until(lambda: f"{job}.0" in nodes.lab.ask(step), "the step of the job")
    reach = Reach(Srun(RemoteSettings(via="srun"), job, nodes.lab.env), fanout=4, patience=20)
    told = reach.run(["node-0"], ["sh", "-c", "echo $SLURM_JOB_ID.$CUDA_VISIBLE_DEVICES"], limit=20)
    answer = told["node-0"]
    assert isinstance(answer, Answered), answer
    assert answer.out == f"{job}.\n".encode()


def test_srun_that_takes_too_long_leaves_no_job(nodes: Nodes) -> None:
    """Ended here, it is ended on the node and in the queue as well."""
    settings = RemoteSettings(via="srun", connect_timeout=Duration(3))
    reach = Reach(Srun(settings, environ=nodes.lab.env), fanout=4, patience=4)
    told = reach.run(["node-0"], ["sleep", "600"], limit=10)["node-0"]
    assert isinstance(told, TimedOut), told
    wait_until(lambda: not nodes.lab.ask(["squeue", "-h"]), "an empty queue", 20.0)
    alive = "ps -e -o args= | grep '^sleep 600'"
    wait_until(lambda: not nodes.on("node-0", alive).stdout, "the end of the command", 20.0)


@pytest.mark.long
def test_srun_without_a_controller_asks_nobody(nodes: Nodes) -> None:
    """Slurm being down says nothing about a node."""
    nodes.lab.kill_controller()
    reach = Reach(Srun(RemoteSettings(), environ=nodes.lab.env), fanout=4, patience=20)
    told = reach.run(["node-0"], ["true"], limit=25)["node-0"]
    assert isinstance(told, NotAsked | TimedOut), told
