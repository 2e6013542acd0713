"""`clean_up`: what it takes for done and unfit, and what its script ends on a real host."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.clean_up import CleanUpAction, read_clean_up_script
from sentinel.core import node_answers
from sentinel.core.actions import Answer
from sentinel.core.cluster import Job, Node
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.slurm.node_states import reason_params
from tests.actions.world import node
from tests.lab.cgroups import Cgroups
from tests.lab.waiting import wait_until

DRAINED = node("n1")
WISH = ActionRequest(
    action="clean_up", target="n1", reason="x", params={**reason_params(DRAINED), "jobs": "12"}
)


class View:
    """Slurm's view of one node; no way to it."""

    def __init__(self, found: Node | None = DRAINED) -> None:
        self._node = found

    def node(self, name: str) -> Node | None:
        return self._node


class Hands(View):
    """As View, and the node answers this to any command."""

    def __init__(self, answer: node_answers.Answer, found: Node | None = DRAINED) -> None:
        super().__init__(found)
        self.answer = answer
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def ask_node(self, node: str, argv: Any, stdin: bytes = b"") -> node_answers.Answer:
        assert stdin == read_clean_up_script()
        self.asked.append((node, tuple(argv)))
        return self.answer


def said(text: str, code: int = 0) -> node_answers.Answered:
    return node_answers.Answered(code=code, out=text.encode())


def test_done_only_when_the_node_says_that_nothing_is_left() -> None:
    """Slurm's view alone does not know; both have the same mark, as nothing changed between."""
    alone = CleanUpAction().look(WISH, View())
    clean = CleanUpAction().look(WISH, Hands(said("")))
    kept = CleanUpAction().look(WISH, Hands(said("kept 9 login bash\n")))
    left = CleanUpAction().look(WISH, Hands(said("may 7 1000 python\nkept 9 login bash\n")))
    assert [look.done for look in (alone, clean, kept, left)] == [False, True, True, False]
    assert len({look.mark for look in (alone, clean, kept, left)}) == 1
    assert clean.text == f"{alone.text}; nothing is left there"
    assert left.text == f"{alone.text}; may 7 1000 python"
    many = CleanUpAction().look(WISH, Hands(said("may 7 1000 python\n" * 99)))
    assert len(many.text) == len(f"{alone.text}; ") + 1000


UNHEARD = [
    node_answers.TimedOut("x"),
    node_answers.Unreachable("x"),
    node_answers.Garbage("x"),
    node_answers.Partial(why="x", out=b""),
    said("", code=127),
]


@pytest.mark.parametrize("answer", UNHEARD, ids=lambda a: type(a).__name__)
def test_silence_is_not_clean(answer: node_answers.Answer) -> None:
    """Nor is a script that did not end well."""
    with pytest.raises(CannotTell):
        CleanUpAction().look(WISH, Hands(answer))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "Slurm knows no such node"),
        (replace(DRAINED, flags=frozenset()), "it is not drained"),
        (replace(DRAINED, state="DOWN"), "it is DOWN+DRAIN"),
        (replace(DRAINED, flags=frozenset({"DRAIN", "MAINTENANCE"})), "it is IDLE+DRAIN+MAIN"),
        (replace(DRAINED, reason="RMA"), "its reason changed from 'Kill task failed' to 'RMA'"),
    ],
)
def test_a_node_that_is_not_fit(found: Node | None, says: str) -> None:
    """Only a drained one that is up, and only for the reason that was seen."""
    assert CleanUpAction().look(WISH, View(found)).not_ready.startswith(says)


