"""What a training loop asks: must I stop, shall I save? Standard library only.

    guard = Guard(kill_switch="/scratch/run/STOP", save_switch="/scratch/run/SAVE", heartbeat="/scratch/run/beat")
    if guard.should_stop():
        sys.exit(0)
    for step in range(start, steps):
        train(step)
        guard.beat(step)
        if guard.should_save() or guard.should_stop():
            with guard.saving():
                save(step)
        if guard.stopping:
            break

Nothing here raises because of what it looks at: a training must not die of its guard. What
could not be looked at is in `troubles`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = ["Guard", "Reason", "end_of_allocation", "memory_used"]

SIGNALS = ("SIGTERM", "SIGUSR1", "SIGHUP")
FLOOR = 2 * 10**9
"""Bytes of GPU memory that have to stay free."""
SHORTEST_MARGIN = 90.0
"""Seconds before the end of the allocation, at least: Slurm ends jobs to the half minute."""
SLURM_LIMIT = 10.0
"""Time limit in seconds for squeue, which is asked when the allocation ends."""
NO_LIMIT = 2**60
"""cgroup v1 writes a number near 2^63 where there is no limit."""


class Reason:
    """Why to stop; on several ranks the greatest number wins, so all name the same one."""

    NONE, GPU, MEMORY, TIME, SIGNAL, SWITCH = range(6)
    TEXT = (
        "",
        "GPU memory is running out",
        "memory is running out",
        "the allocation is about to end",
        "a signal came",
        "the kill switch is there",
    )


class _Slowest:
    """The slowest of the measured times in seconds, and the one before it.

    A time that is far longer than all others counts only for the next few measurements, because it
    may be a stall of a file system, a suspended job, or a compilation. If it happens again, it
    counts.
    """

    FAR = 3.0

    def __init__(self, patience: int) -> None:
        self._patience, self._since = patience, 0
        self._first = self._second = 0.0

    def add(self, took: float) -> None:
        """Add one measurement."""
        self._since += 1
        if took > self._first:
            self._first, self._second, self._since = took, self._first, 0
        elif took > self._second:
            self._second = took

    @property
    def seconds(self) -> float:
        """The slowest measured time.

        It is the one before it, if the slowest is far longer than all others and the last
        `patience` measurements were not slower.
        """
        alone = self._first > self.FAR * self._second
        return self._second if alone and self._since >= self._patience else self._first


class Guard:
    """Asked once a step. With several ranks pass `agree`, and ask in the same places on all.

    `kill_switch`, `save_switch`: paths; the second is removed once it was seen. `memory`: the
    share of host memory or of the cgroup's limit (0 to 1) from which to stop, None never.
    `gpu_free`: returns bytes, such as `lambda: torch.cuda.mem_get_info()[0]`; below `gpu_floor`
    is a reason to stop. `margin`: seconds before the end of the allocation; by default twice
    the slowest step plus the slowest save seen, at least 90. `ends`: seconds since 1970, by
    default Slurm's. `heartbeat`: a path, `{rank}` in it is replaced; without it only rank 0
    writes. `agree`: takes this rank's number and returns the greatest of all ranks.
    `every`: seconds between looks. As a context manager it gives its signals back at the end.

    In a child of multiprocessing that only imports the module that makes the guard, it listens to
    no signal until it is asked: a worker that ignores SIGTERM would outlive the training.
    """

    def __init__(
        self,
        *,
        kill_switch: str = "",
        save_switch: str = "",
        heartbeat: str = "",
        memory: float | None = 0.95,
        gpu_free: Callable[[], int] | None = None,
        gpu_floor: int = FLOOR,
        margin: float | None = None,
        ends: float | None = None,
        signals: Sequence[str] = SIGNALS,
        agree: Callable[[int], int] | None = None,
        rank: int | None = None,
        every: float = 5.0,
    ) -> None:
        self.rank = _rank_here() if rank is None else rank
        self.reason = ""
        self.troubles: dict[str, str] = {}
        self._kill, self._save = kill_switch, save_switch
        self._memory, self._gpu_free, self._gpu_floor = memory, gpu_free, gpu_floor
        self._margin, self._agree, self._every = margin, agree, every
        # If all ranks have to agree, only one rank reads files: a thousand ranks would be a load on
        # the file system.
        self._looks_at_files = self.rank == 0 or agree is None
        self._beat_path = heartbeat.replace("{rank}", str(self.rank))
        self._beats = bool(heartbeat) and (self.rank == 0 or "{rank}" in heartbeat)
        self._step_at = self._saved = 0.0
        self._slowest_step, self._slowest_save = _Slowest(10), _Slowest(3)
        self._next_stop = self._next_save = self._next_beat = 0.0
        self._mine = Reason.NONE
        self._save_seen: tuple[int, int] | None = None
        self._handlers: dict[int, Any] = {}
        self._caught, self._pid, self._closed = "", os.getpid(), False
        self._waits = (ends, signals)
        self._deadline = float("inf")
        self._asleep = _imported_by_a_child()
        if not self._asleep:
            self._wake()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- questions of the training ---------------------------------------------------------

    @property
    def stopping(self) -> bool:
        """Whether should_stop() has said yes; asks nobody."""
        return bool(self.reason)

    def should_stop(self) -> bool:
        """Whether to save and leave; once true it stays so. `reason` says why.

        The first call looks at everything, later ones every few seconds.
        """
        if self.reason:
            return True
        if not self._mine:
            now = time.monotonic()
            if now >= self._next_stop:
                if self._asleep:
                    self._wake()
                self._next_stop = now + self._every
                self._mine = self._look(now)
            elif self._caught:
                self._mine = Reason.SIGNAL
        number = self._mine if self._agree is None else self._agree(self._mine)
        if not number:
            return False
        self.reason = self._words(number)
        return True

    def should_save(self) -> bool:
        """Whether somebody requested a checkpoint. True once for each save switch."""
        wanted = False
        if self._save and self._looks_at_files:
            now = time.monotonic()
            if now >= self._next_save:
                self._next_save = now + self._every
                wanted = self._take_save_switch()
        return bool(wanted if self._agree is None else self._agree(int(wanted)))

    def beat(self, step: int) -> None:
        """A step is done: its time counts for the margin, and the heartbeat is written."""
        now = time.monotonic()
        if self._asleep:
            self._wake()
        if self._step_at:
            self._slowest_step.add(now - self._step_at - self._saved)
        self._step_at, self._saved = now, 0.0
        if self._beats and now >= self._next_beat:
            self._next_beat = now + self._every
            self._write_beat(step)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Around a checkpoint: how long it takes counts for the margin, and for no step."""
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            self._saved += took
            self._slowest_save.add(took)

    @property
    def margin(self) -> float:
        """Seconds before the end of the allocation in which to stop."""
        if self._margin is not None:
            return self._margin
        return max(SHORTEST_MARGIN, 2 * self._slowest_step.seconds + self._slowest_save.seconds)

    @property
    def left(self) -> float:
        """Seconds of the allocation that are left; infinite where no end is known."""
        return self._deadline - time.monotonic()

    def close(self) -> None:
        """Hear no signal any more. Each signal gets back the handler that it had before, unless
        somebody has set a later one."""
        self._closed, self._asleep = True, False
        for number in self._handlers:
            before = self._before(number)
            if before is None or signal.getsignal(number) != self._heard:
                # it was not set by Python, so Python cannot restore it; or it was replaced since
                continue
            try:
                signal.signal(number, before)
            except ValueError:  # not in the main thread
                self.troubles[signal.Signals(number).name] = (
                    "close() was not called in the main thread"
                )

    # -- reading of the switches and the clock ---------------------------------------------

    def _wake(self) -> None:
        """Look up the end of the allocation, and listen to signals, in this process."""
        ends, signals = self._waits
        self._asleep, self._pid = False, os.getpid()
        self._deadline = self._monotonic_end(ends)
        self._listen(signals)

    def _look(self, now: float) -> int:
        self._look_at_handlers()
        if self._kill and self._looks_at_files and self._exists(self._kill):
            return Reason.SWITCH
        if self._caught:
            return Reason.SIGNAL
        if now >= self._deadline - self.margin:
            return Reason.TIME
        if self._memory is not None and self._try("memory", memory_used, 0.0) >= self._memory:
            return Reason.MEMORY
        free = self._gpu_free
        if free is not None and self._try("gpu_free", free, self._gpu_floor) < self._gpu_floor:
            return Reason.GPU
        return Reason.NONE

    def _words(self, number: int) -> str:
        text = Reason.TEXT[number] if 0 < number < len(Reason.TEXT) else "another rank stops"
        own = number == self._mine
        if number == Reason.SWITCH and self._kill:
            return f"{text}: {self._kill}"
        return f"{text}: {self._caught}" if number == Reason.SIGNAL and own else text

    def _try(self, name: str, ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except Exception as error:
            self.troubles[name] = f"{type(error).__name__}: {error}"
            return otherwise

    def _exists(self, path: str) -> bool:
        return bool(self._try("kill_switch", lambda: _identity(path) is not None, False))

    def _take_save_switch(self) -> bool:
        """A switch that cannot be removed counts once, by what it is and when it was made."""
        seen = self._try("save_switch", lambda: _identity(self._save), None)
        if seen is None or seen == self._save_seen:
            return False
        self._save_seen = seen
        self._try("save_switch", lambda: os.unlink(self._save), None)
        return True

    def _write_beat(self, step: int) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = f"step {step} at {stamp} rank {self.rank}\n"
        self._try("heartbeat", lambda: _replace(self._beat_path, line), None)

    def _monotonic_end(self, ends: float | None) -> float:
        """The end on this host's monotonic clock. So a change of the wall clock ends nothing early."""
        if ends is None and self._looks_at_files:
            ends = self._try("ends", end_of_allocation, None)
        return float("inf") if ends is None else time.monotonic() + ends - time.time()

    # -- signals ---------------------------------------------------------------------------

    def _listen(self, names: Sequence[str]) -> None:
        for name in names:
            number = getattr(signal, name, None)
            if number is None:
                self.troubles[name] = "there is no such signal"
                continue
            if number in self._handlers:
                continue
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup(1): a logout is not meant for the training
            try:
                self._handlers[number] = signal.signal(number, self._heard)
            except ValueError:  # not in the main thread
                self.troubles[name] = "signals reach the main thread only; make the Guard there"

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self._in_a_child(number)
            return
        if not self._closed:
            self._caught = signal.Signals(number).name
        before = self._handlers.get(number)
        if before is signal.default_int_handler or _of_the_parent(before):
            return
        if callable(before):
            before(number, frame)

    def _before(self, number: int) -> Any:
        """The handler before this guard. If a guard was closed meanwhile, the handler that it had
        replaced."""
        before = self._handlers[number]
        while (guard := _guard_of(before)) is not None and guard._closed:
            before = guard._handlers.get(number)
        return before

    def _look_at_handlers(self) -> None:
        """Whether another library has taken a signal since."""
        for number in self._handlers:
            now = signal.getsignal(number)
            while (guard := _guard_of(now)) not in (None, self):
                now = guard._handlers.get(number)
            if guard is None and not self._closed:
                name = signal.Signals(number).name
                self.troubles[name] = (
                    f"another handler has it now: {now!r}; make the Guard after that one is set"
                )

    def _in_a_child(self, number: int) -> None:
        """A process that was forked later, such as a worker of a DataLoader: Slurm signals it
        too, and it must neither die of what only tells the training, nor survive its end."""
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _of_the_parent(handler: Any) -> bool:
    """Whether it is that of a guard made before the fork, which would take this process, with a
    guard of its own, for a worker that has to die."""
    guard = _guard_of(handler)
    return guard is not None and guard._pid != os.getpid()


def _guard_of(handler: Any) -> Guard | None:
    guard = getattr(handler, "__self__", None)
    return guard if isinstance(guard, Guard) else None


def _imported_by_a_child() -> bool:
    """Whether a child of multiprocessing is just importing the module that makes a guard.

    With spawn and forkserver each child imports the main module as `__mp_main__`
    (multiprocessing/spawn.py, _fixup_main_from_path), and others to find its function.
    """
    processes = sys.modules.get("multiprocessing.process")
    is_child = processes is not None and processes.parent_process() is not None
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>" and (
            module == "__mp_main__" or (is_child and module != "__main__")
        ):
            return True
        frame = frame.f_back
    return False


