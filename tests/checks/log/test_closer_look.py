"""A quiet that is unusual makes sentinel look closer: when, how often, and what is told of it."""

import json
import os
import re
import shlex
import time
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.checks.log import Log
from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.closer_look import may_look_at_nodes
from sentinel.checks.log.closer_look_state import (
    MAX_DAILY_LOOKS,
    PAIR_LOOKS,
    CloserLookState,
    compute_due_in_s,
    count_looks_left,
    measure_quiet_s,
    record_log_look,
    record_node_looks,
)
from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.log_state import LogObservation, LogState, OpenPhase, ProgressMark
from sentinel.checks.log.progress import begin_state, update_state
from sentinel.checks.log.resume_commands import list_resume_commands
from sentinel.checks.log.scan import LogEvent
from sentinel.checks.log.settings import PhaseSettings
from sentinel.checks.users import own_user_name
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.cluster import Job, Submission
from sentinel.core.hostlist import fold_hostlist
from sentinel.core.model import Report, Status
from sentinel.core.node_answers import Answer, Answered, Unreachable
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.engine.pipeline import MAX_SECOND_LOOK_WAIT_S
from sentinel.stacks.closer import SAMPLE, look_closer
from sentinel.testing import START, FixedSlurm, ManualClock, context
from tests.checks.log.jobs import job
from tests.checks.log.test_check import ITERATION, Watch, mine
from tests.kinds import looks

EACH = 8
DAY = 86400.0
Does = Callable[[int, int], Mapping[str, Any]]
"""What a rank does at the N-th look at it: frames, seconds of processor time until then."""


def waits(rank: int, look: int) -> dict[str, Any]:
    return {"frames": [("all_reduce", "/x/torch/distributed/c10d.py", 9), ("step", "/w/t.py", 3)]}


def sleeps(odd: int) -> Does:
    """All wait but one, that stands elsewhere."""

    def does(rank: int, look: int) -> dict[str, Any]:
        return {"frames": [("load", "/w/t.py", 5)]} if rank == odd else waits(rank, look)

    return does


