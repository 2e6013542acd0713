"""Nodes: whether sentinel may change them, and whether it reaches them. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.node_answers import Answered, Remote
from sentinel.core.text import visible
from sentinel.doctor import Item, ok, unknown, warn
from sentinel.slurm.node_states import UP
from sentinel.slurm.privilege import REMEDY, privilege
from sentinel.slurm.snapshot import Snapshot

ASKED = 3
"""Nodes that are tried: enough to tell a broken way from a broken node."""

BOOT = 300
"""Seconds that a GPU node needs to boot, at least; Slurm's default of 60 ends in "reboot timed
out", and the node stays DOWN (slurm.conf(5), ResumeTimeout)."""

SUDOERS = r"""sentinel ALL=(root) NOPASSWD: \
  /usr/bin/scontrol ^update NodeName=[A-Za-z0-9._-]+ State=UNDRAIN$, \
  /usr/bin/scontrol ^update NodeName=[A-Za-z0-9._-]+ State=DRAIN Reason=sentinel: [^=]*$"""
"""Regular expressions: the `*` of sudoers(5) matches further arguments too, State=DOWN among them."""


def changing(snapshot: Snapshot, prefix: Sequence[str], who: str = "sentinel") -> Item:
    """Whether nodes could be drained and undrained."""
    found = privilege(snapshot, prefix)
    if found.may:
        return ok("changing nodes", found.why)
    lines = SUDOERS.replace("sentinel ALL", f"{who} ALL", 1)
    remedy = (
        f"watching needs no rights; to act, {REMEDY}\n"
        f"/etc/sudoers.d/sentinel (sudo 1.9.10 or later):\n{lines}\n"
        "and in the configuration: slurm: {change_prefix: [sudo, -n]}"
    )
    make = unknown if found.may is None else warn
    return make("changing nodes", visible(found.why), remedy)


def rebooting(snapshot: Snapshot) -> Item:
    """Whether Slurm could reboot nodes, and would wait for them."""
    try:
        config = snapshot.config()
    except CannotTell as error:
        return unknown("rebooting nodes", visible(str(error)))
    if not config.reboot_program:
        remedy = "set RebootProgram in slurm.conf, e.g. /sbin/reboot"
        return warn("rebooting nodes", "slurm.conf has no RebootProgram", remedy)
    wait = config.resume_timeout
    if wait is None or wait < BOOT:
        remedy = "set ResumeTimeout in slurm.conf to twice what your slowest node needs to boot"
        text = f"ResumeTimeout is {wait}s: a node that boots longer is set DOWN"
        return warn("rebooting nodes", text, remedy)
    return ok("rebooting nodes", f"{visible(config.reboot_program)}, ResumeTimeout {wait}s")


def reaching(nodes: Sequence[Node], remote: Remote, limit: float) -> Iterator[Item]:
    """One harmless command on a few nodes that Slurm says are up."""
    names = [n.name for n in nodes if n.state in UP]
    names = [n for n in names if n not in _silent(nodes)][:ASKED]
    if not names:
        yield unknown("way to nodes", "no node is up that could be asked")
        return
    try:
        answers = remote.run(names, ["true"], limit=limit)
    except SentinelError as error:
        yield unknown("way to nodes", visible(str(error)))
        return
    yield _way(answers)


def _silent(nodes: Sequence[Node]) -> set[str]:
    return {n.name for n in nodes if "NOT_RESPONDING" in n.flags}


def _way(answers: Mapping[str, object]) -> Item:
    failed = {n: a for n, a in answers.items() if not (isinstance(a, Answered) and a.code == 0)}
    if not failed:
        return ok("way to nodes", f"{', '.join(sorted(answers))} answer")
    name, answer = sorted(failed.items())[0]
    why = getattr(answer, "why", None) or f"exit code {getattr(answer, 'code', '?')}"
    text = f"{len(failed)} of {len(answers)} do not answer; {name}: {type(answer).__name__}: {why}"
    remedy = (
        f"try: ssh -o BatchMode=yes {name} true; set remote: {{ssh_options: …}} or {{via: srun}}"
    )
    return warn("way to nodes", visible(text), remedy)
