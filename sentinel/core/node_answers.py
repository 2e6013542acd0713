"""Commands on nodes, as the rest of sentinel asks for them; sentinel.nodes does it.

Every node gets exactly one answer, and only Answered is one from the node's own command.
Whatever else came back says nothing about the node's health: it is never "clean".
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from sentinel.core.node_probe import NodeProbe, ProbeRequest
from sentinel.core.text import visible


class Answered(Struct, frozen=True, kw_only=True):
    """The command ran to its end. `code` is its own (128 and more: ended by a signal)."""

    code: int
    out: bytes = b""
    err: bytes = b""


class NotAsked(Struct, frozen=True):
    """The question never left this host: nothing was learnt about the node."""

    why: str


class Unreachable(Struct, frozen=True):
    """No way to the node: name, network, nobody who listens."""

    why: str


class Refused(Struct, frozen=True):
    """The node answers and does not let us in (pam_slurm_adopt, keys, a closed door)."""

    why: str


class HostKeyUnknown(Struct, frozen=True):
    """Nobody has vouched for the node's host key on this host yet."""

    why: str


class HostKeyChanged(Struct, frozen=True):
    """The node shows another host key than before: reinstalled, or somebody in between."""

    why: str


class TimedOut(Struct, frozen=True):
    """The node took the connection and did not finish within the limit."""

    why: str


class Partial(Struct, frozen=True, kw_only=True):
    """The answer began and did not end. `seen` is what a probe told until then."""

    why: str
    out: bytes = b""
    err: bytes = b""
    seen: NodeProbe | None = None


class Garbage(Struct, frozen=True):
    """Something answered, but not the command that was sent."""

    why: str


Unreached = (
    NotAsked
    | Unreachable
    | Refused
    | HostKeyUnknown
    | HostKeyChanged
    | TimedOut
    | Partial
    | Garbage
)
Answer = Answered | Unreached


def get_answer_word(answer: object) -> str:
    """`host key changed` for HostKeyChanged."""
    name = type(answer).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def describe_unreached(answer: Unreached) -> str:
    """Why a node told nothing, in one line."""
    return visible(f"{get_answer_word(answer)}: {answer.why}")


class Remote(Protocol):
    """A way to nodes. A name that can be none (`-oProxyCommand=x`) gets NotAsked, and the others
    their answers."""

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        """Run one command on all nodes, done after `limit` seconds whatever they do."""

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        """Ask all nodes how they are, one round trip each, done after `limit` seconds."""


def uses_steps(remote: Remote) -> bool:
    """Whether each question is a step of Slurm's, which accounting keeps."""
    return bool(getattr(remote, "by_steps", False))