class Nodes:
    """The nodes of a job as stacks.sh answers for them; `asked` counts connections by node."""

    def __init__(self, count: int, does: Does) -> None:
        self.names, self.does = [f"node-{n}" for n in range(count)], does
        self.asked: Counter[str] = Counter()
        self.calls: list[int] = []
        self.silent: set[str] = set()
        self.kernels: dict[str, str] = {}
        self.during: Callable[[], None] = lambda: None

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        marked = re.search(rb"^mark=(\w+)$", stdin, re.MULTILINE)
        if marked is None:  # the question of ask_nodes
            return {node: Answered(code=0) for node in nodes}
        self.calls.append(len(nodes))
        self.asked.update(nodes)
        self.during()
        mark = marked[1].decode()
        return {
            n: Unreachable("no route")
            if n in self.silent
            else self._told(n, mark, b"evidence=1" in stdin)
            for n in nodes
        }

    def probe(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError

    def _told(self, node: str, mark: str, more: bool) -> Answered:
        first, look = self.names.index(node) * EACH, self.asked[node]
        world = f"{EACH}(x{len(self.names)})" if len(self.names) > 1 else f"{EACH}"
        lines = [
            f"node\t{node}\t1",
            "witness\tslurmd\t0\troot",
            "tool\t/p\tpy-spy 0.4",
            "scope\t0",
        ]
        for rank in range(first, first + EACH):
            does = {"cpu": 0.0, **self.does(rank, look)}
            frames = [
                {"name": n, "filename": p, "short_filename": p[1:], "line": at}
                for n, p, at in does["frames"]
            ]
            stack = [{"thread_name": "MainThread", "os_thread_id": 100 + rank, "frames": frames}]
            read = f"stack\t{100 + rank}\t{json.dumps(stack)}"
            lines += [
                f"proc\t{100 + rank}\t1\t0\t{rank - first}\t{rank}\tS\tpython3",
                f"exe\t{100 + rank}\t/usr/bin/python3",
                f"spent\t{100 + rank}\t{int(does['cpu'] * 100)}\t100\t{10 * look}.5\t0",
                f"env\t{100 + rank}\tSLURM_STEP_TASKS_PER_NODE\t{world}",
                f"env\t{100 + rank}\tSLURM_STEP_NODELIST\t{fold_hostlist(self.names)}",
                f"python\t{100 + rank}",
                f"failed\t{100 + rank}\t1\ttorn" if does.get("torn") else read,
            ]
        lines.append(f"seen\t{EACH}")
        if more and node in self.kernels:
            lines.append(f"kernel\t{b64encode(self.kernels[node].encode()).decode()}")
        packer = zlib.compressobj(wbits=31)
        data = packer.compress("\n".join(lines).encode()) + packer.flush()
        return Answered(
            code=0,
            out=f"{mark} {node} 1 {b64encode(data).decode()}\n{mark} {node} end 1\n".encode(),
        )


class World:
    """A training of some nodes, watched once a minute; its memory goes through JSON as in a store."""

    def __init__(self, folder: Path, does: Does, *, nodes: int = 1, **settings: Any) -> None:
        self.log, self.clock = folder / "log", ManualClock(START)
        self.nodes = Nodes(nodes, does)
        self.job = job(
            user=own_user_name(),
            nodes=fold_hostlist(self.nodes.names),
            node_count=nodes,
            started=START.wall // SECOND,
        )
        given = {"path": FilePath(self.log), "job": "train", "progress": re.compile(r"step (\d+)")}
        self.check = Log(
            **{**given, "stale_after": Duration(1800), "trial": Duration(0), **settings}
        )
        self.memory: Any = {}
        self.others: list[Job] = []
        self.submissions: dict[str, Submission] = {}
        self.step = 0

    def look(self, *, steps: int = 0, seconds: float = 60.0) -> Report:
        now = self.clock.advance(seconds)
        with self.log.open("a") as file:
            for _ in range(steps):
                self.step += 1
                file.write(f"step {self.step}\n")
        if steps:
            os.utime(self.log, (now.wall / SECOND,) * 2)
        slurm = FixedSlurm(jobs=[self.job, *self.others], submissions=self.submissions)
        report = self.check.run(
            context(slurm, now, memory=self.memory, remote=self.nodes, limit=30.0)
        )
        self.memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        self.finding = report.findings[0]
        return report

    def asks(self) -> list[float]:
        """The quiet at each closer look from now on, with the runs that the check itself asks for, until it
        is told; no longer than ten minutes."""
        quiets, still, wait = list[float](), 0.0, 60.0
        while still < 600:
            count, began = len(self.nodes.calls), time.monotonic()
            still += wait
            report = self.look(seconds=wait)
            quiets += [still] if len(self.nodes.calls) > count else []
            if report.findings[0].status is Status.CRITICAL:
                break
            wait = min(60.0, report.again or 60.0) + time.monotonic() - began
        return quiets

    def warm(self) -> "World":
        for _ in range(5):
            assert self.look(steps=60).findings[0].status is Status.OK
        assert not self.nodes.calls
        return self

    def early(self) -> str:
        """What it says once it is quiet; empty while it is not told."""
        finding = self.look().findings[0]
        return finding.summary if finding.status is Status.CRITICAL else ""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds between two looks are for the ranks, which are none here."""
    monkeypatch.setattr("sentinel.stacks.closer.PAUSE", 0.0)


def test_a_hang_is_told_at_the_first_minute_of_quiet_with_its_culprit(tmp_path: Path) -> None:
    """Long before the limit; it stays told without further looks, and ends with the next step."""
    world = World(tmp_path, sleeps(5)).warm()
    told = world.early()
    assert re.fullmatch(
        r"hung since \d\d:\d\d at progress 300: rank 5 on node-0 is not in the all_reduce in which"
        r" 7 others wait \(in load \(w/t.py:5\), it uses no processor\)",
        told,
    )
    assert (world.early(), world.nodes.calls) == (told, [1, 1])
    assert world.look(steps=60).findings[0].status is Status.OK


def test_a_step_between_the_looks_acquits(tmp_path: Path) -> None:
    """What moves is not hung, wherever its ranks stand; nobody is told."""
    world = World(tmp_path, sleeps(5)).warm()

    def one_more() -> None:
        with world.log.open("a") as file:
            file.write(f"step {world.step + 1}\n")

    world.nodes.during = one_more
    assert (world.early(), world.nodes.calls) == ("", [1, 1])


def test_where_a_look_lacks_a_rank_a_third_is_taken_at_once(tmp_path: Path) -> None:
    """A torn stack costs some seconds and no pass, which may be a minute later."""

    def torn(rank: int, look: int) -> dict[str, Any]:
        return {**sleeps(5)(rank, look), "torn": rank == 5 and look == 2}

    world = World(tmp_path, torn).warm()
    assert "rank 5 on node-0 is not in the all_reduce" in world.early()
    assert world.nodes.calls == [1, 1, 1]


def test_a_third_look_has_time_beside_two_pauses_of_a_third_each(tmp_path: Path) -> None:
    """As they are by default: the second one is shorter where the looks took their part."""

    def torn(rank: int, look: int) -> dict[str, Any]:
        return {**sleeps(5)(rank, look), "torn": rank == 5 and look == 2}

    nodes, began = Nodes(1, torn), time.monotonic()
    nodes.during = lambda: time.sleep(0.2)
    asked = job(user=own_user_name(), nodes="node-0", node_count=1)
    log = str(tmp_path / "log")
    found = look_closer(
        nodes, asked, nodes.names, log=log, quiet=60.0, before={}, limit=6.0, pause=2.0
    )
    assert (found.looks, found.partial, nodes.calls) == (3, False, [1, 1, 1])
    assert time.monotonic() - began < 6.0


def test_looks_that_all_lack_a_rank_are_taken_once_more_in_the_next_pass(tmp_path: Path) -> None:
    """And no more than once: then it waits until it has been quiet for twice as long."""

    def torn(rank: int, look: int) -> dict[str, Any]:
        return {**sleeps(5)(rank, look), "torn": (rank + look) % 3 == 0}

    world = World(tmp_path, torn).warm()
    counts = []
    for _ in range(11):
        world.look()
        counts.append(len(world.nodes.calls) // 3)
    assert counts == [1, 2, 3, 4, 4, 5, 6, 6, 6, 6, 6]


def test_the_next_looks_do_not_wait_for_the_next_pass(tmp_path: Path) -> None:
    """A pair in which one answers not once more at once, then when the quiet has doubled; what is
    decided, and what advances, asks for nothing."""

    def torn(rank: int, look: int) -> dict[str, Any]:
        return {**sleeps(5)(rank, look), "torn": look <= 9 and (rank + look) % 3 == 0}

    world = World(tmp_path, torn).warm()
    assert world.look(steps=60).again is None
    first, again, doubled, last = world.asks()
    assert first == 60
    assert 65 <= again < 100
    assert 119 < doubled < 150
    assert doubled + 5 <= last < 180
    assert world.look(seconds=5).again is None
    assert world.look(steps=60, seconds=5).again is None


def test_a_quiet_too_short_for_a_look_is_waited_for(tmp_path: Path) -> None:
    """Eleven seconds where two are usual: the look comes at thirty, not at seventy, and the next when its
    signs count."""
    world = World(tmp_path, sleeps(5))
    for _ in range(30):
        world.look(steps=2, seconds=2)
    world.look(seconds=10)
    assert not world.nodes.calls
    assert world.look(seconds=1).again == pytest.approx(19.0, abs=5)
    assert 5.0 <= (world.look(seconds=19).again or 0.0) <= 15.0  # less what the looks took
    assert world.nodes.calls == [1, 1]
    assert world.look(seconds=15).findings[0].status is Status.CRITICAL


def test_of_many_trainings_the_one_that_needs_a_look_asks_for_it(tmp_path: Path) -> None:
    """Each is a subject; one run looks at all."""
    many = {"job": None, "match": re.compile("train"), "path": FilePath(tmp_path / "%x")}
    world = World(tmp_path, sleeps(5), **many)
    world.log = tmp_path / "train"
    for _ in range(30):
        world.look(steps=2, seconds=2)
    assert world.look(seconds=11).again == pytest.approx(19.0, abs=5)


def test_where_nobody_can_look_no_run_is_asked_for(tmp_path: Path) -> None:
    """A job whose nodes are not known: five seconds later they are not either."""
    world = World(tmp_path, sleeps(5)).warm()
    world.job = replace(world.job, nodes="")
    assert [world.look().again for _ in range(3)] == [None] * 3


def test_what_needs_a_longer_quiet_is_looked_at_when_it_is_that_long(tmp_path: Path) -> None:
    """Steps of 40 s: a rank that sleeps counts from two minutes on, three of its intervals. Signs that
    decide nothing wait until the quiet has doubled."""
    world = World(tmp_path, sleeps(5))
    for _ in range(12):
        world.look(steps=1, seconds=40)
    told = [world.look(seconds=20).findings[0].status for _ in range(7)]
    assert told.index(Status.CRITICAL) == 5
    assert len(world.nodes.calls) == 4


HOW = Submission(
    id="7", name="train", user=own_user_name(), workdir="/work", command="/work/train.sh",
    options=("--nodes=2",), exclude="node-9",
)  # fmt: skip


def test_it_is_told_how_it_goes_on_without_the_culprit(tmp_path: Path) -> None:
    """A line that waits for the job that hangs, then the line that ends it. No node is drained for a
    rank that sleeps."""
    world = World(tmp_path, sleeps(5), nodes=2).warm()
    world.submissions = {"7": HOW}
    assert "rank 5 on node-0" in world.early()
    assert looks(world.finding)[0] == "sentinel stacks 7"
    again, end = (one.render() for one in world.finding.acts)
    only = f'[ "$(id -un)" = {own_user_name()} ] && '
    assert again == (
        f"{only}cd /work && sbatch --nodes=2 --dependency=afterany:7 '--exclude=node-[0,9]' /work/train.sh"
    )
    assert end == f"{only}scancel 7"
    world.submissions = {}
    world.look()
    assert world.finding.acts[0].render() == again


@pytest.mark.parametrize(
    ("how", "next_job", "acts"),
    [
        ({"7": HOW}, False, ("sbatch", "scancel")),
        ({"7": HOW}, True, ("scancel",)),
        ({}, True, ("scancel",)),
        ({}, False, ()),
    ],
)
def test_a_hang_without_a_culprit_is_told_with_what_ends_it(
    tmp_path: Path, how: dict[str, Submission], next_job: bool, acts: tuple[str, ...]
) -> None:
    """The new job waits for the end of the one that hangs. What nobody can submit again is not ended."""
    log = tmp_path / "log"
    log.write_text("iteration 5\n")
    waits = [mine(id="8", job_id="8", array_id="8", state="PENDING", nodes="")] * next_job
    told = {"path": FilePath(log), "job": "train", "progress": ITERATION}
    watch = Watch(mine(), *waits, submissions=how, **told)
    well = watch.look()
    assert (well.status, well.acts) == (Status.OK, ())
    hung = watch.look(11)
    assert hung.status is Status.CRITICAL
    assert tuple(one.argv[0] for one in hung.acts) == acts
    assert {one.owner for one in hung.acts} <= {own_user_name()}
    words = [word for one in hung.acts for word in one.argv]
    assert ("--dependency=afterany:7" in words) == ("sbatch" in acts)
    assert not any("7" in word and "xclude" in word for word in words)
    assert ("Act on it" in hung.guidance.todo) == bool(acts)


def test_what_waits_already_goes_on_and_nothing_is_submitted_beside_it(tmp_path: Path) -> None:
    """Two successors would write the same checkpoints."""
    world = World(tmp_path, sleeps(5), nodes=2).warm()
    world.submissions = {"7": HOW}
    following = {"state": "PENDING", "nodes": "", "exclude": "node-9"}
    world.others = [job(id="8", job_id="8", array_id="8", user=own_user_name(), **following)]
    world.early()
    only = f'[ "$(id -un)" = {own_user_name()} ] && '
    assert tuple(one.render() for one in world.finding.acts) == (
        f"{only}scontrol update JobId=8 ExcNodeList=node-9,node-0",
        f"{only}scancel 7",
    )


def test_an_xid_of_the_culprits_node_is_told_and_drains_it(tmp_path: Path) -> None:
    """What the kernel said since the last step; on another node it is told to nobody."""
    for node, kept in (("node-0", True), ("node-1", False)):
        folder = tmp_path / node
        folder.mkdir()
        world = World(folder, sleeps(5), nodes=2).warm()
        world.nodes.kernels = {
            node: "<4>[   12.000000] NVRM: Xid (PCI:0000:4e:00): 79, pid=9, lost"
        }
        assert ("node-0: kernel: Xid 79" in world.early()) == kept
        drains = [one.argv for one in world.finding.acts if "State=DRAIN" in one.argv]
        assert [d[2] for d in drains] == ["NodeName=node-0"] * kept


def test_an_administrator_is_asked_where_the_node_itself_is_at_fault(tmp_path: Path) -> None:
    """Somebody else's job is theirs to submit again; no line is one that a shell reads otherwise."""
    theirs = job(id="7_3", array_id="7", user="alice")
    how = replace(HOW, id="7_3", user="alice", options=("--array=3",))
    commands = list_resume_commands(theirs, "node-0", how, (), "state D in `nv'\n$(x)")
    again, end, drain = (one.render() for one in commands)
    assert again.startswith('[ "$(id -un)" = alice ] && cd /work && sbatch ')
    assert again.endswith("'--exclude=node-[0,9]' /work/train.sh")
    assert "--array=3 --dependency=afterany:7_3" in again
    assert end == '[ "$(id -un)" = alice ] && scancel 7_3'
    assert shlex.split(drain, comments=True) == [
        *("scontrol", "update", "NodeName=node-0", "State=DRAIN"),
        "Reason=job 7_3 hung: state D in `nv'\\n$(x)",
    ]
    assert list_resume_commands(theirs, "node-0", None, ()) == ()


@pytest.mark.parametrize("silent", [1, 2])
def test_nodes_that_do_not_answer_accuse_nobody(tmp_path: Path, silent: int) -> None:
    """With one of two the other's odd rank is seen; with none nothing is."""
    world = World(tmp_path, sleeps(5), nodes=2).warm()
    world.nodes.silent = {*world.nodes.names[-silent:]}
    told = world.early()
    assert ("rank 5 on node-0" in told) == (silent == 1)


def test_only_looking_is_asked_for_before_the_limit(tmp_path: Path) -> None:
    """The job is touched when the limit that the user set has passed, and not a minute earlier."""
    world = World(
        tmp_path, sleeps(5), on_stale=["stacks", "requeue"], stale_after=Duration(600)
    ).warm()
    asked = [[r.action for r in world.look().requests] for _ in range(11)]
    assert asked[0] == ["stacks"]
    assert not any(asked[1:8])
    assert [one for one in asked[8:] if one] == [["stacks", "requeue"]]


@pytest.mark.parametrize("confirmed", [True, False])
def test_on_every_site_it_is_silent_for_a_week_and_says_then_what_it_would_have_told(
    tmp_path: Path, confirmed: bool
) -> None:
    """A new detector counts before it wakes people, also where sentinel itself is new: whether the
    limit said so too is noted. What the limit tells begins with whom the others wait for."""
    world = World(
        tmp_path,
        sleeps(5),
        trial=Duration(7 * DAY),
        stale_after=Duration(180 if confirmed else 900),
    ).warm()
    assert (world.early(), world.nodes.calls) == ("", [1, 1])
    assert looks(world.finding) == ()
    for _ in range(3):
        world.look()
    assert world.finding.status is (Status.CRITICAL if confirmed else Status.OK)
    assert world.finding.summary.startswith("hung since") == confirmed
    assert (", told nobody: hung since" in world.finding.summary) != confirmed
    for _ in range(2):
        world.look(steps=60)
    world.clock.advance(8 * DAY)
    said = world.look(steps=60).findings[0].summary
    assert "in its first week the closer look at nodes told nobody: hung since" in said
    assert ("(the limit told it too)" in said) == confirmed
    assert ("(the limit did not)" in said) != confirmed
    world.clock.advance(8 * DAY)
    assert "first week" not in world.look(steps=60).findings[0].summary


def test_of_64_nodes_some_come_first_and_each_is_connected_to_once_a_look(tmp_path: Path) -> None:
    """512 ranks: a sample twice, then, as nothing in it speaks against a hang, all of them twice."""
    world = World(tmp_path, sleeps(5), nodes=64).warm()
    assert world.early() == ""
    assert world.nodes.calls == [SAMPLE, SAMPLE]
    assert max(world.nodes.asked.values()) == 2
    assert "rank 5 on node-0 is not in the all_reduce in which 511 others wait" in world.early()
    assert world.nodes.calls == [SAMPLE, SAMPLE, 64, 64]
    assert max(world.nodes.asked.values()) == 4


def test_a_quiet_that_is_not_decided_is_looked_at_ever_more_rarely(tmp_path: Path) -> None:
    """Ranks that compute in a collective prove nothing: the limit holds, and looks are few."""

    def computes(rank: int, look: int) -> dict[str, Any]:
        return {**waits(rank, look), "cpu": 10.0 * look}

    world = World(tmp_path, computes, stale_after=Duration(1200)).warm()
    told = [bool(world.early()) for _ in range(21)]
    assert told.index(True) >= 18
    assert 6 <= len(world.nodes.calls) <= 10


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"looks": "off"}, 0),
        ({"looks": "all"}, 2),
        ({"looks": "srun"}, 2),
        ({"progress": "growth"}, 0),
    ],
)
def test_whether_one_looks_is_a_setting(
    tmp_path: Path, settings: dict[str, Any], asked: int
) -> None:
    """And a file that has stopped to grow is no number."""
    world = World(tmp_path, sleeps(5), **settings).warm()
    world.look()
    assert len(world.nodes.calls) == asked


