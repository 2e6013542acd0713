"""Slurm's maintenance reservations become silences, and only those."""

from typing import Any

from msgspec.structs import replace

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Silence, find_silence
from sentinel.alerting.slurm_maintenance import maintenance_changes
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Reservation
from sentinel.core.model import Alert, Key, Status
from sentinel.testing import START

NOW = START.wall // SECOND
NODES = ("n0", "n1", "n2")


def planned(**changes: Any) -> Reservation:
    fields: dict[str, Any] = {
        "name": "maint",
        "starts": NOW - 60,
        "ends": NOW + 3600,
        "nodes": frozenset(["n0", "n1"]),
        "flags": frozenset(["MAINT", "SPEC_NODES"]),
    }
    return Reservation(**{**fields, **changes})


def imported(*told: Reservation, known: tuple[Silence, ...] = ()) -> list[Silence]:
    return maintenance_changes(told, known, NODES, START)


def about(node: str = "") -> Alert:
    return Alert(
        key=Key("lab", "drained", node or "/scratch"),
        id="a",
        kind="drained",
        status=Status.CRITICAL,
        summary="",
        since=START,
        last=START,
        labels={"node": node} if node else {},
    )


def mutes(silences: list[Silence], alert: Alert, now: Instant = START) -> bool:
    return find_silence(alert, silences, now) is not None


def test_alerts_about_its_nodes_are_silent() -> None:
    """Others are not, nor what belongs to no node."""
    silences = imported(planned())
    assert mutes(silences, about("n1"))
    assert not mutes(silences, about("n2"))
    assert not mutes(silences, about())


def test_a_reservation_of_all_nodes_silences_everything() -> None:
    """By its flag, or because it names them all."""
    for told in (
        planned(flags=frozenset(["MAINT", "ALL_NODES"])),
        planned(nodes=frozenset([*NODES, "n9"])),
        planned(nodes=frozenset(NODES)),
    ):
        assert mutes(imported(told), about())
    assert not mutes(maintenance_changes([planned()], (), (), START), about())


def test_it_silences_nothing_of_another_cluster() -> None:
    """Which has an n1 of its own."""
    silences = maintenance_changes([planned()], (), NODES, START, "mine")
    assert not mutes(silences, about("n1"))
    here = replace(about("n1"), key=Key("mine", "check", "x"))
    assert mutes(silences, here)


def test_only_maintenance_silences() -> None:
    """A course that has nodes for itself wants to hear of them."""
    assert imported(planned(flags=frozenset(["SPEC_NODES", "NO_HOLD_JOBS_AFTER_END"]))) == []


def test_a_reservation_that_never_begins_is_no_silence() -> None:
    """TIME_FLOAT keeps it some minutes away: it would be a new one at every look."""
    floating = frozenset(["MAINT", "SPEC_NODES", "TIME_FLOAT"])
    assert imported(planned(starts=NOW + 600, flags=floating)) == []


def test_it_begins_and_ends_with_the_reservation() -> None:
    """One to come is written ahead: slurmctld may be down when it begins."""
    silences = imported(planned(starts=NOW + 100))
    for seconds, quiet in ((99, False), (100, True), (3599, True), (3600, False)):
        assert mutes(silences, about("n0"), Instant(wall=(NOW + seconds) * SECOND)) is quiet
    assert imported(planned(ends=NOW)) == []


def test_it_says_who_and_why() -> None:
    """In the next message, with its end."""
    (silence,) = imported(planned())
    assert (silence.who, silence.reason) == ("Slurm", "maintenance reservation maint")
    assert silence.ends == (NOW + 3600) * SECOND


def test_what_is_known_is_not_written_again() -> None:
    """And what a person has ended by hand stays ended."""
    (silence,) = imported(planned())
    assert imported(planned(), known=(silence,)) == []
    ended = replace(silence, ends=START.wall - 1, who="ann")
    assert imported(planned(), known=(ended,)) == []
    assert imported(planned(ends=NOW + 7200), known=(ended,)) == []


def test_a_reservation_that_is_gone_ends_its_silence() -> None:
    """Now, not at its planned end."""
    (silence,) = imported(planned())
    assert imported(known=(silence,)) == [replace(silence, ends=START.wall)]
    anew = imported(planned(), known=(replace(silence, ends=START.wall),))
    assert anew == [silence], "made once more"


def test_a_reservation_that_is_changed_stays_one_incident() -> None:
    """Longer, shorter or with other nodes: the silence is written anew under its own id."""
    (silence,) = imported(planned())
    (longer,) = imported(planned(ends=NOW + 7200), known=(silence,))
    assert longer == replace(silence, ends=(NOW + 7200) * SECOND)
    (other,) = imported(planned(ends=NOW + 7200, nodes=frozenset(["n0"])), known=(longer,))
    assert (other.id, other.nodes) == (silence.id, {"n0"})
    (next_day,) = imported(planned(starts=NOW + 86400, ends=NOW + 90000), known=())
    assert next_day.id != silence.id


def test_silences_of_people_are_left_alone() -> None:
    """Whatever Slurm says."""
    mine = Silence(id="abcd", match=Match(), starts=0, ends=START.wall + 1)
    assert imported(known=(mine,)) == []


def test_a_silence_that_is_over_is_not_written_again() -> None:
    """Its reservation is gone with it."""
    (silence,) = imported(planned())
    assert imported(known=(replace(silence, ends=START.wall),)) == []
