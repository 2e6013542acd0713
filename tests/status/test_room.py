"""The machine room: racks, and what is so of each node."""

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.core.model import Key, Status
from sentinel.status.machine_room import build_rack_rows, build_racks, build_room
from sentinel.status.types import Facts, GpuFact, MetricFact, MetricSeries, NodesFact, WorkFact
from tests.web.scenery import alert, scene

LONG = "x" * 255


@pytest.mark.parametrize(
    ("names", "topology", "found"),
    [
        (["n1", "n2", "n3"], {"leaf2": "n3", "leaf1": "n[1-2]"}, {"leaf1": 2, "leaf2": 1}),
        (["r1n1", "r1n2", "r10n1", "r2n1"], {}, {"r1": 2, "r2": 1, "r10": 1}),
        (["rack3-node12", "rack3-node13.example.org"], {}, {"rack3": 2}),
        (["n1", "n2", "lone"], {"leaf": "n[1-2]"}, {"leaf": 2, "lone": 1}),
        (["n1"], {"leaf": "n[1-2000]", "gone": "m[1-9]"}, {"leaf": 1}),
        ([f"n{n}" for n in range(70)], {}, {"n0 to n31": 32, "n32 to n63": 32, "n64 to n69": 6}),
        ([f"n{n}" for n in range(2000)], {"leaf": "n[0-1999]"}, {"leaf": 2000}),
        ([LONG], {}, {LONG: 1}),
        ([], {}, {}),
    ],
)
def test_racks_are_switches_or_what_names_tell(
    names: list[str], topology: dict[str, str], found: dict[str, int]
) -> None:
    """Every node stands in one rack, whatever the topology leaves out."""
    told = build_racks(names, topology)
    assert [(r.name, len(r.nodes)) for r in told] == [*found.items()]
    assert sorted(n for r in told for n in r.nodes) == [*range(len(names))]


def test_each_node_has_its_state_job_alerts_and_suspects() -> None:
    """The worst alert speaks; what is not known of a node is left out."""
    heat = MetricFact(
        name="gpu_temperature_celsius", help="", labels=("check", "gpu", "node"),
        series=(MetricSeries(labels=("g", "GPU-1", "n2"), value=81.0),),
    )  # fmt: skip
    facts = Facts(
        at=1.0, cluster="c", status=Status.OK, node_gpus={"8": "n[1-2]"}, metrics=(heat,),
        nodes=(NodesFact(state="idle", nodes="n[1-3]", count=3),
               NodesFact(state="down", nodes="n2", count=1, reason="<b>")),
        work=(WorkFact(id="7", name="llm", user="ann", nodes="n[1-2]"),),
        gpus=(GpuFact(subject="GPU-1", node="n2", judged="lemon", score=3.0),),
    )  # fmt: skip
    other = alert(2, "n2", Status.WARNING, key=Key("c", "gpus", "n2"))
    worst = scene([alert(1, "n2"), other]).alerts
    made = build_room(replace(facts, alerts=worst))
    assert [made.states[s] for s in made.state] == ["idle", "down", "idle"]
    assert (made.gpus, made.job, made.reasons) == ([8, 8, 0], [0, 0, -1], {1: "<b>"})
    assert made.suspects == {1: [("GPU-1", "", "lemon", 3.0)]}
    assert made.alerts == {1: ("critical", 2)}
    assert made.heat == {1: [("GPU-1", 81.0)]}
    assert build_rack_rows(made) == [("n1 to n3", 3, {"down": 1, "idle": 2}, 1)]


def test_ten_thousand_nodes_are_a_few_hundred_kilobytes() -> None:
    """With eight GPUs each: columns, no row a GPU."""
    made = build_room(scene(count=10_000))
    assert sum(made.gpus) == 80_000
    assert len(msgspec.json.encode(made)) < 400_000
