"""Kinds that ask Slurm's commands: squeue, scontrol, sacct."""

import os
from contextlib import suppress

from sentinel.alerting.observations import RunOutcome
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain
from sentinel.checks.chain import ChainCheck
from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.drained import DrainedCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.job import JobCheck
from sentinel.checks.log import Log
from sentinel.checks.nodes import NodesCheck
from sentinel.checks.slurm import SlurmCheck
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from tests.checks.cannot_tell.probes import GPUS, probe
from tests.checks.cannot_tell.world import RECORD, Case, World
from tests.slurm.answers import NONCE, listed, row

CONFIG = """\
AccountingStorageType   = accounting_storage/slurmdbd
BOOT_TIME               = 1700000000
ClusterName             = lab
MinJobAge               = 300 sec
NEXT_JOB_ID             = 900
SlurmUser               = slurm(64030)
SlurmctldHost[0]        = ctl
SLURM_VERSION           = 25.05.1
"""
FIELDS = "JobIDRaw JobID State ExitCode Start End NodeList Reason JobName User Partition Submit NNodes AllocTRES FailedNode\n"
PARTITIONS = "PartitionName=main TotalNodes={count} Nodes=n[1-{count}] State=UP\n"
BUSY = "RECORD_OF_A_NEW_FORM§.\n"


def queue(*rows: bytes) -> str:
    return listed(*rows).replace(NONCE.encode(), "§".encode()).decode()


def runs(*rows: str) -> str:
    """What `squeue -O` prints: the header, then a row for each."""
    header = "§|".join(["JOBID"] + ["X"] * 22) + "§.\n"
    more = ("0:0", "1", "1", "cpu=8", "N/A", "N/A", "N/A", "N/A")  # DerivedEC, and the size
    fields = ([*row.split()[:-1], *more, row.split()[-1]] for row in rows)
    return header + "".join("§|".join(one) + "§.\n" for one in fields)


def job(state: bytes, **more: bytes) -> bytes:
    return row(state=state, user=b"root", nodes=b"n1", count=b"1", **more)


def nodes(*states: str, gres: str = "gpu:8", more: str = "") -> str:
    """`scontrol show node`, a line each."""
    return "".join(
        f"NodeName=n{at} Arch=x86_64 CPUTot=8 Gres={gres} NodeAddr=n{at} Version=25.05.1 "
        f"State={state} ThreadsPerCore=1 Partitions=main BootTime=1700000000 {more}\n"
        for at, state in enumerate(states, 1)
    )


def slurm(world: World, *, count: int = 2) -> None:
    """A slurmctld and a slurmdbd in which nothing happens."""
    world.says("scontrol", CONFIG, when="show config", newer=CONFIG.replace("25.05", "99.11"))
    world.says(
        "scontrol", PARTITIONS.format(count=count), when="show partition", newer="Partition main\n"
    )
    world.says("sacct", FIELDS, when="--helpformat", newer=FIELDS)
    world.says("sacct", "", when="--delimiter", newer="x")
    world.says("squeue", runs(), when="STDOUT:", newer=BUSY)


FAILED = "15 15 FAILED NonZeroExitCode n1 1790000000 1790000100 1:0 15 train root main 1790000000 /w /w/o"
OTHER = FAILED.replace("15", "14").replace("train", "other").replace("FAILED", "COMPLETED")


def listed_now(world: World, state: bytes, **more: bytes) -> None:
    """The training last of two."""
    other = job(b"RUNNING", id=b"14", job=b"14", array=b"14", name=b"other")
    new = queue(other, job(b"HIBERNATING", **more))
    world.says("squeue", queue(other, job(state, **more)), when="%o", newer=new, record="§.\n")


ALIVE = FAILED.replace("FAILED NonZeroExitCode", "RUNNING None")


def training_runs(world: World, **more: bytes) -> None:
    """A training behind another job, in the queue and in all that slurmctld remembers."""
    slurm(world)
    world.says("squeue", runs(OTHER, ALIVE), when="STDOUT:", newer=BUSY)
    listed_now(world, b"RUNNING", **more)


def job_waits(world: World) -> RunOutcome:
    slurm(world)
    listed_now(world, b"PENDING", reason=b"BadConstraints")
    return world.look("job", JobCheck(name="train", users=["root"]))


