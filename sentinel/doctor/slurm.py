"""Checks Slurm: whether it answers, and what this user may see and do."""

import re
from collections.abc import Iterator
from shutil import which

from msgspec.structs import replace

from sentinel.core.cluster import Controller
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.settings import SlurmSettings
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.doctor import (
    DoctorItem,
    make_failure_item,
    make_ok_item,
    make_unknown_item,
    make_warning_item,
    nodes,
)
from sentinel.slurm.snapshot import SlurmSnapshot

OLDEST_VERSION = (20, 11)
_CLIENT_COMMANDS = ("squeue", "scontrol")
_ADMIN_REMEDY = (
    "an administrator can set AdminLevel: sacctmgr modify user NAME set adminlevel=Administrator"
)


def check_slurm(
    slurm: SlurmSnapshot, settings: SlurmSettings, *, changes_nodes: bool = True
) -> Iterator[DoctorItem]:
    """Check from the client commands to the rights. It stops if later checks would be useless.
    `changes_nodes`: whether the configuration may change nodes, or is that of the service."""
    missing = [c for c in _CLIENT_COMMANDS if which(c) is None and not settings.command_prefix]
    if missing:
        yield make_failure_item(
            "Slurm commands",
            f"not in PATH: {', '.join(missing)}",
            "install Slurm's client package, or set slurm: {command_prefix: [ssh, LOGIN-NODE]}",
        )
        return
    answers = check_controller(slurm)
    yield answers
    if answers.status is Status.CRITICAL:
        return
    yield check_version(slurm)
    yield check_job_visibility(slurm)
    yield nodes.check_node_changes(slurm, settings.change_prefix, wanted=changes_nodes)
    yield from list_slurm_remarks(slurm)


def check_other_cluster(name: str, slurm: SlurmSnapshot) -> Iterator[DoctorItem]:
    """Check a cluster that is only read, never changed."""
    answers = check_controller(slurm)
    told = (answers,) if answers.status is Status.CRITICAL else (answers, check_version(slurm))
    yield from (replace(item, name=f"{item.name} of {visible(name)}") for item in told)


def check_controller(slurm: SlurmSnapshot) -> DoctorItem:
    """slurmctld and its backups."""
    try:
        answer = slurm.controller()
    except CannotTell as error:
        return make_failure_item(
            "slurmctld", visible(str(error)), "is slurm.conf right, is slurmctld up, is munged up?"
        )
    return _judge_controller(answer)


def _judge_controller(answer: Controller) -> DoctorItem:
    up = [name for name, is_up in answer.backups if is_up]
    down = [name for name, is_up in answer.backups if not is_up]
    because = f": {answer.trouble}" if answer.trouble else ""
    silent = f"{answer.primary or 'it'} does not answer{because}"
    if not answer.primary_up and not up:
        remedy = "systemctl status munge here, and slurmctld on that host"
        return make_failure_item("slurmctld", visible(silent), remedy)
    who = answer.primary if answer.primary_up else ", ".join(up)
    text = f"{who} answers in {duration_text(answer.latency)}, cluster {answer.cluster or '?'}"
    if not answer.primary_up:
        remedy = "systemctl status slurmctld on that host: its backup does the work"
        return make_warning_item("slurmctld", visible(f"{text}; {silent}"), remedy)
    if down:
        text = f"{text}; backup down: {', '.join(down)}"
        return make_warning_item("slurmctld", visible(text), "start it: fail-over would not work")
    return make_ok_item("slurmctld", visible(text))


def check_version(slurm: SlurmSnapshot) -> DoctorItem:
    """20.11 to 26.05 were tried."""
    try:
        found = slurm.config().version
    except CannotTell as error:
        return make_unknown_item("Slurm version", visible(str(error)))
    if tuple(int(part) for part in re.findall(r"[0-9]{1,4}", found)[:2]) < OLDEST_VERSION:
        return make_warning_item(
            "Slurm version", visible(found), "20.11 is the oldest that sentinel was tried with"
        )
    return make_ok_item("Slurm version", visible(found))


def check_job_visibility(slurm: SlurmSnapshot) -> DoctorItem:
    """Check whose jobs this user can see."""
    try:
        rights = slurm.rights()
    except CannotTell as error:
        return make_unknown_item("jobs of others", visible(str(error)))
    if rights.admin:
        return make_ok_item("jobs of others", f"{rights.who.name} sees all jobs")
    if rights.private:
        return make_warning_item(
            "jobs of others", f"hidden from {rights.who.name} by PrivateData=jobs", _ADMIN_REMEDY
        )
    return make_ok_item(
        "jobs of others", f"{rights.who.name} sees those of the users named in the file"
    )


def list_slurm_remarks(slurm: SlurmSnapshot) -> Iterator[DoctorItem]:
    """What Slurm's commands, or what wraps them, wrote beside answers that are whole."""
    by_command = slurm.client.remarks.items()
    for text in sorted({s.removeprefix(f"{name}: ") for name, said in by_command for s in said}):
        yield make_ok_item(
            "remark of Slurm", f"{text} (said beside answers that are whole and believed)"
        )
