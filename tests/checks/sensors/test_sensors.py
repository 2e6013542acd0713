"""Heat, fans and power supplies over time: told once, with what to do, and never well unseen."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.sensor_states import MAX_PARTS, judge_states
from sentinel.checks.sensors import BMC_INTERVAL_S, HOLD_S, MAX_NOTES, SPREAD, SensorsCheck
from sentinel.core.clock import shift_instant
from sentinel.core.model import Report, Status
from sentinel.core.node_answers import Answer, Unreached
from sentinel.core.section_lines import StrangeLine
from sentinel.core.values import Duration
from sentinel.nodes.probe import (
    Hwmon,
    Ipmi,
    NodeIdentity,
    NodeProbe,
    ProbeRequest,
    Sensor,
    SensorReading,
    Unread,
    sections,
)
from sentinel.testing import START, context
from tests.kinds import looks

CPU = Sensor(name="coretemp.0 Package id 0", kind="temp", value=61.0, critical=100.0)
HOT = replace(CPU, value=101.0)
FAN = SensorReading(name="FAN1", status="ok", text="5880 RPM")
DEAD = SensorReading(name="FAN1", status="lcr", text="0 RPM")
PSU = SensorReading(name="PSU2 Status", status="ok", text="Presence detected")
UNPLUGGED = replace(PSU, text="Presence detected, Power Supply AC lost")


def hwmon(*sensors: Sensor, **throttled: int) -> Hwmon:
    return Hwmon(sensors=sensors, throttled=throttled)


class Way:
    """A way to nodes; each has its sensors, and a BMC that counts how often it is asked."""

    def __init__(self, hwmon: Any, ipmi: Any = None, boot: str = "b1") -> None:
        self.hwmon, self.ipmi, self.boot = hwmon, ipmi, boot
        self.asked: list[str] = []

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        raise NotImplementedError

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        return {node: self._probe(node, wants.restrict_to_node(node)) for node in nodes}

    def _probe(self, node: str, wants: ProbeRequest) -> NodeProbe:
        me = NodeIdentity(hostname=node, kernel="6", boot=self.boot, uptime=1.0, time=0, uid=0)
        told: dict[str, Any] = {"identity": me, "hwmon": self.hwmon}
        if "ipmi" in wants.parts:
            self.asked.append(node)
            told["ipmi"] = self.ipmi
        return NodeProbe(**told)


class Night:
    """A check and what it remembers."""

    def __init__(self, **settings: Any) -> None:
        self.check = SensorsCheck(**{"nodes": "n1", "trial": Duration(0), **settings})
        self.memory: Mapping[str, Any] = {}
        self.at = START

    def look(self, way: Way, after: float = 60, **more: Any) -> Report:
        self.at = shift_instant(self.at, after)
        report = self.check.run(context(now=self.at, remote=way, memory=self.memory, **more))
        self.memory = report.memory or {}
        return report


def told(report: Report) -> dict[str, str]:
    return {f.subject: f.status.value for f in report.findings if f.subject != "n1"}


def of(report: Report, subject: str = "n1") -> Any:
    return next(f for f in report.findings if f.subject == subject)


@pytest.mark.parametrize(
    ("read", "line"),
    [
        (sections.ipmi, "S{0} | 30h | ok | 29.1 | 40 degrees C"),
        (sections.hwmon, "hwmon{0} coretemp.0 coretemp temp1_input 61000"),
    ],
)
def test_more_sensors_than_a_node_has_are_no_answer(read: Any, line: str) -> None:
    """Sixty thousand of one node took the time of all others."""
    lines = [line.format(number) for number in range(sections.MAX_SENSORS + 1)]
    assert read(lines[1:])
    with pytest.raises(StrangeLine, match="2501 sensors are more than a node has"):
        read(lines)


def test_heat_is_told_at_the_second_look_and_its_end_once() -> None:
    """One reading over the limit may be a slip of the sensor."""
    night = Night()
    assert (
        of(night.look(Way(hwmon(CPU)))).summary
        == "1 sensors; hottest: coretemp.0 Package id 0 61 °C"
    )
    assert told(night.look(Way(hwmon(HOT)))) == {}
    report = night.look(Way(hwmon(HOT)))
    assert told(report) == {"n1/coretemp.0 Package id 0": "critical"}
    found = of(report, "n1/coretemp.0 Package id 0")
    assert "101 °C (critical from 100 °C)" in found.summary
    assert "air flow" in found.guidance.todo
    assert told(night.look(Way(hwmon(CPU)))) == {"n1/coretemp.0 Package id 0": "ok"}
    assert told(night.look(Way(hwmon(CPU)))) == {}


@pytest.mark.parametrize(
    "part", [Unread(kind="hung", why="x"), Unread(kind="missing", why="none"), hwmon(), None]
)
def test_what_is_not_seen_is_neither_well_nor_mended(part: Any) -> None:
    """A node whose sensors cannot be read any more is unknown, and its trouble goes on."""
    night = Night()
    for _ in range(2):
        night.look(Way(hwmon(HOT)))
    report = night.look(Way(part))
    assert (told(report), of(report).status) == ({}, Status.UNKNOWN)
    assert report.coverage.unseen == ("n1",)
    assert told(night.look(Way(hwmon(CPU)))) == {"n1/coretemp.0 Package id 0": "ok"}


def test_a_sensor_that_is_gone_is_not_called_well() -> None:
    """Its driver was taken out; it ends as one that is no longer found."""
    night = Night()
    for _ in range(2):
        night.look(Way(hwmon(HOT)))
    assert told(night.look(Way(hwmon(replace(CPU, name="other"))))) == {}


@pytest.mark.parametrize(
    "sensor",
    [
        replace(HOT, critical=None),
        replace(HOT, value=65261.0),  # ffff: nothing is connected
        replace(HOT, critical=0.0),
        replace(HOT, value=-273.0),
        Sensor(name="nct fan2", kind="fan", value=0.0),  # no fan is plugged in
    ],
)
def test_readings_that_mean_nothing_are_no_trouble(sensor: Sensor) -> None:
    night = Night()
    for _ in range(3):
        assert told(night.look(Way(hwmon(sensor)))) == {}


def test_processors_that_heat_slows_are_told_until_they_were_not_for_an_hour() -> None:
    """Counters begin anew with a boot; the first look knows no rise."""
    night = Night()
    assert told(night.look(Way(hwmon(CPU, core=7, package=3)))) == {}
    report = night.look(Way(hwmon(CPU, core=9, package=3)))
    assert "slowed by heat at " in of(report, "n1/processors").summary
    assert told(night.look(Way(hwmon(CPU, core=9, package=3)), HOLD_S - 60)) == {
        "n1/processors": "warning"
    }
    assert told(night.look(Way(hwmon(CPU, core=9, package=3)))) == {"n1/processors": "ok"}
    assert told(night.look(Way(hwmon(CPU, core=10, package=0), boot="b2"))) == {}


def test_a_dead_fan_is_told_once_with_what_to_do() -> None:
    """Between two questions what the BMC said last holds."""
    night = Night(ipmi=True)
    bad = Way(hwmon(CPU), Ipmi(readings=(DEAD, PSU), events=("1a | Fan #0x41 | Lower Critical",)))
    first = night.look(bad, one_shot=True)
    assert told(first) == {"n1/FAN1": "critical"}
    found = of(first, "n1/FAN1")
    assert found.summary.startswith(
        "reads 0 RPM, outside its limits (says the BMC, the board's own controller, at "
    )
    assert "have the fan looked at" in found.guidance.todo
    assert "Lower Critical" in found.details
    assert of(night.look(bad), "n1/FAN1").summary == found.summary
    well = Way(hwmon(CPU), Ipmi(readings=(FAN, PSU)))
    assert told(night.look(well, BMC_INTERVAL_S + SPREAD)) == {"n1/FAN1": "ok"}
    assert bad.asked + well.asked == ["n1", "n1"]


@pytest.mark.parametrize(
    ("reading", "status"),
    [
        (UNPLUGGED, "warning"),
        (replace(PSU, text="Presence detected, Failure detected"), "critical"),
        (replace(PSU, name="PS Redundancy", text="Redundancy Lost"), "warning"),
        (replace(PSU, name="PS Redundancy", text="Fully Redundant"), None),
        (replace(PSU, text="118 Watts, Presence detected"), None),
        (replace(PSU, text="118 Watts, Presence detected, Failure detected"), "critical"),
        (replace(PSU, text="Non-Redundant: Sufficient from Redundant"), "warning"),
        (replace(PSU, text="Config Error: Vendor Mismatch, Presence detected"), "warning"),
        (replace(PSU, name="CPU0", text="Presence detected, IERR"), "critical"),
        (replace(PSU, name="DIMM A1", text="Correctable ECC, Presence Detected"), None),
        (replace(PSU, name="DIMM A1", text="Correctable ECC logging limit reached"), "warning"),
        (replace(PSU, name="DIMM A1", text="uncorrectable ecc"), "critical"),
        (replace(PSU, name="CPU1 PROCHOT", text="State Asserted"), "warning"),
        (replace(PSU, name="Riser 1 Presence", text="State Asserted"), None),
        (replace(PSU, name="CATERR", text="State Deasserted"), None),
        (replace(PSU, name="IPMB", text="IPMB-A enabled, IPMB-B enabled"), None),
        (
            replace(PSU, name="Version", text="Firmware or software change detected, O/S change"),
            None,
        ),
        (replace(FAN, status="nc", text="900 RPM"), "warning"),
        (replace(FAN, status="ucr", text="91 degrees C"), "critical"),
        (replace(FAN, status="lnr", text="1.12 Volts"), "critical"),
        (replace(FAN, status="unr"), "critical"),
        (replace(FAN, status="ns", text="No Reading"), None),
        (PSU, None),
    ],
)
def test_what_a_controller_says(reading: SensorReading, status: str | None) -> None:
    """By the vendor's own thresholds, and by states that are faults."""
    report = Night(ipmi=True).look(Way(hwmon(CPU), Ipmi(readings=(reading,))), one_shot=True)
    assert told(report).get(f"n1/{reading.name}") == status


