"""Stacks of a hung job on a real cluster: the odd rank is named, whatever else is broken."""

import gzip
import json
import pickle
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.stacks.parse.recorded import away, waiting
from tests.stacks.training import LINES, Training

REST = f"all_reduce (train.py:{LINES['rest']})"
ODD = f"load_batch (train.py:{LINES['load']})"


@pytest.fixture
def config(fresh: Lab, tmp_path: Path) -> Path:
    """A configuration of sentinel with ssh to the lab's nodes and a state of its own."""
    nodes = Nodes(fresh, tmp_path)
    options = f"-F {nodes.config} -o UserKnownHostsFile={nodes.known}"
    path = tmp_path / "sentinel.yaml"
    path.write_text(
        f"state: {tmp_path}/state\nremote: {{ssh_options: '{options}', connect_timeout: 3s}}\n"
        "checks: {root: {kind: fs, paths: [/]}}\nchannels: {out: {kind: console}}\n"
    )
    return path


def headline(done: Done) -> str:
    return done.stdout.splitlines()[0] if done.stdout else done.stderr


def test_the_one_of_64_ranks_that_is_elsewhere_is_named_first(fresh: Lab, config: Path) -> None:
    """Rank, node, function and line of the odd one; the others are one group, and counted.

    The evidence holds stacks, log, job and nodes, for its owner's eyes only.
    """
    training = Training(fresh, each=16, odd=37)
    done = training.stacks(config=config)
    assert (done.returncode, headline(done)) == (
        0,
        f"rank 37 (node-2) in {ODD}; 63 ranks in {REST}",
    )
    assert "    train (train.py:" in done.stdout
    assert "63 ranks 0-36,38-63, on node-[0-3]: python" in done.stdout
    place = Path(re.findall(r"saved in (\S+)", done.stderr)[0])
    assert place.parent == config.parent / "state/evidence"
    packed = place / "stacks.json.gz"
    groups = json.loads(gzip.decompress(packed.read_bytes()))["groups"]
    files = {f.name: f.read_text() for f in place.iterdir() if f != packed}
    files.pop("kernel.txt", None)  # is there where a kernel has warned
    assert sorted(files) == [
        "gpus.txt", "index.txt", "job.txt", "log.txt", "nodes.txt", "stacks.txt", "steps.txt",
    ]  # fmt: skip
    assert f"JobId={training.job}" in files["job.txt"]
    assert "NodeName=node-3" in files["nodes.txt"]
    assert [g["count"] for g in groups] == [1, 63]
    assert (place.stat().st_mode & 0o777, (place / "log.txt").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


def test_dumps_are_found_where_the_processes_were_told_to_write_them(
    fresh: Lab, config: Path, tmp_path: Path
) -> None:
    """The culprit of the flight recorder comes first, and goes into the evidence."""
    training = Training(fresh, odd=2, dumps=f"{tmp_path}/fr_")
    for rank in range(8):
        raw = away() if rank == 2 else waiting()
        raw["pg_config"]["0"]["ranks"] = str([*range(8)])
        (tmp_path / f"fr_{rank}").write_bytes(pickle.dumps(raw, 2))
    done = training.stacks(config=config)
    first = headline(done)
    assert first.startswith("flight recorder: rank 2 is not in the all_reduce (train.py:88)")
    assert first.endswith("in which 7 others wait")
    place = Path(re.findall(r"saved in (\S+)", done.stderr)[0])
    assert "rank 2 is not in" in (place / "flight-recorder.txt").read_text()


def test_a_rank_in_state_d_is_not_traced_and_its_path_is_told(fresh: Lab, config: Path) -> None:
    """What it waits for is told from the kernel's own bookkeeping, and the others are read."""
    fresh.fuse.hold("open")
    training = Training(fresh, odd=3, how="fuse")
    wait_until(fresh.fuse.withheld, "the open that never ends")
    training.on(3, f"kill -9 {training.pid(3)}")  # FUSE waits in state S until then
    done = training.stacks(config=config)
    first, rest = headline(done).split("; ")
    assert re.fullmatch(
        rf"rank 3 \(node-1\) blocked opening {fresh.fuse.point}/data \(state D( in \w+)?\)", first
    )
    assert rest.endswith(f"in {REST}")
    assert done.returncode == 0


@pytest.mark.long
def test_a_node_that_cannot_be_reached_is_named_with_its_ranks(fresh: Lab, config: Path) -> None:
    """The other nodes' ranks are told all the same, and the odd one among them."""
    training = Training(fresh, odd=1)
    fresh.cut_node(3)
    began = time.monotonic()
    done = training.stacks("--limit", "9s", config=config)
    assert time.monotonic() - began < 20
    first, second, rest = headline(done).split("; ", 2)
    assert first.startswith("node-3 (ranks 6-7) was not reached: ")
    assert second == f"rank 1 (node-0) in {ODD}"
    assert rest.endswith(f"in {REST}")
    assert done.returncode == 1


def test_a_rank_whose_process_has_died_is_named(fresh: Lab, config: Path) -> None:
    """Slurm's own layout of the step says who should be there, and on which node."""
    training = Training(fresh, odd=0)
    training.on(6, f"kill -9 {training.pid(6)}")
    told = wait_until(
        lambda: (
            "rank 6" in (said := headline(training.stacks("--no-save", config=config))) and said
        ),
        "rank 6 to be missed",
    )
    assert told.split("; ")[:2] == [
        "rank 6 (node-3) has no process any more",
        f"rank 0 (node-0) in {ODD}",
    ]


def test_ssh_is_the_second_way_where_srun_is_refused(fresh: Lab, config: Path) -> None:
    """Slurm lets nobody but its owner into a job; root has ssh."""
    training = Training(fresh, odd=5, user=fresh.user("bob"), python="/usr/bin/python3")
    done = training.stacks(config=config)
    first, rest = headline(done).split("; ")
    assert first == f"rank 5 (node-2) in {ODD}"
    assert rest.endswith(f"in {REST}")


def test_somebody_elses_job_is_refused_in_words(fresh: Lab, config: Path) -> None:
    """Who has no rights on it hears which, node by node, and that nothing was read."""
    training = Training(fresh, odd=5)
    done = training.stacks("--no-save", user=fresh.user("bob"))
    assert done.returncode == 1
    assert "was not reached" in headline(done)
    assert "Access/permission denied" in done.stdout
    assert "rank" not in headline(done)


def test_processes_that_forbid_it_are_unreadable_not_gone(fresh: Lab, config: Path) -> None:
    """A process that is not dumpable may be traced by root alone (prctl(2), ptrace(2))."""
    bob = fresh.user("bob")
    training = Training(fresh, how="closed", user=bob, python="/usr/bin/python3")
    done = training.stacks("--no-save", user=bob)
    assert "all 8 ranks not readable: no permission to read it as uid " in headline(done)
    assert done.returncode == 1


@pytest.fixture
def without_py_spy(fresh: Lab, config: Path) -> Iterator[Nodes]:
    """No node has a py-spy that runs; this machine keeps its own."""
    nodes = Nodes(fresh, config.parent)
    tool = Path(sys.executable).parent / "py-spy"
    for node in fresh.nodes:
        nodes.on(node.name, f"mount --bind /dev/null {tool}")
    yield nodes
    for node in fresh.nodes:
        nodes.on(node.name, f"umount {tool}")


def test_nodes_without_py_spy_are_told_as_such(
    fresh: Lab, config: Path, without_py_spy: Nodes
) -> None:
    """Ranks and nodes are known all the same."""
    training = Training(fresh)
    done = training.stacks("--no-save", config=config)
    assert headline(done) == "all 8 ranks not readable: py-spy is not installed on this node"
    assert "nothing can be said of a hang" in done.stdout
    assert done.returncode == 1


def test_a_job_that_ends_during_the_dump_is_told_as_ended(fresh: Lab, config: Path) -> None:
    """What py-spy then complains of says nothing about the job."""
    training = Training(fresh)
    tool = config.parent / "py-spy"
    real = Path(sys.executable).parent / "py-spy"
    tool.write_text(
        f"#!/bin/sh\ncase $1 in dump) scancel -s KILL {training.job}; sleep 1;; esac\n"
        f'exec {real} "$@"\n'
    )
    tool.chmod(0o755)
    done = training.stacks("--no-save", "--py-spy", str(tool), config=config)
    assert headline(done).startswith("the job ended")
    assert "Traceback" not in done.stdout + done.stderr


LAUNCHER = """\
import os, subprocess, sys
group = int(os.environ["SLURM_PROCID"])
children = []
for local in range(2):
    rank = group * 2 + local
    told = dict(RANK=rank, LOCAL_RANK=local, WORLD_SIZE=8, LOCAL_WORLD_SIZE=2, GROUP_RANK=group)
    env = {**os.environ, **{k: str(v) for k, v in told.items()}}
    children.append(subprocess.Popen([sys.executable, "-ISu", "rank.py"], env=env))
[child.wait() for child in children]
"""
RANK = """\
import os, time


def work():
    time.sleep(10_000)


def wait_for_batch():
    time.sleep(10_000)


if os.fork() == 0:
    work()
open("seated-" + os.environ["RANK"], "w").close()
wait_for_batch() if os.environ["RANK"] == "5" else work()
"""


def test_ranks_of_a_launcher_have_its_numbers_without_it_and_their_workers(
    fresh: Lab, config: Path
) -> None:
    """As torchrun does it: a launcher a node, ranks below it, forked workers below them."""
    (fresh.work / "launch.py").write_text(LAUNCHER)
    (fresh.work / "rank.py").write_text(RANK)
    job = fresh.sbatch(f"exec srun -n4 -N4 {sys.executable} -ISu launch.py", nodes=4)
    wait_until(lambda: len(list(fresh.work.glob("seated-?"))) == 8, "all ranks", 20.0)
    argv = [sys.executable, "-m", "sentinel", "stacks", job, "--no-save", "-c", str(config)]
    done = fresh.run(argv, limit=60)
    assert headline(done) == (
        "rank 5 (node-2) in wait_for_batch (rank.py:9); "
        "ranks 0-4,6-7 (node-[0-3]) in work (rank.py:5)"
    )


def test_of_an_array_one_element_is_named(fresh: Lab) -> None:
    """The array's own number is ambiguous while several run; an element's is not."""
    array = fresh.sbatch("sleep 600", array="0-1")
    fresh.wait_state(array, "RUNNING")
    argv = [sys.executable, "-m", "sentinel", "stacks", "--no-save"]
    both = fresh.run([*argv, array])
    assert both.returncode == 64
    assert f"{array} has 2 running jobs; name one: {array}_" in both.stderr
    one = fresh.run([*argv, f"{array}_1"])
    assert "runs sleep, not Python" in headline(one)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("4711", "Slurm knows no job 4711"),
        ("x; rm", "no job of the name 'x; rm' runs, and it is no id (see: squeue --me)"),
        ("held", "is PENDING: it has no processes"),
        ("over", "it has no processes"),
    ],
)
def test_a_job_without_processes_is_a_usage_error(fresh: Lab, job: str, said: str) -> None:
    """One line that says why; exit code 64."""
    if job == "held":
        job = fresh.sbatch("sleep 1", hold=True)
    if job == "over":
        job = fresh.sbatch("true")
        fresh.wait_state(job, "COMPLETED")
    done = fresh.run([sys.executable, "-m", "sentinel", "stacks", job])
    assert (done.returncode, done.stdout) == (64, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_native_frames_leave_every_rank_running(fresh: Lab, config: Path) -> None:
    """With --native each process is stopped for a moment, and only for that."""
    training = Training(fresh, each=1, odd=2)
    done = training.stacks("--native", "--no-save", config=config)
    assert f" from {ODD}; ranks 0-1,3 (node-[0-1,3]) in " in headline(done)
    states = [training.on(r, f"ps -o state= -p {training.pid(r)}").strip() for r in range(4)]
    assert states == ["S"] * 4


PARTS = """\
import os, time


def part():
    time.sleep(10_000)


open(f"part-{os.environ['SLURM_PROCID']}-{os.uname().nodename}", "w").close()
part()
"""


@pytest.fixture
def parts(fresh: Lab) -> str:
    """A heterogeneous job with one task on its first part's node and two on its second's."""
    (fresh.work / "part.py").write_text(PARTS)
    run = f"exec srun --het-group=0,1 {sys.executable} -ISu part.py"
    argv = ["sbatch", "--parsable", "--job-name=parts", "-N1", "-n1", ":", "-N2", "-n2"]
    job = fresh.ask(argv, stdin=f"#!/bin/sh\n{run}\n").strip()
    wait_until(lambda: len(list(fresh.work.glob("part-?-*"))) == 3, "all tasks", 20.0)
    return job


def test_each_part_of_a_heterogeneous_job_has_its_stacks(
    fresh: Lab, config: Path, parts: str
) -> None:
    """Its number alone is ambiguous; srun knows a part as a group of the first one's job."""
    argv = [sys.executable, "-m", "sentinel", "stacks", "-c", str(config)]
    both = fresh.run([*argv, parts])
    assert (both.returncode, both.stdout) == (64, "")
    assert f"{parts} has 2 running jobs; name one: {parts}+0, {parts}+1" in both.stderr
    told = [headline(fresh.run([*argv, f"{parts}+{part}"], limit=60)) for part in range(2)]
    assert told == ["rank 0 (node-0) in part (part.py:5)", "all 2 ranks in part (part.py:5)"]
    assert f"job-{parts}+1-" in " ".join(
        p.name for p in (config.parent / "state/evidence").iterdir()
    )
