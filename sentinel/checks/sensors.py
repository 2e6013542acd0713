"""The `sensors` check: heat, fans and power supplies, as far as the host tells.

Two ways: what the kernel's drivers show (hwmon), and, where switched on, what the board's
management controller (BMC) measures, by ipmitool. A BMC is slow and single-threaded: it is asked
rarely, not of all nodes at once, and never again before the next boot where it did not answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar
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
from sentinel.checks.trial import WEEK_S, SilentTrial
from sentinel.core.clock import SECOND
from sentinel.core.declared import Metric, Panel
from sentinel.core.model import Finding, Report, Status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, duration_text
from sentinel.nodes.probe import Hwmon, Ipmi, NodeProbe, ProbeRequest, Sensor, Unread
from sentinel.plugin import Check

if TYPE_CHECKING:
    from sentinel.core.ports import Context

BMC_INTERVAL_S = 600.0
"""Seconds between two questions to one BMC, at least."""

SPREAD = 120
"""Seconds, at most, that are added by the node's name: a kernel that talks to its BMC polls, which
ranks that wait for one another should not feel all at once."""

BAD_LOOKS = 2
"""Looks in a row at which a sensor of the kernel has to be over its limit: single readings lie."""

HOLD_S = 3600.0
"""Seconds that throttling stays told after its last rise."""

SANE = (-50.0, 200.0)
"""Degrees Celsius outside of which a driver has no sensor there, or no limit."""

SENSOR_LIMIT_WORDS: Mapping[str, Status] = {
    "ok": Status.OK,
    "nr": Status.CRITICAL,  # non-recoverable
    "cr": Status.CRITICAL,  # critical
    "nc": Status.WARNING,  # non-critical
}
"""Thresholds of the vendor, by the last letters of ipmitool's word (`ucr`, `lnc`, …; ipmitool(1),
IPMI 2.0, section 35.4); `ok` is well."""

NONE = ("ns", "us", "na")
"""A sensor without a reading: what it is about is not there, or switched off."""

MAX_NOTES = 50
"""Notes of one run on states that are not known here."""

REMEDIES: Mapping[str, str] = {
    "fan": "Look whether the fan turns, and replace it; the node slows down or ends without it.",
    "temp": "Look at fans, air flow and room; take the node out before it switches itself off.",
    "power": "Look at the power supply, its cable and the feed behind it.",
    "memory": "Drain the node and test its memory; the BMC's log names the module.",
    "board": "Look at the BMC's log; drain the node before it fails under a job.",
}
"""What to do, by what a sensor is about (`_affected_part`)."""

_PARTS = (
    ("fan", r"fan"),
    ("power", r"\bps(u|[0-9])|power|ac lost|redundan|\bps_"),
    ("memory", r"dimm|memory|\becc\b"),
    ("temp", r"temp|heat|therm|hot|°c|degrees|throttl"),
)


class SensorsPast(Struct, kw_only=True, omit_defaults=True):
    """What is kept of a node; moments in epoch seconds.

    `kernel`: its drivers had sensors. `over`: looks in a row, by sensor. `throttled`: the counts, and
    `slowed` when they last rose, with the words. `asked`: the BMC, last; `unread`: why it did not
    answer then; `stuck`: the boot in which it hung; `heard`: when it last answered, and `told` what,
    by sensor; `unknown`: states among it that are not known here, with a sensor that is in it.
    """

    boot: str = ""
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
    events: list[str] = []

    def is_bmc_due(self, node: str, now: float) -> bool:
        """Whether its BMC may be asked again."""
        if self.stuck and self.stuck == self.boot:
            return False
        return now >= self.asked + BMC_INTERVAL_S + crc32(node.encode()) % SPREAD


class Memory(Struct, kw_only=True, omit_defaults=True):
    """Of all nodes; `bad`: the subjects seen as bad by the last run; `trial`: that of the whole check."""

    nodes: dict[str, SensorsPast] = {}
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

    def jobs_of(self) -> frozenset[str] | None:
        """No jobs are needed."""
        return frozenset()

    @property
    def looks_into_nodes(self) -> bool:
        """With `nodes`."""
        return bool(self.nodes)

    def run(self, ctx: Context) -> Report:
        """A finding for each node, and one for each sensor that is bad or was at the last run.
        Raises CannotTell where there is no way to nodes, or Slurm has to be asked and is blind."""
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
            ago = duration_text(now - past.slowed[0])
            yield "processors", (Status.WARNING, f"slowed by heat {ago} ago ({past.slowed[1]})")

    def _unseen_parts(self, probe: NodeProbe, past: SensorsPast) -> list[str]:
        """What was asked for and could not be seen."""
        found = []
        needed = past.kernel or not past.told  # a board may have a BMC and no driver
        if isinstance(probe.hwmon, Unread):
            if needed or probe.hwmon.kind != "missing":
                found.append(f"sensors not read ({probe.hwmon.kind}): {probe.hwmon.why}")
        elif needed and (probe.hwmon is None or not probe.hwmon.sensors):
            found.append("the kernel shows no sensor here")
        if self.ipmi and past.unread:
            found.append(past.unread)
        if self.ipmi and past.stuck and past.stuck == past.boot:
            found.append("ipmitool hung here; the BMC is not asked again before the next boot")
        return found


def _sensor_names(probe: NodeProbe, past: SensorsPast) -> Iterator[str]:
    """Sensors that there are: one that is gone is not well."""
    if isinstance(probe.hwmon, Hwmon):
        yield from (s.name for s in probe.hwmon.sensors)
        yield from ["processors"] * bool(probe.hwmon.throttled)
    yield from past.told


def _note_bmc(past: SensorsPast, part: Ipmi | Unread, now: float) -> None:
    """What the BMC has just said, or that it said nothing."""
    past.asked = now
    if isinstance(part, Unread):
        past.stuck = past.boot if part.kind in ("hung", "late") else ""
        past.unread = f"the BMC was not read ({part.kind}): {part.why}"
        return
    past.stuck, past.unread, past.heard = "", "", now
    past.told, past.unknown = {}, {}
    for reading in part.readings:
        if reading.status not in NONE:
            status, unknown = sensor_states.judge_states(reading.name, reading.text)
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
    """One warning for each state that is not known here, on however many nodes: neither well nor a
    fault of one of them."""
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
                f"the BMC says '{shortened(word, 100)}' of {places[0]}{more}: a state that is not "
                "known here, so nobody knows whether it is well"
            ),
            details="\n".join(map(visible, places[:20])),
        )


def _bmc_sensors(past: SensorsPast, now: float) -> Iterator[tuple[str, tuple[Status, str]]]:
    for name, (status, text) in past.told.items():
        if status is not Status.OK:
            yield name, (status, f"{text} (BMC, {duration_text(now - past.heard)} ago)")


def _over_limit(sensor: Sensor) -> tuple[Status, str] | None:
    """What is wrong with a sensor of the kernel at this look."""
    if sensor.kind == "fan":
        turns = f", {sensor.value:.0f} RPM" if sensor.value is not None else ""
        return (Status.WARNING, f"fan alarm{turns}") if sensor.alarm else None
    value, critical = sensor.value, sensor.critical
    if value is None or not SANE[0] < value < SANE[1]:
        return None
    if critical is not None and 0 < critical < SANE[1] and value >= critical:
        return Status.CRITICAL, f"{value:.0f} °C; critical is {critical:.0f} °C"
    return (Status.WARNING, f"heat alarm at {value:.0f} °C") if sensor.alarm else None


def _hottest_sensor(part: Hwmon | Unread | None) -> Sensor | None:
    sensors = part.sensors if isinstance(part, Hwmon) else ()
    warm = [s for s in sensors if s.kind == "temp" and s.value and SANE[0] < s.value < SANE[1]]
    return max(warm, key=lambda s: s.value or 0.0, default=None)


def _affected_part(name: str, text: str) -> str:
    words = f"{name} {text}".lower()
    return next((part for part, known in _PARTS if re.search(known, words)), "board")


def _sensor_finding(node: str, name: str, status: Status, text: str, past: SensorsPast) -> Finding:
    return Finding(
        subject=f"{node}/{name}",
        status=status,
        summary=visible(shortened(f"{name}: {text}", 400)),
        details="\n".join(
            [REMEDIES[_affected_part(name, text)], *(visible(e) for e in past.events)]
        ),
        labels={"node": node},
        commands=(f"ssh {node} {'sudo ipmitool sel elist last 20' if past.told else 'sensors'}",),
    )
