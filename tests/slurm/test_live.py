"""The whole way on a real Slurm: hostile users, a hostile environment, and every way to be down."""

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sentinel.actions.cluster_view import find_paused_job
from sentinel.clock import SystemClock
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.doctor.slurm import list_slurm_remarks
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import ELSEWHERE, SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

SWITCHES = {
    "SQUEUE_FORMAT": "%i",
    "SQUEUE_STATES": "RUNNING",
    "SQUEUE_USERS": "nobody",
    "SQUEUE_PARTITION": "none",
    "SQUEUE_SORT": "-i",
    "SQUEUE_ARRAY": "1",
    "SCONTROL_FUTURE": "1",
    "SLURM_TIME_FORMAT": "relative",
    "SLURM_BITSTR_LEN": "8",
    "LC_ALL": "C.UTF-8",
    "TZ": "Asia/Kathmandu",
}
NAMES = [
    "x\n999|root|RUNNING",
    "x\n999 999 999 N/A 1 N/A N/A n1",
    "\udcff\udcfe",
    "\x1b[31mred\x1b[0m",
    "n" * 300,
    "tab\tand\x1funit",
    "%s%n%i",
    "größe 10b — 训练",
    "x JobState=COMPLETED ExitCode=0:0 EndTime=1",
    "|;.,",
]


def slurm(
    lab: Lab,
    *users: str,
    limit: float = 20.0,
    as_user: User | None = None,
    prefix: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
) -> SlurmSnapshot:
    """The port as root, or as an ordinary user; without users for everybody."""
    if as_user:
        prefix = ("runuser", "-u", as_user.name, "--")
    client = SlurmClient(limit=limit, prefix=prefix, environ={**lab.env, **(env or {})})
    return SlurmSnapshot(client, SystemClock(), users=users or None, max_age=30.0)


