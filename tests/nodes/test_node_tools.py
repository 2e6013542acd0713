"""Each script that runs on nodes gives the same answer with every awk, shell, ps and userland there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sentinel
from sentinel.checks.log import ask
from sentinel.checks.log.witness import judge_witnesses
from sentinel.core.errors import CannotTell
from sentinel.core.node_answers import Answered
from sentinel.stacks import script as stacks_script
from sentinel.stacks.parse.read import packed_by_node, read_node, unpack_node
from tests.lab.cgroups import Cgroups, cgroup_tree
from tests.lab.waiting import wait_until
from tests.nodes.columns import COLUMNS, USUAL_COLUMNS, Column, Tools, make_german
from tests.nodes.node_scripts import SCRIPTS, Scene, plant

pytestmark = pytest.mark.root

WORKER = int("0" + os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
JOB = f"21474{WORKER:02}701"
OTHER_JOB = f"21474{WORKER:02}702"
UID = 234500 + 10 * WORKER
"""Each worker's own: processes are looked for on the whole machine."""

TASK = "step_0/user/task_0"
OWN_SYSTEMD = f"../user.slice/user-{UID}.slice/user@{UID}.service/app.slice"
DELEGATED = f"../notebook-{WORKER}.service"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cgroups]:
    """A real cgroup2 tree as slurmd makes it."""
    with cgroup_tree(tmp_path_factory.mktemp("cgroup")) as tree:
        yield tree


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locale, made once."""
    return make_german(tmp_path_factory.mktemp("locales"))


@pytest.fixture(scope="module")
def scene(processes: Cgroups, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The processes, started once for all columns."""
    fifo = tmp_path_factory.mktemp("fifo") / "pipe"
    os.mkfifo(fifo)
    program = shutil.copy("/usr/bin/sleep", fifo.parent / "slurmstepd-wlm")
    daemon, poser = (
        subprocess.Popen([f"slurmstepd: [{JOB}.0]", "600"], executable=path, env={})
        for path in (program, "/usr/bin/sleep")
    )
    opening = subprocess.Popen(["cat", str(fifo)], env={}, stdout=subprocess.DEVNULL)
    wait_until(lambda: _is_opening(opening.pid), "cat in openat(2)")
    yield Scene(
        job=JOB,
        uid=UID,
        counted=processes.process(f"job_{JOB}/{TASK}", uid=UID),
        inherited=processes.process("", uid=UID, env={"SLURM_JOB_ID": JOB}),
        others=(_start_other(processes), _start_other(processes)),
        strangers=(_start_stranger(processes, OWN_SYSTEMD), _start_stranger(processes, DELEGATED)),
        daemon=daemon.pid,
        opening=opening.pid,
        fifo=fifo,
    )
    for child in (daemon, poser, opening):
        child.kill()
        child.wait()


def _start_other(processes: Cgroups) -> int:
    """A component of a heterogeneous job carries the first one's id."""
    return processes.process(f"job_{OTHER_JOB}/{TASK}", uid=UID + 1, env={"SLURM_JOB_ID": JOB})


def _start_stranger(processes: Cgroups, place: str) -> int:
    """A folder of the user's own has any name: below user.slice, and in a service that is theirs."""
    pid = processes.process(f"{place}/x.slice/slurmstepd.scope/job_{JOB}/{TASK}", uid=UID)
    if place == DELEGATED:
        os.chown(processes.scope / place, UID, UID)
    return pid


def _is_opening(pid: int) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text().startswith(("wait_for_partner", "fifo_open"))


def _mark_nightly(column: Column) -> Any:
    marks = () if column in USUAL_COLUMNS else (pytest.mark.nightly,)
    return pytest.param(column, id=str(column), marks=marks)


@pytest.fixture(params=[_mark_nightly(column) for column in COLUMNS])
def tools(request: pytest.FixtureRequest, german: Path, tmp_path: Path) -> Tools:
    """Every column."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return Tools(folder, request.param, german)


@pytest.fixture(autouse=True)
def no_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks are found by a tool of another test; here the processes are what counts."""
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gives_the_same_answer(tools: Tools, scene: Scene, name: str) -> None:
    """In every column; what a node cannot do is said by name."""
    SCRIPTS[name].check(tools, scene, lambda text: text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_fault_in_a_script_is_noticed(tools: Tools, scene: Scene, name: str) -> None:
    """In every column, but where the script cannot see any process and says that."""
    script = SCRIPTS[name]
    if script.needs_procps and tools.column.ps == "busybox":
        return
    for old, new in script.faults:
        with pytest.raises((AssertionError, StopIteration, ValueError, KeyError, CannotTell)):
            script.check(tools, scene, plant(old, new))


def test_every_script_is_in_the_table() -> None:
    """Whatever shell text is new under sentinel/ gets a row."""
    package = Path(sentinel.__file__).parent
    found = {str(path.relative_to(package)) for path in package.rglob("*.sh")}
    assert found == set(SCRIPTS)


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
        ("grep", "*slurmstepd*cgroup*", "kill -9 $$"),
        ("grep", "*slurmstepd*comm*", "kill -9 $$"),
        ("sed", "*comm*", "kill -9 $$"),
        ("awk", "*sluid*", "kill -9 $$"),
        ("awk", "*untracked*", "kill -9 $$"),
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
    busy = b"stepped\ntasks 0 root 8 0 1000 8 0 3400 3 100\n"
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
    ranks = [
        processes.process(f"job_{job}/step_0/user/task_{n}", env={"RANK": str(n)}) for n in range(4)
    ]
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
    """slurmd does not answer, and grep over /proc/*/cgroup was killed."""
    stand_in(tmp_path, "grep", "*slurmstepd*cgroup*", "kill -9 $$")
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
    with pytest.raises(Exception, match="n1 does not tell all processes of the job"):
        read_node(unpack_node(data), "n1")
