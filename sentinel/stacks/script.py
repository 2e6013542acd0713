"""stacks.sh with what one call wants of it, as one text for the nodes' shells."""

import os
import shlex
import sys
from functools import cache

from msgspec import Struct

from sentinel.nodes.script import waits

ARGV = ("/bin/sh", "-c", 'text=$(cat); eval "$text"; main', "sentinel")
"""Reads the whole text before it does any of it."""


class ScriptOptions(Struct, frozen=True, kw_only=True):
    """What is asked of each node. `tool`: a path of py-spy to try first; `asker`: the node that
    asks NCCL's RAS for the whole job (empty: none); `evidence`: the kernel's log and GPUs too."""

    job_id: str
    native: bool = False
    tool: str = ""
    asker: str = ""
    evidence: bool = False


def script_text(wish: ScriptOptions, mark: str, seconds: float) -> str:
    """The script for nodes that have so many seconds."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    values = {
        "mark": mark,
        "job": wish.job_id,
        "tools": "\n".join(filter(None, [wish.tool, "py-spy", beside])),
        "native": str(int(wish.native)),
        "limit": str(max(2, int(seconds))),
        "asker": wish.asker,
        "evidence": str(int(wish.evidence)),
        "conf": os.environ.get("SLURM_CONF", ""),
    }
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return head + _script_body()


@cache
def _script_body() -> str:
    with open(os.path.join(os.path.dirname(__file__), "stacks.sh"), encoding="ascii") as file:
        return waits() + file.read()
