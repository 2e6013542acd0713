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

from sentinel.alerting.processor import Plan, notification
from sentinel.alerting.state_machine import Policy, step
from sentinel.chain.script_book import Book, write
from sentinel.chain.script_history import Record, Submitted
from sentinel.channels.format.text import subject, text
from sentinel.checks.checkpoint.check import Checkpoint
from sentinel.checks.cron import CronCheck
from sentinel.checks.drained import Drained
from sentinel.checks.exec import Exec
from sentinel.checks.fs.check import Fs
from sentinel.checks.fs.probe import Answer
from sentinel.checks.fs.verdict import Seen, finding
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.memory import Memory
from sentinel.checks.nodes import Nodes
from sentinel.checks.quota.check import QuotaCheck
from sentinel.checks.service import Service
from sentinel.checks.slurm import SlurmCheck
from sentinel.core.clock import shifted
from sentinel.core.model import Coverage, Key, Report, Status
from sentinel.core.mounts import Mount
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.nodes.model import Unreachable
from sentinel.nodes.probe import Unread
from sentinel.slurm.model import Controller, Node
from sentinel.testing import START, FixedSlurm, context
from tests.checks.drained import test_check as drained
from tests.checks.drained.nodes import CLEAN, process
from tests.checks.fs import test_verdict as verdict
from tests.checks.gpu.world import World
from tests.checks.job.making import NOW, job
from tests.checks.remote.test_asked import HALF, WELL, Told

GOLDEN = Path(__file__).with_name("golden.json")
PLACE = "/PLACE"
"""Stands for the directory of the test."""


def of_fs(answer: Answer, mount: Mount = verdict.DISK) -> Report:
    told = finding(
        verdict.on(answer, mount), Seen(mounted=True, writable=verdict.BOTH), verdict.RULES
    )
    return Report(findings=(told,), coverage=Coverage(of="paths", meant=1))


def of_node(disk: Any) -> Report:
    slurm = FixedSlurm(nodes=[Node(name="n1", state="IDLE")])
    remote = Told({"n1": replace(WELL, disks={"/tmp": disk})})
    return Fs(paths=[FilePath("/tmp")], nodes="n1").run(context(slurm, remote=remote))


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
    return Nodes().run(context(FixedSlurm(nodes=[node, replace(node, name="n2", state="IDLE")])))


def of_slurm(controller: Controller | None) -> Report:
    return SlurmCheck().run(context(FixedSlurm(controller=controller, jobs=[], nodes=[])))


def of_memory(**memory: int) -> Report:
    full = replace(WELL, memory=replace(WELL.memory, **memory))
    slurm = FixedSlurm(nodes=[Node(name="n1", state="IDLE")])
    return Memory(nodes="n1").run(context(slurm, remote=Told({"n1": full})))


def of_kills() -> Report:
    slurm, after = FixedSlurm(nodes=[Node(name="n1", state="IDLE")]), 5
    killed = replace(WELL, memory=replace(WELL.memory, oom_kills=after))
    first = Memory(nodes="n1").run(context(slurm, remote=Told({"n1": WELL})))
    more = {"remote": Told({"n1": killed}), "memory": first.memory or {}}
    return Memory(nodes="n1").run(context(slurm, **more))


def of_cron(folder: Path, **known: Any) -> Report:
    (folder / ".sentinel").mkdir()
    now = START.wall / 1e6
    (folder / "x.log").write_text("the disk\nis on fire\n")
    write(str(folder), Book(**{"at": now - 60, **known}))
    return CronCheck(base=FilePath(str(folder))).run(context())


def failed(folder: Path) -> Mapping[str, Record]:
    now = START.wall / 1e6
    one = Submitted(slot=int(now), job="7", at=now, log=f"{folder}/x.log", state="FAILED", code=1)
    return {"cron.daily/x": Record(handled=now, runs=(one,))}


def checkpoint(folder: Path, **settings: Any) -> Report:
    place = folder / "step5"
    place.mkdir()
    (place / "shard.pt").write_bytes(b"x" * 1000)
    for path in (place / "shard.pt", place):
        os.utime(path, (NOW - 7200, NOW - 7200))
    one = Checkpoint(path=FilePath(str(folder)), job="train", users=["alice"], **settings)
    return one.run(context(FixedSlurm(jobs=[job()]), limit=30.0))


