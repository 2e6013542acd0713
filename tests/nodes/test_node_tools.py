"""Each script that runs on nodes gives the same answer with every awk, shell and userland there is.

Debian's and Ubuntu's default awk is mawk; Alpine and rescue images have busybox alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.actions import clean_up
from sentinel.checks.log import ask
from sentinel.checks.log.witness import judge_witnesses
from sentinel.core.node_answers import Answered
from sentinel.core.node_probe import StepTraces
from sentinel.nodes import script as probe_script
from sentinel.nodes.probe import ProbeRequest
from sentinel.nodes.probe.parse import parse
from sentinel.stacks import script as stacks_script
from sentinel.stacks.parse.read import packed_by_node, read_node, unpack_node
from tests.lab import needs
from tests.lab.cgroups import Cgroups, cgroup_tree

pytestmark = pytest.mark.root

AWKS = ("mawk", "gawk", "original-awk", "busybox awk")
USERLANDS = ("dash, GNU", "bash, GNU", "busybox, busybox")
BUSYBOX_TOOLS = ("grep", "sed", "tr", "sort", "head", "tail", "cut", "stat", "find", "cat", "id")

WORKER = int("0" + os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
JOB = f"21474{WORKER:02}701"
OTHER_JOB = f"21474{WORKER:02}702"
UID = 234500 + 10 * WORKER
"""Each worker's own: processes are looked for on the whole machine."""

TASK = "step_0/user/task_0"