def visible_name(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def left_over(lab: Lab) -> list[str]:
    """Slurm commands that still run against this lab."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if f"SLURM_CONF={lab.env['SLURM_CONF']}".encode() not in (
                folder / "environ"
            ).read_bytes().split(b"\0"):
                continue
        except OSError:
            continue
        if any(
            Path(word.decode(errors="replace")).name in ("squeue", "scontrol") for word in words
        ):
            found.append(b" ".join(words).decode(errors="replace"))
    return found


def by_id(jobs: object) -> dict[str, Job]:
    return {job.job_id: job for job in jobs}  # type: ignore[attr-defined]


def test_hostile_names_and_a_hostile_environment(fresh: Lab) -> None:
    """Each job is one row with its very name, whatever others' names and switches say."""
    ids = {fresh.sbatch("sleep 1", name=name, hold=True): name for name in NAMES}
    jobs = by_id(slurm(fresh, env=SWITCHES).jobs())
    assert {job_id: job.name for job_id, job in jobs.items()} == {
        job_id: visible_name(name) for job_id, name in ids.items()
    }
    assert {(job.state, job.reason, job.user) for job in jobs.values()} == {
        ("PENDING", "JobHeldUser", "root")
    }
    assert all(abs((job.submitted or 0) - time.time()) < 600 for job in jobs.values())


COMMENTS = {
    "sentinel: off": "sentinel: off",
    r'sentinel: progress="step (\d+)" stale=15m off': r'sentinel: progress="step (\d+)" stale=15m off',
    "sentinel:" + "x" * 1015: "sentinel:" + "x" * 1015,
    "sentinel: x\n999|root|RUNNING": "sentinel: x\n999|root|RUNNING",
    "sentinel: \udcff gr\udcfc\udcdfe": r"sentinel: \xff gr\xfc\xdfe",
    '{"APS": {"auto_resume_mode": "requeue"}}': "",
    "00:12:00": "",
    "x" * 1024: "",
}


def test_comments_are_read_as_they_were_given(fresh: Lab) -> None:
    """In the one request for the jobs; a wish that is given later counts from then on."""
    ids = {fresh.sbatch("sleep 1", hold=True, comment=text): w for text, w in COMMENTS.items()}
    bare = fresh.sbatch("sleep 1", hold=True)
    port = slurm(fresh)
    assert {id_: job.wish for id_, job in by_id(port.jobs()).items()} == {**ids, bare: ""}
    assert port.client.counts["squeue"].requests == 1
    fresh.ask(["scontrol", "update", f"JobId={bare}", "Comment=sentinel: off"])
    assert by_id(slurm(fresh).jobs())[bare].wish == "sentinel: off"


def test_the_switches_are_neutral_on_the_other_side_of_a_prefix_too(fresh: Lab) -> None:
    """A login node's own SQUEUE_STATES does not hide the pending jobs."""
    job = fresh.sbatch("sleep 1", hold=True)
    there = ("env", *(f"{key}={value}" for key, value in SWITCHES.items()))
    assert list(by_id(slurm(fresh, prefix=there).jobs())) == [job]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_no_variable_that_slurm_reads_changes_an_answer(fresh: Lab, elsewhere: bool) -> None:
    """All that its commands read, and a Turkish locale, here or behind a prefix."""
    job = fresh.sbatch("exec sleep 300", name="train")
    fresh.sbatch("exec sleep 300", hold=True)
    hostile = {**dict.fromkeys(ELSEWHERE, "none"), **SWITCHES, "LC_ALL": "tr_TR.UTF-8"}
    there = ("env", *(f"{key}={value}" for key, value in hostile.items()))
    spoilt = slurm(fresh, prefix=there) if elsewhere else slurm(fresh, env=hostile)
    fresh.wait_state(job, "RUNNING")
    assert answers(spoilt, job) == answers(slurm(fresh), job)
    assert len(spoilt.jobs()) == 2
    spoilt.client.ask_slurm("scancel", job)
    fresh.wait_state(job, "CANCELLED")


def answers(port: SlurmSnapshot, job: str) -> list[object]:
    """What it says to each of its questions."""
    asked = (port.jobs, port.nodes, port.reservations, port.timeouts, port.config)
    return [*(ask() for ask in asked), port.controller().primary_up, port.job_end(job)]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("before", "Welcome"),
        ("before", "NodeName=x Welcome"),
        ("behind", "NodeName=x Welcome"),
        ("behind", "Welcome"),
    ],
)
def test_a_wrapper_that_talks_on_stdout_spoils_no_answer(
    fresh: Lab, tmp_path: Path, where: str, says: str
) -> None:
    """An answer is the same as without it, or cannot be told with the wrapper's words; never
    another."""
    job = fresh.sbatch("exec sleep 300", name="train")
    fresh.wait_state(job, "RUNNING")
    fresh.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=rack 7"])
    says = f"echo {says}"
    both = f'{says}\nexec "$@"' if where == "before" else f'"$@"\ncode=$?\n{says}\nexit $code'
    wrapper = tmp_path / "site"
    wrapper.write_text(f"#!/bin/sh\n{both}\n")
    wrapper.chmod(0o755)
    port, plain = slurm(fresh, prefix=(str(wrapper),)), slurm(fresh)
    for name in ("jobs", "nodes", "reservations", "timeouts", "config"):
        told = answer_or_why(getattr(port, name))
        named = isinstance(told, str) and ("Welcome" in told or "cut off" in told)
        assert named or told == getattr(plain, name)(), name


def answer_or_why(ask: Callable[[], object]) -> object:
    """The answer, or the text of why there is none."""
    try:
        return ask()
    except CannotTell as error:
        return str(error)


def test_fields_of_a_running_job_and_of_an_array(fresh: Lab) -> None:
    """Ids, elements, times, limits, dependency, exclusion, as Slurm has them now."""
    running = fresh.sbatch("exec sleep 600", nodes=2, time="1-02:00:00")
    array = fresh.sbatch("sleep 1", array="0-100:4%2", hold=True, exclude="node-[0-1]")
    after = fresh.sbatch("sleep 1", dependency=f"afterok:{running}")
    fresh.wait_state(running, "RUNNING")
    jobs = by_id(slurm(fresh).jobs())
    assert (jobs[running].nodes, jobs[running].node_count) == ("node-[0-1]", 2)
    assert jobs[running].time_limit == 26 * 3600
    started, ends = jobs[running].started, jobs[running].ends
    assert started is not None
    assert ends == started + 26 * 3600
    assert (jobs[array].id, jobs[array].elements) == (f"{array}_[0-100:4%2]", 26)
    assert (jobs[array].array_id, jobs[array].exclude) == (array, "node-[0-1]")
    assert (jobs[after].reason, jobs[after].started) == ("Dependency", None)
    assert jobs[after].dependency.startswith(f"afterok:{running}")


