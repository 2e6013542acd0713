"""Which process is which rank, and who is missing, under the launchers there are."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from sentinel.stacks.parse import JobProcess
from sentinel.stacks.parse.seats import RankSeat, find_seats
from tests.stacks.parse.making import ODD, dump, python, step, torchrun

Seats = Sequence[RankSeat]


def ranks(found: Seats) -> list[tuple[int | None, str]]:
    return [(s.rank, s.node) for s in found]


def missing(found: Seats) -> list[tuple[int | None, str]]:
    return [(s.rank, s.node) for s in found if s.process is None]


def without(
    processes: Sequence[JobProcess], drop: Callable[[JobProcess], bool]
) -> list[JobProcess]:
    return [p for p in processes if not drop(p)]


def test_srun_ranks_are_slurms_tasks() -> None:
    assert ranks(find_seats(dump(step(2, 2)))) == [
        (0, "node-0"), (1, "node-0"), (2, "node-1"), (3, "node-1"),
    ]  # fmt: skip


def test_torchrun_ranks_are_its_own_without_launchers_and_workers() -> None:
    """Workers inherit RANK, launchers have Slurm's task numbers: neither is a rank."""
    found = find_seats(dump(torchrun(2, 4)))
    assert ranks(found) == [(r, f"node-{r // 4}") for r in range(8)]
    assert all(s.process and s.process.pid < 500 for s in found)


@pytest.mark.parametrize("distribution", ["block", "cyclic"])
def test_a_missing_task_is_named_with_its_node(distribution: str) -> None:
    """As srun's distributions place it; the one that fits what is seen."""
    processes = step(4, 2, distribution=distribution)
    gone = next(p for p in processes if p.task == 5)
    found = find_seats(dump(without(processes, lambda p: p is gone)))
    assert missing(found) == [(5, gone.node)]


def test_ranks_that_fit_no_distribution_are_missing_from_an_unknown_node() -> None:
    """`--distribution=arbitrary`, plane and the like: no node is better than a wrong one."""
    processes = [replace(p, node="node-1" if p.node == "node-0" else "node-0") for p in step(2, 2)]
    assert missing(find_seats(dump(processes[1:]))) == [(0, "")]


def test_a_missing_rank_of_torchrun_is_on_the_node_of_its_group() -> None:
    processes = without(torchrun(2, 4), lambda p: p.env.get("RANK") == "6")
    assert missing(find_seats(dump(processes))) == [(6, "node-1")]


def test_ranks_of_the_one_node_that_was_not_reached_are_there() -> None:
    """Which group a lost node has is known when it is the only one that is missing."""
    processes = without(torchrun(3, 2), lambda p: p.node == "node-1")
    found = find_seats(dump(processes, missed={"node-1": "no route"}))
    assert missing(found) == [(2, "node-1"), (3, "node-1")]


def test_a_rank_of_the_environment_that_all_share_is_none() -> None:
    """A batch script that exports RANK=0: Slurm's numbers are right."""
    processes = [replace(p, env={**p.env, "RANK": "0"}) for p in step(2, 2)]
    assert [s.rank for s in find_seats(dump(processes))] == [0, 1, 2, 3]


def test_one_whose_environment_cannot_be_read_spoils_no_others() -> None:
    processes = torchrun(1, 2)
    blind = [replace(p, env={}) if p.pid == 101 else p for p in processes if p.pid < 500]
    assert [s.rank for s in find_seats(dump(blind)) if s.process] == [0, None]


def test_monitors_and_batch_scripts_are_no_ranks() -> None:
    """Where Python trains in a step, steps without it and the batch script are left out."""
    shell = JobProcess(node="node-0", pid=5, step="batch", task=0, name="bash", state="S")
    starter = python("node-0", 6, step="batch", parent=5, frames=ODD)
    monitor = JobProcess(node="node-0", pid=7, step="1", task=0, name="nvidia-smi", state="S")
    found = find_seats(dump([shell, starter, monitor, *step(1, 2)]))
    assert [s.process.pid for s in found if s.process] == [100, 101]


def test_python_in_the_batch_script_alone_is_what_trains() -> None:
    shell = JobProcess(node="node-0", pid=5, step="batch", task=0, name="bash", state="S")
    trains = python("node-0", 6, step="batch", parent=5)
    assert [s.process.pid for s in find_seats(dump([shell, trains])) if s.process] == [6]


@pytest.mark.parametrize("told", [{"name": "bash"}, {"name": "run.sh", "exe": "/usr/bin/dash"}])
def test_a_program_that_is_not_python_is_found_below_its_shell(told: dict[str, str]) -> None:
    """A script that is executed itself has its own name; its shell is the file that runs."""
    shell = JobProcess(node="node-0", pid=5, step="0", task=3, state="S", **told)
    program = JobProcess(node="node-0", pid=6, parent=5, step="0", name="xhpl", state="R")
    [seat] = find_seats(dump([shell, program]))
    assert seat.process is not None
    assert (seat.rank, seat.process.pid, seat.process.name) == (3, 6, "xhpl")


def test_processes_that_are_each_others_parents_end_the_search() -> None:
    """Numbers are used again while the node is being read."""
    one, other = python("node-0", 5, parent=6), python("node-0", 6, parent=5)
    assert find_seats(dump([one, other])) is not None


def test_ranks_of_a_node_that_nobody_asked_are_not_called_gone() -> None:
    """A step over several parts of a heterogeneous job names the nodes of all of them."""
    asked = without(step(2, 2), lambda p: p.node == "node-1")
    assert ranks(find_seats(dump(asked))) == [(0, "node-0"), (1, "node-0")]


@pytest.mark.parametrize(
    "env",
    [
        {"RANK": "0", "WORLD_SIZE": "999999999", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "0"},
        {"SLURM_STEP_TASKS_PER_NODE": "999999(x99999)", "SLURM_STEP_NODELIST": "n[1-99999]"},
        {"SLURM_STEP_TASKS_PER_NODE": "0(x999999)", "SLURM_STEP_NODELIST": "n1"},
        {"SLURM_STEP_TASKS_PER_NODE": "99999,99999,99999", "SLURM_STEP_NODELIST": "node-[0-2]"},
    ],
)
def test_a_job_that_claims_a_billion_ranks_is_not_counted_out(env: dict[str, str]) -> None:
    """Any process may say so of itself; whoever asks must not run out of memory."""
    found = find_seats(dump([python("node-0", 5, env=env)]))
    assert [s.process.pid for s in found if s.process] == [5]
    assert len(found) == 1
