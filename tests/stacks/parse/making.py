"""Processes of jobs as launchers make them."""

from collections.abc import Mapping, Sequence

from sentinel.stacks.parse import JobProcess, MissedNode, NodeStacks, StackFrame, StacksDump
from sentinel.stacks.parse.model import ThreadStack

REST = (StackFrame("all_reduce", "torch/distributed/c10d.py", 9, "/x/site-packages/torch/distributed/c10d.py"),
        StackFrame("step", "train.py", 3, "/w/train.py"))  # fmt: skip
ODD = (
    StackFrame("load_batch", "train.py", 5, "/w/train.py"),
    StackFrame("step", "train.py", 2, "/w/train.py"),
)


def python(
    node: str,
    pid: int,
    *,
    frames: Sequence[StackFrame] = REST,
    env: Mapping[str, object] | None = None,
    **more: object,
) -> JobProcess:
    thread = ThreadStack(name="MainThread", id=pid, frames=tuple(frames))
    given = {
        "threads": (thread,) if frames else (),
        "python": True,
        "state": "S",
        "name": "python3",
        "step": "0",
        "env": {k: str(v) for k, v in (env or {}).items()},
        **more,
    }
    return JobProcess(node=node, pid=pid, **given)  # type: ignore[arg-type]


def step(nodes: int, each: int, *, distribution: str = "block") -> list[JobProcess]:
    """A step of srun without torchrun, one Python process a task."""
    names = [f"node-{n}" for n in range(nodes)]
    env = {
        "SLURM_STEP_TASKS_PER_NODE": f"{each}(x{nodes})" if nodes > 1 else each,
        "SLURM_STEP_NODELIST": f"node-[0-{nodes - 1}]" if nodes > 1 else "node-0",
        "SLURM_STEP_NUM_TASKS": nodes * each,
    }
    ranks = [
        (node, node * each + local if distribution == "block" else local * nodes + node)
        for node in range(nodes)
        for local in range(each)
    ]
    return [
        python(names[node], 100 + rank, env={**env, "SLURM_PROCID": rank}, task=rank)
        for node, rank in ranks
    ]


def torchrun(nodes: int, each: int) -> list[JobProcess]:
    """A launcher a node with its ranks, and a DataLoader worker below each."""
    found = []
    for group in range(nodes):
        node, launcher = f"node-{group}", 10
        slurm = {"SLURM_PROCID": group, "SLURM_STEP_TASKS_PER_NODE": f"1(x{nodes})",
                 "SLURM_STEP_NODELIST": f"node-[0-{nodes - 1}]", "SLURM_STEP_NUM_TASKS": nodes}  # fmt: skip
        found.append(python(node, launcher, env=slurm, task=group, frames=ODD))
        for local in range(each):
            rank = group * each + local
            env = {**slurm, "RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": nodes * each,
                   "LOCAL_WORLD_SIZE": each, "GROUP_RANK": group}  # fmt: skip
            found.append(python(node, 100 + rank, env=env, parent=launcher))
            found.append(python(node, 500 + rank, env=env, parent=100 + rank, frames=ODD))
    return found


def dump(processes: Sequence[JobProcess], *, missed: Mapping[str, str] | None = None) -> StacksDump:
    by_node: dict[str, list[JobProcess]] = {}
    for process in processes:
        by_node.setdefault(process.node, []).append(process)
    return StacksDump(
        job="7",
        nodes=tuple(
            NodeStacks(node=n, processes=tuple(some), witness="slurmd")
            for n, some in by_node.items()
        ),
        missed=tuple(MissedNode(n, w) for n, w in (missed or {}).items()),
    )
