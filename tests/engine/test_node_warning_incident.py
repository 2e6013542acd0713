"""A warning about a node, and the death of the training on it, are one incident."""

import re

from msgspec.structs import replace

from sentinel.alerting.state_machine import AlertPolicy
from sentinel.checks.job import JobCheck
from sentinel.checks.nodes import NodesCheck
from sentinel.core.cluster import Node
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.testing import FixedSlurm, job
from tests.checks.job.making import ended
from tests.engine.worlds import Book, Scene, play, world

XID = "GPU has fallen off the bus (Xid 79)"


def test_the_warning_and_the_death_are_one_incident() -> None:
    """Both name the node, which `nodes` reports; each is one message."""
    book = Book()
    checks = {
        "nodes": NodesCheck(),
        "jobs": JobCheck(match=re.compile("train"), users=["alice"], node_warnings=True),
    }
    runtime = world({}, {"book": book})
    kinds = {"nodes": "nodes", "jobs": "job"}
    runtime.checks = {
        name: CheckConfig(name=name, common=CheckCommon(kind=kinds[name]), plugin=plugin)
        for name, plugin in checks.items()
    }
    policies = {name: AlertPolicy(kind=kind, for_=0.0) for name, kind in kinds.items()}
    runtime.plan = replace(runtime.plan, policies={**runtime.plan.policies, **policies})
    broken = Node(name="node-1", state="MIXED", flags=frozenset({"DRAIN"}), reason=XID)
    row, gone = job(nodes="node-1"), replace(broken, state="DOWN")
    lost = ended(state="NODE_FAIL", nodes="node-1", failed_node="node-1")

    async def story(scene: Scene) -> None:
        for slurm, passes in (
            (FixedSlurm(jobs=(row,), nodes=(broken,), reservations=()), 3),
            (FixedSlurm(jobs=(), nodes=(gone,), reservations=(), ends={"10": lost}), 3),
        ):
            runtime.slurm = slurm
            for _ in range(passes):
                scene.clock.advance(100)
                for name in checks:
                    await scene.engine.run_check(name)
                await scene.engine.deliver_due()

    play(story, runtime)
    told = [n for n in book.got if n.check == "jobs"]
    assert [(n.subject, n.reason) for n in told] == [
        ("train node", "firing"),
        ("train node", "resolved"),
        ("train", "firing"),
    ]
    assert len({n.incident for n in told}) == 1
    assert "one of its nodes failed" in told[-1].summary
