"""Makes the script for the nodes' shells: stacks.sh with the parameters of one call."""

import os
import shlex
import sys

from msgspec import Struct

from sentinel.nodes.script import cgroups, waits
from sentinel.proc.own_package import read_program_file

ARGV = ("/bin/sh", "-c", 'text=$(cat); eval "$text"; main', "sentinel")
"""The command that reads the whole script before it runs any of it."""


class ScriptOptions(Struct, frozen=True, kw_only=True):
    """The questions to each node. `user` is the job's. `tool` is a path of py-spy that is tried
    first. `asker` is the node that asks NCCL's RAS for the whole job (empty: none). `evidence`: the kernel's log and the
    GPUs are included."""

    job_id: str
    user: str = ""
    native: bool = False
    tool: str = ""
    asker: str = ""
    evidence: bool = False


def script_text(wish: ScriptOptions, mark: str, seconds: float) -> str:
    """The script that the nodes run; it has to end within `seconds` (at least 2)."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    values = {
        "mark": mark,
        "job": wish.job_id,
        "user": wish.user,
        "tools": "\n".join(filter(None, [wish.tool, "py-spy", beside])),
        "native": str(int(wish.native)),
        "limit": str(max(2, int(seconds))),
        "asker": wish.asker,
        "evidence": str(int(wish.evidence)),
        "conf": os.environ.get("SLURM_CONF", ""),
    }
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return head + waits() + cgroups() + read_program_file("stacks/stacks.sh")
