"""GPUs that a job holds and does not use: told after a whole window of looks, and never by a guess."""

import re
from collections.abc import Callable

import pytest

from sentinel.checks.idle import IdleCheck
from sentinel.checks.idle.job_watch import MAX_IDLE_PERCENT
from sentinel.core.errors import Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.values import Duration, Size
from sentinel.nodes.probe import StepProcess, Unread
from sentinel.testing import START
from tests.checks.idle.world import (
    DOWNLOAD_BYTES_PER_S,
    QUIET_BYTES_PER_S,
    IdleNode,
    World,
)

HOUR = 3600.0


def last(reports: list[Report]) -> Finding:
    (finding,) = reports[-1].findings
    return finding


def test_gpus_are_told_after_a_whole_window_and_not_before() -> None:
    world = World()
    world.nodes["node-0"].holds(*range(100, 108))
    early = world.watch(HOUR)
    assert {r.findings[0].status for r in early} == {Status.OK}
    finding = last(world.watch(300))
    assert finding.status is Status.WARNING
    assert finding.subject == "alice/llm"
    assert finding.summary == "8 of 8 GPUs unused for 1h (job 4711)"
    assert finding.values == {"gpus": 8, "idle_gpus": 8, "idle_s": 3600}
    assert finding.labels == {"job": "llm", "user": "alice", "partition": "prod", "node": "node-0"}
    assert finding.tell_once
    assert "Comment='sentinel: off'" in finding.details
    assert finding.guidance.impact.endswith("sentinel does not end it.")


def test_the_check_asks_for_no_action() -> None:
    reports = World().watch(3 * HOUR)
    assert not any(r.requests for r in reports)
    assert not IdleCheck().grants()
    assert not IdleCheck().may_ask


@pytest.mark.parametrize("percent", [MAX_IDLE_PERCENT + 0.5, 30.0, 100.0])
def test_a_gpu_that_works_in_bursts_is_in_use(percent: float) -> None:
    """Once within the window is enough."""
    world = World()
    for _ in range(6):
        world.nodes["node-0"].peaks = [percent] * 8
        assert last(world.watch(300)).status is Status.OK
        world.nodes["node-0"].peaks = [0.0] * 8
        assert last(world.watch(3300)).status is Status.OK


def test_some_of_the_gpus_are_told_though_the_others_work() -> None:
    """Traffic is explained by those that work, and is no excuse for the others."""
    world = World()
    node = world.nodes["node-0"]
    node.peaks, node.rate = [95.0, 95.0, *[0.0] * 6], DOWNLOAD_BYTES_PER_S
    node.holds(100, 101)
    finding = last(world.watch(HOUR + 300))
    assert (finding.status, finding.values["idle_gpus"]) == (Status.WARNING, 6)
    assert finding.summary == "6 of 8 GPUs unused for 1h (job 4711)"


def test_a_job_that_holds_fewer_gpus_than_the_node_has_is_told_of_its_own() -> None:
    """Its node has 8, it holds 4, and 3 work: whichever they are, one is unused at least."""
    world = World()
    world.held = {"4711": 4}
    world.nodes["node-0"].peaks = [0.0] * 5 + [90.0] * 3
    assert last(world.watch(HOUR + 300)).values["idle_gpus"] == 1
    world.nodes["node-0"].peaks = [0.0] * 4 + [90.0] * 4
    assert last(world.watch(HOUR + 300)).status is Status.OK


@pytest.mark.parametrize("rate", [DOWNLOAD_BYTES_PER_S, 6_000_000])
def test_a_download_is_no_idleness(rate: int) -> None:
    world = World()
    world.nodes["node-0"].rate = rate
    assert {r.findings[0].status for r in world.watch(3 * HOUR)} == {Status.OK}


def test_what_counts_as_traffic_can_be_set() -> None:
    world = World(traffic=Size(50_000))
    assert last(world.watch(2 * HOUR)).status is Status.OK
    world = World(traffic=Size(200_000))
    assert last(world.watch(2 * HOUR)).status is Status.WARNING


def test_start_up_is_no_idleness() -> None:
    world = World(grace=Duration(7200 + 1800))
    assert not any(r.findings for r in world.watch(1800))
    assert last(world.watch(HOUR)).status is Status.OK
    assert last(world.watch(300)).status is Status.WARNING


def test_an_interactive_job_is_no_idleness() -> None:
    """salloc and `srun --pty` run no batch script, so no node has a daemon of such a step."""
    world = World(batch=False)
    world.nodes["node-0"].has_daemon("4711", step="interactive")
    assert world.says(2 * HOUR)[-1] == "ok: 0 of 8 GPUs at work; an interactive job"


