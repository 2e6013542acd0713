"""`on_death: [resubmit]`: what is submitted again, how often, and what never is."""

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.cluster import Submission
from sentinel.core.model import ActionRequest
from sentinel.core.settings import FilePath
from sentinel.testing import FixedSlurm, context
from tests.checks.job.making import HOUR, Watch, check, ended, job

ME = pwd.getpwuid(os.geteuid()).pw_name
CURABLE = "iteration {step} loss 2.1\nRuntimeError: NCCL communicator was aborted\n"


class Dying:
    """A training of this user that dies again and again, with what its output says at the end."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.watch = Watch(check(users=[ME], on_death=["resubmit"], **settings))
        self.out, self.number = folder / "out", 10

    def dies(self, said: str, state: str = "FAILED", **end: Any) -> list[ActionRequest]:
        """Runs, dies, is looked at, and once more half a minute later: what is wished for."""
        self.number += 1
        ident, now = str(self.number), self.watch.clock.now().wall // 10**6
        self.watch.look(job(ident, user=ME, started=now - HOUR, submitted=now - 26 * HOUR))
        self.watch.clock.advance(60)
        self.out.write_text(said)
        os.utime(self.out, (now + 50, now + 50))
        over = ended(ident, state, stdout=str(self.out), started=now - HOUR, ended=now + 50, **end)
        how = Submission(id=ident, name="train", user=ME, workdir="/w", command="/w/t.sh a",
                         options=("--nodes=8",), nodes=8)  # fmt: skip
        slurm = FixedSlurm(jobs=[], ends={ident: over}, submissions={ident: how})
        wishes = [*self._wishes(slurm)]
        assert wishes == [], "nothing is done before the second look"
        self.watch.clock.advance(30)
        found = [*self._wishes(slurm)]
        read = [gone["tail"] for gone in self.watch.memory["gone"] if gone["seen"]["id"] == ident]
        assert [one.strip("…\n") in said and bool(one) == bool(said) for one in read] == [True]
        self.watch.clock.advance(30)
        assert [*self._wishes(slurm)] == [], "and it is asked for once"
        return found

    def _wishes(self, slurm: FixedSlurm) -> tuple[ActionRequest, ...]:
        report = self.watch.check.run(
            context(slurm, self.watch.clock.now(), memory=self.watch.memory, limit=60.0)
        )
        self.watch.memory = report.memory or {}
        return report.requests


def test_it_is_submitted_as_it_was_without_the_node_that_failed(tmp_path: Path) -> None:
    """Script, arguments, options and directory of the job that died."""
    (wish,) = Dying(tmp_path).dies(CURABLE.format(step=5), "NODE_FAIL", failed_node="n7")
    assert (wish.action, wish.target, wish.params["workdir"]) == ("resubmit", "11", "/w")
    assert json.loads(wish.params["words"]) == [
        "sbatch",
        "--nodes=8",
        "--dependency=singleton",
        "--exclude=n7",
        "/w/t.sh",
        "a",
    ]


def test_three_times_a_day_and_never_twice_at_the_same_step(tmp_path: Path) -> None:
    """A step that is not known is one step."""
    dying = Dying(tmp_path)
    steps = ["10", "10", "20", "30", "40"]
    asked = [bool(dying.dies(CURABLE.format(step=step))) for step in steps]
    assert asked == [True, False, True, True, False]
    dying.watch.clock.advance(24 * HOUR)
    assert dying.dies(CURABLE.format(step=50))
    other = Dying(tmp_path)
    assert [
        bool(other.dies("RuntimeError: NCCL communicator was aborted\n")) for _ in range(2)
    ] == [True, False]


NEVER = [
    ("ModuleNotFoundError: No module named 'apex'", "FAILED", {}),
    ("ImportError: cannot import name 'x'", "FAILED", {}),
    ("AssertionError: batch", "FAILED", {}),
    ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "FAILED", {}),
    ("slurmstepd: error: Detected 1 oom_kill event", "FAILED", {}),
    # The host's memory in other words: facebookresearch/Mask2Former#185, ziyewang/COMEBin#18.
    (
        "step: 7\nRuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't"
        " allocate memory: you tried to allocate 77309411328 bytes.",
        "FAILED",
        {},
    ),
    ("step: 7\nOSError: [Errno 12] Cannot allocate memory", "FAILED", {}),
    ("step: 7\nterminate called after throwing an instance of 'std::bad_alloc'", "FAILED", {}),
    ("step: 7\nValueError: x", "FAILED", {"exit_code": 9, "or_exit_code": 137}),
    ("iteration 7", "OUT_OF_MEMORY", {}),
    ("iteration 7", "CANCELLED", {}),
    ("iteration 7", "CANCELLED", {"cancelled_by": "admin"}),
    ("iteration 7", "COMPLETED", {"exit_code": 0}),
    ("iteration 7", "FAILED", {"signal": 9}),
    ("iteration 7", "FAILED", {"exit_code": 137}),
    ("iteration 7", "NODE_FAIL", {"reason": "PartitionDown", "source": "squeue"}),
    ("", "FAILED", {"exit_code": 1}),
    ("it said nothing of what went wrong", "FAILED", {"exit_code": 1}),
    # What is not known to pass may be what somebody wished: handlers word it as they like.
    ("iteration 7 loss 2.1\nRuntimeError: bad magic", "FAILED", {"exit_code": 1}),
    ("iteration 7 loss 2.1\nRuntimeError: bad magic", "FAILED", {"exit_code": 134}),
    ("iteration 7 loss 2.1\nRuntimeError: NCCL communicator was aborted", "FAILED", {"signal": 15}),
    ("iteration 7 loss 2.1\nCaught the warning, saving and leaving", "FAILED", {"exit_code": 1}),
    ("iteration 7 loss 2.1\nRuntimeError: stopped by signal 15", "FAILED", {"exit_code": 1}),
    ("iteration 7 loss 2.1\nRuntimeError: SIGXCPU received", "FAILED", {"exit_code": 1}),
]


def test_an_unknown_cause_has_one_try_until_a_step_has_moved(tmp_path: Path) -> None:
    """It starts from the same checkpoint again, and dies some steps earlier or later."""
    dying, said = Dying(tmp_path), CURABLE
    steps = [105, 103, 104, 205]
    assert [bool(dying.dies(said.format(step=step))) for step in steps] == [
        True,
        False,
        False,
        True,
    ]
    dying.watch.clock.advance(48 * HOUR)
    assert dying.dies(said.format(step=204)) == []
    other = Dying(tmp_path)
    lost = "iteration {step} loss 2.1\n[rank3]: RuntimeError: CUDA error: uncorrectable ECC error\n"
    assert [bool(other.dies(lost.format(step=step))) for step in (105, 103)] == [True, True]


@pytest.mark.parametrize(
    ("result", "again"),
    [
        ("remote process exited or there was a network error, NCCL version 2.21.5", True),
        ("unhandled system error (run with NCCL_DEBUG=INFO for details)", True),
        ("invalid argument (run with NCCL_DEBUG=WARN for details)", False),
    ],
)
def test_a_result_of_nccl_says_whether_it_may_pass(
    tmp_path: Path, result: str, again: bool
) -> None:
    """The peer's end or the network, against what the program asked for."""
    said = (
        f"iteration 7 loss 2.1\nRuntimeError: NCCL error in: ProcessGroupNCCL.cpp:2006, {result}\n"
    )
    assert bool(Dying(tmp_path).dies(said, exit_code=1)) == again