class Tools:
    """A PATH in which one awk, one shell and one set of small tools come first."""

    def __init__(self, folder: Path, awk: str, userland: str) -> None:
        self.folder = folder
        shell, tools = userland.split(", ")
        self.link("awk", awk.split()[0])
        self.link("sh", shell)
        for name in BUSYBOX_TOOLS if tools == "busybox" else ():
            self.link(name, "busybox")

    def link(self, name: str, program: str) -> None:
        """Let the name start that program."""
        found = needs.find(program)
        if found is None:
            needs.skip(f"needs Debian's {program}")
        (self.folder / name).symlink_to(found)

    def run(self, argv: list[str], stdin: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run the command with these tools."""
        path = f"{self.folder}:{os.environ['PATH']}"
        argv = [str(self.folder / "sh") if argv[0] in ("sh", "/bin/sh") else argv[0], *argv[1:]]
        return subprocess.run(
            argv,
            input=stdin,
            env={**os.environ, **env, "PATH": path},
            capture_output=True,
            timeout=60,
            check=False,
            start_new_session=True,  # a script leaves out its own session
        )


@pytest.fixture(params=USERLANDS)
def userland(request: pytest.FixtureRequest) -> str:
    """A shell and the tools beside it."""
    return str(request.param)


@pytest.fixture(params=AWKS)
def tools(request: pytest.FixtureRequest, userland: str, tmp_path: Path) -> Tools:
    """Every awk with every userland."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return Tools(folder, request.param, userland)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cgroups]:
    """A real cgroup2 tree as slurmd makes it."""
    with cgroup_tree(tmp_path_factory.mktemp("cgroup")) as tree:
        yield tree


@pytest.fixture(scope="module")
def counted(processes: Cgroups) -> int:
    """A process of the job by its cgroup, in a task as slurmstepd starts it."""
    return processes.process(f"job_{JOB}/{TASK}", uid=UID)


@pytest.fixture(scope="module")
def inherited(processes: Cgroups) -> int:
    """A process of the same job by what it inherited alone."""
    return processes.process("", uid=UID, env={"SLURM_JOB_ID": JOB})


@pytest.fixture(scope="module")
def others(processes: Cgroups) -> int:
    """A process of another job that carries this one's id: a part of a heterogeneous job."""
    return processes.process(f"job_{OTHER_JOB}/{TASK}", uid=UID + 1, env={"SLURM_JOB_ID": JOB})


@pytest.fixture
def all_of_them(counted: int, inherited: int, others: int) -> tuple[int, int, int]:
    """All three, started once."""
    return counted, inherited, others


def test_clean_up_names_the_same_processes(tools: Tools, all_of_them: tuple[int, int, int]) -> None:
    """By its cgroup and by what it inherited; never what another job's cgroup holds."""
    counted, inherited, others = all_of_them
    argv = ["sh", "-s", "list", JOB, "1000", f"{UID},{UID + 1}", "1"]
    done = tools.run(argv, clean_up.read_clean_up_script())
    found = {tuple(line.split()[:2]) for line in done.stdout.decode().splitlines()}
    assert (done.returncode, done.stderr) == (0, b"")
    assert found == {("may", str(counted)), ("may", str(inherited))}
    assert str(others) not in done.stdout.decode()


def test_the_witness_counts_the_same_tasks(tools: Tools, all_of_them: tuple[int, int, int]) -> None:
    """Two processes that stand still; whoever sees them whole is sure."""
    done = tools.run([*ask._WITNESS_ARGV, JOB, JOB, "0"], ask.read_witness_script())
    lines = done.stdout.decode().splitlines()
    assert lines[0].split()[:4] == ["tasks", "0", "root", "2"], done.stderr
    assert "cut" not in lines


def test_the_probe_sees_the_same_steps(tools: Tools, all_of_them: tuple[int, int, int]) -> None:
    """What the kernel counts, and what processes inherited."""
    counted, inherited, _ = all_of_them
    wants, mark = ProbeRequest(parts=("steps",)), "5eed" * 8
    text = probe_script.text(wants, mark, 25.0, place=str(tools.folder.parent / "place"))
    done = tools.run(list(probe_script.ARGV), text)
    steps = parse(done.stdout, mark, wants).steps
    assert isinstance(steps, StepTraces), (steps, done.stderr)
    seen = {(one.pid, one.witness) for one in steps.processes if one.job == JOB}
    assert {(counted, "cgroup"), (inherited, "environment")} <= seen
    assert not steps.blind


def test_stacks_finds_the_same_processes(
    tools: Tools, all_of_them: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without slurmd they are found by what they inherited."""
    _, inherited, others = all_of_them
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")
    text = stacks_script.script_text(stacks_script.ScriptOptions(job_id=JOB), "MARK", 8.0)
    done = tools.run(list(stacks_script.ARGV), text.encode())
    (data,) = packed_by_node(done.stdout, "MARK").values()
    told = read_node(unpack_node(data), "n1")
    assert {process.pid for process in told.processes} == {inherited, others}


# -- a tool that dies half-way, or a node without room ---------------------------------------


def stand_in(folder: Path, tool: str, words: str, does: str) -> None:
    """Let the tool do this where its arguments hold the words, else what it always does."""
    real = shutil.which(tool)
    path = folder / tool
    path.write_text(f'#!/bin/sh\ncase "$*" in {words}) {does} ;; esac\nexec {real} "$@"\n')
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("tool", "words", "does"),
    [
        ("grep", "*SLURM_JOB_ID*", "kill -9 $$"),
        ("grep", "*SLURM_JOB_ID*", "exec sleep 30"),
        ("grep", "*slurmstepd*", "kill -9 $$"),
        ("sed", "*inherited*", "kill -9 $$"),
        ("awk", "*sluid*", "kill -9 $$"),
        ("timeout", "*grep*", "exit 127"),
    ],
)
def test_a_search_that_was_cut_accuses_no_node(
    tmp_path: Path, tool: str, words: str, does: str
) -> None:
    """One node is healthy and busy, of the other the search was cut: neither is the culprit."""
    stand_in(tmp_path, tool, words, does)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [*ask._WITNESS_ARGV, JOB + "9", JOB + "9", "0"],
        input=ask.read_witness_script(),
        env={**os.environ, "PATH": path},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"cut\n" in done.stdout
    busy = b"tasks 0 root 8 0 1000 8 0 3400 3 100\n"
    answers = {"n0": Answered(code=0, out=done.stdout), "n1": Answered(code=0, out=busy)}
    testimony = judge_witnesses(answers, "alice", False)
    assert (testimony.nodes, testimony.confirms) == ((), False)
    gone = Answered(code=0, out=b"tasks 0 root 0 0 0 0 0 0 3 100\n")  # a whole search: a control
    assert judge_witnesses({"n0": gone, "n1": answers["n1"]}, "alice", False).nodes == ("n0",)


FULL = """
mount --make-rprivate / && mount -t tmpfs -o size=512k,mode=1777 tmpfs {full}
[ {others} = roomy ] || for place in /tmp /dev/shm /var/tmp; do
  mount -t tmpfs -o size=512k,mode=1777 tmpfs $place && head -c $((512*1024 - {free}*1024)) /dev/zero >$place/fill
done
head -c $((512*1024 - {free}*1024)) /dev/zero >{full}/fill 2>/dev/null
exec /bin/sh -c 'text=$(cat); eval "$text"; main' sentinel
"""


@pytest.mark.parametrize("others", ["roomy", "full"])
@pytest.mark.parametrize("free", [0, 8, 12, 200])
def test_no_rank_is_lost_where_there_is_no_room(
    processes: Cgroups, monkeypatch: pytest.MonkeyPatch, free: int, others: str
) -> None:
    """Another place is tried; where none has room, each rank that could not be read is named."""
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")
    job = f"214{WORKER:02}{free:03}{len(others)}"
    ranks = [processes.process("", env={"SLURM_JOB_ID": job, "RANK": str(n)}) for n in range(4)]
    full = Path("/mnt")
    text = stacks_script.script_text(stacks_script.ScriptOptions(job_id=job), "MARK", 8.0)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", FULL.format(full=full, free=free, others=others)],
        input=text.encode(),
        env={"PATH": os.environ["PATH"], "TMPDIR": str(full)},
        start_new_session=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 73:
        assert others == "full"
        assert b"no place for temporary files" in done.stderr
        return
    (data,) = packed_by_node(done.stdout, "MARK").values()
    told = read_node(unpack_node(data), "n1")
    assert {process.pid for process in told.processes} == set(ranks)
    read = [process.env.get("RANK") for process in told.processes if process.env]
    unread = [process.why for process in told.processes if not process.env]
    assert len(read) + len(unread) == len(ranks)
    assert others == "full" or not unread
    assert all("no space left" in why for why in unread)


def test_the_search_for_processes_that_was_ended_is_no_short_list(tmp_path: Path) -> None:
    """grep over /proc/*/environ waited for a process in state D and was ended by its limit."""
    stand_in(tmp_path, "grep", "*SLURM_JOB_ID*", "exec sleep 30")
    text = stacks_script.script_text(stacks_script.ScriptOptions(job_id=JOB), "MARK", 8.0)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        list(stacks_script.ARGV),
        input=text.encode(),
        env={**os.environ, "PATH": path},
        capture_output=True,
        timeout=60,
        check=True,
    )
    (data,) = packed_by_node(done.stdout, "MARK").values()
    with pytest.raises(Exception, match="the search for the job's processes on n1 was cut"):
        read_node(unpack_node(data), "n1")
