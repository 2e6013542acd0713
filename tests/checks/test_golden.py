"""What people are told of each trouble of each kind, whole: the words of the mail, and the JSON object.

golden.json holds it; `python -m tests.checks.test_golden` writes it anew, and the change is to be read.
What a recommended command does to the fault itself is tested beside the kind (fs, log).
"""

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan, make_notification
from sentinel.alerting.state_machine import AlertPolicy, advance_alert
from sentinel.chain.folder import ChainFolder
from sentinel.chain.script_book import CronBook, write_book
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.channels.format.text import make_card, render_text, subject_line
from sentinel.checks import GROUP, KINDS
from sentinel.checks.chain import ChainCheck
from sentinel.checks.checkpoint.check import CheckpointCheck
from sentinel.checks.cron import CronCheck
from sentinel.checks.drained import DrainedCheck
from sentinel.checks.du.settings import DuSettings
from sentinel.checks.du.tree import TreeRow, TreeSizes
from sentinel.checks.du.tree import tree_finding as weight
from sentinel.checks.exec import ExecCheck
from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.checks.filesystems.verdict import PathObservation, PathState, path_finding
from sentinel.checks.fs.check import FsCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.memory import MemoryCheck
from sentinel.checks.nodes import NodesCheck
from sentinel.checks.quota.judge import quota_finding
from sentinel.checks.quota.tools.quota import QuotaAmount, QuotaRow
from sentinel.checks.service import ServiceCheck
from sentinel.checks.slurm import SlurmCheck
from sentinel.checks.users import own_user_name
from sentinel.config.registry import KindRegistry
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Controller, Job, Node, Submission
from sentinel.core.model import Coverage, Key, Notification, Report, Status
from sentinel.core.node_answers import Unreachable
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Share, Size
from sentinel.nodes.probe import Unread
from sentinel.testing import START, FixedSlurm, context
from tests.checks.chain.test_chain import CHAIN, REST
from tests.checks.clean import test_check as cleaning
from tests.checks.diag import test_check as diagnosis
from tests.checks.drained import test_check as drained
from tests.checks.drained.nodes import CLEAN, process
from tests.checks.fs import test_verdict as verdict
from tests.checks.gpu.world import World
from tests.checks.host import test_host as host
from tests.checks.idle.world import World as IdleWorld
from tests.checks.job import making
from tests.checks.job.making import NOW, job
from tests.checks.log import test_check as logs
from tests.checks.network import test_network as links
from tests.checks.remote.test_asked import HALF, WELL, Told
from tests.checks.sensors import test_sensors as heat
from tests.lab.gpus import Failure, dcgmi_json

REGISTRY = KindRegistry(KINDS, GROUP)
GOLDEN = Path(__file__).with_name("golden.json")
PLACE = "/PLACE"
"""Stands for the directory of the test."""


SCRATCH = "/scratch"
FULL = replace(
    verdict.FULL,
    size=10**14,
    used=97 * 10**12,
    free=3 * 10**12,
    inodes=10**9,
    inodes_free=2 * 10**7,
)


def of_fs(answer: PathAnswer, point: str = SCRATCH, kind: str = "xfs") -> Report:
    mount = verdict.mount(verdict.BOTH, point, kind)
    told = path_finding(
        PathObservation(path=SCRATCH, answer=answer, mount=mount, at=START),
        PathState(mounted=True, writable=verdict.BOTH),
        verdict.RULES,
    )
    return Report(findings=(told,), coverage=Coverage(of="paths", meant=1))


def of_node(path: str, disk: Any) -> Report:
    slurm = FixedSlurm(nodes=[Node(name="n1", state="IDLE")])
    remote = Told({"n1": replace(WELL, disks={path: disk})})
    return FsCheck(paths=[FilePath(path)], nodes="n1").run(context(slurm, remote=remote))


def of_gpu(spoil: Callable[[World], None]) -> Report:
    world = World(GpuCheck(nodes="n1"))
    world.look()
    spoil(world)
    return world.look()


def hot(world: World) -> None:
    gpus = world.nodes["n1"].gpus
    gpus[0] = changed(gpus[0], temperature=97, power=412.5, utilization=100)


OFF_THE_BUS = "pid=3124, name=python, GPU has fallen off the bus."
TWO_BITS = (
    "pid=3124, name=python, An uncorrectable double bit error (DBE) has been detected on GPU in the"
    " framebuffer at partition 6, subpartition 0."
)