def quota(used: int) -> Report:
    said = json.dumps({"used_bytes": used, "limit_bytes": 100, "entries": 9, "entries_limit": 10})
    return QuotaCheck(paths=[FilePath("/")], command=["echo", said]).run(context(limit=30.0))


TROUBLES: dict[str, Callable[[Path], Report]] = {
    "checkpoint late": lambda at: checkpoint(at, late_after=Duration(1800)),
    "checkpoint few": lambda at: checkpoint(at, fewest=3),
    "cron failed": lambda at: of_cron(at, records=failed(at)),
    "cron silent": lambda at: of_cron(at, at=START.wall / 1e6 - 7200),
    "cron refused": lambda at: of_cron(at, refused={"cron.daily/x": "may be written by its group"}),
    "drained left process": lambda _: drained.run(Drained(), probe=drained.LEFT),
    "drained state D": lambda _: drained.run(Drained(), probe=drained.STUCK),
    "drained user": lambda _: drained.run(
        Drained(), probe=replace(CLEAN, processes=(process(50, 1000, "alice"),))
    ),
    "drained silent": lambda _: drained.run(
        Drained(), remote=drained.Nodes({"n1": Unreachable("no route to host")})
    ),
    "exec critical": lambda _: Exec(command=["sh", "-c", "echo 'RAID degraded|bad=1'; exit 2"]).run(
        context()
    ),
    "exec no answer": lambda _: Exec(command=["sh", "-c", "exit 9"]).run(context()),
    "fs full": lambda _: of_fs(Answer(usage=verdict.FULL, real="/x")),
    "fs hangs": lambda _: of_fs(Answer(hung=True, waited=5)),
    "fs lost mount": lambda _: of_fs(verdict.HERE, verdict.mount(verdict.BOTH, "/", "ext4")),
    "fs stale handle": lambda _: of_fs(Answer(error="Stale file handle")),
    "fs full on a node": lambda _: of_node(replace(HALF, available=10**9)),
    "fs hangs on a node": lambda _: of_node(Unread(kind="hung", why="statfs did not answer")),
    "gpu fell off the bus": lambda _: of_gpu(lambda world: world.nodes["n1"].xid(79)),
    "gpu double-bit error": lambda _: of_gpu(lambda world: world.nodes["n1"].xid(48)),
    "gpu hot": lambda _: of_gpu(hot),
    "gpu missing": lambda _: of_gpu(lambda world: world.nodes["n1"].gpus.pop()),
    "gpu node silent": lambda _: of_gpu(lambda world: setattr(world.nodes["n1"], "gone", True)),
    "memory killed": lambda _: of_kills(),
    "memory low": lambda _: of_memory(available=10**9),
    "nodes down": lambda _: of_nodes(state="DOWN", reason="Not responding", reason_time=NOW),
    "nodes drained": lambda _: of_nodes(
        flags=frozenset({"DRAIN"}), reason="Kill task failed", reason_user="root", reason_time=NOW
    ),
    "quota near": lambda _: quota(92),
    "quota over": lambda _: quota(101),
    "service missing": lambda _: Service(processes=["no-such-daemon"]).run(context()),
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
        policy = Policy(kind=kind, blind_after=1, runbook="https://wiki/run", labels={"team": "a"})
        first = step(key, None, found, policy, START)
        told = step(key, first.alert, found, policy, shifted(START, 1e6))  # a patient one
        told = first if first.transition else told
        assert told.alert is not None
        assert told.transition is not None
        yield notification(
            told.alert, told.transition, Plan(cluster="lab", policies={}, channels=())
        )


def told(name: str, folder: Path) -> list[Any]:
    """Each alert as mail and as JSON."""
    report = TROUBLES[name](folder)
    messages = [
        {
            "subject": subject([one]),
            "text": text([one]).splitlines(),
            "json": msgspec.to_builtins(one),
        }
        for one in alerts(name.partition(" ")[0], report)
    ]
    words = json.dumps(messages).replace(str(folder), PLACE)
    for one in messages:  # made from the subject, which may hold the directory
        words = words.replace(one["json"]["alert"], "ALERT")
    return list(json.loads(words))


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