def test_whose_nodes_are_looked_at() -> None:
    """Others' by root alone and on request; no step of Slurm's unless that is wished."""
    mine, other = job(user=own_user_name()), job(user="somebody")
    ssh, steps = Nodes(1, waits), Nodes(1, waits)
    steps.by_steps = True  # type: ignore[attr-defined]
    assert [may_look_at_nodes(w, mine, ssh) for w in ("own", "all", "srun", "off")] == [
        True,
        True,
        True,
        False,
    ]
    assert [may_look_at_nodes(w, mine, steps) for w in ("own", "all", "srun")] == [
        False,
        False,
        True,
    ]
    assert not may_look_at_nodes("own", other, ssh)
    assert not may_look_at_nodes("own", mine, None)


def test_in_a_known_phase_nobody_looks(tmp_path: Path) -> None:
    """The log has said that it saves."""
    world = World(tmp_path, sleeps(5), phases={"save": PhaseSettings(begin=re.compile("saving"))})
    world.warm()
    with world.log.open("a") as file:
        file.write("saving\n")
    for _ in range(5):
        world.look()
    assert not world.nodes.calls


# -- when, without any file ----------------------------------------------------------------


def seen(**more: Any) -> LogState:
    mark = ProgressMark(value=9, since=START, moves=5)
    return LogState(**{"path": "/l", "first": START, "looked": START, "grown": START, "marks": {"step": mark}, **more})  # fmt: skip


