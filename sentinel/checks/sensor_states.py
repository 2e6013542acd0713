"""The states of discrete sensors, as `ipmitool sdr elist` prints them, and how bad each is. Pure.

The table contains every state of the tables 42-2 (generic) and 42-3 (by type of sensor) of the IPMI
2.0 specification, in ipmitool's words (include/ipmitool/ipmi_sel.h, 1.8.19). A state that is not in
the table is unknown. It is reported once per word, and its sensor does not count as well. `sdr
elist` prints only words, no numbers of states. If it prints a hexadecimal number, no table has a
word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sentinel.core.model import Status

_CRITICAL = (
    # thresholds and severities
    "Lower Critical going low",
    "Upper Critical going high",
    "Lower Non-recoverable going low",
    "Upper Non-recoverable going high",
    "Transition to Critical from less severe",
    "Transition to Critical from Non-recoverable",
    "Transition to Non-recoverable from less severe",
    "Transition to Non-recoverable",
    "Non-Redundant: Insufficient Resources",
    # processors, chip sets
    "IERR",
    "Thermal Trip",
    "FRB1/BIST failure",
    "FRB2/Hang in POST failure",
    "FRB3/Processor startup/init failure",
    "SM BIOS Uncorrectable CPU-complex Error",
    "Uncorrectable machine check exception",
    "Soft Power Control Failure",
    # power
    "Failure detected",
    "Soft-power control failure",
    "240VA power down",
    # memory
    "Uncorrectable ECC",
    "Parity",
    "Critical Overtemperature",
    # drives and slots
    "Drive Fault",
    "In Failed Array",
    "Fault Status",
    # buses
    "I/O Channel check NMI",
    "PCI PERR",
    "PCI SERR",
    "Bus Uncorrectable error",
    "Fatal NMI",
    "Bus Fatal Error",
    # the system
    "Undetermined system hardware failure",
    "Unrecoverable system-board failure",
    "Unrecoverable hard-disk controller failure",
    "Unrecoverable IDE device failure",
    "Unrecoverable video controller failure",
    "BIOS corruption detected",
    "No usable system memory",
)

_WARNING = (
    "Lower Non-critical going low",
    "Upper Non-critical going high",
    "Transition to Non-critical from OK",
    "Transition to Non-critical from more severe",
    "Predictive Failure Asserted",
    "Limit Exceeded",
    "Performance Lags",
    "Transition to Degraded",
    "Install Error",
    "Redundancy Lost",
    "Redundancy Degraded",
    "Non-Redundant: Sufficient from Redundant",
    "Non-Redundant: Sufficient from Insufficient",
    "Redundancy Degraded from Fully Redundant",
    "Redundancy Degraded from Non-Redundant",
    "Configuration Error",
    "Throttled",
    "Correctable machine check error",
    "Predictive failure",
    "Power Supply AC lost",
    "AC lost or out-of-range",
    "AC out-of-range, but present",
    "AC lost",
    "Interlock power down",
    "Config Error",
    "Config Error: Vendor Mismatch",
    "Config Error: Revision Mismatch",
    "Config Error: Processor Missing",
    "Config Error: Power Supply Rating Mismatch",
    "Config Error: Voltage Rating Mismatch",
    "Memory Scrub Failed",
    "Memory Device Disabled",
    "Correctable ECC logging limit reached",
    "In Critical Array",
    "Rebuild Aborted",
    "NMI/Diag Interrupt",
    "Software NMI",
    "Bus Timeout",
    "EISA failsafe timeout",
    "Bus Correctable error",
    "Bus Degraded",
    "Correctable memory error logging disabled",
    "Event logging disabled",
    "All event logging disabled",
    "Log full",
    "Timer expired",
    "OS Expired",
    "Unknown Error",
    "Unknown Hang",
    "CPU voltage mismatch",
    "CPU speed mismatch failure",
    "No system memory installed",
    "Unrecoverable PS/2 or USB keyboard failure",
    "Unrecoverable diskette failure",
    "Error during system startup",
    "Run-time critical stop",
    "Heartbeat Lost",
    "Sensor access degraded or unavailable",
    "Controller access degraded or unavailable",
    "Management controller off-line",
    "Management controller unavailable",
    "Sensor failure",
    "FRU failure",
    "Low",
    "Failed",
    "Hardware incompatibility detected",
    "Firmware or software incompatibility detected",
    "Invalid or unsupported hardware version",
    "Invalid or unsupported firmware or software version",
    "Communication lost",
)

# States that are intended, that are over, or that are no fault: doors, buttons, sleep, and
# corrected errors (there is another word if too many of them are logged).
_WELL = (
    *("Lower Non-critical going high", "Lower Critical going high"),
    *("Lower Non-recoverable going high", "Upper Non-critical going low"),
    *("Upper Critical going low", "Upper Non-recoverable going low"),
    *("Transition to Idle", "Transition to Active", "Transition to Busy"),
    *("State Deasserted", "Predictive Failure Deasserted", "Limit Not Exceeded"),
    *("Performance Met", "Transition to OK", "Monitor", "Informational"),
    *("Device Absent", "Device Present", "Device Disabled", "Device Enabled"),
    *("Transition to Running", "Transition to In Test", "Transition to Power Off"),
    *("Transition to On Line", "Transition to Off Line", "Transition to Off Duty"),
    *("Transition to Power Save", "Fully Redundant"),
    *("D0 Power State", "D1 Power State", "D2 Power State", "D3 Power State"),
    *("General Chassis intrusion", "Drive Bay intrusion", "I/O Card area intrusion"),
    *("Processor area intrusion", "System unplugged from LAN", "Unauthorized dock"),
    *("FAN area intrusion", "Front Panel Lockout violation attempted"),
    *("Pre-boot password violation - user password",),
    *("Pre-boot password violation - setup password",),
    *("Pre-boot password violation - network boot password",),
    *("Other pre-boot password violation", "Out-of-band access password violation"),
    *("Presence detected", "Disabled", "Terminator presence detected"),
    *("Power Supply Inactive", "Power off/down", "Power cycle", "Power down", "Hard reset"),
    *("Correctable ECC", "Spare", "Drive Present", "Hot Spare", "Parity Check In Progress"),
    *("Rebuild In Progress", "Unspecified", "Unknown Progress", "Unknown", "reserved"),
    *("Removable boot media not found", "No video device selected"),
    *("Memory initialization", "Hard-disk initialization", "Secondary CPU Initialization"),
    *("User authentication", "User-initiated system setup", "USB resource configuration"),
    *("PCI resource configuration", "Option ROM initialization", "Video initialization"),
    *("Cache initialization", "SMBus initialization", "Keyboard controller initialization"),
    *("Management controller initialization", "Docking station attachment"),
    *("Enabling docking station", "Docking station ejection", "Disabling docking station"),
    *("Calling operating system wake-up vector", "System boot initiated"),
    *("Motherboard initialization", "Floppy initialization", "Keyboard test"),
    *("Pointing device test", "Primary CPU initialization"),
    *("Log area reset/cleared", "Log almost full", "BIOS Reset", "OS Reset", "OS Shut Down"),
    *("OS Power Down", "OS Power Cycle", "OS NMI/Diag Interrupt", "OS pre-timeout Interrupt"),
    *("System Reconfigured", "OEM System boot event", "Entry added to auxiliary log"),
    *("PEF Action", "Timestamp Clock Sync", "Power Button pressed", "Sleep Button pressed"),
    *("Reset Button pressed", "FRU Latch", "FRU Service", "Connected"),
    *("Initiated by power up", "Initiated by hard reset", "Initiated by warm reset"),
    *("User requested PXE boot", "Automatic boot to diagnostic", "OS initiated hard reset"),
    *("OS initiated warm reset", "System Restart", "No bootable media"),
    *("Non-bootable disk in drive", "PXE server not found", "Invalid boot sector"),
    *("Timeout waiting for selection", "A: boot completed", "C: boot completed"),
    *("PXE boot completed", "Diagnostic boot completed", "CD-ROM boot completed"),
    *("ROM boot completed", "boot completed - device not specified"),
    *("Installation started", "Installation completed", "Installation aborted"),
    *("Installation failed", "OS graceful stop", "OS graceful shutdown"),
    *("PEF initiated soft shutdown", "Agent not responding", "Identify Status"),
    *("Device Installed", "Ready for Device Installation", "Ready for Device Removal"),
    *("Slot Power is Off", "Device Removal Request", "Interlock", "Slot is Disabled"),
    *("Spare Device", "S0/G0: working", "S5/G2: soft-off", "S4/S5: soft-off"),
    *("S1: sleeping with system hw & processor context maintained",),
    *("S2: sleeping, processor context lost",),
    *("S3: sleeping, processor & hw context lost, memory retained",),
    *("S4: non-volatile sleep/suspend-to-disk", "G3: mechanical off", "G1: sleeping"),
    *("Sleeping in S1/S2/S3 state", "S5: entered by override", "Legacy ON state"),
    *("Legacy OFF state", "Timer interrupt", "Platform generated page"),
    *("Platform generated LAN alert", "Platform Event Trap generated"),
    *("Platform generated SNMP trap, OEM format", "Present", "Absent", "Heartbeat"),
    *("Hardware change detected", "Hardware change success", "Not Installed", "Inactive"),
    *("Activation Requested", "Activation in Progress", "Active"),
    *("Deactivation Requested", "Deactivation in Progress"),
    *(f"Transition to M{n}" for n in range(8)),
    *("Module Handle Closed", "Module Handle Opened", "Quiesced"),
    *(f"IPMB-A {a}, IPMB-B {b}" for a in ("enabled", "disabled") for b in ("enabled", "disabled")),
)

SENSOR_STATES: Mapping[str, Status] = {
    **{word.lower(): Status.OK for word in _WELL},
    **{word.lower(): Status.WARNING for word in _WARNING},
    **{word.lower(): Status.CRITICAL for word in _CRITICAL},
}
"""The status by the words in lower case."""

_CHANGES = ("firmware or software change detected", "firmware or software change success")
_ASSERTED, _DEASSERTED = "state asserted", "state deasserted"
_SOUNDS_BAD = re.compile(
    r"err|fault|fail|trip|hot|therm|over(?:temp|heat|volt|curr|load)|crit|alarm|alert|lost|uncorr|leak|throt"
    r"|water|flood|smoke|drip|mismatch|degrad|loss|missing",
    re.IGNORECASE,
)
_SOUNDS_GOOD = re.compile(
    r"(?:^|[_ .\d-]|pwr|power|ac|dc|vin|vr)ok(?![a-z])|good|pwrgd|(?<![a-z])pgd?(?![a-z])|healthy|normal",
    re.IGNORECASE,
)
"""If the only state of a sensor is "asserted", the sensor's name shows whether that is bad. Some
boards assert what is well, and others never do."""
_ABSENT = re.compile(r"\babsent\b|not installed|not present", re.IGNORECASE)
_PRESENCE = re.compile(r"pre?s(?!s)", re.IGNORECASE)
"""`PSU3_PRSNT`, `PSU3_PRESENT`."""
_PART_PATTERN = re.compile(r"([A-Za-z]+[ _-]?\d+)[ _.-]")
"""The part that a sensor belongs to, by the beginning of its name: `PSU2` of PSU2_AC_OK."""

_NUMBER_PATTERN = re.compile(r"-?[0-9]+(\.[0-9]+)?( [A-Za-z%/ *]+)?")
_NOTHING = re.compile(
    r"(0x0+|no reading|not readable|n/?a|na|ns|event-only|(static|dynamic) mc @ [0-9a-f]{2}h"
    r"|log(ical)? fru @[0-9a-f]{2}h.{0,10}|)",
    re.IGNORECASE,
)
"""No state; records of `sdr elist` that are no sensors: controllers, parts and events (lib/ipmi_sdr.c)."""
MAX_PARTS = 40  # a sensor with more states is reported as unknown


def judge_states(name: str, text: str) -> tuple[Status, list[str]]:
    """The worst state of the sensor with that name, and the states in its text that are not in the
    table."""
    worst, unknown = Status.OK, list[str]()
    for part in _split_states(text):
        low = part.lower()
        if low == _ASSERTED:
            status = Status.WARNING if _SOUNDS_BAD.search(name) else Status.OK
        elif (
            low.startswith(_CHANGES) or _NOTHING.fullmatch(part) or _NUMBER_PATTERN.fullmatch(part)
        ):
            status = Status.OK
        elif (known := SENSOR_STATES.get(low)) is not None:
            status = known
        else:
            unknown.append(part)
            continue
        worst = max(worst, status, key=lambda s: s.rank)
    return worst, unknown


def find_good_but_deasserted(texts: Mapping[str, str]) -> set[str]:
    """The sensors, by name, whose good state is deasserted: `PSU1_AC_OK`, on a board that asserts
    that of others (Cisco UCS). A board on which none is asserted (Dell's `VCORE PG`) never does so.
    A part such as `PSU2` of which another sensor says that it is absent, or deasserts its presence, has no
    good state."""
    good = {n: t.lower() for n, t in texts.items() if _SOUNDS_GOOD.search(n)}
    if _ASSERTED not in good.values():
        return set()
    gone = [
        name
        for name, text in texts.items()
        if _ABSENT.search(text) or (text.lower() == _DEASSERTED and _PRESENCE.search(name))
    ]
    absent = {*map(_find_part, gone)} - {""}
    return {
        name
        for name, text in good.items()
        if text == _DEASSERTED and not _SOUNDS_BAD.search(name) and _find_part(name) not in absent
    }


def _find_part(name: str) -> str:
    found = _PART_PATTERN.match(name)
    return found[1] if found else ""


def _split_states(text: str) -> Iterator[str]:
    """The states in a line. Some states contain a comma, so the longest known one counts."""
    pieces = [piece.strip() for piece in text.split(",", MAX_PARTS)]
    if len(pieces) > MAX_PARTS:
        # an unknown text, so that the sensor is not reported as well
        pieces[MAX_PARTS:] = [f"more than {MAX_PARTS} states"]
    at = 0
    while at < len(pieces):
        for end in range(min(len(pieces), at + 4), at, -1):
            joined = ", ".join(pieces[at:end])
            if joined.lower() in SENSOR_STATES or end == at + 1:
                yield joined
                at = end
                break
        if joined.lower().startswith(_CHANGES):  # the second half says only what has changed
            at += 1
