"""Submits tests of nodes by srun(1), whole nodes, bounded in time, and reads what they say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.nodes.fanout import ask_all
from sentinel.nodes.test_results import PAIRS, Verdict, again, pairs, verdicts
from sentinel.slurm.client import neutral_environment

_SHELL = (
    'command -v python3 >/dev/null || { echo "$1 $SLURMD_NODENAME missing no python3"; exit 0; }'
)
ARGV = ("/bin/sh", "-c", f'{_SHELL}; exec python3 - "$@"', "sentinel")
FIRST_PORT, PORTS = 20_000, 10_000
"""Below the range that Linux gives out itself (ip_local_port_range, ip(7))."""
_NOISE = re.compile(r"srun: (job \d+ |step |Job step|launch/|Force Terminated|error: \S+: task )")


class Plan(Struct, frozen=True, kw_only=True):
    """One test: its arguments, and how srun is to ask for nodes.

    `minutes`: Slurm's limit; `wait`: seconds for which a node may be busy; `gpus` and
    `addresses` by node; `options`: further words for srun.
    """

    test: str
    path: str = "."
    command: tuple[str, ...] = ()
    minutes: int = 5
    wait: int = 60
    fanout: int = 64
    options: tuple[str, ...] = ()
    gpus: Mapping[str, int] = {}
    addresses: Mapping[str, str] = {}


def run(plan: Plan, nodes: Sequence[str]) -> list[Verdict]:
    """One verdict per node. In tests of pairs, who fails is tried again beside a good one."""
    if plan.test not in PAIRS:
        return _all(plan, [(node,) for node in nodes])
    first = _all(plan, pairs(nodes))
    second = {v.node: v for v in _all(plan, again(first))} if len(nodes) > 2 else {}
    bad = ("fail", "untested")
    return [second.get(v.node, v) if v.word in bad else v for v in first]


def _all(plan: Plan, groups: Sequence[tuple[str, ...]]) -> list[Verdict]:
    """All groups, some at a time; of a node in two groups the worse word counts."""
    by_name = {",".join(group): group for group in groups}
    seconds = plan.wait + 60.0 * plan.minutes + 30.0
    told = ask_all(
        by_name,
        lambda name, limit: _group(plan, by_name[name], limit),
        fanout=plan.fanout,
        limit=seconds * (1 + len(groups) // plan.fanout),
        patience=seconds,
        late=lambda why: verdicts("", "", (), why),
    )
    found: dict[str, Verdict] = {}
    for verdict in (v for answer in told.values() for v in answer):
        if verdict.node not in found or verdict.word != "pass":
            found[verdict.node] = verdict
    return list(found.values())


def _group(plan: Plan, group: tuple[str, ...], limit: float) -> list[Verdict]:
    mark = os.urandom(16).hex()
    try:
        done = proc.run(
            command(plan, group, mark),
            limit=limit,
            env=neutral_environment(os.environ),
            stdin=_program(),
            max_output=2**20,
        )
    except CannotTell as error:
        return verdicts("", mark, group, str(error))
    out = done.out.decode("utf-8", "backslashreplace")
    return verdicts(out, mark, group, _complaint(done.err.decode("utf-8", "backslashreplace")))


def command(plan: Plan, group: tuple[str, ...], mark: str) -> list[str]:
    """srun's arguments: the whole of each node, one task on each, no defaults that wait."""
    gpus = min(plan.gpus.get(node, 0) for node in group)
    port = FIRST_PORT + int(mark[:6], 16) % PORTS
    words = [
        "srun",
        f"--nodes={len(group)}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(group)}",
        "--exclusive",
        "--mem=0",
        *([f"--gres=gpu:{gpus}"] if gpus else []),
        f"--time={plan.minutes}",
        f"--immediate={plan.wait}",
        "--job-name=sentinel-test",
        "--mpi=none",
        "--cpu-bind=none",
        "--quiet",
        *plan.options,
        "--",
        *ARGV,
    ]
    where = [group[0], plan.addresses.get(group[0], group[0]), str(port)]
    return [*words, mark, plan.test, *where, str(gpus), plan.path, *plan.command]


def _complaint(err: str) -> str:
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line and not _NOISE.match(line)]
    return shortened(visible((telling or lines or [""])[0]), 300)


def _program() -> bytes:
    with open(os.path.join(os.path.dirname(__file__), "node_test.py"), "rb") as file:
        return file.read()
