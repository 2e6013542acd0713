"""Slurm: whether it answers, and what it lets this user see and do."""

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
from sentinel.doctor import Item, bad, nodes, ok, unknown, warn
from sentinel.slurm.snapshot import Snapshot

OLDEST = (20, 11)
_CLIENTS = ("squeue", "scontrol")
_ASK = "an administrator can set AdminLevel: sacctmgr modify user NAME set adminlevel=Administrator"


def examine(slurm: Snapshot, settings: SlurmSettings) -> Iterator[Item]:
    """From the client commands to the rights; stops where nothing further can be known."""
    missing = [c for c in _CLIENTS if which(c) is None and not settings.command_prefix]
    if missing:
        yield bad(
            "Slurm commands",
            f"not in PATH: {', '.join(missing)}",
            "install Slurm's client package, or set slurm: {command_prefix: [ssh, LOGIN-NODE]}",
        )
        return
    answers = controller(slurm)
    yield answers
    if answers.status is Status.CRITICAL:
        return
    yield version(slurm)
    yield seeing(slurm)
    yield nodes.changing(slurm, settings.change_prefix)
    yield from remarks(slurm)


def elsewhere(name: str, slurm: Snapshot) -> Iterator[Item]:
    """Of a cluster that is looked at and never changed."""
    answers = controller(slurm)
    told = (answers,) if answers.status is Status.CRITICAL else (answers, version(slurm))
    yield from (replace(item, name=f"{item.name} of {visible(name)}") for item in told)


def controller(slurm: Snapshot) -> Item:
    """slurmctld and its backups."""
    try:
        answer = slurm.controller()
    except CannotTell as error:
        return bad(
            "slurmctld", visible(str(error)), "is slurm.conf right, is slurmctld up, is munged up?"
        )
    return _judged(answer)


def _judged(answer: Controller) -> Item:
    up = [name for name, is_up in answer.backups if is_up]
    down = [name for name, is_up in answer.backups if not is_up]
    because = f": {answer.trouble}" if answer.trouble else ""
    silent = f"{answer.primary or 'it'} does not answer{because}"
    if not answer.primary_up and not up:
        remedy = "systemctl status munge here, and slurmctld on that host"
        return bad("slurmctld", visible(silent), remedy)
    who = answer.primary if answer.primary_up else ", ".join(up)
    text = f"{who} answers in {duration_text(answer.latency)}, cluster {answer.cluster or '?'}"
    if not answer.primary_up:
        remedy = "systemctl status slurmctld on that host: its backup does the work"
        return warn("slurmctld", visible(f"{text}; {silent}"), remedy)
    if down:
        text = f"{text}; backup down: {', '.join(down)}"
        return warn("slurmctld", visible(text), "start it: fail-over would not work")
    return ok("slurmctld", visible(text))


def version(slurm: Snapshot) -> Item:
    """20.11 to 26.05 were tried."""
    try:
        found = slurm.config().version
    except CannotTell as error:
        return unknown("Slurm version", visible(str(error)))
    if tuple(int(part) for part in re.findall(r"[0-9]{1,4}", found)[:2]) < OLDEST:
        return warn(
            "Slurm version", visible(found), "20.11 is the oldest that sentinel was tried with"
        )
    return ok("Slurm version", visible(found))


def seeing(slurm: Snapshot) -> Item:
    """Whose jobs this user is shown."""
    try:
        rights = slurm.rights()
    except CannotTell as error:
        return unknown("jobs of others", visible(str(error)))
    if rights.admin:
        return ok("jobs of others", f"{rights.who.name} sees all jobs (administrator)")
    if rights.private:
        return warn("jobs of others", f"hidden from {rights.who.name} by PrivateData=jobs", _ASK)
    return ok("jobs of others", f"{rights.who.name} sees those of the users named in the file")


def remarks(slurm: Snapshot) -> Iterator[Item]:
    """What Slurm's commands, or what wraps them, wrote beside answers that are whole."""
    by_command = slurm.client.remarks.items()
    for text in sorted({s.removeprefix(f"{name}: ") for name, said in by_command for s in said}):
        yield ok("remark of Slurm", f"{text} (said beside answers that are whole and believed)")