def memory_used(root: str = "/") -> float:
    """The share in use, 0 to 1, of this host's memory or of the tightest cgroup around this
    process. Page cache that the kernel can reclaim does not count as used; memory of tmpfs does.

    proc_meminfo(5); https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.stat;
    https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
    """
    host = _pairs(os.path.join(root, "proc/meminfo"))
    shares = [1 - host["MemAvailable:"] / host["MemTotal:"]]
    for controllers, path in _cgroups(os.path.join(root, "proc/self/cgroup")):
        if not controllers:
            for base in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                shares += _along(os.path.join(root, base), path, _share_v2)
        elif "memory" in controllers:
            shares += _along(os.path.join(root, "sys/fs/cgroup/memory"), path, _share_v1)
    return max(shares)


def _cgroups(path: str) -> list[tuple[list[str], str]]:
    """Controllers and path of each hierarchy; cgroups(7)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    return [(names.split(",") if names else [], where) for _, names, where in lines]


def _along(base: str, path: str, share: Callable[[str], float | None]) -> list[float]:
    """The shares of the group and all above it; a container sees only its own as the root."""
    found = []
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        try:
            one = share(os.path.join(base, *parts[:depth]))
        except (OSError, ValueError, KeyError):
            continue
        found += [] if one is None else [one]
    return found


def _share_v2(folder: str) -> float | None:
    limit = _word(os.path.join(folder, "memory.max"))
    if limit == "max":
        return None
    stat = _pairs(os.path.join(folder, "memory.stat"))
    cache = stat["file"] - stat["shmem"] + stat.get("slab_reclaimable", 0)
    return max(0, int(_word(os.path.join(folder, "memory.current"))) - cache) / max(1, int(limit))


def _share_v1(folder: str) -> float | None:
    limit = int(_word(os.path.join(folder, "memory.limit_in_bytes")))
    if limit >= NO_LIMIT:
        return None
    stat = _pairs(os.path.join(folder, "memory.stat"))
    cache = stat["total_cache"] - stat.get("total_shmem", 0)
    return max(0, int(_word(os.path.join(folder, "memory.usage_in_bytes"))) - cache) / max(1, limit)


def end_of_allocation() -> float | None:
    """When Slurm ends this job, in seconds since 1970. None without an end or without Slurm.

    SLURM_JOB_END_TIME is used if srun(1) sets it (23.02 and later). Otherwise squeue is asked once.
    """
    given = os.environ.get("SLURM_JOB_END_TIME", "")
    if given.isdigit():
        return float(given)
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    # The number of an array's last element is also the number of the array, so squeue lists all of
    # them.
    rows = [line.split() for line in _squeue(f"--jobs={job}", "--format=%A %e").splitlines()]
    ends = [row[1] for row in rows if row[:1] == [job.encode()] and row[1:]]
    return float(ends[0]) if ends and ends[0].isdigit() else None


def _squeue(*options: str) -> bytes:
    """Its answer; raises what went wrong. One that cannot be killed is not waited for."""
    import subprocess

    # Variables like SQUEUE_STATES change what squeue lists, if a user has set them.
    env = {k: v for k, v in os.environ.items() if not k.startswith("SQUEUE_")}
    process = subprocess.Popen(
        ["squeue", "--noheader", *options],
        env={**env, "SLURM_TIME_FORMAT": "%s"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = process.communicate(timeout=SLURM_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        for pipe in filter(None, [process.stdout, process.stderr]):
            pipe.close()
        raise
    if process.returncode:
        raise OSError(err.decode("utf-8", "backslashreplace").strip())
    return out


def _identity(path: str) -> tuple[int, int] | None:
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns


def _replace(path: str, line: str) -> None:
    """Replace the file atomically. So a reader sees either the old line or the new one."""
    # A new file: where others may write too, a link of theirs could lead to any file of this user's.
    fresh = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o666)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(line)
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def _word(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _pairs(path: str) -> dict[str, int]:
    """`key number` lines; the unit of meminfo cancels out."""
    with open(path, encoding="ascii", errors="replace") as file:
        words = (line.split() for line in file)
        return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdigit()}


def _rank_here() -> int:
    """The rank, from the environment variables of torchrun, Open MPI, PMIx or Slurm."""
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0
