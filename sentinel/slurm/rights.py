"""Finds out who asks, and whether Slurm shows this user the jobs of others.

With PrivateData=jobs, slurmctld silently leaves out jobs of others, except for root, SlurmUser,
operators and administrators (slurm.conf(5), PrivateData; _hide_job_user_rec() in
src/slurmctld/job_mgr.c). Coordinators see only their accounts, so for them too sentinel reports
that it cannot see all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import shortened, visible
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.control import SlurmConfig

ADMINISTRATORS = frozenset({"Operator", "Administrator"})
_UID_PATTERN = lazy_pattern(r"uid=(\d+)(?:\(([^)]*)\))?")


class SlurmUser(Struct, frozen=True):
    """The user as whom Slurm is asked. `name` is the uid if the user has no name."""

    uid: int  # Number of the user.
    name: str  # Name of the user.


class QueueRights(Struct, frozen=True):
    """What the asking user may see: `admin` sees every job; `private` hides other users' jobs from
    all who are no `admin`."""

    who: SlurmUser  # The user who asks.
    admin: bool
    private: bool


def ask_user(client: SlurmClient) -> SlurmUser:
    """Ask id(1) as whom Slurm's commands run; through a prefix that is a user of another host.
    Raises CannotTell."""
    told = decode_lines(client.ask_slurm("id"))
    match = _UID_PATTERN.match(told)
    if not match:
        begins = shortened(visible(told.strip()), 80)
        raise CannotTell(f"id(1) does not say as whom Slurm is asked: it prints '{begins}'")
    return SlurmUser(int(match[1]), match[2] or match[1])


def find_rights(
    client: SlurmClient, me: SlurmUser, config: Callable[[], SlurmConfig]
) -> QueueRights:
    """Find out what this user may see. Root may see everything; for others slurmctld is asked, and
    slurmdbd if there is one."""
    if me.uid == 0:
        return QueueRights(me, admin=True, private=False)
    slurm = config()
    admin = me.name == slurm.slurm_user or (slurm.accounting and _is_administrator(client, me))
    return QueueRights(me, admin=admin, private="jobs" in slurm.private)


def refusal_reason(rights: QueueRights, users: Collection[str] | None) -> str:
    """Why a list of these users' jobs (None: everybody's) would be incomplete; empty if it is
    complete."""
    if rights.admin:
        return ""
    if users is None:
        return (
            f"all users' jobs are asked for only with administrator's rights in Slurm, and "
            f"{rights.who.name} has none; name the users to watch, or run sentinel as SlurmUser, "
            "root, or with AdminLevel=Operator"
        )
    others = sorted(set(users) - {rights.who.name})
    if others and rights.private:
        return (
            f"PrivateData=jobs hides the jobs of {', '.join(others)} from {rights.who.name}; "
            "run sentinel as SlurmUser, root, or with AdminLevel=Operator"
        )
    return ""


def _is_administrator(client: SlurmClient, me: SlurmUser) -> bool:
    """Whether the user is Administrator or Operator. sacctmgr(1) prints `alice|Operator`; the two
    fields hold no free text."""
    question = ("show", "user", f"name={me.name}", "format=user,admin")
    rows = decode_lines(client.ask_slurm("sacctmgr", "-n", "-P", *question)).splitlines()
    levels = [level for name, _, level in (row.rpartition("|") for row in rows) if name == me.name]
    return bool(ADMINISTRATORS.intersection(levels))