def job_failed(world: World) -> RunOutcome:
    """It ran at the first look and is gone at the second."""
    check = JobCheck(name="train", users=["root"])
    before = World(world.folder)
    slurm(before)
    listed_now(before, b"RUNNING")
    seen = before.look("job", check)
    assert seen.report is not None
    world.memory = seen.report.memory or {}
    slurm(world)
    other = queue(job(b"RUNNING", id=b"14", job=b"14", array=b"14", name=b"other"))
    world.says("squeue", other, when="%o", newer=BUSY, record="§.\n")
    new = runs(OTHER, FAILED.replace("FAILED", "SHELVED"))
    in_books = "§".join(
        [
            "15",
            "15",
            "FAILED",
            "1:0",
            "1790000000",
            "1790000100",
            "n1",
            "None",
            "train",
            "root",
            "main",
            "1790000000",
            "1",
            "cpu=1",
            "",
            "15",
        ]
    )
    if world.target.startswith("sacct"):
        world.says(
            "sacct",
            f"{in_books}§\n",
            when="--delimiter",
            newer=in_books.replace("FAILED", "SHELVED") + "§\n",
        )
        world.says("squeue", runs(OTHER), when="STDOUT:", newer=new)
    else:
        world.says("squeue", runs(OTHER, FAILED), when="STDOUT:", newer=new, record="§.\n")
    return world.look("job", check)


def job_output(world: World) -> RunOutcome:
    world.file(world.home / "o", "Traceback\nCUDA error\n", newer="\x00\x01")
    return job_failed(world)


def log_hangs(world: World, target: str) -> RunOutcome:
    slurm(world)
    path = world.home / "train.log"
    ended = "step 1 loss: 2.0\nstep 2 loss: nan\nstep 3 loss: nan\nstep 4 loss: nan\n"
    world.file(path, ended, newer="step=IV; verlust=sehr groß\n")
    started = b"%d" % (world.now - 7200)
    training_runs(world, started=started)
    if target != "train.log" or world.fault != "a hang":
        with suppress(FileNotFoundError):
            os.utime(path, (world.now - 3600,) * 2)
    world.node(probe("gpus", GPUS), newer="MARK begin 2\nMARK end\n")
    return world.look(
        "log", Log(job="train", users=["root"], path=FilePath(str(path))), one_shot=True
    )


def checkpoint_late(world: World) -> RunOutcome:
    slurm(world)
    folder = world.tree(world.home / "ckpt", "step100/a", "step200/a", age=9 * 3600)
    training_runs(world, started=b"%d" % (world.now - 10 * 3600))
    return world.look(
        "checkpoint",
        CheckpointCheck(path=FilePath(str(folder)), job="train", users=["root"]),
        one_shot=True,
    )


def nodes_out(world: World) -> RunOutcome:
    slurm(world)
    new = nodes("IDLE", "ASLEEP+WAKING")
    world.says("scontrol", nodes("IDLE", "DOWN"), when="show node", newer=new)
    return world.look("nodes", NodesCheck())


def nodes_completing(world: World) -> RunOutcome:
    """It does not end a job; which task keeps it is asked of the node."""
    before = World(world.folder)
    states = nodes("IDLE", "IDLE+COMPLETING")
    for one in (before, world):
        slurm(one)
        one.says("scontrol", states, when="show node", newer=nodes("IDLE", "ASLEEP"))
        one.node(probe("blocked", ""), newer="MARK begin 2\nMARK end\n")
    check = NodesCheck(completing=Duration(0.001))
    seen = before.look("nodes", check)
    assert seen.report is not None
    world.memory = seen.report.memory or {}
    return world.look("nodes", check)


DRAINED = "Reason=Kill task failed [root@1790000000]"


def drained(world: World) -> RunOutcome:
    slurm(world)
    good = nodes("IDLE") + nodes("IDLE", "IDLE+DRAIN", more=DRAINED).splitlines(keepends=True)[1]
    world.says("scontrol", good, when="show node", newer=nodes("IDLE", "RESTING", more=DRAINED))
    world.node(probe("gpus", GPUS), newer="MARK begin 2\nMARK end\n")
    return world.look("drained", DrainedCheck())