def test_gpus_in_every_way_of_asking_for_them(fresh: Lab) -> None:
    """Of what runs and of what waits; names of jobs forge no row."""
    asked = {
        ("gres=gpu:2", "nodes=2"): 4,
        ("gpus=3",): 3,
        ("gpus-per-task=2", "ntasks=2"): 4,
        ("gpus-per-node=4", "nodes=2", "hold"): 8,
        ("gpus=5", "hold"): 5,
        ("nodes=1",): 0,
    }
    jobs = {}
    for number, (options, gpus) in enumerate(asked.items()):
        words = [f"--{option}" for option in options]
        done = fresh.ask(
            ["sbatch", "--parsable", "-J", NAMES[number], *words, "--wrap", "sleep 99"]
        )
        jobs[done.strip()] = gpus
    assert slurm(fresh).gpus() == jobs


def test_elements_of_an_array_that_run(fresh: Lab) -> None:
    """A running element has an id of its own, and the pending rest stays one row."""
    array = fresh.sbatch("exec sleep 600", array="0-9%1")
    port = slurm(fresh)
    wait_until(lambda: fresh.states(array).count("RUNNING") == 1, "one element runs", 20)
    jobs = sorted(port.jobs(), key=lambda job: job.state)
    assert [(job.state, job.elements, job.array_id) for job in jobs] == [
        ("PENDING", 9, array),
        ("RUNNING", 1, array),
    ]
    assert jobs[1].id == f"{array}_0"
    end = port.job_end(jobs[1].id)
    assert end is not None
    assert (end.job_id, end.state) == (jobs[1].job_id, "RUNNING")


@pytest.mark.parametrize(
    ("script", "state", "exit_code", "signal"),
    [
        ("exit 3", "FAILED", 3, None),
        ("true", "COMPLETED", 0, None),
        ("kill -9 $$", "FAILED", 0, 9),
    ],
)
def test_how_a_job_ended(
    fresh: Lab, script: str, state: str, exit_code: int, signal: int | None
) -> None:
    """From slurmctld's memory; a name that looks like an end is a name. From 24.05 on squeue shows
    the pattern of the output as it stands, from 25.11 on a relative one."""
    job = fresh.sbatch(script, name="x JobState=RUNNING ExitCode=7:7 EndTime=1 Reason=forged")
    fresh.wait_state(job, state)
    end = slurm(fresh).job_end(job)
    assert end is not None
    assert (end.state, end.exit_code, end.signal) == (state, exit_code, signal)
    assert end.stdout.endswith((f"slurm-{job}.out", "slurm-%j.out"))
    assert abs((end.ended or 0) - time.time()) < 600


def test_a_job_nobody_knows_has_no_end(fresh: Lab) -> None:
    """Slurm says so with exit code 1: that is an answer, not a failure."""
    port = slurm(fresh)
    assert port.job_end("999999") is None
    assert port.client.counts["squeue"].failures == 0


@pytest.mark.parametrize(
    "reason",
    [
        "Kill task failed",
        "x State=IDLE Reason=none [root@1] Comment=fine",
        "ends in a stamp [root@17]",
        "NodeName=node-3 State=DOWN",
        "größe\x1b[31m",
    ],
)
def test_a_reason_comes_back_as_it_was_given(fresh: Lab, reason: str) -> None:
    """Whatever it looks like, and with who gave it."""
    fresh.ask(["scontrol", "update", "nodename=node-2", "state=drain", f"reason={reason}"])
    nodes = {node.name: node for node in slurm(fresh, env=SWITCHES).nodes()}
    assert len(nodes) == 4
    node = nodes["node-2"]
    assert (node.state, set(node.flags), node.reason) == ("IDLE", {"DRAIN"}, reason)
    assert node.reason_user == "root"
    assert abs((node.reason_time or 0) - time.time()) < 600


def test_a_reason_of_several_lines_is_one_line(fresh: Lab) -> None:
    """Slurm joins them with blanks after the stamp; the stamp does not stay in the text."""
    argv = ["scontrol", "update", "nodename=node-2", "state=drain", "reason=NHC: one\ntwo"]
    fresh.ask(argv)
    [node] = [node for node in slurm(fresh).nodes() if node.name == "node-2"]
    assert (node.reason, node.reason_user) == ("NHC: one two", "root")


