"""Who asks, and whether Slurm shows them other people's jobs.

slurmctld leaves jobs out of its answer, without a word, for whoever PrivateData=jobs hides
them from: all but root, SlurmUser, operators and administrators (slurm.conf(5), PrivateData;
_hide_job_user_rec() in src/slurmctld/job_mgr.c). Coordinators see their accounts only, so
they too are told that sentinel cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.control import SlurmConfig
from sentinel.slurm.words import decode_text

ADMINISTRATORS = frozenset({"Operator", "Administrator"})
_UID_PATTERN = re.compile(r"uid=(\d+)(?:\(([^)]*)\))?")


class SlurmUser(Struct, frozen=True):
    """The user as whom Slurm is asked; the name is the uid where there is none."""

    uid: int
    name: str


class QueueRights(Struct, frozen=True):
    """What is known of the asker: `admin` sees every job, `private` hides others' from the rest."""

    who: SlurmUser
    admin: bool
    private: bool


def ask_user(client: SlurmClient) -> SlurmUser:
    """Asked where the commands run: through a prefix, that is another host's user."""
    told = decode_text(client.ask_slurm("id"))
    match = _UID_PATTERN.match(told)
    if not match:
        begins = shortened(visible(told.strip()), 80)
        raise CannotTell(f"id(1) does not say as whom Slurm is asked: it prints '{begins}'")
    return SlurmUser(int(match[1]), match[2] or match[1])


def find_rights(
    client: SlurmClient, me: SlurmUser, config: Callable[[], SlurmConfig]
) -> QueueRights:
    """Root needs no question; for others slurmctld is asked, and slurmdbd where there is one."""
    if me.uid == 0:
        return QueueRights(me, admin=True, private=False)
    slurm = config()
    admin = me.name == slurm.slurm_user or (slurm.accounting and _is_administrator(client, me))
    return QueueRights(me, admin=admin, private="jobs" in slurm.private)


def refusal_reason(rights: QueueRights, users: Collection[str] | None) -> str:
    """Why a list of these users' jobs (None: everybody's) would not be the truth; else empty."""
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
    """sacctmgr(1) prints `alice|Operator`; no text of users is in the two fields."""
    question = ("show", "user", f"name={me.name}", "format=user,admin")
    rows = decode_text(client.ask_slurm("sacctmgr", "-n", "-P", *question)).splitlines()
    levels = [level for name, _, level in (row.rpartition("|") for row in rows) if name == me.name]
    return bool(ADMINISTRATORS.intersection(levels))
