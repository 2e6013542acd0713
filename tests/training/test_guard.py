"""The guard of a training loop: real files, real signals, real processes."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from threading import Barrier, Thread

import pytest

from sentinel import training
from sentinel.training import Guard

LAUNCHERS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


@pytest.fixture(autouse=True)
def _outside_of_jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*LAUNCHERS, "SLURM_JOB_ID", "SLURM_JOB_END_TIME"):
        monkeypatch.delenv(name, raising=False)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def guard_with() -> Iterator[type]:
    """Makes guards that look at every call, and gives their signals back afterwards."""
    made: list[Guard] = []

    class Eager(Guard):
        def __init__(self, **settings: object) -> None:
            super().__init__(**{"every": 0.0, "memory": None, **settings})  # type: ignore[arg-type]
            made.append(self)

    yield Eager
    for guard in reversed(made):
        guard.close()


def test_the_kill_switch_is_seen_by_the_very_first_call(guard_with: type, tmp_path: Path) -> None:
    """A train of queued jobs burns through quickly; the file stays for those behind."""
    switch = tmp_path / "STOP"
    switch.touch()
    guard = guard_with(kill_switch=str(switch), every=3600.0)
    assert guard.should_stop()
    assert guard.reason == f"the kill switch is there: {switch}"
    assert switch.exists()


def test_between_looks_nothing_is_looked_at(guard_with: type, tmp_path: Path) -> None:
    """A switch that comes later is seen at the next look, not before."""
    switch = tmp_path / "STOP"
    guard = guard_with(kill_switch=str(switch), every=3600.0)
    assert not guard.should_stop()
    switch.touch()
    assert not guard.should_stop()
    eager = guard_with(kill_switch=str(switch))
    assert eager.should_stop()


def test_once_true_it_stays_so(guard_with: type, tmp_path: Path) -> None:
    """Who removes the switch while the training saves does not confuse it."""
    switch = tmp_path / "STOP"
    switch.touch()
    guard = guard_with(kill_switch=str(switch))
    assert guard.should_stop()
    switch.unlink()
    assert guard.should_stop()
    assert guard.stopping


def test_the_save_switch_counts_once_and_is_removed(guard_with: type, tmp_path: Path) -> None:
    """A second one counts again."""
    switch = tmp_path / "SAVE"
    guard = guard_with(save_switch=str(switch))
    assert not guard.should_save()
    for _ in range(2):
        switch.touch()
        assert guard.should_save()
        assert not switch.exists()
        assert not guard.should_save()


def test_a_save_switch_that_cannot_be_removed_counts_once(guard_with: type, tmp_path: Path) -> None:
    """A folder is such a one (and so is a file of somebody else): no save at every step."""
    switch = tmp_path / "SAVE"
    switch.mkdir()
    guard = guard_with(save_switch=str(switch))
    assert [guard.should_save() for _ in range(3)] == [True, False, False]
    assert "save_switch" in guard.troubles


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGHUP", "SIGINT"])
def test_a_signal_is_a_reason_to_stop(guard_with: type, name: str) -> None:
    """It is told at the next call, whenever the next look is due; also where it is Ctrl-C."""
    guard = guard_with(every=3600.0, signals=[name])
    assert not guard.should_stop()
    os.kill(os.getpid(), getattr(signal, name))
    assert guard.should_stop()
    assert guard.reason == f"a signal came: {name}"


def test_a_handler_that_was_there_is_called_too_and_comes_back(guard_with: type) -> None:
    """Frameworks have their own; close() gives the signals back."""
    heard: list[int] = []
    mine = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        guard = guard_with()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert guard.should_stop()
        guard.close()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert heard == [signal.SIGUSR1, signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, mine)


@pytest.mark.parametrize(
    ("sent", "ends"), [("SIGUSR1", False), ("SIGHUP", False), ("SIGTERM", True)]
)
def test_a_forked_worker_dies_of_sigterm_alone(guard_with: type, sent: str, ends: bool) -> None:
    """Slurm signals workers of a DataLoader too; its own SIGTERM to them must end them."""
    guard_with()
    ready, up = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(up, b".")
        time.sleep(0.3)
        os._exit(7)
    os.read(ready, 1)
    os.kill(pid, getattr(signal, sent))
    _, status = os.waitpid(pid, 0)
    os.close(ready)
    os.close(up)
    code = os.waitstatus_to_exitcode(status)
    assert code == (-signal.SIGTERM if ends else 7)


def test_a_forked_rank_with_a_guard_of_its_own_lives_to_save(guard_with: type) -> None:
    """main() asks before it forks its ranks; each rank has its own guard, and stops by it."""
    guard_with()
    pid = os.fork()
    if pid == 0:
        guard = guard_with()
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(7 if guard.should_stop() else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_who_ignores_hangups_goes_on_ignoring_them() -> None:
    """nohup: the training outlives its shell."""
    code = (
        "import os, signal; from sentinel.training import Guard; guard = Guard(memory=None)\n"
        "os.kill(os.getpid(), signal.SIGHUP); print(guard.should_stop(), guard.troubles)"
    )
    argv = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-c", code]
    assert subprocess.check_output(argv, text=True) == "False {}\n"


def test_a_handler_of_a_library_in_c_does_not_hinder_the_end() -> None:
    """Python neither knows it nor can set it again."""
    code = (
        "import ctypes, signal\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.signal(signal.SIGUSR1, ctypes.cast(libc.getpid, ctypes.c_void_p))\n"
        "from sentinel.training import Guard\n"
        "Guard(signals=['SIGUSR1'], memory=None).close()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_in_a_thread_signals_are_told_as_a_trouble(guard_with: type) -> None:
    """Python gives signals to the main thread only; the rest of the guard works."""
    found: list[Guard] = []
    thread = Thread(target=lambda: found.append(guard_with()))
    thread.start()
    thread.join()
    assert set(found[0].troubles) == {"SIGTERM", "SIGUSR1", "SIGHUP"}
    assert not found[0].should_stop()


@pytest.mark.parametrize(("left", "stops"), [(85.0, True), (3600.0, False)])
def test_the_end_of_the_allocation_has_a_margin(guard_with: type, left: float, stops: bool) -> None:
    """At least 90 s, on both sides."""
    guard = guard_with(ends=time.time() + left)
    assert guard.should_stop() is stops
    assert guard.reason == ("the allocation is about to end" if stops else "")


def test_the_margin_is_twice_the_slowest_step_plus_the_slowest_save(guard_with: type) -> None:
    """A save between two steps counts for no step."""
    guard = guard_with()
    ticks = iter([100.0, 150.0, 150.0, 400.0, 420.0, 430.0])
    clock, time.monotonic = time.monotonic, lambda: next(ticks)
    try:
        guard.beat(1)  # 100
        guard.beat(2)  # 150: a step of 50 s
        with guard.saving():  # 150 to 400: a save of 250 s
            pass
        guard.beat(3)  # 420: a step of 20 s
    finally:
        time.monotonic = clock
    assert guard.margin == 2 * 50 + 250


def test_slurms_end_is_taken_from_the_environment(
    guard_with: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """srun sets it from 23.02 on."""
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 60))
    assert guard_with().should_stop()


@pytest.mark.parametrize(("free", "stops"), [(2 * 10**9 - 1, True), (2 * 10**9, False)])
def test_gpu_memory_below_the_floor_is_a_reason_to_stop(
    guard_with: type, free: int, stops: bool
) -> None:
    guard = guard_with(gpu_free=lambda: free)
    assert guard.should_stop() is stops


def test_what_cannot_be_looked_at_stops_nothing_and_is_told(
    guard_with: type, tmp_path: Path
) -> None:
    """A training must not die of its guard."""

    def broken() -> int:
        raise RuntimeError("no CUDA device")

    beat = tmp_path / "missing" / "beat"
    guard = guard_with(gpu_free=broken, kill_switch=f"{tmp_path}/{'x' * 300}", heartbeat=str(beat))
    guard.beat(1)
    assert not guard.should_stop()
    assert guard.troubles["gpu_free"] == "RuntimeError: no CUDA device"
    assert set(guard.troubles) == {"gpu_free", "kill_switch", "heartbeat"}


def test_the_heartbeat_is_written_through_no_link(
    guard_with: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others may write too, one of theirs could lead to any file of this user's."""
    victim, path = tmp_path / "checkpoint", tmp_path / "beat"
    victim.write_text("precious")
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f"beat.{os.getpid()}.00000000.new").symlink_to(victim)
    guard = guard_with(heartbeat=str(path))
    guard.beat(1)
    assert (victim.read_text(), path.exists()) == ("precious", False)
    assert "File exists" in guard.troubles["heartbeat"]


