"""Finds out whether Slurm lets this user change nodes, without changing anything.

slurmctld takes updates of nodes only from root, SlurmUser and AdminLevel=Administrator:
validate_super_user() in _slurm_rpc_update_node() (src/slurmctld/proc_req.c). An Operator, who sees
everything, may not."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import visible
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.rights import SlurmUser, ask_user
from sentinel.slurm.snapshot import SlurmSnapshot

REMEDY = (
    "run sentinel as root or SlurmUser, or let an administrator do: sacctmgr modify user NAME set "
    "adminlevel=Administrator, or allow it through sudo (sentinel doctor prints the lines)"
)


class Privilege(Struct, frozen=True):
    """Whether nodes may be changed. `may`: None if only a try could tell. `why` names the user and
    the reason."""

    may: bool | None
    why: str


def find_privilege(snapshot: SlurmSnapshot, prefix: Sequence[str] = ()) -> Privilege:
    """Whether nodes may be changed, with `prefix` if the command is run through it. Of prefixes
    only sudo can be asked without a change. Never raises CannotTell."""
    try:
        if prefix:
            return _sudo_privilege(snapshot.client, prefix)
        return _own_privilege(snapshot, ask_user(snapshot.client))
    except CannotTell as error:
        return Privilege(None, str(error))


def _own_privilege(snapshot: SlurmSnapshot, me: SlurmUser) -> Privilege:
    if me.uid == 0:
        return Privilege(True, f"{me.name} is root")
    config = snapshot.config()
    if me.name == config.slurm_user:
        return Privilege(True, f"{me.name} is SlurmUser")
    if not config.accounting:
        return Privilege(False, f"{me.name} is neither root nor SlurmUser ({config.slurm_user})")
    level = _admin_level(snapshot.client, me.name)
    if level == "Administrator":
        return Privilege(True, f"{me.name} has AdminLevel=Administrator")
    enough = "; an Operator may look, not change" if level == "Operator" else ""
    return Privilege(False, f"{me.name} has AdminLevel={level or 'None'}{enough}")


def _admin_level(client: SlurmClient, name: str) -> str:
    """sacctmgr(1) prints `alice|Operator`; no text of users is in the two fields."""
    question = ("show", "user", f"name={name}", "format=user,admin")
    rows = decode_lines(client.ask_slurm("sacctmgr", "-n", "-P", *question)).splitlines()
    found = dict(row.rpartition("|")[::2] for row in rows)
    return found.get(name, "")


def _sudo_privilege(client: SlurmClient, prefix: Sequence[str]) -> Privilege:
    """`sudo -l COMMAND` says whether it would be run, and runs nothing (sudo(8))."""
    shown = visible(" ".join(prefix))
    if os.path.basename(prefix[0]) != "sudo":
        return Privilege(None, f"through {shown}: cannot be told without trying")
    for state in (("State=UNDRAIN",), ("State=DRAIN", "Reason=sentinel: test")):
        done = client.run_command(
            prefix[0], "-n", "-l", "scontrol", "update", "NodeName=node", *state
        )
        if done.code:
            said = describe_stderr(done.err) or "it is not in sudoers"
            return Privilege(False, f"{shown} does not allow scontrol update … {state[0]}: {said}")
    return Privilege(True, f"{shown} allows scontrol update")
