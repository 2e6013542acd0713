"""Implements core.node_answers.Remote over one way to nodes: framed, several nodes at a time,
within a time limit, and never two commands on a hanging node."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from sentinel import proc
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import check_name
from sentinel.core.long_lines import decode_lines
from sentinel.core.node_answers import (
    Answer,
    Answered,
    Garbage,
    NotAsked,
    Partial,
    TimedOut,
    Unreached,
)
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes import frame, script
from sentinel.nodes.fanout import ask_all
from sentinel.nodes.probe import CutShort, NodeProbe, NoProbe, ProbeRequest, parse

MOST_OUTPUT = 8 * 2**20
"""Bytes that one node may print."""
MOST_TOGETHER = 2**30
"""Bytes that all nodes of one call may print together; each may print at least LEAST_OUTPUT."""
LEAST_OUTPUT = 2**20


class Way(Protocol):
    """A way to bring a command to a node. `failure` explains why the command did not start
    there."""

    name: str

    @property
    def env(self) -> Mapping[str, str]: ...

    def barred(self, node: str) -> str: ...

    def command(self, node: str, argv: Sequence[str]) -> list[str]: ...

    def failure(self, said: str, code: int) -> Unreached | None: ...


class Reach:
    """Asks nodes. `patience`: seconds for each node.

    `hanging` holds, by node, local processes that not even SIGKILL ended. As long as there is one,
    its node is not asked again."""

    def __init__(self, way: Way, *, fanout: int, patience: float) -> None:
        self._way, self._fanout, self._patience = way, fanout, patience
        self.hanging = proc.HangingChildren()
        self.by_steps = way.name == "srun"

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        """See sentinel.core.node_answers.Remote."""
        most = max(LEAST_OUTPUT, min(MOST_OUTPUT, MOST_TOGETHER // max(1, len(nodes))))

        def ask(node: str, seconds: float) -> Answer:
            return self._ask(node, argv, stdin, seconds, most)

        return ask_all(
            nodes, ask, fanout=self._fanout, limit=limit, patience=self._patience, late=NotAsked
        )

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        """See sentinel.core.node_answers.Remote."""

        def ask(node: str, seconds: float) -> NodeProbe | Unreached:
            mark, mine = _mark(), wants.restrict_to_node(node)
            text = script.text(mine, mark, seconds)
            sent, began = time.time(), time.monotonic()
            answer = self._ask(node, script.ARGV, text, seconds, MOST_OUTPUT)
            received = sent + time.monotonic() - began
            told = probed(answer, mark, mine)
            return replace(told, asked=(sent, received)) if isinstance(told, NodeProbe) else told

        return ask_all(
            nodes, ask, fanout=self._fanout, limit=limit, patience=self._patience, late=NotAsked
        )

    def _ask(
        self, node: str, argv: Sequence[str], stdin: bytes, seconds: float, most: int
    ) -> Answer:
        if why := _no_name(node) or self._way.barred(node):
            return NotAsked(why)
        mark = _mark()
        try:
            with self.hanging.start_alone(node):
                done = proc.run(
                    self._way.command(node, frame.framed(argv, seconds)),
                    limit=seconds,
                    env=self._way.env,
                    stdin=frame.stdin(mark, stdin),
                    max_output=most,
                )
        except proc.StillHanging as error:
            return NotAsked(f"an earlier question to it, from this host, {error}")
        except proc.CommandNotFound as error:
            return NotAsked(str(error))
        except proc.TooMuchOutput as error:
            return Partial(why=str(error))
        except proc.TimedOut:
            return TimedOut(
                f"no answer within {duration_text(seconds)}; {self._way.name} was ended"
            )
        return frame.unframed(done.out, done.err, mark, done.code, self._way.failure)


def probed(answer: Answer, mark: str, wants: ProbeRequest) -> NodeProbe | Unreached:
    """The probe from a node's answer; a whole NodeProbe only if the script ran to its end."""
    if not isinstance(answer, Answered | Partial):
        return answer
    try:
        seen = parse(answer.out, mark, wants)
    except CutShort as cut:
        return Partial(why=_why(answer, str(cut)), seen=cut.seen)
    except NoProbe as error:
        return Partial(why=answer.why) if isinstance(answer, Partial) else Garbage(str(error))
    if isinstance(answer, Partial):
        return Partial(why=answer.why, seen=seen)
    return seen


def _why(answer: Answered | Partial, cut: str) -> str:
    if isinstance(answer, Partial):
        return answer.why
    last = decode_lines(answer.err).strip().rpartition("\n")[2]
    return f"{cut}; exit code {answer.code}" + (f", said: {visible(last)[:200]}" if last else "")


def _no_name(node: str) -> str:
    """Why this name must not be put on a command line; empty if it may. Slurm accepts names that
    ssh would read as options."""
    try:
        check_name(node)
    except Invalid as error:
        return str(error)
    return ""


def _mark() -> str:
    return os.urandom(16).hex()