UCS = {
    "PSU1_STATUS": "Presence detected",
    "PSU2_STATUS": "Presence detected",
    **{f"PSU{n}_{what}": "State Asserted" for n in (1, 2) for what in ("AC_OK", "PWRGD")},
    "CPU1_PROCHOT": "State Deasserted",
}
"""Cisco UCS: the good state of a power supply is asserted (thomas-krenn/check_ipmi_sensor_v3 #22)."""


@pytest.mark.parametrize(
    ("changes", "bad"),
    [
        ({}, set()),
        ({"PSU1_AC_OK": "State Deasserted"}, {"PSU1_AC_OK"}),
        (
            {"PSU1_AC_OK": "State Deasserted", "PSU1_PWRGD": "State Deasserted"},
            {"PSU1_AC_OK", "PSU1_PWRGD"},
        ),
        (
            {
                "PSU2_STATUS": "Device Absent",
                "PSU2_AC_OK": "State Deasserted",
                "PSU2_PWRGD": "State Deasserted",
            },
            set(),
        ),
        ({name: "State Deasserted" for name in UCS if name[-2:] in ("OK", "GD")}, set()),
        ({"CPU1_PROCHOT": "State Asserted"}, {"CPU1_PROCHOT"}),
    ],
)
def test_a_good_state_may_be_asserted(changes: dict[str, str], bad: set[str]) -> None:
    """On a board that does so, deasserted is bad; not of a bay that is empty."""
    readings = tuple(replace(PSU, name=n, text=t) for n, t in {**UCS, **changes}.items())
    report = Night(ipmi=True).look(Way(hwmon(CPU), Ipmi(readings=readings)), one_shot=True)
    assert told(report) == {f"n1/{name}": "warning" for name in bad}


