"""What scontrol's answers to a change prove, and who may change nodes."""

from pathlib import Path

import pytest

from sentinel.clock import SystemClock
from sentinel.core.actions import Answer
from sentinel.core.errors import CannotTell
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.privilege import find_privilege
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.lab.cluster import Lab
from tests.slurm.stand_ins import StandIns

UPDATE = ("scontrol", "update", "NodeName=n1", "State=UNDRAIN")
CONFIG = "ClusterName = c\nSLURM_VERSION = 22.05.8\nSlurmUser = slurm(64030)\n"
ACCOUNTING = "AccountingStorageType = accounting_storage/slurmdbd\n"


def snapshot(stand_ins: StandIns, limit: float = 10.0) -> SlurmSnapshot:
    client = SlurmClient(limit=limit, environ=stand_ins.env)
    return SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0)


REPLIES = [
    ("", 0, Answer.ACCEPTED),
    ("slurm_update error: Invalid user id", 1, Answer.REFUSED),
    ("slurm_update error: Invalid node state specified", 1, Answer.REFUSED),
    ("slurm_update error: Invalid node name specified", 1, Answer.REFUSED),
    ("slurm_update error: Access/permission denied", 1, Answer.REFUSED),
    ("You must specify a reason when DRAINING a node. Request denied", 1, Answer.REFUSED),
    ("sudo: a password is required", 1, Answer.REFUSED),
    ("slurm_update error: Socket timed out on send/recv operation", 1, Answer.UNSURE),
    ("slurm_update error: Zero Bytes were transmitted or received", 1, Answer.UNSURE),
    ("slurm_update error: Unable to contact slurm controller (connect failure)", 1, Answer.UNSURE),
    ("slurm_update error: Protocol authentication error", 1, Answer.UNSURE),
    ("slurm_update error: something no version said so far", 0, Answer.UNSURE),
    ("", 1, Answer.UNSURE),
]


@pytest.mark.parametrize(("said", "code", "answer"), REPLIES)
def test_only_a_known_refusal_is_one(
    stand_ins: StandIns, said: str, code: int, answer: Answer
) -> None:
    """Silence with exit code 0 is acceptance; whatever is not plainly a refusal may have arrived."""
    stand_ins.says("scontrol", err=said, code=code)
    reply = SlurmHands(snapshot(stand_ins)).change(UPDATE)
    assert reply.answer is answer
    assert said in reply.text


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("slurm_update error: Invalid user id", "Slurm does not let this user do that"),
        ("slurm_update error: Invalid node state specified", "in its present state"),
        ("You must specify a reason when DRAINING a node. Request denied", "wants a reason"),
        ("sudo: a password is required", "allow the command in sudoers"),
        ("slurm_update error: Socket timed out on send/recv operation", "did not answer in time"),
        ("Job/step already completing or completed for job 7", "the job is over"),
    ],
)
def test_what_slurm_says_to_a_change_is_told_in_a_persons_words_first(
    stand_ins: StandIns, said: str, means: str
) -> None:
    """Then come its own."""
    stand_ins.says("scontrol", err=said, code=1)
    told = SlurmHands(snapshot(stand_ins)).change(UPDATE).text
    assert means in told.removesuffix(f": {said}")
    assert told.endswith(f": {said}")


def test_a_change_that_hangs_is_unsure(stand_ins: StandIns) -> None:
    """After the limit, and it is ended."""
    stand_ins.script("scontrol", "#!/bin/sh\nexec sleep 60\n")
    reply = SlurmHands(snapshot(stand_ins, limit=0.5)).change(UPDATE)
    assert (reply.answer, "no answer within" in reply.text) == (Answer.UNSURE, True)


def test_the_prefix_stands_before_changes_only(stand_ins: StandIns) -> None:
    """Reading needs no sudo."""
    stand_ins.says("sudo")
    stand_ins.says("scontrol", "NodeName=n1 State=IDLE \n")
    hands = SlurmHands(snapshot(stand_ins), ["sudo", "-n"])
    hands.change(UPDATE)
    assert hands.node("n1") is not None
    assert stand_ins.told("sudo") == ["-n scontrol update NodeName=n1 State=UNDRAIN"]
    assert stand_ins.told("scontrol") == ["-o -a show node n1"]


