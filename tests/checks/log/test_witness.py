"""Rules of second witnesses: what nodes say, and the script that asks them, on this host."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from sentinel.checks.log.ask import (
    HeartbeatFile,
    ask_node_witnesses,
    join_job_names,
    judge_heartbeat,
    read_witness_script,
    resolve_peer_nodes,
)
from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.witness import (
    Testimony,
    WitnessAnswer,
    judge_witnesses,
    merge_testimonies,
    parse_witness_answer,
)
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job
from sentinel.core.node_answers import Answer, Answered, Refused, TimedOut
from sentinel.nodes.connect import connect
from sentinel.nodes.settings import RemoteSettings
from sentinel.testing import START
from tests.lab.cgroups import Cgroups

BUSY = "tasks 0 root 8 0 1000 8 0 3400 3 100\n"
STEPPED = f"stepped\n{BUSY}"
STILL = "tasks 0 root 8 0 1000 8 0 1003 3 100\n"
BLOCKED = "tasks 0 root 8 2 1000 8 2 1003 3 100\n"
EMPTY = "tasks 0 root 0 0 0 0 0 0 3 100\n"
UNSEEN = "tasks 1000 bob 0 0 0 0 0 0 3 100\n"
WAITS = "gpu 100, 112.5, 700.00\n" * 8
COMPUTES = "gpu 98, 610.00, 700.00\n" * 8
HALF = "gpu 98, 610.00, 700.00\n" * 4 + "gpu 100, 112.00, 700.00\n" * 4
IDLE = "gpu 0, 70.00, 700.00\n" * 8
UNTOLD = "gpu 100, [N/A], [N/A]\n"


def said(*texts: str, phase: bool = False) -> Testimony:
    answers: dict[str, Answer] = {
        f"n{number}": Answered(code=0, out=text.encode()) for number, text in enumerate(texts)
    }
    return judge_witnesses(answers, "alice", phase)


@pytest.mark.parametrize(
    ("text", "phase", "words", "verdict"),
    [
        pytest.param(
            WAITS, False, "GPUs 100% busy at 112 of 700 W: they wait, and compute nothing",
            "confirms", id="a waiting collective spins at little power",
        ),
        pytest.param(WAITS, True, "GPUs 100% busy at 112 of 700 W", "", id="so does a checkpoint"),
        pytest.param(
            COMPUTES, False, "GPUs 98% busy at 610 of 700 W: they compute", "contradicts",
            id="full power is work",
        ),
        pytest.param(
            COMPUTES, True, "GPUs 98% busy at 610 of 700 W: they compute", "",
            id="but says nothing in a phase",
        ),
        pytest.param(HALF, False, "GPUs 99% busy at 361 of 700 W", "",
                     id="half of them may belong to others"),
        pytest.param(IDLE, False, "GPUs 0% busy", "confirms", id="idle"),
        pytest.param(UNTOLD, False, "GPUs 100% busy", "", id="power is not told"),
        pytest.param("gpu rubbish\ntasks x\n\xff", False, "", "", id="rubbish"),
        pytest.param(
            STILL, False, "the processor time of its tasks stands still", "confirms", id="still"
        ),
        pytest.param(BUSY, False, "its tasks use 8.0 cores", "", id="spinning clears nobody"),
    ],
)  # fmt: skip
def test_what_a_witness_is_worth(text: str, phase: bool, words: str, verdict: str) -> None:
    """Each says only what it can know."""
    found = said(text, phase=phase)
    assert found.words == words
    assert found.confirms == (verdict == "confirms")
    assert found.contradicts == (verdict == "contradicts")


def test_a_node_without_processes_is_named_where_others_have_some() -> None:
    """The rank there has died; a witness that may not look says nothing. A batch script without a step
    runs on one node, and may never have begun anything on the others."""
    assert said(STEPPED, EMPTY).words.endswith("no process of the job is left on n1")
    assert said(STEPPED, EMPTY).confirms
    assert said(BUSY, EMPTY) == said(BUSY)
    assert "left" not in said(STEPPED, UNSEEN).words
    assert "left" not in said(EMPTY, EMPTY).words


def test_state_d_is_named_and_takes_the_doubt_away() -> None:
    """GPUs at full power elsewhere do not clear a node that waits for a disk."""
    found = said(COMPUTES + BUSY, COMPUTES + BLOCKED)
    assert found.words.endswith("processes in state D on n1")
    assert not found.contradicts


def test_a_node_that_does_not_answer_is_named_where_others_do() -> None:
    """One that refuses us has said nothing about the job."""
    answers: dict[str, Answer] = {
        "n0": Answered(code=0, out=BUSY.encode()), "n1": TimedOut("late"), "n2": Refused("keys"),
    }  # fmt: skip
    assert judge_witnesses(answers, "alice", False).words.endswith("n1 does not answer")
    assert judge_witnesses({"n1": TimedOut("late")}, "alice", False) == Testimony()


def test_many_nodes_are_counted_after_the_first() -> None:
    """One line stays one line."""
    assert said(STEPPED, *[EMPTY] * 9).words.endswith("left on n1, n2, n3, n4 and 5 more nodes")


def test_witnesses_that_disagree_decide_nothing() -> None:
    """Both are shown."""
    yes, no = Testimony(words="a", confirms=True), Testimony(words="b", contradicts=True)
    assert merge_testimonies(yes, no) == Testimony(words="a; b")
    assert merge_testimonies(Testimony(), no) == no


@pytest.mark.parametrize(
    ("seconds", "known", "words"),
    [
        (0, True, "heartbeat moved 0s ago"),
        (1199, True, "heartbeat moved 19m 59s ago"),
        (1200, True, "heartbeat stands still for 20m"),
        (1200, False, "heartbeat seen for the first time"),
    ],
)
def test_a_heartbeat_is_judged_by_this_hosts_clock(seconds: float, known: bool, words: str) -> None:
    """From look to look, as the log is."""
    beat = HeartbeatFile(mark="m", since=START)
    found = judge_heartbeat(beat, known, shift_instant(START, seconds), 1200)
    assert found.words == words
    assert found.contradicts == (seconds < 600)
    assert found.confirms == (known and seconds >= 1200)


def test_an_address_becomes_the_name_of_a_node_by_the_hosts_own_lookup() -> None:
    """As getent knows it; what nobody knows stays as it was."""
    files = LogFiles(5, 20, {})
    assert resolve_peer_nodes(files, ["127.0.0.1"], ["localhost", "other"]) == {
        "127.0.0.1": "localhost"
    }
    assert resolve_peer_nodes(files, ["192.0.2.77"], ["localhost"]) == {"192.0.2.77": ""}
    assert resolve_peer_nodes(files, [], ["localhost"]) == {}


@contextmanager
def task(job: str, code: str) -> Iterator[int]:
    """A real process that carries the id of a job."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"print('up', flush=True)\n{code}"],
        env={**os.environ, "SLURM_JOB_ID": job},
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def named(job: str, name: str = "") -> Job:
    rest = ("train", "root", "prod", "RUNNING", "", "localhost", 1, "", None, None, None, None)
    return Job(name or job, job, job, "", *rest)