def controller(world: World) -> RunOutcome:
    up = "Slurmctld(primary) at ctl is DOWN\nSlurmctld(backup) at ctl2 is DOWN\n"
    world.says("scontrol", up, when="ping", newer="Slurmctld(leader) at ctl is SLEEPING\n")
    world.says("scontrol", CONFIG, when="show config", newer=CONFIG)
    world.says("munge", "", when="", newer="")
    return world.look("slurm", SlurmCheck())


def munge(world: World) -> RunOutcome:
    """scontrol cannot prove who asks."""
    world.says("munge", "", newer="munge 9\n", code=1)
    (world.bin / "scontrol").write_text(
        "#!/bin/sh\necho 'munge: authentication failed' >&2; exit 1\n"
    )
    (world.bin / "scontrol").chmod(0o755)
    return world.look("slurm", SlurmCheck())


def chain_links(world: World) -> RunOutcome:
    """One of three links is gone."""
    slurm(world)
    place = ChainFolder(str(world.home / "chain"))
    chain = Chain(name="s", every=600, command=("sentinel",), revision="r")
    place.install_files(chain, "")
    *_, last = [
        job(b"PENDING", id=b"%d" % n, job=b"%d" % n, array=b"%d" % n, name=name.encode())
        for n, name in enumerate(chain.strand_names[1:], 1)
    ]
    some = [job(b"PENDING", name=chain.strand_names[1].encode()), last]
    new = queue(job(b"HIBERNATING", name=b"s-a"), *some)
    world.says("squeue", queue(*some), when="%o", newer=new, record="§.\n")
    return world.look("chain", ChainCheck(dir=FilePath(place.folder)))


def gpu_gres(world: World) -> RunOutcome:
    """Slurm says nine GPUs, the nodes have eight."""
    slurm(world)
    new = nodes("IDLE", "IDLE", gres="accelerator(9)")
    world.says("scontrol", nodes("IDLE", "IDLE", gres="gpu:9"), when="show node", newer=new)
    world.node(probe("gpus", GPUS), newer="MARK begin 2\nMARK end\n")
    return world.look("gpu", GpuCheck(nodes="all", signals=False))


NO_END = "Slurm's list of nodes has no end mark, and there is no count to compare it with (TotalNodes counts FUTURE nodes, which are not listed); nodes named by `nodes` are missed"
CASES = [
    Case(kind="job", source=0, asked="squeue %o", truth="its job waits for a person", look=job_waits),
    Case(kind="job", source=0, asked="squeue STDOUT:", truth="its job FAILED", look=job_failed),
    Case(kind="job", source=0, asked="sacct --delimiter", truth="its job FAILED", look=job_failed),
    Case(kind="job", source=1, asked="o", truth="its job FAILED", look=job_output),
    Case(kind="log", source=0, asked="train.log", truth="no line for an hour, the loss is nan", look=lambda w: log_hangs(w, "train.log")),
    Case(kind="log", source=1, asked="squeue %o", truth="no line for an hour, the loss is nan", look=lambda w: log_hangs(w, "")),
    Case(kind="log", source=2, asked="ssh", truth="no line for an hour, the loss is nan", look=lambda w: log_hangs(w, "")),
    Case(kind="checkpoint", source=0, asked="folder", truth="none for nine hours", look=checkpoint_late),
    Case(kind="checkpoint", source=1, asked="squeue %o", truth="none for nine hours", look=checkpoint_late),
    Case(kind="nodes", source=0, asked="scontrol show node", truth="a node is DOWN", look=nodes_out, believed={RECORD: NO_END}),
    Case(kind="nodes", source=1, asked="ssh", truth="a node does not end a job", look=nodes_completing),
    Case(kind="drained", source=0, asked="scontrol show node", truth="a node is drained", look=drained, believed={RECORD: NO_END}),
    Case(kind="drained", source=1, asked="ssh", truth="a node is drained", look=drained),
    Case(kind="slurm", source=0, asked="scontrol ping", truth="slurmctld does not answer", look=controller),
    Case(kind="slurm", source=0, asked="munge", truth="munged does not answer", look=munge),
    Case(kind="chain", source=0, asked="squeue %o", truth="a link is gone", look=chain_links),
    Case(kind="gpu", source=1, asked="scontrol show node", truth="a GPU is missing", look=gpu_gres),
]  # fmt: skip