@pytest.mark.parametrize("said", ["Node n1 not found", "slurm_load_node error: Invalid node name"])
def test_a_node_that_is_not_there_is_none(stand_ins: StandIns, said: str) -> None:
    """As scontrol says it; any other failure is blindness."""
    stand_ins.says("scontrol", said, code=1)
    assert SlurmHands(snapshot(stand_ins)).node("n1") is None
    stand_ins.says("scontrol", err="Socket timed out on send/recv operation", code=1)
    with pytest.raises(CannotTell, match="timed out"):
        SlurmHands(snapshot(stand_ins)).node("n1")


def test_another_nodes_line_is_no_answer(stand_ins: StandIns) -> None:
    """scontrol takes host lists; a name is a name."""
    stand_ins.says("scontrol", "NodeName=n2 State=IDLE \n")
    assert SlurmHands(snapshot(stand_ins)).node("n1") is None


PRIVILEGES = [
    ("uid=0(root)", CONFIG, "", True, "root is root"),
    ("uid=64030(slurm)", CONFIG, "", True, "slurm is SlurmUser"),
    ("uid=7(eve)", CONFIG, "", False, "eve is neither root nor SlurmUser (slurm)"),
    ("uid=7(eve)", CONFIG + ACCOUNTING, "eve|Administrator\n", True, "AdminLevel=Administrator"),
    (
        "uid=7(eve)",
        CONFIG + ACCOUNTING,
        "eve|Operator\n",
        False,
        "an Operator may look, not change",
    ),
    ("uid=7(eve)", CONFIG + ACCOUNTING, "eve|None\n", False, "eve has AdminLevel=None"),
    ("uid=7(eve)", CONFIG + ACCOUNTING, "", False, "eve has AdminLevel=None"),
    ("uid=7(eve)", CONFIG + ACCOUNTING, "adam|Administrator\n", False, "AdminLevel=None"),
    ("uid=7(eve)", "nothing", "", None, "scontrol show config says nothing"),
]


@pytest.mark.parametrize(("me", "config", "level", "may", "why"), PRIVILEGES)
def test_who_may_change_nodes(
    stand_ins: StandIns, me: str, config: str, level: str, may: bool | None, why: str
) -> None:
    """Nothing is changed to find out; what cannot be asked is not known."""
    stand_ins.says("id", me)
    stand_ins.says("scontrol", config)
    stand_ins.says("sacctmgr", level)
    found = find_privilege(snapshot(stand_ins))
    assert found.may is may
    assert why in found.why
    assert not any("update" in words for words in stand_ins.told("scontrol"))


def test_sudo_is_asked_what_it_would_allow(stand_ins: StandIns) -> None:
    """With -l, which runs nothing; another prefix cannot be asked."""
    stand_ins.says("sudo", "/usr/bin/scontrol")
    assert find_privilege(snapshot(stand_ins), ["sudo", "-n"]).may
    assert all(words.startswith("-n -l scontrol update ") for words in stand_ins.told("sudo"))
    stand_ins.says("sudo", err="sudo: a password is required", code=1)
    denied = find_privilege(snapshot(stand_ins), ["sudo", "-n"])
    assert (denied.may, "a password is required" in denied.why) == (False, True)
    assert find_privilege(snapshot(stand_ins), ["doas"]).may is None


def test_an_operator_may_not_and_an_administrator_may(
    fresh_accounting: Lab, tmp_path: Path
) -> None:
    """As Slurm itself decides: what privilege says is what scontrol then meets."""
    lab, manager = fresh_accounting, ["sacctmgr", "-i"]
    carol = lab.user("carol")
    lab.ask([*manager, "add", "account", "nodes"])
    lab.ask([*manager, "add", "user", carol.name, "account=nodes"])
    for level, may in (("Operator", False), ("Administrator", True)):
        lab.ask([*manager, "modify", "user", carol.name, "set", f"adminlevel={level}"])
        client = SlurmClient(prefix=("runuser", "-u", carol.name, "--"), environ=lab.env)
        mine = SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0)
        assert find_privilege(mine).may is may
        argv = ("scontrol", "update", "NodeName=node-1", "State=DRAIN", "Reason=sentinel: x")
        answer = SlurmHands(mine).change(argv).answer
        assert answer is (Answer.ACCEPTED if may else Answer.REFUSED), level


def test_a_real_node_and_one_that_is_none(fresh: Lab) -> None:
    """One answer per question, straight from slurmctld."""
    client = SlurmClient(environ=fresh.env)
    hands = SlurmHands(SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0))
    found = hands.node("node-1")
    assert found is not None
    assert (found.name, found.state) == ("node-1", "IDLE")
    assert hands.node("nosuch") is None