def ask(job: str) -> Testimony:
    local = connect(RemoteSettings(via="local"))
    return ask_node_witnesses(local, ["localhost"], named(job), {}, phase=False, limit=20)


def seen(job: Job, sluids: dict[str, str]) -> WitnessAnswer:
    """What the script says of this host."""
    argv = ["/bin/sh", "-s", *join_job_names(job, sluids), "0", job.user]
    done = subprocess.run(
        argv, input=read_witness_script(), capture_output=True, timeout=60, check=True
    )
    return parse_witness_answer(done.stdout, "root")


TASK = "step_0/user/task_0"


def test_real_processes_that_wait_stand_still(cgroups: Cgroups) -> None:
    """Found by the job that the kernel counts them to, and by no other's."""
    job = str(4_000_000 + os.getpid())
    cgroups.process(f"job_{job}/{TASK}")
    with task("none", "while True: pass") as spins:
        cgroups.move(spins, f"job_{job}1/{TASK}")
        found = ask(job)
    assert found.words.startswith("the processor time of its tasks stands still")
    assert found.confirms


@pytest.mark.root
def test_an_id_that_a_process_inherited_is_no_witness() -> None:
    """Anybody may export it, the job's own user in another window too."""
    job = str(4_200_000 + os.getpid())
    with task(job, "import time; time.sleep(60)"):
        node = seen(named(job), {}).tasks
    assert node is not None
    assert (node.count, node.sure) == (0, True)