@pytest.mark.parametrize(("said", "state", "end"), NEVER)
def test_what_would_die_again_is_not(
    tmp_path: Path, said: str, state: str, end: dict[str, Any]
) -> None:
    """Mistakes of the program, its memory, and what somebody has ended."""
    assert Dying(tmp_path).dies(said, state, **end) == []


def test_never_while_the_kill_switch_stands(tmp_path: Path) -> None:
    """Nor while nobody can see whether it does."""
    switch = tmp_path / "KILL"
    dying = Dying(tmp_path, kill_switch=FilePath(switch))
    assert dying.dies(CURABLE.format(step=5))
    switch.touch()
    assert dying.dies(CURABLE.format(step=6)) == []
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert Dying(tmp_path, kill_switch=FilePath(loop / "x")).dies(CURABLE.format(step=5)) == []


def test_without_the_word_nothing_is_asked_for(tmp_path: Path) -> None:
    """It is opt-in."""
    dying = Dying(tmp_path)
    dying.watch = Watch(check(users=[ME]))
    assert dying.dies(CURABLE.format(step=5)) == []


def test_what_sentinel_submits_again_teaches_no_gap(tmp_path: Path) -> None:
    """Else the second death would be taken for a gap, and told an hour later."""
    dying = Dying(tmp_path)
    assert dying.dies(CURABLE.format(step=5))
    now = dying.watch.clock.now().wall // 10**6
    dying.watch.look(job("99", user=ME, started=now, submitted=now - 1))
    assert dying.watch.memory["delays"] == {}
