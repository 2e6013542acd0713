"""What silences and inhibition keep from being told, and what they never do."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.matching import matches
from sentinel.alerting.settings import Inhibit, Match
from sentinel.alerting.silences import Inhibition, Silence, silenced
from sentinel.core.model import Alert, Key, Status
from sentinel.testing import START


def alert(kind: str, subject: str = "s", firing: bool = True) -> Alert:
    return Alert(
        key=Key("lab", kind, subject),
        id=kind,
        kind=kind,
        status=Status.CRITICAL,
        summary="",
        since=START,
        last=START,
        firing=firing,
    )


def mutes(when: str, mute: str) -> Inhibit:
    return Inhibit(when=Match(kind=when), mute=Match(kind=mute))


SLURM, JOB, LOG, FS = (alert(kind) for kind in ("slurm", "job", "log", "fs"))
CHAIN = [mutes("job", "log"), mutes("slurm", "job")]


def test_of_several_silences_the_longest_is_named() -> None:
    """Whoever reads it wants to know when they will hear of it."""
    ends = {"a": 60, "b": 90, "c": 30}
    several = [
        Silence(id=name, match=Match(), starts=0, ends=START.wall + left)
        for name, left in ends.items()
    ]
    found = silenced(JOB, several, START)
    assert found is not None
    assert found.id == "b"


def test_only_what_fires_mutes() -> None:
    """A trouble that is over, or has not lasted long enough, explains nothing."""
    assert Inhibition(CHAIN, [alert("slurm", firing=False), JOB]).explains(JOB) is None
    assert Inhibition(CHAIN, [SLURM, JOB]).explains(JOB) == SLURM


def test_what_is_muted_still_mutes_and_the_first_cause_is_named() -> None:
    """slurmctld is down: that no job runs and no log grows are both of it."""
    found = Inhibition(CHAIN, [LOG, JOB, SLURM])
    assert [found.explains(a) for a in (LOG, JOB, SLURM)] == [SLURM, SLURM, None]


def test_alerts_that_mute_each_other_are_all_told() -> None:
    """Else nobody would hear of either: two rules, and three in a circle."""
    two = Inhibition([mutes("job", "fs"), mutes("fs", "job")], [JOB, FS])
    assert [two.explains(a) for a in (JOB, FS)] == [None, None]
    rules = [mutes("job", "log"), mutes("log", "fs"), mutes("fs", "job")]
    three = Inhibition(rules, [JOB, LOG, FS])
    assert [three.explains(a) for a in (JOB, LOG, FS)] == [None, None, None]


def test_a_circle_with_a_cause_outside_is_muted_by_that() -> None:
    """Both are explained after all."""
    rules = [mutes("job", "fs"), mutes("fs", "job"), mutes("slurm", "job")]
    found = Inhibition(rules, [JOB, FS, SLURM])
    assert [found.explains(a) for a in (JOB, FS, SLURM)] == [SLURM, SLURM, None]


def test_alerts_are_looked_through_once_for_all_questions() -> None:
    """A storm of 2,000 alerts that asked about each other held a pass up for half a minute."""
    once = iter([SLURM, *(alert("job", str(n)) for n in range(50))])
    found = Inhibition(CHAIN, once)
    assert all(found.explains(alert("job", str(n))) == SLURM for n in range(50))


def on(node: str, kind: str) -> Alert:
    return replace(alert(kind, f"{kind} {node}"), labels={"node": node} if node else {})


def test_a_node_that_is_down_mutes_the_alerts_of_that_node() -> None:
    """And of no other, nor of what is about no node at all."""
    rule = Inhibit(when=Match(kind="nodes"), mute=Match(kind=["gpu", "fs"]), same=["node"])
    found = Inhibition([rule], [on("n1", "nodes"), on("n2", "gpu"), on("n1", "gpu")])
    assert found.explains(on("n1", "gpu")) == on("n1", "nodes")
    assert found.explains(on("n1", "fs")) == on("n1", "nodes")
    assert [found.explains(on(node, "gpu")) for node in ("n2", "n10", "")] == [None, None, None]
    assert found.explains(on("n1", "job")) is None


def test_two_alerts_without_a_node_are_not_of_the_same_node() -> None:
    """The check of nodes is blind, and no GPU of the cluster is told any more? Alertmanager takes
    two missing labels for equal; here nobody knows."""
    rule = Inhibit(when=Match(kind="nodes"), mute=Match(kind="gpu"), same=["node"])
    assert Inhibition([rule], [on("", "nodes")]).explains(on("", "gpu")) is None


def test_same_takes_what_an_alert_has_of_itself_too() -> None:
    """Both must agree where two are named."""
    when, mute = Match(kind="fs", status="critical"), Match(kind="fs", status="warning")
    rule = Inhibit(when=when, mute=mute, same=["cluster", "node"])
    bad, less = on("n1", "fs"), replace(on("n1", "fs"), status=Status.WARNING)
    away = replace(less, key=Key("other", "fs", "s"))
    found = Inhibition([rule], [bad, less, away])
    assert [found.explains(a) for a in (bad, less, away)] == [None, bad, None]


def test_what_fits_both_sides_is_muted_by_what_fits_one() -> None:
    """As in Alertmanager; by itself, or by one like it, it is not."""
    rule = Inhibit(when=Match(kind=["slurm", "job"]), mute=Match(kind="job"))
    assert Inhibition([rule], [SLURM, JOB]).explains(JOB) == SLURM
    assert Inhibition([rule], [JOB, alert("job", "t")]).explains(JOB) is None
    other = Inhibit(when=Match(kind="fs"), mute=Match(subject="t"))
    assert Inhibition([rule, other], [JOB, alert("job", "t"), FS]).explains(JOB) is None


def test_each_node_has_a_chain_of_its_own() -> None:
    """The first cause on that node is named; a storm over 2,000 nodes is looked through at once."""
    rules = [
        Inhibit(when=Match(kind="gpu"), mute=Match(kind="log"), same=["node"]),
        Inhibit(when=Match(kind="nodes"), mute=Match(kind="gpu"), same=["node"]),
    ]
    storm = [on(f"n{n}", kind) for n in range(2000) for kind in ("log", "gpu", "nodes")]
    found = Inhibition(rules, storm)
    assert all(found.explains(on(f"n{n}", "log")) == on(f"n{n}", "nodes") for n in range(2000))


@pytest.mark.parametrize(
    "key", [k for k in Match.__struct_fields__ if k not in ("labels", "matchers")]
)
def test_no_key_of_a_match_goes_unread(key: str) -> None:
    """A key that nobody looks at would let a silence take everything."""
    assert not matches(replace(Match(), **{key: "no such thing"}), JOB)