@pytest.mark.parametrize(("user", "count", "sure"), [("root", 1, True), ("nobody", 0, False)])
def test_a_task_is_of_the_jobs_user(cgroups: Cgroups, user: str, count: int, sure: bool) -> None:
    """What is another user's in it (a container's, sudo's) is neither the job's nor nobody's."""
    job = str(4_400_000 + os.getpid())
    cgroups.process(f"job_{job}/{TASK}")
    node = seen(structs.replace(named(job), user=user), {}).tasks
    assert node is not None
    assert (node.count, node.sure) == (count, sure)


@pytest.mark.parametrize(
    "place", ["x.slice/slurmstepd.scope/job_{0}", "slurm/uid_0/job_{0}", "job_{0}"]
)
def test_a_folder_of_somebody_else_is_no_witness(cgroups: Cgroups, place: str) -> None:
    """A rootless container, or a service that is delegated to a user, has folders of any name. They
    leave no doubt either: a user could keep everybody from being told."""
    job, theirs = str(4_600_000 + os.getpid()), cgroups.scope.parent / "theirs.service"
    cgroups.process(f"../theirs.service/{place.format(job)}/{TASK}")
    os.chown(theirs, 4242, 4242)
    node = seen(named(job), {}).tasks
    assert node is not None
    assert (node.count, node.sure) == (0, True)


LISTPIDS = """#!/bin/sh
[ "$1 $2" = "listpids {job}" ] || exit 9
{then}
echo "PID      JOBID    STEPID   LOCALID GLOBALID"
echo "{pid}    {job}    0        0       0"
echo "{extern} {job}    extern   0       -"
echo "{extern} {job}1   0        -       -"
"""


@pytest.mark.root
@pytest.mark.parametrize(
    ("title", "then", "count", "sure"),
    [
        ("slurmstepd: [{job}.0]", "", 1, True),
        ("slurmstepd: [{job}.0]", "exit 1", 0, False),
        ("slurmstepd: [{job}1.0]", "exit 1", 0, True),
    ],
)
def test_where_slurm_uses_no_cgroups_slurmstepd_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str, then: str, count: int, sure: bool
) -> None:
    """proctrack/linuxproc. Where it does not answer, nobody knows; where there is none of the job,
    nothing of it is left. The words of `scontrol listpids`: src/scontrol/info_job.c."""
    job = str(4_800_000 + os.getpid())
    program = shutil.copy("/usr/bin/sleep", tmp_path / "slurmstepd")
    tool = tmp_path / "scontrol"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with task("none", "import time; time.sleep(60)") as pid, task("none", "input()") as extern:
        tool.write_text(LISTPIDS.format(job=job, then=then, pid=pid, extern=extern))
        tool.chmod(0o755)
        daemon = subprocess.Popen([title.format(job=job), "60"], executable=program)
        try:
            answer = seen(named(job), {})
        finally:
            daemon.kill()
            daemon.wait()
    assert answer.tasks is not None
    assert (answer.tasks.count, answer.tasks.sure) == (count, sure)
    assert answer.stepped == bool(count)


