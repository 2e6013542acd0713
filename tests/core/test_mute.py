"""What silences and inhibition keep from being told, and what they never do."""

import pytest
from msgspec.structs import replace

from sentinel.core.match import matches
from sentinel.core.model import Alert, Key, Status
from sentinel.core.mute import Inhibition, Silence, silenced
from sentinel.core.settings import Inhibit, Match
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


@pytest.mark.parametrize("key", [k for k in Match.__struct_fields__ if k != "labels"])
def test_no_key_of_a_match_goes_unread(key: str) -> None:
    """A key that nobody looks at would let a silence take everything."""
    assert not matches(replace(Match(), **{key: "no such thing"}), JOB)