@pytest.mark.parametrize("jobs", ["", "12,", "12 13", "0; reboot", "²"])
def test_jobs_are_numbers_or_nothing_is_run(jobs: str) -> None:
    """A request that names no job would end everything."""
    hands = Hands(said(""))
    look = CleanUpAction().look(replace(WISH, params={"jobs": jobs}), hands)
    assert (look.done, hands.asked) == (False, [])
    assert look.not_ready == "no job is named whose processes are to be ended"


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (said("ended 7 1000 python\n"), Answer.ACCEPTED),
        (said("left 7\n", code=1), Answer.ACCEPTED),
        (said("", code=127), Answer.REFUSED),
        (node_answers.Unreachable("no route"), Answer.REFUSED),
        (node_answers.NotAsked("no way"), Answer.REFUSED),
        (node_answers.TimedOut("late"), Answer.UNSURE),
        (node_answers.Partial(why="broke off"), Answer.UNSURE),
    ],
)
def test_what_is_known_after_it_was_done(answer: node_answers.Answer, reply: Answer) -> None:
    """Whoever cannot have begun did nothing; whoever began may have."""
    hands = Hands(answer)
    assert CleanUpAction().perform(WISH, hands).answer is reply  # type: ignore[arg-type]
    assert hands.asked == [("n1", ("sh", "-s", "end", "12", "1000", "", "5"))]


JOB = str(2**31 - os.getpid())
"""No real job of this machine."""
UID = 100_000 + 5 * (os.getpid() % 1_000_000)
"""The first of five users who are nobody else's: a process of theirs in a job that another worker's test
made would mean that they have one here."""
SLEEPER = "import signal, time; {}; print('up', flush=True); time.sleep(60)"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


TASK = "step_0/user/task_0"


@pytest.fixture
def sleeper(as_root: None, cgroups: Cgroups) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts processes of that uid that the kernel counts to the job."""
    started = []

    def start(uid: int = UID, then: str = "pass", job: str = JOB) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            ["/usr/bin/python3", "-c", SLEEPER.format(then)],
            env={},
            user=uid,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        cgroups.move(process.pid, f"job_{job}/{TASK}")
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


NOBODY = pwd.getpwnam("nobody").pw_uid
UIDS = ",".join(map(str, (0, 999, *range(UID, UID + 5), NOBODY)))


def end(verb: str = "end", jobs: str = JOB, uids: str = UIDS) -> tuple[int, set[tuple[str, ...]]]:
    """Exit code, and the words before the command of each line."""
    argv = ["sh", "-s", verb, jobs, "1000", uids, "1"]
    done = subprocess.run(
        argv, input=read_clean_up_script(), capture_output=True, timeout=60, check=False
    )
    assert not done.stderr, done.stderr
    return done.returncode, {tuple(line.split()[:2]) for line in done.stdout.decode().splitlines()}


def test_it_ends_the_processes_of_that_job_and_no_others(sleeper: Any) -> None:
    """A polite one by SIGTERM, a stubborn one by SIGKILL; another job's, root's, a system user's
    and nobody's live."""
    polite, stubborn = sleeper(), sleeper(then=STUBBORN)
    other, root, system = sleeper(job=str(int(JOB) - 7)), sleeper(uid=0), sleeper(uid=999)
    nobody = sleeper(uid=NOBODY)
    code, told = end()
    assert code == 0
    assert told == {
        ("ended", str(polite.pid)),
        ("ended", str(stubborn.pid)),
        ("kept", str(root.pid)),
        ("kept", str(system.pid)),
        ("kept", str(nobody.pid)),
    }
    assert (polite.wait(5), stubborn.wait(5)) == (-15, -9)
    assert [p.poll() for p in (other, root, system, nobody)] == [None] * 4


def test_what_a_process_inherited_proves_nothing(as_root: None, cgroups: Cgroups) -> None:
    """Anybody may export any id, and the components of a heterogeneous job carry the first one's."""
    carrier = cgroups.process("", uid=UID, env={"SLURM_JOB_ID": JOB})
    assert end() == (0, set())
    assert cgroups.alive(carrier)


FORGED = (
    "../{user}.service/s.slice/slurmstepd.scope/job_{job}/step_0/user/task_0",
    "../{user}.service/slurm/uid_{uid}/job_{job}/step_0/task_0",
)


