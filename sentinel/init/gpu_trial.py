"""Whether nodes answer when they are asked for their GPUs, by a trial of the check as the service runs it."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Sequence
from shutil import which
from typing import TYPE_CHECKING

import msgspec

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import fold_hostlist
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.slurm.node_states import base_meaning

if TYPE_CHECKING:
    from sentinel.core.cluster import Node

MAX_ASKED_NODES = 4
"""How many nodes are asked. One answer is enough, and a few nodes may be down."""

TRIAL_TIMEOUT_S = 30.0
SERVICE_USER = "sentinel"
"""Who runs the service, by its unit: what root may is no proof for it."""


def ask_gpu_nodes(nodes: Sequence[Node]) -> str:
    """Why none of a few of these nodes could be asked, and what to do. Empty if one could."""
    up = [n.name for n in nodes if base_meaning(n.state).can_work]
    if not up:
        return "none of them is up; remove the # once they are"
    asked = fold_hostlist(up[:MAX_ASKED_NODES])
    words = ["check", "gpu", "--nodes", asked, "--timeout", f"{TRIAL_TIMEOUT_S:.0f}s", "--json"]
    try:
        done = proc.run(
            [*_become_service_user(), sys.executable, "-m", "sentinel", *words],
            limit=TRIAL_TIMEOUT_S + 10.0,
            env=proc.bare_environment("PATH", "SLURM_CONF"),
            cwd="/",  # Python's -m searches the working directory first
        )
        found = msgspec.json.decode(done.out)
        findings = [f for f in found["findings"] if isinstance(f, dict)]
        if any(f["status"] != Status.UNKNOWN.value for f in findings):
            return ""
        why = str(next((f["summary"] for f in findings), found["summary"]))
    except (CannotTell, msgspec.MsgspecError, OSError, LookupError, TypeError) as error:
        why = str(error)
    remedy = f"docs/remote.md says how; try it with:\nsentinel check gpu --nodes {asked}"
    return f"{visible(shortened(why, 200))}; {remedy}"


def _become_service_user() -> list[str]:
    try:
        pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return []
    runuser = which("runuser")
    return [runuser, "-u", SERVICE_USER, "--"] if runuser and not os.geteuid() else []