@pytest.mark.parametrize(
    ("name", "text", "drains"),
    [
        ("SEL Fullness", "Log full", False),
        ("Event Log", "Event logging disabled", False),
        ("Drive 3", "Drive Present, In Critical Array", False),
        ("BMC", "Management controller unavailable", False),
        ("PSU1", "AC lost", False),
        ("DIMM A1", "Uncorrectable ECC", True),
        ("CPU0", "IERR", True),
        ("CPU0 Temp", "Upper Critical going high", True),
    ],
)
def test_a_remedy_fits_its_sensor(name: str, text: str, drains: bool) -> None:
    """A full event log drains no node, nor does a part that is not known and not critical."""
    reading = replace(PSU, name=name, text=text)
    report = Night(ipmi=True).look(Way(hwmon(CPU), Ipmi(readings=(reading,))), one_shot=True)
    found = of(report, f"n1/{name}")
    assert any("drain" in command for command in looks(found)) is drains
    assert ("drain" in found.guidance.todo) is drains


@pytest.mark.parametrize(
    ("reading", "word"),
    [
        (replace(PSU, text="Presence detected, Electrons on strike"), "Electrons on strike"),
        (replace(FAN, status="melting"), "melting"),
        (replace(PSU, text="0x0280"), "0x0280"),
    ],
)
def test_a_state_that_is_not_known_is_one_warning_for_all_nodes(
    reading: SensorReading, word: str
) -> None:
    """Neither well nor a fault of each node; it ends where nobody says it any more."""
    night = Night(nodes="n[1-3]", ipmi=True)
    report = night.look(Way(hwmon(CPU), Ipmi(readings=(reading, DEAD))), one_shot=True)
    bad = {f.subject: f.status.value for f in report.findings if f.status.bad}
    fans = {f"n{n}/FAN1" for n in (1, 2, 3)}
    assert set(bad) - fans == {f"ipmi: {word}"}
    assert bad[f"ipmi: {word}"] == "warning"
    note = of(report, f"ipmi: {word}")
    assert "and 2 more" in note.summary
    assert "sentinel does not know" in note.summary
    quiet = Night(nodes="n[1-3]", ipmi=True, ignore=[reading.name])
    report = quiet.look(Way(hwmon(CPU), Ipmi(readings=(reading,))), one_shot=True)
    assert not [f for f in report.findings if f.status.bad]
    later = night.look(Way(hwmon(CPU), Ipmi(readings=(PSU,))), BMC_INTERVAL_S + SPREAD)
    assert not [f for f in later.findings if f.subject.startswith("ipmi")]


