"""The `sensors` check: temperatures, fans and power supplies, as far as the host shows them.

There are two sources: the kernel's drivers (hwmon), and, if switched on, the board's management
controller (BMC), through ipmitool. A BMC is slow and single-threaded. So it is asked rarely, and
not on all nodes at once. If it did not answer, it is not asked again before the next boot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks import sensor_states
from sentinel.checks.nodes_asked import (
    ALL,
    find_mended,
    is_ignored_part,
    judge_choice,
    look_at_nodes,
)
from sentinel.checks.sensor_remedies import guide_sensor, name_processor, suggest_commands
from sentinel.checks.trial import WEEK_S, SilentTrial
from sentinel.core.clock import SECOND
from sentinel.core.declared import Metric, Panel
from sentinel.core.model import Finding, Report, Status
from sentinel.core.shown import Cell, Column, SubjectCells
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, clock_text
from sentinel.nodes.probe import Hwmon, Ipmi, NodeProbe, ProbeRequest, Sensor, Unread
from sentinel.plugin import Check

if TYPE_CHECKING:
    from sentinel.core.ports import Context

BMC_INTERVAL_S = 600.0
"""Seconds between two questions to one BMC, at least."""

SPREAD = 120
"""How many seconds are added at most, depending on the node's name. A kernel polls while it talks
to its BMC, and ranks that wait for one another should not all be slowed down at once."""

BAD_LOOKS = 2
"""In how many runs of the check in a row a sensor of the kernel must be over its limit. Single
readings may be wrong."""

HOLD_S = 3600.0
"""For how many seconds after its last rise throttling is reported."""

SANE = (-50.0, 200.0)
"""Degrees Celsius. Outside of them, the driver has no sensor there, or no limit."""

SENSOR_LIMIT_WORDS: Mapping[str, Status] = {
    "ok": Status.OK,
    "nr": Status.CRITICAL,  # non-recoverable
    "cr": Status.CRITICAL,  # critical
    "nc": Status.WARNING,  # non-critical
}
"""Thresholds of the vendor, by the last letters of ipmitool's word (`ucr`, `lnc`, …; ipmitool(1),
IPMI 2.0, section 35.4); `ok` is well."""

NONE = ("ns", "us", "na")
"""A sensor without a reading. Its part is missing or switched off."""

MAX_NOTES = 50
"""How many findings one run makes about states that are not in the table. One more says how many
are left out."""


class SensorsPast(Struct, kw_only=True, omit_defaults=True):
    """What is stored about a node. Times are in epoch seconds.

    `kernel`: its drivers have sensors. `over`: consecutive bad runs, by sensor. `throttled`: the
    counts. `slowed`: when they last rose, with the words. `asked`: when the BMC was last asked.
    `unread`: why it did not answer then. `stuck`: the boot in which it hung. `heard`: when it last
    answered. `told`: its last answer, by sensor. `unknown`: states that are not in the table, each
    with a sensor.
    """

    boot: str = ""  # Id of the last boot.
    kernel: bool = False
    over: dict[str, int] = {}
    throttled: dict[str, int] = {}
    slowed: tuple[float, str] = (0, "")
    asked: float = 0
    heard: float = 0
    unread: str = ""
    stuck: str = ""
    told: dict[str, tuple[Status, str]] = {}
    unknown: dict[str, str] = {}
    events: list[str] = []  # Last lines of the controller's own log.

    def is_bmc_due(self, node: str, now: float) -> bool:
        """Whether its BMC may be asked again."""
        if self.stuck and self.stuck == self.boot:
            return False
        return now >= self.asked + BMC_INTERVAL_S + crc32(node.encode()) % SPREAD


class Memory(Struct, kw_only=True, omit_defaults=True):
    """The memory about all nodes. `bad` are the subjects that the last run saw as bad. `trial` is
    that of the whole check."""

    nodes: dict[str, SensorsPast] = {}  # What is stored about each node, by name.
    bad: list[str] = []
    trial: SilentTrial | None = None


class SensorsCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Heat, fans and power supplies: what the kernel's sensors and, if asked, the BMC tell.

    nodes: A host list like node-[0-3],gpu08, or `all` that do not sleep; unset, this machine.
    ipmi: Ask the board's management controller too, by `ipmitool`, every ten minutes at most.
    ignore: Sensors that are not told, as patterns: `FAN7`, `nvme*`, or with the node, `gpu07/PSU2*`.
    trial: How long it only counts and wakes nobody, from its first run on.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60
    METRICS = (
        Metric("celsius", "temperature_celsius", "The hottest sensor.", "celsius", "", ("node",)),
        Metric("sensors", "sensors", "Sensors that were read.", "", "", ("node",)),
    )
    PANEL: ClassVar[Panel] = "nodes"
    COLUMNS = (
        Column("node or sensor", "subject"),
        Column("sensors", "sensors", "count"),
        Column("hottest", "celsius", "celsius"),
        Column("status", "status", "status"),
        Column("summary", "summary"),
    )
    ROW_COLUMNS = (
        Column("sensor", "name"),
        Column("now", "celsius", "celsius"),
        Column("turns a minute", "rpm", "count"),
        Column("critical from", "critical", "celsius"),
        Column("of that", "share", "bar"),
    )
    SOURCES = (
        "/sys/class/hwmon and the processors' throttle counts, of this machine or of each node; with "
        "`ipmi`, `ipmitool sdr elist` there, as the user who asks.",
    )
    RUNBOOK = "docs/sensors.md"

    nodes: str = ""
    ipmi: bool = False
    ignore: list[str] = []
    trial: Duration = Duration(WEEK_S)

    def __post_init__(self) -> None:
        judge_choice(self.nodes, "")

    @property
    def looks_into_nodes(self) -> bool:
        """Whether other nodes are checked (`nodes`)."""
        return bool(self.nodes)

    def run(self, ctx: Context) -> Report:
        """A finding for each node, and one for each sensor that is bad or was bad in the last run.
        Raises CannotTell if there is no way to nodes, or if Slurm must be asked and does not
        answer."""
        memory = decode_memory(ctx.memory, Memory) or Memory()
        trial = memory.trial or SilentTrial(began=None if ctx.one_shot or memory.nodes else ctx.now)
        memory.trial = replace(trial, lasts=float(self.trial))
        now = ctx.now.wall / SECOND
        asked, probes, findings = look_at_nodes(
            self.nodes, ctx, lambda names: self._probe_wants(names, memory, now, ctx.one_shot)
        )
        for name, probe in probes.items():
            findings += self._judge_node_sensors(
                name, probe, memory.nodes.setdefault(name, SensorsPast()), now
            )
        if not self.nodes or self.nodes == ALL:
            stay = {*probes, *(f.subject for f in findings)}
            memory.nodes = {n: p for n, p in memory.nodes.items() if n in stay}
        whole = [n for n, p in probes.items() if not self._unseen_parts(p, memory.nodes[n])]
        read = {f"{n}/{s}" for n, p in probes.items() for s in _sensor_names(p, memory.nodes[n])}
        left = [s for s in memory.bad if s in read or s.partition("/")[0] not in whole]
        well, memory.bad = find_mended(left, findings, whole)
        findings += well
        findings += _unknown_states(memory.nodes, probes, self.ignore)
        return Report(
            findings=tuple(memory.trial.silence_findings(findings, ctx.now)),
            coverage=asked.nodes_coverage(whole),
            memory={**to_builtins(memory), **asked.memory},
            shown={n: SubjectCells(rows=_list_readings(p.hwmon)) for n, p in probes.items()}
            if ctx.one_shot and len(probes) == 1
            else {},
        )

    def _probe_wants(
        self, names: Collection[str], memory: Memory, now: float, at_once: bool
    ) -> ProbeRequest:
        if not self.ipmi:
            return ProbeRequest(parts=("hwmon",))
        pasts = {name: memory.nodes.get(name, SensorsPast()) for name in names}
        due = frozenset(n for n, past in pasts.items() if at_once or past.is_bmc_due(n, now))
        return ProbeRequest(parts=("hwmon", "ipmi"), only={"ipmi": due})

    def _judge_node_sensors(
        self, node: str, probe: NodeProbe, past: SensorsPast, now: float
    ) -> Iterator[Finding]:
        boot = probe.identity.boot if not isinstance(probe.identity, Unread) else past.boot
        if boot != past.boot:
            past.throttled, past.boot = {}, boot
        if probe.ipmi is not None:
            _note_bmc(past, probe.ipmi, now)
        bad = [*self._kernel_sensors(probe.hwmon, past, now), *_bmc_sensors(past, now)]
        for name, (status, text) in dict(sorted(bad, key=lambda row: row[1][0].rank)).items():
            if not is_ignored_part(self.ignore, node, name):
                yield _sensor_finding(node, name, status, text, past)
        blind = self._unseen_parts(probe, past)
        hottest = _hottest_sensor(probe.hwmon)
        count = len(probe.hwmon.sensors) if isinstance(probe.hwmon, Hwmon) else 0
        parts = [
            *blind,
            f"{count + len(past.told)} sensors",
            f"hottest: {hottest.name} {hottest.value:.0f} °C" if hottest else "",
        ]
        yield Finding(
            subject=node,
            status=Status.UNKNOWN if blind else Status.OK,
            summary=visible(shortened("; ".join(filter(None, parts)), 400)),
            values={"sensors": count, **({"celsius": hottest.value} if hottest else {})},
            labels={"node": node},
        )

    def _kernel_sensors(
        self, part: Hwmon | Unread | None, past: SensorsPast, now: float
    ) -> Iterator[tuple[str, tuple[Status, str]]]:
        if not isinstance(part, Hwmon):
            past.over = {}
            return
        past.kernel = past.kernel or bool(part.sensors)
        over = {s.name: problem for s in part.sensors if (problem := _over_limit(s))}
        past.over = {name: past.over.get(name, 0) + 1 for name in over}
        yield from ((name, found) for name, found in over.items() if past.over[name] >= BAD_LOOKS)
        risen = {k: n - past.throttled.get(k, n) for k, n in part.throttled.items()}
        if any(rise > 0 for rise in risen.values()):
            words = ", ".join(f"{kind} +{rise}" for kind, rise in risen.items() if rise > 0)
            past.slowed = now, words
        past.throttled = dict(part.throttled)
        if past.slowed[1] and now - past.slowed[0] < HOLD_S:
            at = clock_text(past.slowed[0], now)
            yield "processors", (Status.WARNING, f"slowed by heat {at} ({past.slowed[1]})")

    def _unseen_parts(self, probe: NodeProbe, past: SensorsPast) -> list[str]:
        """The requested parts that could not be seen."""
        found = []
        needed = past.kernel or not past.told  # a board may have a BMC without a driver
        if isinstance(probe.hwmon, Unread):
            if needed or probe.hwmon.kind != "missing":
                found.append(f"sensors not read ({probe.hwmon.kind_words}): {probe.hwmon.why}")
        elif needed and (probe.hwmon is None or not probe.hwmon.sensors):
            found.append("the kernel shows no sensor here")
        if self.ipmi and past.unread:
            found.append(past.unread)
        if self.ipmi and past.stuck and past.stuck == past.boot:
            found.append("ipmitool hung here; the BMC is not asked again before the next boot")
        return found


def _sensor_names(probe: NodeProbe, past: SensorsPast) -> Iterator[str]:
    """The names of all sensors that exist. A sensor that is gone does not count as well."""
    if isinstance(probe.hwmon, Hwmon):
        yield from (s.name for s in probe.hwmon.sensors)
        yield from ["processors"] * bool(probe.hwmon.throttled)
    yield from past.told


def _note_bmc(past: SensorsPast, part: Ipmi | Unread, now: float) -> None:
    """Record the answer of the BMC, or that it gave none."""
    past.asked = now
    if isinstance(part, Unread):
        past.stuck = past.boot if part.kind in ("hung", "late") else ""
        past.unread = f"the BMC was not read ({part.kind_words}): {part.why}"
        return
    past.stuck, past.unread, past.heard = "", "", now
    if part.cut:  # sensors that are not in the answer keep their former state
        past.unread = f"the BMC's answer is not whole: {shortened(part.cut, 120)}"
    else:
        past.told, past.unknown = {}, {}
    texts = {r.name: r.text for r in part.readings if r.status not in NONE}
    not_well = sensor_states.find_good_but_deasserted(texts)
    for reading in part.readings:
        if reading.status not in NONE:
            status, unknown = sensor_states.judge_states(reading.name, reading.text)
            if reading.name in not_well:
                status = Status.WARNING
            letters = SENSOR_LIMIT_WORDS.get(reading.status.removeprefix("l").removeprefix("u"))
            if letters is None:
                unknown.append(reading.status)
                letters = Status.OK
            past.told[reading.name] = max(status, letters, key=lambda s: s.rank), reading.text
            past.unknown |= dict.fromkeys(unknown, reading.name)
    past.events = list(part.events[-5:])


def _unknown_states(
    pasts: Mapping[str, SensorsPast], asked: Collection[str], ignore: Sequence[str]
) -> Iterator[Finding]:
    """One warning for each state that is not in the table, for all nodes together, because it is
    neither well nor the fault of one of them."""
    seen: dict[str, list[str]] = {}
    for node in asked:
        for word, sensor in pasts[node].unknown.items():
            if not is_ignored_part(ignore, node, sensor):
                seen.setdefault(word, []).append(f"{node}/{sensor}")
    for word, places in list(seen.items())[:MAX_NOTES]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield Finding(
            subject=visible(shortened(f"ipmi: {word}", 120)),
            status=Status.WARNING,
            summary=visible(
                f"the BMC says '{shortened(word, 100)}' of {places[0]}{more}: a state that "
                "sentinel does not know, so it cannot tell whether that is well"
            ),
            details="\n".join(map(visible, places[:20])),
        )
    if left_out := list(seen)[MAX_NOTES:]:
        yield Finding(
            subject="ipmi: further states",
            status=Status.WARNING,
            summary=f"{len(left_out)} more states of sensors that sentinel does not know",
            details="\n".join(visible(shortened(word, 100)) for word in left_out[:20]),
        )


def _bmc_sensors(past: SensorsPast, now: float) -> Iterator[tuple[str, tuple[Status, str]]]:
    for name, (status, text) in past.told.items():
        if status is not Status.OK:
            said = text.removeprefix("Presence detected, ")
            said = f"reads {said}, outside its limits" if said[:1].isdigit() else said
            yield (
                name,
                (
                    status,
                    f"{said} (says the BMC, the board's own controller, {clock_text(past.heard, now)})",
                ),
            )


def _over_limit(sensor: Sensor) -> tuple[Status, str] | None:
    """The problem of a kernel sensor in this run. None if there is none."""
    if sensor.kind == "fan":
        turns = f", {sensor.value:.0f} RPM" if sensor.value is not None else ""
        return (Status.WARNING, f"fan alarm{turns}") if sensor.alarm else None
    value, critical = sensor.value, sensor.critical
    if value is None or not SANE[0] < value < SANE[1]:
        return None
    if critical is not None and 0 < critical < SANE[1] and value >= critical:
        cpu = f"{said} at " if (said := name_processor(sensor.name)) else ""
        return Status.CRITICAL, f"{cpu}{value:.0f} °C (critical from {critical:.0f} °C)"
    return (Status.WARNING, f"heat alarm at {value:.0f} °C") if sensor.alarm else None


def _list_readings(part: Hwmon | Unread | None) -> tuple[Mapping[str, Cell], ...]:
    """The sensors of a node with their limits, those nearest to it first."""
    sensors = part.sensors if isinstance(part, Hwmon) else ()
    return tuple(sorted(map(_make_reading_row, sensors), key=lambda r: -float(r["share"] or 0)))


def _make_reading_row(sensor: Sensor) -> dict[str, Any]:
    warm, value, limit = sensor.kind == "temp", sensor.value, sensor.critical
    known = warm and value is not None and limit is not None and 0 < limit < SANE[1]
    return {
        "name": visible(sensor.name),
        "celsius": value if warm else None,
        "rpm": None if warm else value,
        "critical": limit if known else None,
        "share": round(100 * (value or 0) / (limit or 1)) if known else None,
    }


def _hottest_sensor(part: Hwmon | Unread | None) -> Sensor | None:
    sensors = part.sensors if isinstance(part, Hwmon) else ()
    warm = [s for s in sensors if s.kind == "temp" and s.value and SANE[0] < s.value < SANE[1]]
    return max(warm, key=lambda s: s.value or 0.0, default=None)


def _sensor_finding(node: str, name: str, status: Status, text: str, past: SensorsPast) -> Finding:
    return Finding(
        subject=f"{node}/{name}",
        status=status,
        summary=visible(shortened(text, 400)),
        details="\n".join(visible(e) for e in past.events),
        guidance=guide_sensor(node, name, text, status),
        labels={"node": node},
        commands=suggest_commands(node, name, text, status, has_bmc=bool(past.told)),
    )
