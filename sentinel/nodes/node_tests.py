"""Submits tests of nodes by srun(1), on whole nodes and with a time limit, and reads their
verdicts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.text import shortened, visible
from sentinel.nodes.fanout import ask_all
from sentinel.nodes.test_results import MEASURED, PAIRS, Verdict, again, pairs, verdicts
from sentinel.slurm.client import neutral_environment

_SHELL = (
    'command -v python3 >/dev/null || { echo "$1 $SLURMD_NODENAME missing no python3"; exit 0; }'
)
_START = "import sys; sys.path[:1] = []; exec(sys.stdin.read())"
"""As `python3 -`, but without modules of the working directory: root may type this in anybody's."""
ARGV = ("/bin/sh", "-c", f"{_SHELL}; exec python3 -c '{_START}' \"$@\"", "sentinel")
FIRST_PORT, PORTS = 20_000, 10_000
"""First port and number of ports for tests, below the range that Linux assigns itself
(ip_local_port_range, ip(7))."""
MIN_PROGRAM_S, PROGRAM_MARGIN_S = 30, 30
_NOISE = re.compile(r"srun: (job \d+ |step |Job step|launch/|Force Terminated|error: \S+: task )")


class Plan(Struct, frozen=True, kw_only=True):
    """One test: its arguments, and how srun is to ask for nodes.

    `minutes`: Slurm's limit; `wait`: seconds for which a node may be busy; `gpus` and
    `addresses` by node; `options`: further words for srun; `job`: the user's own job, in whose
    nodes the test runs beside the other steps.
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
    job: str = ""

    @property
    def program_seconds(self) -> int:
        """The time that a measuring program has. Slurm's limit comes later, so that it is known
        which program did not end."""
        return max(MIN_PROGRAM_S, 60 * self.minutes - PROGRAM_MARGIN_S)


def run(plan: Plan, nodes: Sequence[str]) -> list[Verdict]:
    """One verdict per node. In tests of pairs, a node that fails is tested again beside a good
    one."""
    if plan.test not in PAIRS:
        return _all(plan, [(node,) for node in nodes])
    first = _all(plan, pairs(nodes))
    second = {v.node: v for v in _all(plan, again(first))} if len(nodes) > 2 else {}
    bad = ("fail", "untested")
    return [second.get(v.node, v) if v.word in bad else v for v in first]


def _all(plan: Plan, groups: Sequence[tuple[str, ...]]) -> list[Verdict]:
    """Test all groups. If a node is in two groups, the worse verdict counts."""
    found: dict[str, Verdict] = {}
    for verdict in (v for answer in run_groups(plan, groups) for v in answer):
        if verdict.node not in found or verdict.word != "pass":
            found[verdict.node] = verdict
    return list(found.values())


def run_groups(plan: Plan, groups: Sequence[tuple[str, ...]]) -> list[Sequence[Verdict]]:
    """Test all groups, some at a time. The answers of each group, in their order."""
    by_name = {",".join(group): group for group in groups}
    seconds = plan.wait + 60.0 * plan.minutes + 30.0
    told = ask_all(
        by_name,
        lambda name, limit: _group(plan, by_name[name], limit),
        fanout=plan.fanout,
        limit=seconds * (1 + len(groups) // plan.fanout),
        patience=seconds,
        late=lambda why: verdicts("", "", (), why),
        label=f"testing by {plan.test}",
        unit="nodes" if plan.test not in PAIRS else "pairs",
    )
    return [told[name] for name in by_name]


def _group(plan: Plan, group: tuple[str, ...], limit: float) -> list[Verdict]:
    mark = os.urandom(16).hex()
    try:
        done = proc.run(
            command(plan, group, mark),
            limit=limit,
            env=neutral_environment(os.environ),
            stdin=_program(plan.test),
            max_output=2**20,
        )
    except CannotTell as error:
        return verdicts("", mark, group, str(error))
    # What a program printed is one long line, which decode_lines() would cut.
    out = decode_document(done.out) if plan.test in MEASURED else decode_lines(done.out)
    return verdicts(out, mark, group, _complaint(decode_lines(done.err)))


def command(plan: Plan, group: tuple[str, ...], mark: str) -> list[str]:
    """The srun command: the whole of each node, one task on each, and no site default that
    waits."""
    gpus = min(plan.gpus.get(node, 0) for node in group)
    port = FIRST_PORT + int(mark[:6], 16) % PORTS
    whole_node = ["--exclusive", f"--time={plan.minutes}", f"--immediate={plan.wait}"]
    words = [
        "srun",
        f"--nodes={len(group)}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(group)}",
        *([f"--jobid={plan.job}", "--overlap"] if plan.job else whole_node),
        "--mem=0",
        *([f"--gres=gpu:{gpus}"] if gpus else []),
        "--job-name=sentinel-test",
        "--mpi=none",
        "--cpu-bind=none",
        "--quiet",
        *plan.options,
        "--",
        *ARGV,
    ]
    where = [group[0], plan.addresses.get(group[0], group[0]), str(port)]
    limit = [str(plan.program_seconds)] if plan.test in MEASURED else []
    return [*words, mark, plan.test, *where, str(gpus), plan.path, *limit, *plan.command]


def _complaint(err: str) -> str:
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line and not _NOISE.match(line)]
    return shortened(visible((telling or lines or [""])[0]), 300)


def _program(test: str = "") -> bytes:
    """The program behind a secret of this call, which both nodes of a pair get by their input."""
    name = "node_measure.py" if test in MEASURED else "node_test.py"
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return b"SECRET = '%s'\n" % os.urandom(16).hex().encode("ascii") + file.read()
