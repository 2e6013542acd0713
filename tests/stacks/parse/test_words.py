"""What is told of a hang: the odd one first, in one line, and no claim that was not seen."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sentinel.stacks.parse import (
    JobProcess,
    StackFrame,
    StacksDump,
    dump_headline,
    dump_lines,
    interpret_dump,
)
from sentinel.stacks.parse.model import BlockedThread
from tests.stacks.parse.making import ODD, dump, python, step, torchrun


def changed(processes: Sequence[JobProcess], rank: int, **fields: object) -> list[JobProcess]:
    return [replace(p, **fields) if p.pid == 100 + rank else p for p in processes]


def odd(processes: Sequence[JobProcess], *ranks: int) -> list[JobProcess]:
    return [python(p.node, p.pid, frames=ODD, env=p.env, task=p.task, parent=p.parent)
            if p.pid - 100 in ranks else p for p in processes]  # fmt: skip


INSIDE = "all_reduce (torch/distributed/c10d.py:9) from step (train.py:3)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            dump(odd(step(4, 16), 37)),
            f"rank 37 (node-2) in load_batch (train.py:5); 63 ranks in {INSIDE}",
        ),
        (
            dump(odd(torchrun(4, 8), 1, 9)),
            f"ranks 1,9 (node-[0-1]) in load_batch (train.py:5); 30 ranks in {INSIDE}",
        ),
        (dump(step(4, 8)), f"all 32 ranks in {INSIDE}"),
        (dump([]), "no process of the job is left on its nodes"),
        (
            dump(changed(step(2, 1), 1, state="Z", threads=())),
            f"rank 1 (node-1) has ended and nobody has noticed (zombie); rank 0 (node-0) in {INSIDE}",
        ),
        (
            dump(changed(step(2, 1), 1, state="T", threads=())),
            f"rank 1 (node-1) is stopped (state T); rank 0 (node-0) in {INSIDE}",
        ),
        (
            dump(changed(step(2, 1), 1, threads=(), why="no permission to read it as uid 5")),
            "rank 0 (node-0) in " + INSIDE
            + "; rank 1 (node-1) not readable: no permission to read it as uid 5",
        ),
        (
            dump(step(2, 1)[:1], missed={"node-1": "no route to host"}),
            f"node-1 (rank 1) was not reached: no route to host; rank 0 (node-0) in {INSIDE}",
        ),
        (
            dump([], missed={"node-1": "no route", "node-0": "refused"}),
            "node-0 was not reached: refused; node-1 was not reached: no route",
        ),
    ],
)  # fmt: skip
def test_the_headline(given: StacksDump, said: str) -> None:
    assert dump_headline(given) == said


@pytest.mark.parametrize(
    ("blocked", "said"),
    [
        (
            BlockedThread(thread=101, wchan="folio_wait_bit", doing="reading", path="/scratch/x"),
            "blocked reading /scratch/x (state D in folio_wait_bit)",
        ),
        (BlockedThread(thread=101, wchan="0", kernel="nv_ioctl do_syscall"), "blocked (state D in nv_ioctl)"),
        (
            BlockedThread(thread=555, wchan="rpc_wait", doing="syncing"),
            "blocked syncing (state D in rpc_wait, thread 555)",
        ),
        (BlockedThread(thread=101), "blocked (state D)"),
    ],
)  # fmt: skip
def test_a_blocked_rank_names_what_it_waits_for(blocked: BlockedThread, said: str) -> None:
    told = dump_headline(dump(changed(step(2, 1), 1, state="D", threads=(), blocked=blocked)))
    assert told == f"rank 1 (node-1) {said}; rank 0 (node-0) in {INSIDE}"


def test_ranks_of_unknown_nodes_are_not_called_gone_while_nodes_are_silent() -> None:
    """With two nodes unreached nobody knows whose they are."""
    processes = [p for p in torchrun(4, 1) if p.node in ("node-0", "node-1")]
    told = dump_headline(dump(processes, missed={"node-2": "cut", "node-3": "cut"}))
    assert "no process any more" not in told


def test_many_places_are_counted() -> None:
    """One line stays one line."""
    processes = [
        python(p.node, p.pid, frames=[StackFrame("f", "a.py", n)], env=p.env, task=p.task)
        for n, p in enumerate(step(2, 8))
    ]
    assert dump_headline(dump(processes)).endswith("; 12 more places with 12 ranks")


def test_outer_frames_do_not_part_ranks() -> None:
    """Rank 0 that writes a log differs further out only."""
    deep = [StackFrame(f"f{n}", "a.py", n) for n in range(8)]
    other = [*deep[:6], StackFrame("log", "b.py", 1), deep[7]]
    processes = [
        python(p.node, p.pid, frames=other if n == 0 else deep, env=p.env, task=p.task)
        for n, p in enumerate(step(1, 3))
    ]
    assert dump_headline(dump(processes)) == "all 3 ranks in f0 (a.py)"


def test_the_end_of_the_job_is_told_first() -> None:
    """What was seen of it until then stands behind."""
    told = dump_headline(replace(dump(step(1, 2)), ended="CANCELLED"))
    assert told.startswith("the job ended during the dump (CANCELLED); all 2 ranks in ")


def test_no_rank_is_odd_where_all_stand_alike() -> None:
    assert interpret_dump(dump(step(4, 8))).startswith("all ranks stand at the same place")
    assert not interpret_dump(dump(odd(step(4, 8), 3)))
    assert "the only rank that was found" in interpret_dump(dump(step(1, 1)))


def test_several_steps_are_told_apart() -> None:
    second = [replace(p, step="1", pid=p.pid + 50) for p in step(1, 2)]
    assert dump_headline(dump([*step(1, 2), *second])) == (
        f"step 0: ranks 0-1 (node-0) in {INSIDE}; step 1: ranks 0-1 (node-0) in {INSIDE}"
    )


def test_all_of_it_for_a_terminal() -> None:
    """Every group with its stack, the odd one first."""
    told = dump_lines(dump(odd(step(2, 2), 3)))
    assert told[2:6] == [
        "rank 3, on node-1: python",
        "    load_batch (train.py:5)",
        "    step (train.py:2)",
        "",
    ]


def test_where_py_spy_is_missing_it_says_how_to_install_it() -> None:
    """For those nodes, once; and not where nothing runs Python."""
    bare = dump(step(2, 1))
    nodes = (replace(bare.nodes[0], no_tool="py-spy is not installed on this node"), bare.nodes[1])
    told = "\n".join(dump_lines(replace(bare, nodes=nodes)))
    assert "No py-spy on node-0, so" in told
    assert "--py-spy PATH" in told
    assert "py-spy" not in "\n".join(dump_lines(bare))
