"""The data about the processes of a job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct


class StandKind(str, Enum):
    """The kind of a process's place, as far as it is known.

    blocked: in the kernel in state D, and not traced. gone: the rank has no process any more.
    """

    PYTHON = "python"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    ZOMBIE = "zombie"
    GONE = "gone"
    OTHER = "not python"
    UNREADABLE = "unreadable"
    UNREACHED = "not reached"

    @property
    def is_trouble(self) -> bool:
        """Whether it is odd by itself, whatever the other ranks do. Such groups come first."""
        return self in _TROUBLE


_TROUBLE = frozenset(
    {StandKind.BLOCKED, StandKind.STOPPED, StandKind.ZOMBIE, StandKind.GONE, StandKind.UNREACHED},
)


class StackFrame(Struct, frozen=True):
    """A function that has not returned. `file` is short (below site-packages, or the name alone),
    `path` is complete. `line` is 0 if it is not known."""

    function: str
    file: str
    line: int = 0
    path: str = ""


class ThreadStack(Struct, frozen=True, kw_only=True):
    """A thread, its innermost frame first. `active` and `gil` are what py-spy has seen."""

    name: str
    id: int
    frames: tuple[StackFrame, ...] = ()
    active: bool = False
    gil: bool = False


class BlockedThread(Struct, frozen=True, kw_only=True):
    """A thread in state D: the kernel function in which it waits, what it does, and the path on
    which it does it."""

    thread: int
    wchan: str = ""
    kernel: str = ""
    doing: str = ""
    path: str = ""


class ProcessUsage(Struct, frozen=True, kw_only=True):
    """The processor time and data of a process since its start."""

    cpu: float  # seconds of processor time
    at: float  # when it was read, in seconds of its node's own clock
    moved: int | None = None  # bytes read and written; None if they could not be read


class JobProcess(Struct, frozen=True, kw_only=True):
    """A process of the job on its node. `state` is the letter of proc(5).

    `task`: Slurm's global number of the task that it leads. `env`: what the launcher told it.
    `why`: why there is no stack, in words; empty if there is one. `doing` and `path`: the system
    call on a file in which its main thread is, or the thread in state D.
    """

    node: str
    pid: int
    parent: int = 0
    step: str = ""
    task: int | None = None
    state: str = ""
    name: str = ""
    exe: str = ""
    env: Mapping[str, str] = {}
    threads: tuple[ThreadStack, ...] = ()
    blocked: BlockedThread | None = None
    native: tuple[str, ...] = ()
    python: bool = False
    why: str = ""
    spent: ProcessUsage | None = None
    doing: str = ""
    path: str = ""

    @property
    def main_thread(self) -> ThreadStack | None:
        """The thread with which the program began. Its number is that of the process."""
        named = [t for t in self.threads if t.id == self.pid or t.name == "MainThread"]
        return next(iter([*named, *self.threads]), None)


class NodeStacks(Struct, frozen=True, kw_only=True):
    """The answer of one node.

    `tool` is py-spy's version, `no_tool` says why there is none. `uid` and `user` are those of the
    asking process there. `witness` is the source of the list of processes (slurmd, or the
    kernel). `ras` is the raw answer of NCCL's RAS. `kernel` is the end of the kernel's log,
    `gpus` the output of nvidia-smi.
    """

    node: str
    processes: tuple[JobProcess, ...] = ()
    tool: str = ""
    no_tool: str = ""
    scope: str = ""
    uid: str = ""
    user: str = ""
    witness: str = ""
    ras: str = ""
    kernel: str = ""
    gpus: str = ""

    def can_see(self, user: str) -> bool:
        """Whether all processes of that user are visible, so that one that is not listed does not
        exist."""
        return self.witness == "slurmd" or self.uid == "0" or self.user == user


class MissedNode(Struct, frozen=True):
    """A node without an answer, and the reason."""

    node: str
    why: str


class StacksDump(Struct, frozen=True, kw_only=True):
    """One look at all nodes of a job. `job` is the requested id. `ended` is the job's state
    afterwards, if it no longer runs."""

    job: str
    name: str = ""
    user: str = ""
    at: int = 0
    nodes: tuple[NodeStacks, ...] = ()
    missed: tuple[MissedNode, ...] = ()
    ended: str = ""
    seconds: float = 0.0