def test_one_request_each_for_a_hundred_checks(fresh: Lab) -> None:
    """Counted by slurmctld itself: squeue is two RPCs, scontrol show node two."""
    port = slurm(fresh)
    fresh.ask(["sdiag", "--reset"])
    for _ in range(100):
        port.jobs()
        port.nodes()
    counted = dict(re.findall(r"(REQUEST_\w+) .*count:(\d+)", fresh.ask(["sdiag"])))
    kinds = ("REQUEST_JOB_INFO", "REQUEST_NODE_INFO", "REQUEST_PARTITION_INFO")
    assert [counted.get(kind) for kind in kinds] == ["1", "1", "2"]


def test_through_ssh_the_answer_is_the_same(fresh: Lab) -> None:
    """command_prefix: [ssh, login1], with a job whose name a shell would run."""
    name = "$(touch /tmp/pwned) `id` 'a' \"b\" ; x"
    fresh.sbatch("sleep 1", name=name, hold=True)
    conf = f"SLURM_CONF={fresh.env['SLURM_CONF']}"
    there = ("ssh", "-F", str(fresh.ssh_config), "node-1", "env", conf, "SQUEUE_STATES=R")
    far = slurm(fresh, prefix=there)
    assert far.jobs() == slurm(fresh).jobs()
    assert [job.name for job in far.jobs()] == [name]
    assert len(far.nodes()) == 4
    assert far.controller().primary_up


def test_slurm_missing_on_the_other_side_is_said_so(fresh: Lab) -> None:
    """The text names the way that was taken."""
    there = ("ssh", "-F", str(fresh.ssh_config), "node-1", "env", "PATH=/nowhere")
    with pytest.raises(CannotTell, match="squeue cannot be run through ssh -F"):
        slurm(fresh, "root", prefix=there).client.ask_slurm("squeue")


def test_an_ordinary_user_sees_the_users_asked_for(fresh: Lab) -> None:
    """Others' jobs too where nothing hides them; the whole queue is refused."""
    alice, bob = fresh.user("alice"), fresh.user("bob")
    own = fresh.sbatch("sleep 1", hold=True, user=alice)
    other = fresh.sbatch("sleep 1", hold=True, user=bob)
    fresh.sbatch("sleep 1", hold=True)
    jobs = by_id(slurm(fresh, alice.name, bob.name, as_user=alice).jobs())
    assert {job_id: job.user for job_id, job in jobs.items()} == {own: alice.name, other: bob.name}
    with pytest.raises(CannotTell, match="administrator's rights"):
        slurm(fresh, as_user=alice).jobs()


def test_private_data_is_cannot_tell_and_not_an_empty_queue(fresh: Lab) -> None:
    """squeue itself prints nothing and exits 0; one's own jobs and root's view stay true."""
    alice, bob = fresh.user("carol"), fresh.user("dave")
    own = fresh.sbatch("sleep 1", hold=True, user=alice)
    other = fresh.sbatch("sleep 1", hold=True, user=bob)
    fresh.configure(PrivateData="jobs")
    hidden = fresh.run(["squeue", "-h", "-u", bob.name], user=alice)
    assert (hidden.stdout, hidden.stderr, hidden.returncode) == ("", "", 0)
    with pytest.raises(CannotTell, match=f"PrivateData=jobs hides the jobs of {bob.name}"):
        slurm(fresh, alice.name, bob.name, as_user=alice).jobs()
    assert list(by_id(slurm(fresh, alice.name, as_user=alice).jobs())) == [own]
    assert set(by_id(slurm(fresh).jobs())) == {own, other}


def test_a_user_nobody_knows_is_cannot_tell(fresh: Lab) -> None:
    """squeue exits 0 then and prints the jobs of the others: stderr decides."""
    fresh.sbatch("sleep 1", hold=True)
    with pytest.raises(CannotTell, match=r"squeue: error: Invalid user: no-such-user"):
        slurm(fresh, "root", "no-such-user").jobs()


def blind(port: SlurmSnapshot, within: float) -> str:
    """What both questions say, and that they say it in time."""
    began = time.monotonic()
    with pytest.raises(CannotTell) as jobs:
        port.jobs()
    with pytest.raises(CannotTell):
        port.nodes()
    assert time.monotonic() - began < within
    return str(jobs.value)