def of_nodes(**fields: Any) -> Report:
    node = Node(**{"name": "n1", "state": "IDLE", "partitions": ("prod",), **fields})
    return NodesCheck().run(
        context(FixedSlurm(nodes=[node, replace(node, name="n2", state="IDLE")]))
    )


def of_slurm(controller: Controller | None) -> Report:
    return SlurmCheck().run(context(FixedSlurm(controller=controller, jobs=[], nodes=[])))


def of_memory(**memory: int) -> Report:
    full = replace(WELL, memory=replace(WELL.memory, **memory))
    slurm = FixedSlurm(nodes=[Node(name="n1", state="IDLE")])
    return MemoryCheck(nodes="n1").run(context(slurm, remote=Told({"n1": full})))


def of_kills() -> Report:
    slurm, after = FixedSlurm(nodes=[Node(name="n1", state="IDLE")]), 5
    killed = replace(WELL, memory=replace(WELL.memory, oom_kills=after))
    first = MemoryCheck(nodes="n1").run(context(slurm, remote=Told({"n1": WELL})))
    more = {"remote": Told({"n1": killed}), "memory": first.memory or {}}
    return MemoryCheck(nodes="n1").run(context(slurm, **more))


def of_exec(at: Path, script: str) -> Report:
    program = at / "check_raid"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return ExecCheck(command=[program.name], env={"PATH": f"{at}:/bin"}).run(context(name="raid"))


def of_cron(folder: Path, **known: Any) -> Report:
    (folder / ".sentinel").mkdir()
    now = START.wall / 1e6
    (folder / "x.log").write_text("the disk\nis on fire\n")
    write_book(str(folder), CronBook(**{"at": now - 60, **known}))
    return CronCheck(base=FilePath(str(folder))).run(context())


def failed(folder: Path) -> Mapping[str, ScriptRecord]:
    now = START.wall / 1e6
    one = SubmittedRun(
        slot=int(now), job="7", at=now, log=f"{folder}/x.log", state="FAILED", code=1
    )
    good = replace(one, slot=int(now) - 86400, job="6", state="COMPLETED", code=0)
    runs, following = (one, good), int(now) + 86400
    return {"cron.daily/x": ScriptRecord(handled=now, runs=runs, next_slot=following)}


def checkpoint(folder: Path, **settings: Any) -> Report:
    place = folder / "step5"
    place.mkdir()
    (place / "shard.pt").write_bytes(b"x" * 4_000_000)
    for path in (place / "shard.pt", place):
        os.utime(path, (NOW - 7200, NOW - 7200))
    one = CheckpointCheck(path=FilePath(str(folder)), job="train", users=["alice"], **settings)
    return one.run(context(FixedSlurm(jobs=[job()]), limit=30.0))


QUOTA_WARN = SpaceLimits(used=Share(85), inodes_used=Share(85))
QUOTA_CRIT = SpaceLimits(used=Share(95), inodes_used=Share(95))


def quota(percent: int) -> Report:
    space = QuotaAmount(used=percent * 10**10, hard=10**12)
    row = QuotaRow(
        kind="user", name="alice", space=space, entries=QuotaAmount(used=900_000, hard=10**6)
    )
    found = quota_finding("/home", row, QUOTA_WARN, QUOTA_CRIT, NOW)
    return Report(findings=(found,), coverage=Coverage(of="paths", meant=1))


OWNER = "daemon"
"""Stands for alice: a user that every host knows, so that files are read as that user."""
HOME = "/home/alice/llama"


@contextmanager
def open_home() -> Iterator[Path]:
    """A directory that stands for HOME: every user may read it."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield Path(place)


def rename_owner(report: Report, home: Path) -> Report:
    """The report with the names of life."""
    text = msgspec.json.encode(report).decode().replace(str(home), HOME)
    return msgspec.json.decode(re.sub(rf"\b{OWNER}\b", "alice", text), type=Report)


STEPS = "iteration 17999 loss 2.4531\niteration 18000 loss 2.4512\n"
CRASH = """\
Traceback (most recent call last):
  File "train.py", line 212, in <module>
    batch = next(batches)