@pytest.mark.parametrize("place", FORGED)
def test_a_folder_of_somebody_else_proves_nothing(
    as_root: None, cgroups: Cgroups, place: str
) -> None:
    """A service that is delegated to a user (Delegate=, a rootless container) has folders of any name;
    the same folders of root are Slurm's."""
    words = {"user": "mine", "uid": UID, "job": JOB}
    forged = cgroups.process(place.format(**words), uid=UID)
    top = cgroups.scope.parent / "mine.service"
    os.chown(top, UID, UID)
    assert end() == (0, set())
    assert cgroups.alive(forged)
    os.chown(top, 0, 0)
    assert end() == (0, {("ended", str(forged))})


def test_only_users_that_were_named_are_touched(sleeper: Any) -> None:
    """Whoever has come since, was in nobody's evidence."""
    process = sleeper()
    for uids in ("", f"{UID + 1}", f"{UID}"[:3] + "," + f"{UID}"[3:]):
        assert end(uids=uids) == (0, {("kept", str(process.pid))})
    assert process.poll() is None


@pytest.mark.parametrize(("is_root", "verdict"), [(False, "may"), (True, "kept")])
def test_a_login_is_below_a_process_of_root(
    as_root: None, cgroups: Cgroups, is_root: bool, verdict: str
) -> None:
    """Anybody may call a process sshd, and would keep what a job left behind."""
    uid = 0 if is_root else UID
    become = f"setpriv --reuid={UID} --regid={UID} --clear-groups" if is_root else ""
    run = f"{become} sleep 60 & echo $!; wait"
    argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "bash", "-c"]
    with subprocess.Popen(
        [*argv, f"exec -a sshd sh -c '{run}'"], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            comm = Path(f"/proc/{child}/comm")
            wait_until(lambda: comm.read_text() == "sleep\n", "the child sleeps")
            cgroups.move(child, f"job_{JOB}/{TASK}")
            told = end("list")[1]
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert told == {(verdict, str(child))}


def test_listing_ends_nothing(sleeper: Any) -> None:
    """Twice the same; after the end there is nothing to list."""
    process = sleeper()
    for _ in range(2):
        assert end("list") == (0, {("may", str(process.pid))})
    assert process.poll() is None
    end()
    process.wait(5)
    assert end("list") == (0, set())


HIDDEN = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
AS_NOBODY = "mount -o remount,hidepid=2 /proc && setpriv --reuid=65534 --clear-groups "


@pytest.mark.parametrize("verb", ["list", "end"])
def test_where_processes_cannot_be_seen_nothing_is_clean(sleeper: Any, verb: str) -> None:
    """With hidepid, or without ps, an empty list says nothing."""
    words = f"sh -s {verb} {JOB} 1000 {UIDS} 1"
    blind = [*HIDDEN, f"{AS_NOBODY} --regid=65534 {words}; exit $?"]
    without = [
        "env",
        "-i",
        "PATH=/none",
        "/bin/sh",
        "-c",
        f"ps() {{ false; }}; {read_clean_up_script().decode()}",
    ]
    for argv in (blind, [*without, "sh", *words.split()[2:]]):
        done = subprocess.run(
            argv, input=read_clean_up_script(), capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (3, b"")
        assert b"cannot be seen" in done.stderr


KILLED = "kill -9 $$"
ONE_LINE = 'out=$({real} "$@" | head -n 1); printf "%s\\n" "$out"; kill -9 $$'


@pytest.mark.parametrize(
    ("tool", "words", "death", "reason"),
    [
        ("grep", "*slurmstepd*cgroup*", KILLED, "/proc/*/cgroup for jobs was cut"),
        ("grep", "*session*", KILLED, "/proc/*/cgroup for logins was cut"),
        ("grep", "*slurmstepd*comm*", KILLED, "/proc/*/comm for slurmstepd was cut"),
        ("sed", "*comm*", KILLED, "/proc/*/comm for slurmstepd was cut"),
        ("sed", "'s/^/p /'", ONE_LINE, "ps gives no whole list"),
        ("ps", "*args*", KILLED, "ps gives no whole list"),
        ("ps", "*args*", ONE_LINE, "ps gives no whole list"),
        ("ps", "*args*", '{real} "$@" | head -n 1; exit 0', "ps gives no whole list"),
        ("awk", "*sluid*", KILLED, "/proc/*/cgroup for jobs was cut"),
        ("awk", "*uids*", KILLED, "cannot be seen"),
        ("awk", "*uids*", "cat >/dev/null; exit 0", "what awk said of them was cut"),
        ("awk", "*uids*", '{real} "$@" | head -n 1; exit 0', "what awk said of them was cut"),
        ("sed", "*may*", KILLED, "sed failed"),
    ],
)
@pytest.mark.parametrize("verb", ["list", "end"])
def test_where_a_tool_dies_half_way_nothing_is_clean_and_no_process_is_ended(
    sleeper: Any, tmp_path: Path, verb: str, tool: str, words: str, death: str, reason: str
) -> None:
    """Killed for want of memory, alone or after a part of its output: nobody says that nothing is
    left."""
    victim = sleeper()
    stand_in = tmp_path / tool
    real = shutil.which(tool)
    dies = death.format(real=real)
    stand_in.write_text(f'#!/bin/sh\ncase "$*" in {words}) {dies} ;; esac\nexec {real} "$@"\n')
    stand_in.chmod(0o755)
    argv = ["sh", "-s", verb, JOB, "1000", UIDS, "1"]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        argv, input=read_clean_up_script(), env=env, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"the processes of this node cannot be seen" in done.stderr
    assert reason.encode() in done.stderr.splitlines()[-1]
    assert victim.poll() is None


def test_blindness_after_the_first_signal_is_not_told_as_refused(
    sleeper: Any, tmp_path: Path
) -> None:
    """ps works once: SIGTERM is sent, and what became of it cannot be seen."""
    process, stand_in, real = sleeper(), tmp_path / "ps", shutil.which("ps")
    once = tmp_path / "twice"
    stand_in.write_text(
        f"#!/bin/sh\n[ ! -e {once}2 ] || kill -9 $$\n"
        f'if [ -e {once} ]; then : >{once}2; else : >{once}; fi\nexec {real} "$@"\n'
    )
    stand_in.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = ["sh", "-s", "end", JOB, "1000", UIDS, "1"]
    done = subprocess.run(
        argv, input=read_clean_up_script(), env=env, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, b"signals were sent before\n")
    process.wait(5)
    answer = node_answers.Answered(code=3, out=done.stdout, err=done.stderr)
    reply = CleanUpAction().perform(WISH, Hands(answer))
    assert reply.answer is Answer.UNSURE
    silent = node_answers.Answered(code=3, err=done.stderr)
    assert CleanUpAction().perform(WISH, Hands(silent)).answer is Answer.REFUSED


A, B = "sDTDM8106N2P00", "sDTDM8106N2P01"


def test_a_cgroup_called_job_is_slurms_only_where_slurm_makes_it(
    sleeper: Any, cgroups: Cgroups
) -> None:
    """Another batch system on the same node has a job of that number; cgroup v1 has uid_N above."""
    other = cgroups.process(f"../job_{JOB}", uid=UID)
    over = cgroups.process(f"../slurm/uid_{UID + 2}/job_{JOB}/step_0", uid=UID + 2)
    assert end() == (0, {("ended", str(over))})
    assert cgroups.alive(other)


def test_the_kernel_counts_by_sluid(sleeper: Any, cgroups: Cgroups) -> None:
    """On a real cgroup2 tree as Slurm 26.05 makes it: an orphan of job B, which lives, carries the
    id of the job that is over (A); only what is in A's own cgroup is ended."""
    carries = {"SLURM_JOB_ID": JOB}
    task = "step_batch/user/task_0"
    living = cgroups.process(f"{B}/{task}", uid=UID, env=carries)
    unknown = cgroups.process("else_1/task_0", uid=UID + 1, env=carries)
    over = cgroups.process(f"{A}/{task}", uid=UID + 2, env=carries)
    inner = cgroups.process(f"{B}/{task}/job_{JOB}", uid=UID + 3, env=carries)
    assert end() == (0, set())
    code, told = end(jobs=f"{A},{JOB}")
    assert (code, told) == (0, {("ended", str(over))})
    assert [cgroups.alive(pid) for pid in (living, unknown, inner)] == [True] * 3


def listed(name: str, state: str = "RUNNING", user: str = "bob") -> Job:
    number = name.replace("+1", "3")
    rest = ("", 1, "", None, None, None, None)
    return Job(name, number, number, "", "x", user, "prod", state, "", "n1", *rest[1:])


class Fresh(Hands):
    """As Hands, and Slurm has these jobs there now."""

    def __init__(self, *jobs: Job) -> None:
        super().__init__(said("may 7 1000 python\n"))
        self._jobs = jobs

    def jobs_on(self, node: str) -> Sequence[Job]:
        assert node == "n1"
        return self._jobs


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (listed("12"), "job 12 runs there"),
        (listed("12+1"), "job 12+1 runs there"),
        (listed("12", "SUSPENDED"), "job 12 runs there"),
        (listed("12", "COMPLETING"), "job 12 is being ended there"),
        (replace(listed("12", "COMPLETING"), overdue=True), ""),
        (listed("99"), ""),
    ],
)
def test_slurm_is_asked_anew_whether_the_job_is_there(job: Job, why: str) -> None:
    """What the check knew may be older than the job."""
    assert CleanUpAction().look(WISH, Fresh(job)).not_ready == why