@pytest.mark.long
def test_a_controller_that_hangs(fresh: Lab) -> None:
    """Bounded by our own limit, nothing left behind, asked no more while the pause lasts."""
    port = slurm(fresh, limit=2)
    fresh.stop_controller()
    assert blind(port, within=20) == (
        "squeue: no answer within 2s, it was ended (slurmctld, munge or the network hangs)"
    )
    assert left_over(fresh) == []
    requests = port.client.counts["squeue"].requests
    blind(port, within=2)
    assert port.client.counts["squeue"].requests == requests
    fresh.cont_controller()
    wait_until(
        lambda: port.client.run_command("scontrol", "ping").code == 0, "slurmctld answers", 20
    )
    time.sleep(5)  # the first pause of sentinel.slurm.answer, on the real clock
    assert port.jobs() == ()


@pytest.mark.long
def test_a_controller_that_is_gone(fresh: Lab) -> None:
    """The text is Slurm's own; ping says DOWN at once."""
    fresh.kill_controller()
    port = slurm(fresh)
    assert "Unable to contact slurm controller" in blind(port, within=60)
    told = port.controller()
    assert (told.primary, told.primary_up) == ("controller", False)
    assert left_over(fresh) == []


def test_a_controller_that_packets_do_not_reach(fresh: Lab) -> None:
    """The worst case of 29 s is cut short."""
    fresh.cut_controller()
    assert "no answer within 2s" in blind(slurm(fresh, limit=2), within=20)
    assert left_over(fresh) == []


def test_munge_is_gone(fresh: Lab) -> None:
    """No credential, no question: the text says munge."""
    fresh.munge.kill()
    assert "unge" in blind(slurm(fresh), within=60)


def test_munge_hangs(fresh: Lab) -> None:
    """More than a minute that no setting of Slurm bounds."""
    fresh.munge.stop()
    assert "no answer within 2s" in blind(slurm(fresh, limit=2), within=20)
    assert left_over(fresh) == []


def test_remarks_beside_answers_spoil_none(fresh: Lab, tmp_path: Path) -> None:
    """slurm.conf's, in every client, and those of a wrapper that greets: `doctor` shows them."""
    wrapper = tmp_path / "site"
    wrapper.write_text('#!/bin/sh\necho "NOTICE: no jobs on Monday" >&2\nexec "$@"\n')
    wrapper.chmod(0o755)
    conf = tmp_path / "slurm.conf"
    conf.write_text("ControlMachine=controller\n" + Path(fresh.env["SLURM_CONF"]).read_text())
    port = slurm(fresh, prefix=(str(wrapper),), env={"SLURM_CONF": str(conf)})
    job = fresh.sbatch("exec sleep 300", name="train")
    assert [found.job_id for found in port.jobs()] == [job]
    assert len(port.nodes()) == 4
    assert port.controller().primary_up
    assert port.job_end(job)
    shown = list(list_slurm_remarks(port))
    assert {item.status for item in shown} == {Status.OK}
    texts = [item.text.partition(" (")[0] for item in shown]
    assert texts == [
        "NOTICE: no jobs on Monday",
        "error: Ignoring ControlMachine since SlurmctldHost is set.",
    ]


def test_a_wrapper_that_swallows_the_answer_makes_no_empty_queue(
    fresh: Lab, tmp_path: Path
) -> None:
    """Exit code 0 and nothing printed: squeue prints a header even where there is no job."""
    assert slurm(fresh).jobs() == ()
    wrapper = tmp_path / "squeue"
    wrapper.write_text(f'#!/bin/sh\n{shutil.which("squeue")} "$@" | true\n')
    wrapper.chmod(0o755)
    with pytest.raises(CannotTell, match="not even its header"):
        slurm(fresh, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}).jobs()


def test_a_node_with_a_suspended_job_alone_is_idle_and_not_free(fresh: Lab) -> None:
    """Slurm itself calls it IDLE, so the actions ask for its jobs."""
    number = fresh.sbatch("sleep 600", nodelist="node-0")
    fresh.wait_state(number, "RUNNING")
    client = SlurmClient(environ=fresh.env)
    hands = SlurmHands(SlurmSnapshot(client, SystemClock(), users=None, max_age=30.0))
    assert find_paused_job(hands, "node-0") == ""
    fresh.ask(["scontrol", "suspend", number])
    fresh.wait_state(number, "SUSPENDED")
    node = hands.node("node-0")
    assert (node and node.state, find_paused_job(hands, "node-0")) == (
        "IDLE",
        f"job {number} is SUSPENDED there",
    )
