"""What people are told of each trouble of each kind, whole: the words of the mail, and the JSON object.

golden.json holds it; `python -m tests.checks.test_golden` writes it anew, and the change is to be read.
What a recommended command does to the fault itself is tested beside the kind (fs, log).
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.alerting.processor import NotificationPlan, make_notification
from sentinel.alerting.state_machine import AlertPolicy, advance_alert
from sentinel.chain.folder import ChainFolder
from sentinel.chain.script_book import CronBook, write_book
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.channels.format.text import render_text, subject_line
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
from sentinel.checks.filesystems.verdict import PathState, path_finding
from sentinel.checks.fs.check import FsCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.memory import MemoryCheck
from sentinel.checks.nodes import NodesCheck
from sentinel.checks.quota.check import QuotaCheck
from sentinel.checks.service import ServiceCheck
from sentinel.checks.slurm import SlurmCheck
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Controller, Job, Node
from sentinel.core.model import Coverage, Key, Notification, Report, Status
from sentinel.core.mounts import Mount
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
from tests.checks.job import making
from tests.checks.job.making import NOW, job
from tests.checks.log import test_check as logs
from tests.checks.network import test_network as links
from tests.checks.remote.test_asked import HALF, WELL, Told
from tests.checks.sensors import test_sensors as heat
from tests.lab.gpus import Failure, dcgmi_json

GOLDEN = Path(__file__).with_name("golden.json")
PLACE = "/PLACE"
"""Stands for the directory of the test."""


def of_fs(answer: PathAnswer, mount: Mount = verdict.DISK) -> Report:
    told = path_finding(
        verdict.on(answer, mount), PathState(mounted=True, writable=verdict.BOTH), verdict.RULES
    )
    return Report(findings=(told,), coverage=Coverage(of="paths", meant=1))


def of_node(disk: Any) -> Report:
    slurm = FixedSlurm(nodes=[Node(name="n1", state="IDLE")])
    remote = Told({"n1": replace(WELL, disks={"/tmp": disk})})
    return FsCheck(paths=[FilePath("/tmp")], nodes="n1").run(context(slurm, remote=remote))


def of_gpu(spoil: Callable[[World], None]) -> Report:
    world = World(GpuCheck(nodes="n1"))
    world.look()
    spoil(world)
    return world.look()


def hot(world: World) -> None:
    gpus = world.nodes["n1"].gpus
    gpus[0] = changed(gpus[0], temperature=97)


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
    return {"cron.daily/x": ScriptRecord(handled=now, runs=(one,))}


def checkpoint(folder: Path, **settings: Any) -> Report:
    place = folder / "step5"
    place.mkdir()
    (place / "shard.pt").write_bytes(b"x" * 1000)
    for path in (place / "shard.pt", place):
        os.utime(path, (NOW - 7200, NOW - 7200))
    one = CheckpointCheck(path=FilePath(str(folder)), job="train", users=["alice"], **settings)
    return one.run(context(FixedSlurm(jobs=[job()]), limit=30.0))


def quota(used: int) -> Report:
    said = json.dumps({"used_bytes": used, "limit_bytes": 100, "entries": 9, "entries_limit": 10})
    return QuotaCheck(paths=[FilePath("/")], command=["echo", said]).run(context(limit=30.0))


def of_job(*ends: Any, **waiting: Any) -> Report:
    """A training that ran at the first look; at the next this is what is left of it, and at the
    last the alert is told."""
    watch = making.Watch(making.check())
    watch.look(making.job())
    left = [making.pending(**waiting)] if waiting else []
    found = [watch.look(*left, after=after, ends=list(ends)) for after in (60, 60)][-1]
    if found.patience > 60:
        found = watch.look(*left, after=found.patience - 60, ends=list(ends))
    return Report(findings=(found,), coverage=Coverage(of="jobs", meant=1))


def of_log(at: Path, *lines: str, quiet: float = 0, **settings: Any) -> Report:
    """A log that ends with these lines."""
    log = at / "train.log"
    log.write_text("".join(f"iteration {n} loss 2.5\n" for n in range(5)))
    watch = logs.Watch(logs.mine(), path=FilePath(str(log)), users=["*"], **settings)
    watch.report()
    with log.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.utime(log, (START.wall / 1e6 + 60,) * 2)
    first = watch.report(1)
    return watch.report(quiet) if quiet else first


def of_du() -> Report:
    tree = TreeSizes(
        apparent=99_000, allocated=111_000, entries=3, complete=True, unread=0, errors={}, calls=8,
        dirs={"/x/a": TreeRow(106_000, 2)}, owners={"ann": TreeRow(111_000, 3)},
    )  # fmt: skip
    limits = SpaceLimits(used=Share(85)), SpaceLimits(used=Share(95))
    found = weight("/x", tree, DuSettings(size=Size(100_000)), *limits)
    return Report(findings=(found,), coverage=Coverage(of="paths", meant=1))


def of_clean(at: Path) -> Report:
    """Its clock was set forward: everything looks old."""
    (at / "run1.log").touch()
    ahead = replace(cleaning.NOW, wall=cleaning.NOW.wall + 10**15)
    check = cleaning.check(at)
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


TROUBLES: dict[str, Callable[[Path], Report]] = {
    "chain gone": of_chain,
    "chain held": lambda at: of_chain(at, *REST, making.pending(reason="JobHeldUser", name="s-a")),
    "checkpoint late": lambda at: checkpoint(at, late_after=Duration(1800)),
    "checkpoint few": lambda at: checkpoint(at, fewest=3),
    "clean clock set forward": of_clean,
    "cron failed": lambda at: of_cron(at, records=failed(at)),
    "cron silent": lambda at: of_cron(at, at=START.wall / 1e6 - 7200),
    "cron refused": lambda at: of_cron(at, refused={"cron.daily/x": "may be written by its group"}),
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
    "exec critical": lambda _: ExecCheck(
        command=["sh", "-c", "echo 'RAID degraded|bad=1'; exit 2"]
    ).run(context()),
    "exec no answer": lambda _: ExecCheck(command=["sh", "-c", "exit 9"]).run(context()),
    "fs full": lambda _: of_fs(PathAnswer(usage=verdict.FULL, real="/x")),
    "fs hangs": lambda _: of_fs(PathAnswer(hung=True, waited=5)),
    "fs lost mount": lambda _: of_fs(verdict.HERE, verdict.mount(verdict.BOTH, "/", "ext4")),
    "fs stale handle": lambda _: of_fs(PathAnswer(error="Stale file handle")),
    "fs full on a node": lambda _: of_node(replace(HALF, available=10**9)),
    "fs hangs on a node": lambda _: of_node(Unread(kind="hung", why="statfs did not answer")),
    "gpu fell off the bus": lambda _: of_gpu(lambda world: world.nodes["n1"].xid(79)),
    "gpu double-bit error": lambda _: of_gpu(lambda world: world.nodes["n1"].xid(48)),
    "gpu hot": lambda _: of_gpu(hot),
    "gpu missing": lambda _: of_gpu(lambda world: world.nodes["n1"].gpus.pop()),
    "gpu node silent": lambda _: of_gpu(lambda world: setattr(world.nodes["n1"], "gone", True)),
    "job failed": lambda _: of_job(making.ended(exit_code=1)),
    "job out of memory": lambda _: of_job(making.ended(state="OUT_OF_MEMORY")),
    "job node failed": lambda _: of_job(making.ended(state="NODE_FAIL")),
    "job cancelled": lambda _: of_job(making.ended(state="CANCELLED")),
    "job held": lambda _: of_job(making.ended(), reason="JobHeldUser"),
    "job end unknown": lambda _: of_job(),
    "log stale": lambda at: of_log(at, quiet=60),
    "log NaN": lambda at: of_log(at, *["iteration 9 loss nan"] * 5, progress=logs.ITERATION),
    "log out of memory": lambda at: of_log(
        at, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
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
    "service missing": lambda _: ServiceCheck(processes=["no-such-daemon"]).run(context()),
    "slurm silent": lambda _: of_slurm(None),
    "slurm slow": lambda _: of_slurm(Controller(primary="c1", primary_up=True, latency=20.0)),
    "slurm backup": lambda _: of_slurm(
        Controller(primary="c1", primary_up=False, backups=(("c2", True),), latency=0.1)
    ),
}


def alerts(kind: str, report: Report) -> Iterator[Any]:
    """The messages about all that is bad or cannot be told, worst first."""
    for found in sorted(report.findings, key=lambda one: one.subject):
        if found.status is Status.OK:
            continue
        key = Key("lab", kind, "" if found.status is Status.UNKNOWN else found.subject)
        policy = AlertPolicy(
            kind=kind, blind_after=1, runbook="https://wiki/run", labels={"team": "a"}
        )
        first = advance_alert(key, None, found, policy, START)
        told = advance_alert(
            key, first.alert, found, policy, shift_instant(START, 1e6)
        )  # a patient one
        told = first if first.transition else told
        assert told.alert is not None
        assert told.transition is not None
        yield make_notification(
            told.alert, told.transition, NotificationPlan(cluster="lab", policies={}, channels=())
        )


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


@pytest.mark.parametrize("name", TROUBLES)
def test_the_whole_alert_is_as_it_was_read_last(name: str, tmp_path: Path) -> None:
    """Summary, labels, numbers, commands and runbook, as a mail and as JSON."""
    wanted = json.loads(GOLDEN.read_text())
    assert sorted(wanted) == sorted(TROUBLES)
    assert told(name, tmp_path) == wanted[name]
    assert wanted[name], "no trouble"


def test_each_recommended_command_is_one_that_a_shell_reads() -> None:
    """No quote is left open, whatever a path holds, and the word it begins with is no option."""
    for name, messages in json.loads(GOLDEN.read_text()).items():
        for command in (c for one in messages for c in one["json"].get("commands", ())):
            words = shlex.split(command, comments=True)
            assert words, name
            assert words[0][0].isalpha(), command


if __name__ == "__main__":
    import tempfile

    made = {}
    for one in sorted(TROUBLES):
        with tempfile.TemporaryDirectory() as place:
            made[one] = told(one, Path(place))
    GOLDEN.write_text(json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    sys.exit(0)
