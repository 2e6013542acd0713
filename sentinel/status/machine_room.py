"""The machine room: racks, their nodes, and the state of each. Pure.

Racks are Slurm's leaf switches or blocks. Without these, they come from the beginning of the nodes'
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from sentinel.core.hostlist import expand_printed
from sentinel.core.text import natural_sort_key, visible
from sentinel.status.node_states import rank_state
from sentinel.status.types import Facts, NodesFact

RACK_BLOCK_NODES = 32
"""How many nodes a rack has if their names do not contain one."""

MAX_DRAWN_NODES = 20_000
"""Nodes that are drawn."""

_RACK_PATTERN = re.compile(r"(.*\d)\D+\d+(?:\D.*)?")
"""`r03n12`, `rack3-node12`: the part before the last number, if it ends with a number."""


class Rack(Struct, frozen=True, kw_only=True):
    """Nodes that stand together; a place in the list of nodes for each."""

    name: str
    nodes: Sequence[int]


class MachineRoom(Struct, frozen=True, kw_only=True):
    """Columns by the place of a node, the order of `names`. `jobs`: id, name, user of each.

    `state` and `job` are places in `states` and `jobs`, -1: none. `suspects`: of a node, its GPUs
    under suspicion with standing and score; `alerts`: how it looks, and how many; `heat`: degrees
    Celsius of the GPUs that a check saw last; `undrawn`: nodes beyond MAX_DRAWN_NODES.
    """

    at: float
    seen: float | None
    trouble: str
    names: Sequence[str]
    undrawn: int
    racks: Sequence[Rack]
    states: Sequence[str]
    state: Sequence[int]
    gpus: Sequence[int]
    jobs: Sequence[tuple[str, str, str]]
    job: Sequence[int]
    reasons: Mapping[int, str]
    suspects: Mapping[int, Sequence[tuple[str, str, str, float]]]
    alerts: Mapping[int, tuple[str, int]]
    heat: Mapping[int, Sequence[tuple[str, float]]]


def build_room(facts: Facts) -> MachineRoom:
    """The room, from data that the page has anyway."""
    groups = index_nodes(facts.nodes)
    names = list(groups)[:MAX_DRAWN_NODES]
    place = {name: n for n, name in enumerate(names)}
    states = list(dict.fromkeys(groups[name].state for name in names))
    counts = _count_node_gpus(facts.node_gpus, place)
    return MachineRoom(
        at=facts.at,
        seen=facts.nodes_seen,
        trouble=facts.nodes_trouble,
        names=[visible(name) for name in names],
        undrawn=len(groups) - len(names),
        racks=build_racks(names, facts.racks),
        states=states,
        state=[states.index(groups[name].state) for name in names],
        gpus=[counts.get(n, 0) for n in range(len(names))],
        jobs=[(j.id, j.name, j.user) for j in facts.work],
        job=_find_node_jobs([job.nodes for job in facts.work], place),
        reasons={place[n]: groups[n].reason[:160] for n in names if groups[n].reason},
        suspects=_find_suspect_gpus(facts, place),
        alerts=_count_node_alerts(facts, place),
        heat=_find_gpu_temperatures(facts, place),
    )


def build_racks(names: Sequence[str], topology: Mapping[str, str]) -> list[Rack]:
    """The racks in the order of their names. Nodes without a switch are grouped by their names."""
    place, found = {name: n for n, name in enumerate(names)}, dict[str, list[int]]()
    left = dict(place)
    for switch, nodes in topology.items():
        mine = [left.pop(name) for name in expand_printed(nodes) if name in left]
        if mine:
            found.setdefault(visible(switch), []).extend(sorted(mine))
    unnamed = list[str]()
    for name in left:
        match = _RACK_PATTERN.fullmatch(name)
        if match:
            found.setdefault(visible(match[1]), []).append(place[name])
        else:
            unnamed.append(name)
    for start in range(0, len(unnamed), RACK_BLOCK_NODES):
        block = unnamed[start : start + RACK_BLOCK_NODES]
        title = block[0] if len(block) == 1 else f"{block[0]} to {block[-1]}"
        found[visible(title)] = [place[name] for name in block]
    return [Rack(name=name, nodes=found[name]) for name in sorted(found, key=natural_sort_key)]


def build_rack_rows(made: MachineRoom) -> list[tuple[str, int, Mapping[str, int], int]]:
    """The same as rows: a rack, its nodes, how many are in each state, and those with alerts."""
    rows: list[tuple[str, int, Mapping[str, int], int]] = []
    for rack in made.racks:
        counts = dict[str, int]()
        for n in rack.nodes:
            state = made.states[made.state[n]]
            counts[state] = counts.get(state, 0) + 1
        worst = dict(sorted(counts.items(), key=lambda one: rank_state(one[0])))
        rows.append((rack.name, len(rack.nodes), worst, sum(n in made.alerts for n in rack.nodes)))
    return rows


def measure_racks(made: MachineRoom) -> list[tuple[int, int]]:
    """Width and height of each rack in pixels, as `layout` of static/room.js draws it in a wide window: so
    much is kept free, so that nothing jumps when it comes."""
    tall, own, gpu = (3, 8, 3) if len(made.names) > 4000 else (6, 14, 5)
    cell = own + min(16, max(made.gpus, default=0)) * gpu + 3
    sizes = list[tuple[int, int]]()
    for rack in made.racks:
        columns = -(-len(rack.nodes) // 64)
        rows = -(-len(rack.nodes) // columns)
        sizes.append((max(columns * cell + 7, 56), 15 + rows * (tall + 1) + 7))
    return sizes


def index_nodes(groups: Iterable[NodesFact]) -> dict[str, NodesFact]:
    """Every node with what is so of it, in the order of their names; the worst of two."""
    found: dict[str, NodesFact] = {}
    for group in groups:
        for name in _expand_nodes(group.nodes):
            known = found.get(name)
            if known is None or rank_state(group.state) < rank_state(known.state):
                found[name] = group
    return dict(sorted(found.items(), key=lambda cell: natural_sort_key(cell[0])))


def _count_node_gpus(told: Mapping[str, str], place: Mapping[str, int]) -> dict[int, int]:
    return {
        place[name]: int(count)
        for count, nodes in told.items()
        for name in _expand_nodes(nodes)
        if name in place
    }


@lru_cache(maxsize=128)
def _expand_nodes(hostlist: str) -> Sequence[str]:
    """The names of a group of nodes, which stays as it is for many pages."""
    return expand_printed(hostlist)


def _find_node_jobs(nodes: Sequence[str], place: Mapping[str, int]) -> list[int]:
    """The first running job of each node."""
    found = [-1] * len(place)
    for n in range(len(nodes) - 1, -1, -1):
        for name in expand_printed(nodes[n]):
            if name in place:
                found[place[name]] = n
    return found


def _find_suspect_gpus(facts: Facts, place: Mapping[str, int]) -> dict[int, Any]:
    found: dict[int, list[tuple[str, str, str, float]]] = {}
    for gpu in facts.gpus:
        if gpu.node in place:
            row = (gpu.subject, gpu.slot, gpu.judged, gpu.score)
            found.setdefault(place[gpu.node], []).append(row)
    return found


def _count_node_alerts(facts: Facts, place: Mapping[str, int]) -> dict[int, tuple[str, int]]:
    """The worst of each node: alerts come the worst first."""
    found: dict[int, tuple[str, int]] = {}
    for alert in facts.alerts:
        n = place.get(alert.labels.get("node", alert.subject))
        if n is not None:
            tone, count = found.get(n, (alert.tone.value, 0))
            found[n] = tone, count + 1
    return found


def _find_gpu_temperatures(
    facts: Facts, place: Mapping[str, int]
) -> dict[int, list[tuple[str, float]]]:
    """What checks of kind gpu saw last: the series that the metrics have."""
    found: dict[int, list[tuple[str, float]]] = {}
    for metric in facts.metrics:
        if metric.name == "gpu_temperature_celsius" and {"node", "gpu"} <= {*metric.labels}:
            node, gpu = metric.labels.index("node"), metric.labels.index("gpu")
            for one in metric.series:
                n = place.get(one.labels[node])
                if n is not None:
                    found.setdefault(n, []).append((one.labels[gpu], one.value))
    return found
