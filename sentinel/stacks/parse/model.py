"""What a look at the processes of a job finds, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct


class StandKind(str, Enum):
    """Why a process stands where it stands, as far as it can be known.

    blocked: in the kernel, state D, not traced. gone: its rank has no process any more.
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
        """Odd by itself, whatever the others do; those come first."""
        return self in _TROUBLE


_TROUBLE = frozenset(
    {StandKind.BLOCKED, StandKind.STOPPED, StandKind.ZOMBIE, StandKind.GONE, StandKind.UNREACHED},
)


class StackFrame(Struct, frozen=True):
    """A function that has not returned. `file` is short (below site-packages or its name),
    `path` whole; `line` 0 where unknown."""

    function: str
    file: str
    line: int = 0
    path: str = ""


class ThreadStack(Struct, frozen=True, kw_only=True):
    """A thread, its innermost frame first. `active` and `gil` as py-spy saw them."""

    name: str
    id: int
    frames: tuple[StackFrame, ...] = ()
    active: bool = False
    gil: bool = False


class BlockedThread(Struct, frozen=True, kw_only=True):
    """A thread in state D: the kernel function, what it does, and the path it does it to."""

    thread: int
    wchan: str = ""
    kernel: str = ""
    doing: str = ""
    path: str = ""


class ProcessUsage(Struct, frozen=True, kw_only=True):
    """Seconds of processor time, and bytes read and written (None: not to be read), of a process
    until `at`, in seconds of its node's own clock."""

    cpu: float
    at: float
    moved: int | None = None


class JobProcess(Struct, frozen=True, kw_only=True):
    """A process of the job on its node. `state` is the letter of proc(5).

    `task` is Slurm's global number where it leads a task; `env` what the launcher told it.
    `why` says in words why there is no stack, where there is none. `doing` and `path`: the system
    call on a file that its main thread, or the one in state D, is in.
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
        """The thread that the program began with: its number is the process's own."""
        named = [t for t in self.threads if t.id == self.pid or t.name == "MainThread"]
        return next(iter([*named, *self.threads]), None)


class NodeStacks(Struct, frozen=True, kw_only=True):
    """What one node told. `tool` is py-spy's version, `no_tool` why there is none; `uid` and
    `user` asked there; `witness`: who named the processes (slurmd, or their environment); `ras`:
    what NCCL's RAS answered there, as it came; `kernel`, `gpus`: the end of its kernel's log, and what nvidia-smi says."""

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
        """Whether a process of that user that is not listed is not there."""
        return self.witness == "slurmd" or self.uid == "0" or self.user == user


class MissedNode(Struct, frozen=True):
    """A node that did not tell, and why."""

    node: str
    why: str


class StacksDump(Struct, frozen=True, kw_only=True):
    """One look at all nodes of a job. `job` is the id as asked for; `ended`: the state in which
    the job was found afterwards if it no longer runs."""

    job: str
    name: str = ""
    user: str = ""
    at: int = 0
    nodes: tuple[NodeStacks, ...] = ()
    missed: tuple[MissedNode, ...] = ()
    ended: str = ""
    seconds: float = 0.0
