"""Nights with several faults at once: what is told, written down before it is run, by the whole engine."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.orders import Author, acknowledge_alert
from sentinel.alerting.slurm_maintenance import maintenance_changes as maintenances
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Reservation
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.engine import housekeeping
from sentinel.engine.engine import RuntimeConfig
from sentinel.testing import ALL_SEEN, START
from tests.engine.worlds import Grouped, Scene, play, world
from tests.kinds import PlainCheck

KINDS = {
    "control": "slurm", "nodes": "nodes", "gpus": "gpu", "mounts": "fs", "space": "fs", "training": "job",
    "progress": "log", **{f"team{n}": "job" for n in range(6)},
}  # fmt: skip
Seen = Mapping[str, Sequence[Finding]]


class Sees(PlainCheck):
    """What it finds; or it cannot ask Slurm."""

    def __init__(self) -> None:
        self.found: Sequence[Finding] = ()
        self.blind = False

    def run(self, ctx: Context) -> Report:
        if self.blind:
            raise CannotTell("squeue: slurmctld cannot be reached: no answer within 5s")
        return Report(coverage=ALL_SEEN, findings=tuple(self.found))


def bad(subject: str, words: str = "bad", node: str = "", rack: str = "", **values: str) -> Finding:
    labels = {k: v for k, v in {"node": node, "rack": rack}.items() if v}
    return Finding(
        subject=subject, status=Status.CRITICAL, summary=words, labels=labels, values=values
    )


SLURM = tuple(name for name in KINDS if name.startswith("team"))
"""Checks that see nothing while slurmctld hangs."""

GPUS = [bad(f"GPU-{n}-{g}", "Xid 79", node=f"n{n}") for n in range(1, 5) for g in range(8)]
RACK: Seen = {
    "nodes": [bad("rack r1", rack="r1"), *(bad(f"n{n}", "DOWN", f"n{n}", "r1") for n in range(1, 5))],
    "gpus": GPUS,
    "mounts": [bad(f"n{n}:/home", node=f"n{n}") for n in range(1, 5)],
    "training": [bad("ann/llm", "NODE_FAIL", node="n2"), bad("ben/llm", "NODE_FAIL", node="n4")],
}  # fmt: skip
DISK: Seen = {
    "space": [bad("/scratch", "full")],
    "progress": [bad("cat/llm", "quiet for 2h", path="/scratch/cat/log")],
}
STORM: Seen = {"gpus": [*GPUS, *(bad(f"GPU-9-{g}", "Xid 74", node="n9") for g in range(8))]}
HUNG: Seen = {"control": [bad("ctl", "no answer")]}

# What happens; of whom it is told, beside trainings each by itself; and in how many messages at most.
NIGHTS: list[tuple[str, Sequence[Seen], set[str], int]] = [
    ("a rack without power", [RACK], {"rack r1", "ann/llm", "ben/llm"}, 2),
    ("a file system that fills while slurmctld hangs", [DISK, HUNG], {"/scratch", "cat/llm", "ctl"}, 3),
    ("a rack, and a storm of Xids elsewhere", [RACK, STORM], {"rack r1", "ann/llm", "ben/llm", "GPU-9-"}, 3),
    ("all of it", [RACK, DISK, STORM, HUNG], {"rack r1", "ann/llm", "ben/llm", "/scratch", "cat/llm", "GPU-9-", "ctl"}, 6),
]  # fmt: skip


class Night:
    """Checks of every kind and a channel for people, with the engine between them."""

    def __init__(self) -> None:
        self.checks, self.mail = {name: Sees() for name in KINDS}, Grouped()

    @property
    def world(self) -> RuntimeConfig:
        made = world(dict(self.checks), {"mail": self.mail}, blind_after=1)
        configs = {
            name: replace(config, common=replace(config.common, kind=KINDS[name]))
            for name, config in made.checks.items()
        }
        policies = {name: AlertPolicy(kind=kind, blind_after=1) for name, kind in KINDS.items()}
        policies[housekeeping.SELF_CHECK_NAME] = housekeeping.SELF_CHECK_POLICY
        return replace(made, checks=configs, plan=replace(made.plan, policies=policies))

    def happens(self, *seen: Seen) -> None:
        """From now on the checks find all this, and nothing else."""
        for name, check in self.checks.items():
            check.found = [f for found in seen for f in found.get(name, ())]
            check.blind = name in SLURM and HUNG in seen
        self.checks["gpus"].found = [*{f.subject: f for f in self.checks["gpus"].found}.values()]

    async def passes(self, scene: Scene, after: float = 60) -> tuple[set[str], int]:
        """All checks at once, causes last, then what is told: of whom, and in how many messages."""
        scene.clock.advance(after)
        said, sent = len(self.mail.got), len(self.mail.sizes)
        await asyncio.gather(*(scene.engine.run_check(name) for name in reversed(KINDS)))
        await scene.engine.deliver_due()
        return {n.subject for n in self.mail.got[said:]}, len(self.mail.sizes) - sent

    @property
    def ends(self) -> set[str]:
        return {n.subject for n in self.mail.got if n.reason in ("resolved", "gone")}


def same(told: set[str], wanted: set[str]) -> bool:
    """Of a storm any of its GPUs may stand for all."""
    return {w for w in wanted for t in told if t.startswith(w)} == wanted and len(told) == len(
        wanted
    )


@pytest.mark.parametrize(("name", "seen", "wanted", "most"), NIGHTS, ids=[n[0] for n in NIGHTS])
def test_a_night(name: str, seen: Sequence[Seen], wanted: set[str], most: int) -> None:
    """Whichever check ends first: each fault is told once, each dead training too, nobody hears of what
    they explain, and no more ends come than beginnings."""
    night = Night()

    async def story(scene: Scene) -> None:
        assert await night.passes(scene) == (set(), 0)
        night.happens(*seen)
        told, messages = await night.passes(scene)
        assert same(told, wanted), told
        assert messages <= most
        assert await night.passes(scene) == (set(), 0)
        night.happens()
        over, messages = await night.passes(scene)
        assert over == told
        assert messages <= most
        for _ in range(6):
            assert await night.passes(scene) == (set(), 0)

    play(story, night.world)


def test_what_was_acknowledged_yesterday_hides_nothing_of_today() -> None:
    """A node that is out, with its GPUs, acknowledged; a day later a training dies on it while slurmctld
    hangs: two messages, of which one wakes, and none about the node."""
    night = Night()
    out: Seen = {"nodes": [bad("n1", "DRAIN", node="n1")], "gpus": GPUS[:8]}
    dead: Seen = {"training": [bad("ann/llm", "NODE_FAIL", node="n1")]}

    async def story(scene: Scene) -> None:
        await night.passes(scene)
        night.happens(out)
        assert await night.passes(scene) == ({"n1"}, 1)
        said: Any = Author("ann", "cli", "RMA tomorrow")
        for alert in await scene.engine.alerts():
            await scene.engine.order(acknowledge_alert([alert], alert.id, said, scene.clock.now()))
        await scene.engine.deliver_due()
        assert await night.passes(scene, 86_400) == (set(), 0)
        night.happens(out, dead, HUNG)
        assert await night.passes(scene) == ({"ann/llm", "ctl"}, 2)
        (waking,) = [n for n in night.mail.got if n.subject == "ann/llm"]
        assert (waking.reason, waking.severity) == ("firing", Status.CRITICAL)
        assert waking.incident == waking.alert
        assert "ann" not in waking.note

    play(story, night.world)


def test_a_maintenance_from_which_a_rack_does_not_come_back() -> None:
    """While it lasts nobody hears of its nodes, but of the training that dies elsewhere; after it one
    message says what has stayed."""
    night, at = Night(), START.wall // SECOND
    nodes = frozenset(f"n{n}" for n in range(1, 5))
    planned = Reservation(
        name="firmware", starts=at, ends=at + 7200, nodes=nodes, flags=frozenset({"MAINT"})
    )
    elsewhere: Seen = {"training": [bad("dan/llm", "FAILED", node="n7")]}

    async def story(scene: Scene) -> None:
        (quiet,) = maintenances([planned], (), [*nodes, "n7"], scene.clock.now())
        await scene.engine.order(quiet)
        await night.passes(scene)
        lost: Seen = {"gpus": GPUS[:8], "mounts": RACK["mounts"][:1]}
        down: Seen = {"nodes": [bad(n, "DOWN", n) for n in sorted(nodes)], **lost}
        night.happens(lost)
        assert await night.passes(scene) == (set(), 0)
        night.happens(lost, elsewhere)
        assert await night.passes(scene, 3600) == ({"dan/llm"}, 1)
        night.happens(down, elsewhere)
        told, messages = await night.passes(scene, 3600)
        assert messages == 1
        assert same(told, {"n1", "n2", "n3", "n4", "GPU-1-", "n1:/home"})
        assert "began in maintenance reservation firmware" in night.mail.got[-1].note
        assert {a.incident for a in await scene.engine.alerts() if a.labels["node"] != "n7"} == {
            quiet.id
        }

    play(story, night.world)