def test_the_batch_script_of_a_job_runs_on_one_of_its_nodes() -> None:
    finding = last(World(nodes=4).watch(HOUR + 300))
    assert (finding.status, finding.values["idle_gpus"]) == (Status.WARNING, 32)
    assert "node" not in finding.labels


def test_excluded_partitions_and_other_users_are_not_looked_at() -> None:
    world = World(exclude=["int*"])
    world.jobs = [world.job("4711", nodes="node-0", partition="interactive")]
    report = world.watch(2 * HOUR)[-1]
    assert (report.findings, report.coverage.status) == ((), Status.OK)
    assert not any(world.asked)
    world = World(users=["bob"])
    assert not world.watch(2 * HOUR)[-1].findings


def test_a_node_without_any_process_of_the_job_is_named() -> None:
    """By its cgroup: in a container nvidia-smi may show no process. Slurm's own step is none."""
    world = World(nodes=3)
    for name in ("node-1", "node-2"):
        world.nodes[name].steps = [p for p in world.nodes[name].steps if p.step == "extern"]
    world.nodes["node-0"].peaks = [90.0] * 8
    finding = last(world.watch(HOUR + 300))
    assert (
        finding.summary == "16 of 24 GPUs unused for 1h (job 4711); no process of it on node-[1-2]"
    )


@pytest.mark.parametrize(("step", "is_named"), [("0", False), ("extern", True), ("", True)])
def test_where_slurm_uses_no_cgroups_its_daemons_tell(step: str, is_named: bool) -> None:
    """The slurmstepd of a step, where one is left. Anybody may have exported the id."""
    world = World(nodes=2)
    first, second = world.nodes["node-0"], world.nodes["node-1"]
    first.steps = [p for p in first.steps if p.witness == "daemon"]
    second.steps = [StepProcess(pid=100, job="4711", step="", witness="environment")]
    if step:
        second.has_daemon("4711", step)
    finding = last(world.watch(HOUR + 300))
    assert finding.status is Status.WARNING
    assert ("no process of it on node-1" in finding.summary) is is_named


UNKNOWN: dict[str, Callable[[IdleNode], object]] = {
    "a GPU does not tell its use (N/A)": lambda n: setattr(n, "peaks", [0.0] * 7 + ["N/A"]),
    "its GPUs are divided (MIG)": lambda n: setattr(
        n, "page", _page(n).replace("<current_mig>Disabled", "<current_mig>Enabled", 1)
    ),
    "its GPUs are shared by MPS": lambda n: setattr(
        n, "page", _page(n).replace("<type>C</type>", "<type>M+C</type>", 1)
    ),
    "job 99 is there too": lambda n: n.steps.append(
        StepProcess(pid=7, job="99", step="0", witness="cgroup")
    ),
    "job ? is there too": lambda n: n.runs("?", 7),
    "processes of jobs not all seen: cgroups: cut": lambda n: setattr(
        n, "blind", ("cgroups: cut",)
    ),
    "nvidia-smi not read (hangs): no answer": lambda n: n.unread.__setitem__(
        "gpus", Unread(kind="hung", why="no answer")
    ),
    "the node's traffic not read (not understood): new": lambda n: n.unread.__setitem__(
        "traffic", Unread(kind="garbage", why="new")
    ),
    "the processes of jobs not read (no permission): no": lambda n: n.unread.__setitem__(
        "steps", Unread(kind="denied", why="no")
    ),
    "unreachable: no route": lambda n: setattr(n, "gone", True),
}


def _page(node: IdleNode) -> str:
    node.holds(100)
    probe = node.probe()
    assert not isinstance(probe, str)
    return str(getattr(probe, "gpus", ""))


@pytest.mark.parametrize("why", UNKNOWN)
def test_what_is_not_known_is_unknown_and_not_idle(why: str) -> None:
    """Also where only one of two nodes is not known: the job may compute there."""
    world = World(nodes=2)
    UNKNOWN[why](world.nodes["node-1"])
    findings = [r.findings[0] for r in world.watch(2 * HOUR)]
    assert {f.status for f in findings} == {Status.UNKNOWN}
    assert f"use of its 16 GPUs not known: node-1: {why}" in findings[-1].summary


def test_a_node_that_two_jobs_share_is_unknown_and_is_not_asked() -> None:
    world = World()
    world.jobs.append(world.job("12", nodes="node-0", user="bob", name="other"))
    world.held["12"] = 4
    report = world.watch(2 * HOUR)[-1]
    assert [f.status for f in report.findings] == [Status.UNKNOWN] * 2
    assert not any(world.asked)
    assert "another job has the node too" in report.findings[0].summary


def test_fewer_gpus_than_the_job_holds_are_unknown() -> None:
    """nvidia-smi within a cgroup shows only some of them."""
    world = World()
    world.held = {"4711": 16}
    says = world.says(2 * HOUR)
    assert says == ["unknown: use of its 16 GPUs not known: its nodes show 8 GPUs, and it holds 16"]