@pytest.mark.parametrize("uids", ["alice", ",", "1001,;", "1001 1002"])
def test_users_are_numbers_or_nothing_is_run(uids: str) -> None:
    """A request that was cut or forged."""
    wish = replace(WISH, params={**WISH.params, "uids": uids})
    assert CleanUpAction().look(wish, Hands(said(""))).not_ready.startswith("no job is named")


def test_why_it_was_not_done_is_told() -> None:
    """Not that nothing is left there."""
    blind = node_answers.Answered(code=3, out=b"", err=b"the processes of this node cannot be seen")
    reply = CleanUpAction().perform(WISH, Hands(blind))  # type: ignore[arg-type]
    assert "cannot be seen" in reply.text


@pytest.mark.parametrize(
    ("program", "is_root", "counts"),
    [("slurmstepd", True, True), ("python3", True, False), ("slurmstepd", False, False)],
)
def test_what_runs_below_a_slurmstepd_is_its_jobs(
    as_root: None, program: str, is_root: bool, counts: bool
) -> None:
    """Where the kernel counts nothing (proctrack/linuxproc). What a process calls itself is no proof:
    it is root's, and that program."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    path = shutil.copy("/usr/bin/python3", folder / program)
    code = (
        "import ctypes, subprocess\n"
        "ctypes.CDLL(None).prctl(15, b'slurmstepd')\n"
        f"child = subprocess.Popen(['sleep', '60'], user={UID if is_root else None})\n"
        "print(child.pid, flush=True)\n"
        "child.wait()"
    )
    daemon = subprocess.Popen(
        [f"slurmstepd: [{JOB}.batch]", "-c", code],
        executable=path,
        stdout=subprocess.PIPE,
        user=0 if is_root else UID,
    )
    assert daemon.stdout is not None
    child = int(daemon.stdout.readline())
    try:
        expected = {("may", str(child)), ("kept", str(daemon.pid))} if counts else set()
        assert end("list") == (0, expected)
        assert end("list", str(int(JOB) - 1)) == (0, set())
    finally:
        os.kill(child, signal.SIGKILL)
        daemon.communicate()
        shutil.rmtree(folder)