@pytest.mark.parametrize(("count", "further"), [(MAX_NOTES, ""), (MAX_NOTES + 1, "1 more")])
def test_states_beyond_the_notes_of_a_run_are_counted(count: int, further: str) -> None:
    """None of them is dropped without a word, whatever a new BMC says."""
    odd = tuple(replace(FAN, name=f"FAN{n}", status=f"odd{n:02d}") for n in range(count))
    report = Night(ipmi=True).look(Way(hwmon(CPU), Ipmi(readings=odd)), one_shot=True)
    notes = [f.summary for f in report.findings if f.subject.startswith("ipmi: odd")]
    assert len(notes) == MAX_NOTES
    rest = [f.summary for f in report.findings if f.subject == "ipmi: further states"]
    assert [one.startswith(further) for one in rest] == [True] * bool(further)


def test_controllers_are_asked_rarely_and_then_not_all_at_once() -> None:
    """At the first look, and every ten to twelve minutes after."""
    night = Night(nodes="n[1-200]", ipmi=True)
    way = Way(hwmon(CPU), Ipmi(readings=(FAN,)))
    counts = []
    for _ in range(13):
        before = len(way.asked)
        night.look(way)
        counts.append(len(way.asked) - before)
    assert counts[:10] == [200, *[0] * 9]
    assert sum(counts[10:]) == 200
    assert max(counts[10:]) < 150


def test_a_controller_that_hung_is_left_alone_until_the_next_boot() -> None:
    """One question too many is how a BMC is lost for good; that it is not seen is said."""
    night = Night(ipmi=True)
    way = Way(hwmon(CPU), Unread(kind="late", why="no answer within 25 s"))
    night.look(way, one_shot=True)
    for _ in range(3):
        report = night.look(way, BMC_INTERVAL_S + SPREAD)
        assert "not asked again before the next boot" in of(report).summary
        assert of(report).status is Status.UNKNOWN
    assert way.asked == ["n1"]
    again = Way(hwmon(CPU), Ipmi(readings=(FAN,)), boot="b2")
    night.look(again)
    assert of(night.look(again)).status is Status.OK
    assert again.asked == ["n1"]


def test_a_controller_that_was_not_read_is_unknown_until_it_is() -> None:
    """Also between two questions; what it said before has the time of that answer."""
    night = Night(ipmi=True)
    first = night.look(Way(hwmon(CPU), Ipmi(readings=(DEAD,))), one_shot=True)
    failing = Way(hwmon(CPU), Unread(kind="failed", why="no /dev/ipmi0"))
    night.look(failing, BMC_INTERVAL_S + SPREAD)
    report = night.look(failing)
    assert (failing.asked, of(report).status) == (["n1"], Status.UNKNOWN)
    assert "no /dev/ipmi0" in of(report).summary
    assert of(report, "n1/FAN1").summary == of(first, "n1/FAN1").summary


def test_what_is_ignored_is_not_told() -> None:
    way = Way(hwmon(CPU), Ipmi(readings=(DEAD, UNPLUGGED)))
    report = Night(ipmi=True, ignore=["FAN*", "n1/PSU2*"]).look(way, one_shot=True)
    assert told(report) == {}


def test_this_machine_is_asked_by_the_same_script() -> None:
    """In a container or a virtual machine there may be no sensor at all: unknown, never ok."""
    report = SensorsCheck().run(context(limit=20.0))
    (found,) = [f for f in report.findings if "/" not in f.subject]
    assert found.status is (Status.OK if found.values["sensors"] else Status.UNKNOWN)


@pytest.mark.parametrize(("count", "known"), [(MAX_PARTS, True), (MAX_PARTS + 1, False)])
def test_a_sensor_with_more_states_than_are_read_is_not_well(count: int, known: bool) -> None:
    """The first that is not read may be the failure."""
    worst, unknown = judge_states("PSU1", ", ".join(["Presence detected"] * count))
    assert (worst, not unknown) == (Status.OK, known)