def written(ago: float, count: int = 1) -> LogObservation:
    """A log as it is at START, last written so many seconds before."""
    at = START.wall / SECOND - ago
    look = FileStat(inode=1, size=9, mtime=at)
    event = LogEvent(at=0, what="number", name="step", value=9)
    return LogObservation(path="/l", at=START, looks={"/l": look}, events=(event,) * count)


@pytest.mark.parametrize("hang", [*range(0, 60, 5), 59])
@pytest.mark.parametrize("step", [0.5, 10, 30])
def test_from_the_last_step_to_the_second_look_it_takes_two_minutes_at_most(
    hang: int, step: float
) -> None:
    """With a pass a minute, wherever between two the training stops; with slow steps three of them
    and a pass. The pair itself takes 12 s, and counts."""
    last = shift_instant(START, -60)
    count = max(1, int((60 - hang) / step))  # one more at least, or it had been seen before
    doubt = record_log_look(CloserLookState(), written(hang, count), seen(), last)
    late, wait = 0.0, compute_due_in_s(doubt, seen(), TrainingBaseline(), START)
    while wait:
        late = late + wait if wait <= MAX_SECOND_LOOK_WAIT_S else (late // 60 + 1) * 60
        wait = compute_due_in_s(doubt, seen(), TrainingBaseline(), shift_instant(START, late))
    assert measure_quiet_s(doubt, seen(), shift_instant(START, late)) == pytest.approx(late + hang)
    assert late + hang + 20 <= max(120, 3 * step + 60)


@pytest.mark.parametrize("step", [20, 31, 45, 55, 58, 61, 62, 65, 75, 90])
@pytest.mark.parametrize("phase", range(0, 60, 7))
def test_regular_steps_need_no_look_however_they_fall_between_the_passes(
    step: int, phase: int
) -> None:
    """Five hours with a pass a minute. Steps of about a minute came at the end of one pass and at the
    beginning of the next but one: each pass saw one, and took it for faster than it is."""
    running = job(started=START.wall // SECOND)
    doubt, learned, memory, count = CloserLookState(), TrainingBaseline(), None, 0
    for now in range(60, 5 * 3600, 60):
        done = max(0, (now - phase) // step + 1)
        look = FileStat(
            inode=1, size=done, mtime=START.wall / SECOND + phase + (done - 1) * step
        )  # fmt: skip
        events = (
            LogEvent(at=0, what="number", name="step", value=n) for n in range(count + 1, done + 1)
        )
        sight = LogObservation(
            path="/l", at=shift_instant(START, now), job=running, looks={"/l": look},
            places={"/l": ReadPosition(size=done, inode=1)}, events=tuple(events),
        )  # fmt: skip
        before = begin_state(sight, memory)
        memory, learned = update_state(sight, before, learned, True)
        doubt, count = record_log_look(doubt, sight, memory, before.looked), done
        assert compute_due_in_s(doubt, memory, learned, sight.at) > 0, now


def test_a_clock_that_differs_does_not_make_the_quiet_longer() -> None:
    """A file server an hour behind, or ahead, says nothing of when a line was written."""
    last = shift_instant(START, -60)
    for ago in (3600.0, -3600.0, 61.5):
        assert record_log_look(CloserLookState(), written(ago), seen(), last).late == 0.0
    assert record_log_look(CloserLookState(), written(40.0), seen(), last).late == 40.0


def test_looks_are_bounded_by_the_day() -> None:
    """Whatever happens: 40, and again 24 hours after the first."""
    doubt, at = CloserLookState(), START
    count = 0
    for _ in range(3000):
        at = shift_instant(at, 20.0)
        if count_looks_left(doubt, at) >= PAIR_LOOKS:
            doubt, count = record_node_looks(doubt, at, PAIR_LOOKS, {}, 0.0), count + PAIR_LOOKS
    assert count == MAX_DAILY_LOOKS
    assert count_looks_left(doubt, shift_instant(START, DAY + 30)) == MAX_DAILY_LOOKS


@pytest.mark.parametrize(
    "state",
    [
        seen(phase=OpenPhase(name="checkpoint", since=START)),
        seen(done=True),
        seen(marks={"step": ProgressMark(value=1, since=START, moves=1)}),
        seen(marks={"": ProgressMark(value=1, since=START, moves=100)}),
    ],
)
def test_who_starts_saves_or_is_done_is_not_suspected(state: LogState) -> None:
    """Nor what only grows; an ordinary one is, at the same moment."""
    late = shift_instant(START, 900)
    assert compute_due_in_s(CloserLookState(), state, TrainingBaseline(), late) == inf
    assert compute_due_in_s(CloserLookState(), seen(), TrainingBaseline(), late) == 0
    assert (
        compute_due_in_s(replace(CloserLookState(), told="hung"), seen(), TrainingBaseline(), late)
        == inf
    )


# -- a rank that is slow -------------------------------------------------------------------


def slows(odd: int) -> Does:
    """A rank that is somewhere else at each look, while the others wait for it."""

    def does(rank: int, look: int) -> dict[str, Any]:
        return {"frames": [("load", "/w/t.py", look)]} if rank == odd else waits(rank, look)

    return does


def advancing(world: World) -> None:
    """A step between the two looks."""

    def one_more() -> None:
        world.step += 1
        with world.log.open("a") as file:
            file.write(f"step {world.step}\n")

    world.nodes.during = one_more


@pytest.mark.parametrize("nodes", [2, 64])
def test_a_slow_rank_is_named_and_nobody_is_woken(tmp_path: Path, nodes: int) -> None:
    """Two pairs of looks have to find the same; when the steps are as before it is forgotten. Of many
    nodes the sample may hold none that is behind: then all are asked."""
    world = World(tmp_path, slows(EACH * nodes // 2 + 5), nodes=nodes).warm()
    advancing(world)
    reports = [world.look(steps=20) for _ in range(10)]
    assert {r.findings[0].status for r in reports} == {Status.OK}
    assert "slow" not in reports[2].findings[0].summary
    rank, node = EACH * nodes // 2 + 5, nodes // 2
    assert f"slow: rank {rank} on node-{node} is not in the all_reduce" in world.finding.summary
    assert max(world.nodes.asked.values()) <= 8
    assert "slow" not in world.look(steps=60).findings[0].summary


def test_whoever_is_last_by_chance_is_not_named(tmp_path: Path) -> None:
    """At any moment some rank is; another one each time."""
    world = World(tmp_path, waits, nodes=2).warm()
    world.nodes.does = lambda rank, look: slows((look - 1) // 2)(rank, look)
    advancing(world)
    said = [world.look(steps=20).findings[0].summary for _ in range(9)]
    assert len(world.nodes.calls) >= 4
    assert not any("slow" in one for one in said)


def test_only_who_was_behind_in_both_pairs_is_named(tmp_path: Path) -> None:
    """Another rank that is late at the second of them by chance is not."""
    world = World(tmp_path, slows(5), nodes=2).warm()

    def does(rank: int, look: int) -> dict[str, Any]:
        late = {"frames": [("save", "/w/t.py", look)]}
        return late if rank == 12 and look > 2 else slows(5)(rank, look)

    world.nodes.does = does
    advancing(world)
    said = [world.look(steps=20).findings[0].summary for _ in range(9)]
    assert "slow: rank 5 on node-0 is not in the all_reduce" in said[-1]


def test_half_of_the_looks_are_kept_for_what_stands_still() -> None:
    """Steps that are slow all day must not blind it for a hang."""
    slow = CloserLookState(slow=9, day=START, looks=MAX_DAILY_LOOKS // 2)
    assert compute_due_in_s(slow, seen(), TrainingBaseline(), START) == 0
    slow = replace(slow, looks=MAX_DAILY_LOOKS // 2 + PAIR_LOOKS)
    assert compute_due_in_s(slow, seen(), TrainingBaseline(), START) == inf
    assert (
        compute_due_in_s(
            replace(slow, slow=0), seen(), TrainingBaseline(), shift_instant(START, 900)
        )
        == 0
    )


def test_steps_as_usual_lead_to_no_look(tmp_path: Path) -> None:
    """Nor do two looks that were slower, nor numbers that come too rarely to tell."""
    world = World(tmp_path, slows(5)).warm()
    for steps in (60, 45, 55, 30, 30, 60, 70, 60):
        world.look(steps=steps)
    assert not world.nodes.calls
