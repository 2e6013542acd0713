"""Types for commands on nodes; sentinel.nodes runs them.

Every node gets exactly one answer. Only Answered is from the node's own command. Any other answer
says nothing about the node's health, and never means that the node is well."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from sentinel.core.node_probe import NodeProbe, ProbeRequest
from sentinel.core.text import visible


class Answered(Struct, frozen=True, kw_only=True):
    """The command ran to its end. `code` is its own (128 and more: ended by a signal)."""

    code: int
    out: bytes = b""  # What the command wrote to its output.
    err: bytes = b""  # What it wrote to its error output.


class NotAsked(Struct, frozen=True):
    """The question never left this host, so nothing was learnt about the node."""

    why: str  # The reason, in one line.


class Unreachable(Struct, frozen=True):
    """The node cannot be reached: its name is not known, the network fails, or nobody listens."""

    why: str  # The reason, in one line.


class Refused(Struct, frozen=True):
    """The node answers and does not accept the login (pam_slurm_adopt, keys, nologin)."""

    why: str  # The reason, in one line.


class HostKeyUnknown(Struct, frozen=True):
    """The node's host key is not known on this host yet."""

    why: str  # The reason, in one line.


class HostKeyChanged(Struct, frozen=True):
    """The node shows another host key than before. It was reinstalled, or another host answers in
    its place."""

    why: str  # The reason, in one line.


class TimedOut(Struct, frozen=True):
    """The node accepted the connection and did not finish within the limit."""

    why: str  # The reason, in one line.


class Partial(Struct, frozen=True, kw_only=True):
    """The answer began but did not end. `seen` is what the probe had read until then."""

    why: str  # The reason, in one line.
    out: bytes = b""  # The output so far.
    err: bytes = b""  # The error output so far.
    seen: NodeProbe | None = None


class Garbage(Struct, frozen=True):
    """Something answered, but it was not the command that was sent."""

    why: str  # The reason, in one line.


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
    """The class name in words, as `host key changed` for HostKeyChanged."""
    name = type(answer).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def describe_unreached(answer: Unreached) -> str:
    """Why a node gave no answer, in one line."""
    return visible(f"{get_answer_word(answer)}: {answer.why}")


class Remote(Protocol):
    """A way to nodes. A name that cannot be a node's (`-oProxyCommand=x`) gets NotAsked; the others
    get their answers."""

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        """Run one command on all nodes. Returns after `limit` seconds at the latest, whatever the
        nodes do."""

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        """Probe all nodes, in one round trip each. Returns after `limit` seconds at the latest."""


def uses_steps(remote: Remote) -> bool:
    """Whether each question is a step of Slurm's, which accounting records."""
    return bool(getattr(remote, "by_steps", False))
