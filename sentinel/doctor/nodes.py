"""Nodes: whether sentinel may change them, and whether it reaches them. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.node_answers import Answered, Remote
from sentinel.core.text import visible
from sentinel.doctor import DoctorItem, make_ok_item, make_unknown_item, make_warning_item
from sentinel.slurm.node_states import UP
from sentinel.slurm.privilege import REMEDY, find_privilege
from sentinel.slurm.snapshot import SlurmSnapshot

MAX_NODES_TRIED = 3
"""How many nodes are tried. This is enough to distinguish a broken connection from a broken node.
"""

MIN_BOOT_S = 300
"""Seconds that a GPU node needs to boot, at least; Slurm's default of 60 ends in "reboot timed
out", and the node stays DOWN (slurm.conf(5), ResumeTimeout)."""

SUDOERS_LINES = r"""sentinel ALL=(root) NOPASSWD: \
  /usr/bin/scontrol ^update NodeName=[A-Za-z0-9._-]+ State=UNDRAIN$, \
  /usr/bin/scontrol ^update NodeName=[A-Za-z0-9._-]+ State=DRAIN Reason=sentinel: [^=]*$"""
"""Regular expressions: the `*` of sudoers(5) matches further arguments too, State=DOWN among them."""


def check_node_changes(
    snapshot: SlurmSnapshot, prefix: Sequence[str], who: str = "sentinel", *, wanted: bool = True
) -> DoctorItem:
    """Whether nodes could be drained and undrained. If that is not `wanted`, nobody is asked for a
    right that watching does not need."""
    found = find_privilege(snapshot, prefix)
    if found.may or not wanted:
        unneeded = "" if found.may else "not needed, as nothing here changes nodes: "
        return make_ok_item("changing nodes", visible(unneeded + found.why))
    lines = SUDOERS_LINES.replace("sentinel ALL", f"{who} ALL", 1)
    remedy = (
        f"watching needs no rights; to act, {REMEDY}\n"
        f"/etc/sudoers.d/sentinel (sudo 1.9.10 or later):\n{lines}\n"
        "and in the configuration: slurm: {change_prefix: [sudo, -n]}"
    )
    make = make_unknown_item if found.may is None else make_warning_item
    return make("changing nodes", visible(found.why), remedy)


def check_reboots(snapshot: SlurmSnapshot) -> DoctorItem:
    """Whether Slurm could reboot nodes, and would wait for them."""
    try:
        config = snapshot.config()
    except CannotTell as error:
        return make_unknown_item("rebooting nodes", visible(str(error)))
    if not config.reboot_program:
        remedy = "set RebootProgram in slurm.conf, e.g. /sbin/reboot"
        return make_warning_item("rebooting nodes", "slurm.conf has no RebootProgram", remedy)
    wait = config.resume_timeout
    if wait is None or wait < MIN_BOOT_S:
        remedy = "set ResumeTimeout in slurm.conf to twice what your slowest node needs to boot"
        text = f"ResumeTimeout is {wait}s: a node that boots longer is set DOWN"
        return make_warning_item("rebooting nodes", text, remedy)
    return make_ok_item(
        "rebooting nodes", f"{visible(config.reboot_program)}, ResumeTimeout {wait}s"
    )


def check_node_access(nodes: Sequence[Node], remote: Remote, limit: float) -> Iterator[DoctorItem]:
    """Run one harmless command on a few nodes that Slurm calls up."""
    names = [n.name for n in nodes if n.state in UP]
    names = [n for n in names if n not in _list_unresponsive(nodes)][:MAX_NODES_TRIED]
    if not names:
        yield make_unknown_item("way to nodes", "no node is up that could be asked")
        return
    try:
        answers = remote.run(names, ["true"], limit=limit)
    except SentinelError as error:
        yield make_unknown_item("way to nodes", visible(str(error)))
        return
    yield _judge_node_answers(answers)


def _list_unresponsive(nodes: Sequence[Node]) -> set[str]:
    return {n.name for n in nodes if "NOT_RESPONDING" in n.flags}


def _judge_node_answers(answers: Mapping[str, object]) -> DoctorItem:
    failed = {n: a for n, a in answers.items() if not (isinstance(a, Answered) and a.code == 0)}
    if not failed:
        return make_ok_item("way to nodes", f"{', '.join(sorted(answers))} answer")
    name, answer = sorted(failed.items())[0]
    why = getattr(answer, "why", None) or f"exit code {getattr(answer, 'code', '?')}"
    text = f"{len(failed)} of {len(answers)} do not answer; {name}: {type(answer).__name__}: {why}"
    remedy = (
        f"try: ssh -o BatchMode=yes {name} true; set remote: {{ssh_options: …}} or {{via: srun}}"
    )
    return make_warning_item("way to nodes", visible(text), remedy)