def test_a_job_that_ended_between_two_questions_blinds_nobody() -> None:
    """squeue listed it, and told no GPUs of it a moment later. The others are seen."""
    world = World()
    world.jobs = [*world.jobs, world.job("4712", nodes="node-9")]
    report = world.look()
    assert [f.values["gpus"] for f in report.findings] == [8]


def test_a_time_in_which_nothing_was_seen_is_no_idle_time() -> None:
    """A node that did not answer, or a service that was down, begins the window anew."""
    world = World()
    world.watch(3000)
    world.nodes["node-0"].gone = True
    world.watch(300)
    world.nodes["node-0"].gone = False
    assert last(world.watch(HOUR)).status is Status.OK
    assert last(world.watch(300)).status is Status.WARNING
    world = World()
    world.watch(3000)
    world.clock.advance(2000)
    assert last(world.watch(HOUR)).status is Status.OK
    assert last(world.watch(300)).status is Status.WARNING


def test_looks_that_are_too_far_apart_say_so() -> None:
    world = World()
    assert "looks are too far apart" in world.says(6 * HOUR, every=1200.0)[-1]


@pytest.mark.parametrize(
    ("boot", "moved"), [("boot-2", 0), ("boot-1", 0), ("boot-2", 10**12 + 3000 * QUIET_BYTES_PER_S)]
)
def test_a_reboot_or_a_counter_that_went_back_is_no_quiet_time(boot: str, moved: int) -> None:
    """Even where the counter of the new boot fits the old one."""
    world = World()
    world.watch(3000)
    world.nodes["node-0"].boot, world.nodes["node-0"].moved = boot, moved
    assert last(world.watch(1200)).status is Status.OK


def test_a_job_that_was_requeued_begins_anew() -> None:
    world = World()
    world.watch(3000)
    world.jobs = [world.job("4711", nodes="node-0", started=START.wall // 10**6 - 6600)]
    assert last(world.watch(HOUR)).status is Status.OK


def test_nobody_is_told_twice_a_day() -> None:
    """A job that works for a while and stops again is a note, until a day has passed."""
    world = World()
    assert last(world.watch(HOUR + 300)).status is Status.WARNING
    assert last(world.watch(2 * HOUR)).status is Status.WARNING  # one alert, told once
    world.nodes["node-0"].peaks = [90.0] * 8
    assert last(world.watch(300)).status is Status.OK
    world.nodes["node-0"].peaks = [0.0] * 8
    finding = last(world.watch(2 * HOUR))
    assert finding.status is Status.OK
    assert re.search(
        r"; it was told at \d\d:\d\d \S+, and is not told twice a day", finding.summary
    )
    world.clock.advance(23 * HOUR)
    assert last(world.watch(HOUR + 300)).status is Status.WARNING


def test_its_owner_opts_out_by_a_wish() -> None:
    """Everybody else is told."""
    world = World()
    world.jobs = [world.job("4711", nodes="node-0", wish="sentinel: off")]
    finding = last(world.watch(HOUR + 300))
    assert (finding.status, finding.owner_muted) == (Status.WARNING, True)


def test_in_its_first_week_it_only_counts() -> None:
    world = World(trial=Duration(7 * 86400))
    finding = last(world.watch(2 * HOUR))
    assert finding.status is Status.OK
    assert finding.summary.startswith("on trial for another 6d 22h")
    assert "told nobody: warning: 8 of 8 GPUs unused" in finding.summary
    world.clock.advance(7 * 24 * HOUR)
    assert last(world.watch(HOUR + 300)).status is Status.WARNING


def test_jobs_of_one_name_are_one_message() -> None:
    world = World(nodes=2)
    world.jobs = [world.job(n, nodes=f"node-{at}") for at, n in enumerate(("31", "32"))]
    world.held = {"31": 8, "32": 8}
    for at, number in enumerate(("31", "32")):
        node = world.nodes[f"node-{at}"]
        node.steps.clear()
        node.has_daemon(number)
        node.runs(number, 100)
    (finding,) = world.watch(HOUR + 300)[-1].findings
    assert finding.summary == "16 of 16 GPUs unused for 1h (2 jobs); no process has memory on them"


def test_a_command_that_looks_once_says_what_it_sees() -> None:
    world = World()
    world.nodes["node-0"].peaks = [90.0] * 3 + [0.0] * 5
    (finding,) = world.look(one_shot=True).findings
    assert finding.status is Status.OK
    assert finding.summary == "3 of 8 GPUs at work at this look; the service looks over 1h"


def test_a_window_of_minutes_is_refused() -> None:
    with pytest.raises(Invalid):
        IdleCheck(window=Duration(300))
