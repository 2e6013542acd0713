"""Whom Slurm shows other people's jobs, and what is said where it does not."""

import pytest

from sentinel.core.errors import CannotTell
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.control import SlurmConfig
from sentinel.slurm.rights import QueueRights, SlurmUser, ask_user, find_rights, refusal_reason
from tests.slurm.stand_ins import StandIns

ALICE, ROOT, SLURM = SlurmUser(1000, "alice"), SlurmUser(0, "root"), SlurmUser(64030, "slurm")


def config(private: str = "", accounting: bool = True) -> SlurmConfig:
    return SlurmConfig(
        cluster="c",
        version="22.05.8",
        slurm_user="slurm",
        private=frozenset(private.split()),
        accounting=accounting,
    )


@pytest.mark.parametrize(
    ("admin", "private", "users", "allowed"),
    [
        (True, True, None, True),
        (True, True, ["bob"], True),
        (False, False, ["alice"], True),
        (False, True, ["alice"], True),
        (False, False, ["alice", "bob"], True),
        (False, True, ["alice", "bob"], False),
        (False, True, ["bob"], False),
        (False, False, None, False),
        (False, True, None, False),
    ],
)
def test_who_may_ask_for_whose_jobs(
    admin: bool, private: bool, users: list[str] | None, allowed: bool
) -> None:
    """One's own always; others' unless PrivateData hides them; everybody's as administrator."""
    assert (refusal_reason(QueueRights(ALICE, admin, private), users) == "") is allowed


def test_a_refusal_names_the_users_and_the_remedy() -> None:
    """squeue would print an empty list with exit code 0: nobody could know why."""
    said = refusal_reason(QueueRights(ALICE, admin=False, private=True), ["carol", "bob", "alice"])
    assert said == (
        "PrivateData=jobs hides the jobs of bob, carol from alice; "
        "run sentinel as SlurmUser, root, or with AdminLevel=Operator"
    )


@pytest.mark.parametrize(
    ("me", "level", "private", "rights"),
    [
        (SLURM, "None", "jobs", QueueRights(SLURM, admin=True, private=True)),
        (ALICE, "None", "jobs", QueueRights(ALICE, admin=False, private=True)),
        (ALICE, "None", "usage nodes", QueueRights(ALICE, admin=False, private=False)),
        (ALICE, "Operator", "jobs", QueueRights(ALICE, admin=True, private=True)),
        (ALICE, "Administrator", "jobs", QueueRights(ALICE, admin=True, private=True)),
    ],
)
def test_rights_of_a_user(
    stand_ins: StandIns, me: SlurmUser, level: str, private: str, rights: QueueRights
) -> None:
    """SlurmUser, operators and administrators see every job."""
    stand_ins.says("sacctmgr", f"alice|{level}\n")
    assert find_rights(SlurmClient(environ=stand_ins.env), me, lambda: config(private)) == rights
    for asked in stand_ins.told("sacctmgr"):
        assert asked == f"-n -P show user name={me.name} format=user,admin"


def test_root_asks_nobody(stand_ins: StandIns) -> None:
    """root sees everything in every Slurm; neither daemon is troubled."""

    def never() -> SlurmConfig:
        raise AssertionError

    client = SlurmClient(environ=stand_ins.env)
    assert find_rights(client, ROOT, never) == QueueRights(ROOT, admin=True, private=False)
    assert client.counts == {}


def test_without_accounting_there_are_no_administrators(stand_ins: StandIns) -> None:
    """sacctmgr has nobody to ask, and is not asked."""
    client = SlurmClient(environ=stand_ins.env)
    rights = find_rights(client, ALICE, lambda: config("jobs", accounting=False))
    assert (rights.admin, client.counts) == (False, {})


def test_another_users_level_is_not_ours(stand_ins: StandIns) -> None:
    """Only the row of the very user counts."""
    stand_ins.says("sacctmgr", "alice2|Administrator\n\n")
    assert not find_rights(SlurmClient(environ=stand_ins.env), ALICE, config).admin


def test_a_failing_sacctmgr_is_cannot_tell(stand_ins: StandIns) -> None:
    """Not knowing one's rights is not having none: the check is blind and says why."""
    stand_ins.says("sacctmgr", err="sacctmgr: error: slurmdbd: Connection refused\n", code=1)
    with pytest.raises(CannotTell, match="Connection refused"):
        find_rights(SlurmClient(environ=stand_ins.env), ALICE, config)


@pytest.mark.parametrize(
    ("printed", "user"),
    [
        ("uid=1000(alice) gid=1000(alice) groups=1000(alice)\n", ALICE),
        ("uid=0(root) gid=0(root) groups=0(root)\n", ROOT),
        ("uid=4711 gid=100(users)\n", SlurmUser(4711, "4711")),
    ],
)
def test_who_asks_is_who_the_commands_run_as(
    stand_ins: StandIns, printed: str, user: SlurmUser
) -> None:
    """id(1) runs where the commands run, through the same prefix."""
    stand_ins.says("id", printed)
    assert ask_user(SlurmClient(environ=stand_ins.env)) == user


def test_an_id_that_says_nothing_is_cannot_tell(stand_ins: StandIns) -> None:
    """A login shell that prints something else is no user."""
    stand_ins.says("id", "Welcome to login1\n")
    with pytest.raises(CannotTell, match="as whom"):
        ask_user(SlurmClient(environ=stand_ins.env))
