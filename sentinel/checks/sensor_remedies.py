"""Describes the remedy for a sensor's trouble, by the part of the machine that the sensor is
about."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sentinel.core.guidance import (
    DRAIN_STEP,
    Guidance,
    LookingCommand,
    drain_node,
    list_drain_commands,
    look,
)
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible

_DRAIN = drain_node()
REMEDIES: Mapping[str, tuple[str, str]] = {
    "fan": (
        "The node gets hotter under load, slows down, and may switch itself off.",
        f"Administrators: have the fan looked at. If the temperatures (`ipmitool` below) rise, {DRAIN_STEP}.",
    ),
    "temp": (
        "The node slows down, and switches itself off if it gets hotter: its jobs end then.",
        "Owners of jobs there (`squeue` below): save a checkpoint now and move the job to another node."
        f" {_DRAIN} Then look at fans, air flow and room.",
    ),
    "power": (
        "The node runs on its other power supplies; if they fail too, its jobs end.",
        "Administrators: look at the power supply, its cable and the feed behind it.",
    ),
    "memory": (
        "Jobs on the node may end or compute wrongly.",
        f"{_DRAIN} Then test its memory; the BMC's log names the module.",
    ),
    "board": (
        "Nobody can tell from this whether the node goes on.",
        f"{_DRAIN} Then look at the BMC's log.",
    ),
    "minor": (
        "Jobs there go on; nobody can tell from this for how long.",
        "Administrators: look at the BMC's log.",
    ),
    "log": (
        "Jobs there go on. New events of the board are not recorded, so its next fault leaves no trace.",
        "Administrators: save the BMC's log, then clear it (`ipmitool sel clear`) or switch it on again.",
    ),
}
"""The consequences if nobody acts, and the remedy, by the part that a sensor is about
(`find_affected_part`)."""

_PARTS = (
    ("log", r"\blog (?:is )?(?:almost )?full\b|\blogging disabled\b|\bsel\b|\bevent[ _]?log"),
    ("fan", r"fan"),
    ("power", r"\bps(u|[0-9])|power|ac lost|redundan|\bps_"),
    ("memory", r"dimm|memory|\becc\b"),
    ("temp", r"temp|heat|therm|hot|°c|degrees|throttl"),
)


def find_affected_part(name: str, text: str, status: Status) -> str:
    """The row of REMEDIES. A part that is not known costs a node its jobs only if it is critical."""
    words = f"{name} {text}".lower()
    unknown = "board" if status is Status.CRITICAL else "minor"
    return next((part for part, known in _PARTS if re.search(known, words)), unknown)


_PACKAGE = re.compile(r"coretemp\S{0,40} Package id (\d+)")
"""The name of a processor in the driver of Intel's processors."""


def name_processor(sensor: str) -> str:
    """`CPU 0` if the sensor is that of a processor. Otherwise empty."""
    found = _PACKAGE.search(sensor)
    return f"CPU {found[1]}" if found else ""


def guide_sensor(node: str, name: str, text: str, status: Status) -> Guidance:
    """Guidance for the part of the machine that the sensor is about."""
    impact, todo = REMEDIES[find_affected_part(name, text, status)]
    called = _PACKAGE.sub(r"\g<0> (CPU \1)", name)
    ask = visible(f"look at {called} of {node}: {shortened(text, 200)}")
    return Guidance(impact=impact, todo=todo, ask=ask)


def suggest_commands(
    node: str, name: str, text: str, status: Status, *, has_bmc: bool
) -> tuple[LookingCommand, ...]:
    """Commands to run next: the present readings of the BMC if heat is the problem, otherwise its
    log; and those of a drain, where one helps."""
    part = find_affected_part(name, text, status)
    drains = status.bad and part not in ("power", "log", "minor")
    drain = list_drain_commands(node, f"{name}: {text}", is_bad=drains)
    if not has_bmc:
        return look("sensors").on_node(node), *drain
    looks = (
        (look("sudo ipmitool sdr type Fan"), look("sudo ipmitool sdr type Temperature"))
        if part in ("fan", "temp")
        else (look("sudo ipmitool sel elist last 20"),)
    )
    return *(one.on_node(node) for one in looks), *drain