RuntimeError: DataLoader worker (pid 4140) exited unexpectedly with exit code 1
"""


def of_job(*ends: Any, watched: Mapping[str, Any] | None = None, **waiting: Any) -> Report:
    """A training that ran at the first look; at the next this is what is left of it, and at the
    last the alert is told."""
    with open_home() as home:
        output = home / "slurm-10.out"
        output.write_text(STEPS + (CRASH if any(end.exit_code for end in ends) else ""))
        os.utime(output, (NOW - 300,) * 2)
        if not os.geteuid():
            shutil.chown(output, OWNER)
        submitted = Submission(
            id="10", name="train", user=OWNER, workdir=str(home), command=f"{home}/train.sbatch",
            stdout=f"{home}/slurm-%j.out", options=("--nodes=4", "--gpus-per-node=8"),
            gpus=32, nodes=4, accounting=True,
        )  # fmt: skip
        watch = making.Watch(making.check(**{"users": [OWNER], **(watched or {})}))
        watch.see(FixedSlurm(jobs=[making.job(user=OWNER)], submissions={"10": submitted}))
        slurm = FixedSlurm(
            jobs=[making.pending(user=OWNER, **waiting)] if waiting else [],
            ends={end.job_id: end for end in ends},
            submissions={"10": submitted},
        )
        for seconds in (60, 60):
            watch.clock.advance(seconds)
            found = watch.see(slurm)
        if found.patience > 60:
            watch.clock.advance(found.patience - 60)
            found = watch.see(slurm)
        report = Report(findings=(found,), coverage=Coverage(of="jobs", meant=1))
        return rename_owner(report, home)


LLAMA = logs.job(
    id="4711", job_id="4711", array_id="4711", name="llama-8b", user=OWNER, partition="prod",
    nodes="n[1-4]", node_count=4, started=NOW - 86400,
)  # fmt: skip


def of_log(*lines: str, quiet: float = 0, job: Job | None = LLAMA) -> Report:
    """A log that ends with these lines. `job`: whose it is; None: a file for which nobody named a
    job."""
    with open_home() as home:
        log = home / "train.log"
        old = [f"iteration {n} loss 2.45{n % 10}2\n" for n in range(5000, 5005)]
        log.write_text("".join(old))
        named = {"job": job.name} if job else {}
        jobs = [job] if job else []
        how = {
            one.id: Submission(
                id=one.id, name=one.name, user=OWNER, workdir=str(home),
                command=f"{home}/train.sbatch", options=("--nodes=4", "--gpus-per-node=8"),
            )
            for one in jobs
        }  # fmt: skip
        told = {"path": FilePath(str(log)), "users": ["*"], "submissions": how}
        watch = logs.Watch(*jobs, **told, **named)
        watch.report()
        with log.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.utime(log, (START.wall / 1e6 + 60,) * 2)
        first = watch.report(1)
        return rename_owner(watch.report(quiet) if quiet else first, home)


def of_du() -> Report:
    tree = TreeSizes(
        apparent=99 * 10**12, allocated=111 * 10**12, entries=812_345, complete=True, unread=0,
        errors={}, calls=8, dirs={"/scratch/llm/old-runs": TreeRow(71 * 10**12, 2_112)},
        owners={"ann": TreeRow(104 * 10**12, 801_003)},
    )  # fmt: skip
    limits = SpaceLimits(used=Share(85)), SpaceLimits(used=Share(95))
    found = weight("/scratch/llm", tree, DuSettings(size=Size(10**14)), *limits)
    return Report(findings=(found,), coverage=Coverage(of="paths", meant=1))


def of_clean(at: Path) -> Report:
    """Its clock was set forward: everything looks old."""
    (at / "run1.log").touch()
    ahead = replace(cleaning.NOW, wall=cleaning.NOW.wall + 10**15)
    check = replace(cleaning.check(at), older_than=Duration(86400))
    return cleaning.looked(check, ahead, cleaning.looked(check, cleaning.NOW))


def of_diag(at: Path, text: str, code: int) -> Report:
    site = diagnosis.Site(at, [diagnosis.node("n0")])
    first = site.look()
    site.queue(first)
    site.end(first, "n0", text, code)
    return site.look()


def of_chain(at: Path, *jobs: Job) -> Report:
    place = ChainFolder(str(at / "chain"))
    place.install_files(CHAIN, "")
    return ChainCheck(dir=FilePath(place.folder)).run(context(FixedSlurm(jobs=jobs)))


def of_network(**fields: Any) -> Report:
    ill = replace(links.WELL, **fields)
    return links.nights(links.probe(links.WELL), links.probe(ill), links.probe(ill))[-1]


def of_sensors(reading: Any, *hot: Any) -> Report:
    night, way = heat.Night(ipmi=True), heat.Way(heat.hwmon(*hot), heat.Ipmi(readings=(reading,)))
    return [night.look(way, one_shot=True) for _ in range(2)][-1]


def of_host(*parts: Mapping[str, Any]) -> Report:
    night = host.Night()
    return [night.look(host.Way(**part)) for part in parts][-1]


def of_idle() -> Report:
    world = IdleWorld()
    world.nodes["node-0"].holds(*range(100, 108))
    return world.watch(3900)[-1]


TROUBLES: dict[str, Callable[[Path], Report]] = {
    "chain gone": of_chain,
    "chain held": lambda at: of_chain(
        at, *REST, making.pending(reason="JobHeldUser", name="s-a", user=own_user_name())
    ),
    "checkpoint late": lambda at: checkpoint(at, late_after=Duration(1800)),
    "checkpoint few": lambda at: checkpoint(at, fewest=3),
    "clean clock set forward": of_clean,
    "cron failed": lambda at: of_cron(at, records=failed(at)),
    "cron silent": lambda at: of_cron(at, at=START.wall / 1e6 - 7200),
    "cron refused": lambda at: of_cron(
        at,
        refused={"cron.daily/x": "its group may write to it (chmod g-w)"},
        records=failed(at),
    ),
    "diag failed": lambda at: of_diag(at, dcgmi_json("4", [Failure(gpu=3)]), 226),
    "diag unreadable": lambda at: of_diag(at, "Segmentation fault", 139),
    "drained left process": lambda _: drained.run(DrainedCheck(), probe=drained.LEFT),
    "drained state D": lambda _: drained.run(DrainedCheck(), probe=drained.STUCK),
    "drained user": lambda _: drained.run(
        DrainedCheck(), probe=replace(CLEAN, processes=(process(50, 1000, "alice"),))
    ),
    "drained silent": lambda _: drained.run(
        DrainedCheck(), remote=drained.Nodes({"n1": Unreachable("no route to host")})
    ),
    "du over": lambda _: of_du(),
    "exec critical": lambda at: of_exec(
        at, "echo 'md0 is degraded: 7 of 8 disks work, sdc has failed|disks=7'; exit 2"
    ),
    "exec no answer": lambda at: of_exec(at, "exit 9"),
    "fs full": lambda _: of_fs(PathAnswer(usage=FULL, real=SCRATCH)),
    "fs hangs": lambda _: of_fs(PathAnswer(hung=True, waited=5)),
    "fs lost mount": lambda _: of_fs(replace(verdict.HERE, real=SCRATCH), "/", "ext4"),
    "fs stale handle": lambda _: of_fs(PathAnswer(error="Stale file handle")),
    "fs full on a node": lambda _: of_node("/tmp", replace(HALF, available=10**9)),
    "fs hangs on a node": lambda _: of_node(
        "/scratch", Unread(kind="hung", why="no answer within 5 s; it was ended")
    ),
    "gpu fell off the bus": lambda _: of_gpu(
        lambda world: world.nodes["n1"].xid(79, text=OFF_THE_BUS)
    ),
    "gpu double-bit error": lambda _: of_gpu(
        lambda world: world.nodes["n1"].xid(48, text=TWO_BITS)
    ),
    "gpu hot": lambda _: of_gpu(hot),
    "gpu missing": lambda _: of_gpu(lambda world: world.nodes["n1"].gpus.pop()),
    "gpu node silent": lambda _: of_gpu(lambda world: setattr(world.nodes["n1"], "gone", True)),
    "host drive dead": lambda _: of_host({"smart": {"nvme0": 0x08}}),
    "host memory lost data": lambda _: of_host({"kernel": host.log(host.UE)}),
    "host memory wears out": lambda _: of_host(
        {}, {"hardware": replace(host.FINE, memory=(replace(host.MEMORY, corrected=904),))}
    ),
    "host mirror broken": lambda _: of_host(
        {"hardware": replace(host.FINE, raid=(replace(host.MIRROR, missing=1),))}
    ),
    "host clock off": lambda _: of_host(
        *[{"clock": host.ClockSync(word="Normal", offset=-7.8)}] * 2
    ),
    "host clock alone": lambda _: of_host(
        *[{"clock": host.ClockSync(word="Not synchronised")}] * 2
    ),
    "host GPUs hold memory": lambda _: of_host(*[{"gpu_memory": {"GPU-1": 12_799 * 2**20}}] * 2),
    "host log of DCGM": lambda _: of_host(
        {"dcgm": host.ENGINE}, {"dcgm": replace(host.ENGINE, logs={host.DCGM_LOG: 10**9})}
    ),
    "host nv-hostengine hangs": lambda _: of_host(
        *[{"dcgm": replace(host.ENGINE, answers=False)}] * 2
    ),
    "host tasks stuck": lambda _: of_host(*[{"stalled": host.tasks(host.TASK)}] * 3),
    "idle": lambda _: of_idle(),
    "job failed": lambda _: of_job(making.ended(exit_code=1)),
    "job failed, of everybody": lambda _: of_job(
        making.ended(exit_code=1), watched={"name": None, "users": ["*"], "min_gpus": 0}
    ),
    "job failed, of two users": lambda _: of_job(
        making.ended(exit_code=1), watched={"users": [OWNER, "bob"]}
    ),
    "job out of memory": lambda _: of_job(making.ended(state="OUT_OF_MEMORY")),
    "job node failed": lambda _: of_job(making.ended(state="NODE_FAIL")),
    "job cancelled": lambda _: of_job(making.ended(state="CANCELLED")),
    "job held": lambda _: of_job(making.ended(), reason="JobHeldUser"),
    "job end unknown": lambda _: of_job(),
    "log stale": lambda _: of_log(quiet=60),
    "log stale, no job": lambda _: of_log(quiet=60, job=None),
    "log NaN": lambda _: of_log(*(f"iteration {n} loss nan" for n in range(5005, 5010))),
    "log out of memory": lambda _: of_log(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    ),
    "memory killed": lambda _: of_kills(),
    "memory low": lambda _: of_memory(available=10**9),
    "network link down": lambda _: of_network(state="DOWN", phys_state="Polling"),
    "network slow link": lambda _: of_network(rate="100 Gb/sec (1X NDR)"),
    "nodes down": lambda _: of_nodes(state="DOWN", reason="Not responding", reason_time=NOW),
    "nodes drained": lambda _: of_nodes(
        flags=frozenset({"DRAIN"}), reason="Kill task failed", reason_user="root", reason_time=NOW
    ),
    "quota near": lambda _: quota(92),
    "quota over": lambda _: quota(101),
    "sensors dead fan": lambda _: of_sensors(heat.DEAD),
    "sensors heat": lambda _: of_sensors(heat.FAN, heat.HOT),
    "sensors no power": lambda _: of_sensors(heat.UNPLUGGED),
    "service missing": lambda _: ServiceCheck(processes=["opensm"]).run(context()),
    "slurm silent": lambda _: of_slurm(None),
    "slurm slow": lambda _: of_slurm(Controller(primary="c1", primary_up=True, latency=20.0)),
    "slurm backup": lambda _: of_slurm(
        Controller(primary="c1", primary_up=False, backups=(("c2", True),), latency=0.1)
    ),
}


LOOKED_AT_S = {
    "diag": 120,
    "drained": 300,
    "gpu": 600,
    "host": 900,
    "idle": 3600,
    "network": 120,
    "sensors": 120,
}
"""Seconds after START at which the last look was, where there were several: no message is older than
what it tells of."""


PLAN = NotificationPlan(
    cluster="lab", policies={}, channels=(), setup_place="on login1, as sentinel"
)


def alerts(kind: str, report: Report) -> Iterator[Any]:
    """The messages about all that is bad or cannot be told, worst first."""
    for found in sorted(report.findings, key=lambda one: one.subject):
        if found.status is Status.OK:
            continue
        if found.status is Status.UNKNOWN:  # the alert is about the check, as the runner says it
            text = found.summary if kind == "exec" else f"{found.subject}: {found.summary}"
            found = replace(found, subject="", summary=text, values={}, labels={})
        # A plugin is told by the name of its check.
        key = Key("lab", "raid" if kind == "exec" else kind, found.subject)
        # A log is told once it was silent for so long, not when that began.
        quiet = found.values.get("quiet_seconds")
        now = shift_instant(START, quiet if isinstance(quiet, float) else LOOKED_AT_S.get(kind, 0))
        policy = AlertPolicy(
            kind=kind,
            blind_after=1,
            runbook="https://wiki/run",
            labels={"team": "a"},
            host="login1",
            tells_host=REGISTRY.load_kind(kind).TELLS_HOST,
        )
        first = advance_alert(key, None, found, policy, now)
        # A patient one; that of a job is told when that was seen (of_job).
        later = max(120.0, found.patience + 60) if kind == "job" else found.patience + 1
        told = advance_alert(key, first.alert, found, policy, shift_instant(now, later))
        told = first if first.transition else told
        assert told.alert is not None
        assert told.transition is not None
        yield make_notification(told.alert, told.transition, PLAN)


def told(name: str, folder: Path) -> list[Any]:
    """Each alert as mail and as JSON."""
    report = TROUBLES[name](folder)
    messages = []
    for alert in alerts(name.partition(" ")[0], report):
        said = msgspec.json.encode(alert).decode().replace(str(folder), PLACE)
        # The id is made from the subject, which may hold the directory.
        one = msgspec.json.decode(said.replace(alert.alert, "ALERT"), type=Notification)
        messages.append(
            {
                "subject": subject_line([one]),
                "text": render_text([one]).splitlines(),
                "json": msgspec.to_builtins(one),
            }
        )
    return list(json.loads(json.dumps(messages)))


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times in summaries are those of the host's zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", TROUBLES)
def test_the_whole_alert_is_as_it_was_read_last(name: str, tmp_path: Path) -> None:
    """Summary, labels, numbers, commands and runbook, as a mail and as JSON."""
    if name.startswith(("job ", "chain held")) and os.geteuid():
        pytest.skip("only root can make the output of another user, and the chain is root's")
    wanted = json.loads(GOLDEN.read_text())
    assert sorted(wanted) == sorted(TROUBLES)
    assert told(name, tmp_path) == wanted[name]
    assert wanted[name], "no trouble"


ADMINISTRATORS = ("ssh ", "mount ", "systemctl ", "sentinel nodes drain", "sentinel nodes undrain")


@pytest.mark.parametrize("name", TROUBLES)
def test_each_alert_says_how_urgent_it_is_and_the_first_step(name: str) -> None:
    """What only administrators can do has the line that others forward, whole."""
    for message in json.loads(GOLDEN.read_text())[name]:
        told = msgspec.convert(message["json"], Notification)
        assert told.guidance.todo, told.summary
        assert make_card(told).impact or told.kind in ("chain", "exec"), told.summary
        if any(line.startswith(ADMINISTRATORS) for line in told.commands):
            assert told.guidance.ask, told.summary
        assert (
            f'please {told.guidance.ask}"' in "\n".join(message["text"])
        ) or not told.guidance.ask


def test_each_recommended_command_is_one_that_a_shell_reads() -> None:
    """No quote is left open, whatever a path holds, and the word it begins with is no option."""
    for name, messages in json.loads(GOLDEN.read_text()).items():
        for command in (
            c
            for one in messages
            for part in ("commands", "acts")
            for c in one["json"].get(part, ())
        ):
            words = shlex.split(command, comments=True)
            assert words, name
            assert words[0][0].isalpha() or words[0] == "[", command


BELOW = re.compile(r"`([^`]+)` below")


def test_what_stands_below_is_there() -> None:
    """Words name a command by its first words: the messages sort commands by where they are run, so
    a first one may stand last."""
    for name, messages in json.loads(GOLDEN.read_text()).items():
        for told in (msgspec.convert(one["json"], Notification) for one in messages):
            words = told.guidance.todo + told.guidance.impact
            assert not re.search(r"\bcommands? (below|shows?)|(first|second) command", words), name
            for command in BELOW.findall(words):
                assert any(
                    f" {command} " in f" {line} ".replace("'", " ")
                    for line in (*told.commands, *told.acts)
                ), (
                    name,
                    command,
                )
    assert BELOW.findall("`du` below shows it") == ["du"]


PRINTED_RAW = re.compile(
    r"\b(scontrol show job|squeue|tail|du|grep .*/proc/mounts|nvidia-smi( -q|$)|ls(?! -(ld|\w*q)\b))\b"
)
"""What prints names and text of users as they are: the comment of a job, a process's name."""


def test_no_recommended_command_shows_a_terminal_what_users_wrote() -> None:
    """An escape sequence in a job's comment or log would be obeyed: it fills a clipboard, for instance."""
    commands = {
        command
        for messages in json.loads(GOLDEN.read_text()).values()
        for one in messages
        for command in one["json"].get("commands", ())
    }
    raw = {command for command in commands if PRINTED_RAW.search(command)}
    assert len(raw) >= 6
    assert {command for command in raw if not command.rstrip("'").endswith("| cat -v")} == set()


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()

    made = {}
    for one in sorted(TROUBLES):
        with tempfile.TemporaryDirectory() as place:
            made[one] = told(one, Path(place))
    GOLDEN.write_text(json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    sys.exit(0)