def test_a_heartbeat_that_cannot_be_written_leaves_nothing(
    guard_with: type, tmp_path: Path
) -> None:
    """Or a full disk would be full of names soon."""
    (tmp_path / "beat").mkdir()
    guard = guard_with(heartbeat=str(tmp_path / "beat"))
    guard.beat(1)
    assert (set(guard.troubles), os.listdir(tmp_path)) == ({"heartbeat"}, ["beat"])


def test_the_heartbeat_holds_the_last_step_and_never_half_a_line(
    guard_with: type, tmp_path: Path
) -> None:
    """It is replaced, not written over; rank 0 writes it, or each rank its own."""
    beat = tmp_path / "beat"
    guard = guard_with(heartbeat=str(beat))
    guard.beat(41)
    guard.beat(42)
    assert beat.read_text().startswith("step 42 at ")
    guard_with(heartbeat=str(beat), rank=3).beat(99)
    assert "step 42" in beat.read_text()
    guard_with(heartbeat=f"{beat}.{{rank}}", rank=3).beat(99)
    assert (tmp_path / "beat.3").read_text().startswith("step 99 at ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["beat", "beat.3"]


@pytest.mark.parametrize("name", LAUNCHERS)
def test_the_rank_is_what_the_launcher_says(
    guard_with: type, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "5")
    assert guard_with().rank == 5


class Ranks:
    """A collective over threads: the greatest number of all, as an all_reduce with MAX gives."""

    def __init__(self, count: int) -> None:
        self._numbers = [0] * count
        self._barrier = Barrier(count, timeout=10)

    def greatest(self, rank: int, number: int) -> int:
        self._numbers[rank] = number
        self._barrier.wait()
        most = max(self._numbers)
        self._barrier.wait()
        return most


def test_all_ranks_stop_at_the_same_step_whoever_saw_the_reason(tmp_path: Path) -> None:
    """Only rank 0 looks at files; only rank 2 has little GPU memory, from step 3 on."""
    ranks, stopped, saved = Ranks(4), dict[int, tuple[int, str]](), list[tuple[int, int]]()

    def train(rank: int) -> None:
        step = 0
        guard = Guard(
            kill_switch=str(tmp_path / "STOP"),
            save_switch=str(tmp_path / "SAVE"),
            gpu_free=lambda: 0 if rank == 2 and step >= 3 else 10**10,
            agree=lambda number: ranks.greatest(rank, number),
            rank=rank,
            every=0.0,
            memory=None,
        )
        while not guard.should_stop():
            step += 1
            if guard.should_save():
                saved.append((rank, step))
        stopped[rank] = (step, guard.reason)

    (tmp_path / "SAVE").touch()
    threads = [Thread(target=train, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert stopped == dict.fromkeys(range(4), (3, "GPU memory is running out"))
    assert sorted(saved) == [(rank, 1) for rank in range(4)]


if find_spec("torch"):

    def test_gloo_agrees(tmp_path: Path) -> None:
        """The example of the documentation, over two processes with torch.distributed."""
        code = (
            "import sys, torch, torch.distributed as dist\n"
            "from sentinel.training import Guard\n"
            "rank = int(sys.argv[1])\n"
            "dist.init_process_group('gloo', init_method=sys.argv[2], rank=rank, world_size=2)\n"
            "def agree(n):\n"
            "    t = torch.tensor(n)\n"
            "    dist.all_reduce(t, op=dist.ReduceOp.MAX)\n"
            "    return int(t)\n"
            "guard = Guard(agree=agree, rank=rank, every=0, gpu_free=lambda: rank * 10**10)\n"
            "print(guard.should_stop(), guard.reason)\n"
        )
        where = f"file://{tmp_path}/meet"
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(rank), where], stdout=subprocess.PIPE, text=True
            )
            for rank in range(2)
        ]
        answers = [rank.communicate(timeout=60)[0] for rank in ranks]
        assert answers == ["True GPU memory is running out\n"] * 2


def test_it_needs_nothing_but_the_standard_library() -> None:
    """It is imported by trainings whose environments know nothing of sentinel's libraries."""
    for node in ast.walk(ast.parse(Path(training.__file__).read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