@pytest.fixture
def groups() -> Iterator[Path]:
    """A folder of real cgroups; what is made in it goes again."""
    first, second = Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")
    top = (first if first.is_dir() else second) / f"sentinel-test-{os.getpid()}"
    top.mkdir()
    yield top
    for path in sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True):
        path.rmdir()
    top.rmdir()


@pytest.mark.root
@pytest.mark.parametrize(
    ("place", "tasks"),
    [
        ("step_0/task_1", 1),
        ("step_batch/user/task_0", 1),
        ("step_0/user/task_3/inner", 1),
        ("step_0/slurm", 0),
        ("step_extern/user/task_special", 0),
        ("step_extern", 0),
    ],
)
def test_only_tasks_are_processes_of_the_job(groups: Path, place: str, tasks: int) -> None:
    """As Slurm lays out its cgroups, version 1 and 2: its own helpers outlive every rank."""
    job = str(7_000_000 + os.getpid())
    group = groups / "uid_0" / f"job_{job}" / place
    group.mkdir(parents=True)
    with task("none", "import time; time.sleep(60)") as pid:
        (group / "cgroup.procs").write_text(str(pid))
        node = seen(named(job), {})
    assert node.tasks
    assert node.tasks.count == tasks
    assert node.stepped == (bool(tasks) and place.startswith("step_0/"))


A, B = "sDTDM8106N2P00", "sDTDM8106N2P01"


def test_tasks_are_found_by_the_sluid_that_the_kernel_names(cgroups: Cgroups) -> None:
    """As Slurm 26.05 lays out its cgroups. Whose a name is that nobody can map is not known: then
    nobody says that no task is left."""
    number, another = str(6_000_000 + os.getpid()), str(16_000_000 + os.getpid())
    job, task = named(number), "step_0/user/task_0"
    cgroups.process(f"{A}/{task}")
    mine = seen(job, {A: number, B: another})
    assert mine.tasks is not None
    assert (mine.tasks.count, mine.tasks.sure) == (1, True)
    cgroups.process(f"{A}/step_extern/user/task_special")
    assert seen(job, {A: number, B: another}).tasks == mine.tasks
    unmapped = seen(job, {}).tasks
    assert unmapped is not None
    assert (unmapped.count, unmapped.sure) == (0, False)
    other = seen(named(another), {A: number, B: another}).tasks
    assert other is not None
    assert (other.count, other.sure) == (0, True)


def test_a_component_of_a_heterogeneous_job_is_not_the_first_one(cgroups: Cgroups) -> None:
    """Its tasks carry the first one's id."""
    first = 6_000_000 + 2 * os.getpid()
    leader, second = named(str(first), f"{first}+0"), named(str(first + 1), f"{first}+1")
    carries = {"SLURM_JOB_ID": str(first)}
    cgroups.process(f"job_{first + 1}/{TASK}", env=carries)
    counts = [node.tasks.count for one in (leader, second) if (node := seen(one, {})).tasks]
    assert counts == [0, 1]


def test_real_processes_that_spin_use_cores(cgroups: Cgroups) -> None:
    """Which neither confirms nor clears."""
    job = str(5_000_000 + os.getpid())
    with task("none", "while True: pass") as spins:
        cgroups.move(spins, f"job_{job}/{TASK}")
        found = ask(job)
    assert "cores" in found.words
    assert not found.contradicts


def test_a_real_nvidia_smi_is_asked_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in that checks its arguments and answers in the real one's form."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        '#!/bin/sh\n[ "$1" = "--query-gpu=utilization.gpu,power.draw,power.limit" ] || exit 9\n'
        'echo "100, 112.34, 700.00"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "they wait, and compute nothing" in ask("6000000").words


def test_an_answer_is_read_up_to_where_it_broke_off() -> None:
    """The driver hangs; the processes were told before."""
    node = parse_witness_answer((STILL + "gpu 100, 1").encode(), "root")
    assert node.tasks
    assert node.tasks.count == 8
    assert node.gpus == ()
