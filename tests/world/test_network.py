"""Network and sensors: what management controllers say, as people showed it."""

from collections.abc import Mapping
from typing import Any

from sentinel.checks.sensors import SensorsCheck
from sentinel.core.values import Duration
from sentinel.nodes.probe import Hwmon, NodeIdentity, NodeProbe, Sensor, sections
from sentinel.testing import START, context
from tests.world.case import Case, each

IPMITOOL = "ipmitool 1.8.19, include/ipmitool/ipmi_sel.h"
MISSED = "A node ends under a job although its board had said that it would."
FALSE = "Somebody is woken for a healthy board, and switches the check off."

R710 = """\
Temp             | 01h | ns  |  3.1 | Disabled
Ambient Temp     | 0Eh | ok  |  7.1 | 19 degrees C
CMOS Battery     | 10h | ok  |  7.1 |
ROMB Battery     | 11h | ns  | 26.3 | Disabled
VCORE PG         | 12h | ok  |  3.1 | State Deasserted
MEM CPU2 FAIL    | 1Bh | ok  |  7.1 | State Deasserted
Presence         | 50h | ok  |  3.1 | Present
Status           | 60h | ok  |  3.1 | Presence detected
Intrusion        | 73h | ok  |  7.1 |
Fan Redundancy   | 75h | ok  |  7.1 | Fully Redundant
OS Watchdog      | 71h | ok  |  7.1 |
Power Optimized  | 99h | ok  |  7.1 | Unspecified
"""
RAINIER = """\
dimm0            | 01h | ok  | 32.1 | Presence Detected
dimm4            | 05h | ok  | 32.5 | Memory Device Disabled, Presence Detected
"""


class OneBoard:
    """A way to one node with a management controller that prints these lines."""

    def __init__(self, lines: str) -> None:
        self.lines = lines

    def run(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def probe(self, nodes: Any, wants: Any, *, limit: float) -> Mapping[str, NodeProbe]:
        me = NodeIdentity(hostname="n1", kernel="6", boot="b", uptime=1.0, time=0, uid=0)
        cool = Sensor(name="coretemp", kind="temp", value=40.0, critical=100.0)
        ipmi = sections.ipmi(self.lines.splitlines())
        return {"n1": NodeProbe(identity=me, hwmon=Hwmon(sensors=(cool,)), ipmi=ipmi)}


def bad_sensors(lines: str) -> dict[str, str]:
    """What a look at that board finds that is not well, by sensor or note."""
    check = SensorsCheck(nodes="n1", ipmi=True, trial=Duration(0))
    report = check.run(context(now=START, remote=OneBoard(lines), one_shot=True))
    return {f.subject.removeprefix("n1/"): f.status.value for f in report.findings if f.status.bad}


@each(
    Case(
        "redundancy-lost-is-ok",
        "https://github.com/ipmitool/ipmitool/issues/176",
        "Pwr Unit Redund  | 02h | ok  | 21.1 | Redundancy Lost\n",
        {"Pwr Unit Redund": "warning"},
        MISSED,
    ),
    Case(
        "non-redundant-sufficient",
        IPMITOOL,
        "PS_RDNDNT_MODE   | ADh | ok  | 20.0 | Non-Redundant: Sufficient from Redundant\n",
        {"PS_RDNDNT_MODE": "warning"},
        MISSED,
    ),
    Case(
        "r710-healthy",
        "https://github.com/tigerblue77/Dell_iDRAC_fan_controller_Docker/issues/36",
        R710,
        {},
        FALSE,
    ),
    Case(
        "dimm-disabled",
        "https://github.com/ibm-openbmc/dev/issues/3625",
        RAINIER,
        {"dimm4": "warning"},
        "A node has less memory than jobs are promised.",
    ),
    Case(
        "two-dead-fans",
        "https://github.com/ateodorescu/home-assistant-ipmi/issues/52",
        "Fan3A | 3Ah | ok  |  7.1 | 7320 RPM\nFan3B | 3Bh | cr  |  7.1 | 0 RPM\n"
        "Fan4B | 3Dh | lcr |  7.1 | 0 RPM\n",
        {"Fan3B": "critical", "Fan4B": "critical"},
        MISSED,
    ),
    Case(
        "control-panel-absent",
        "https://github.com/thomas-krenn/check_ipmi_sensor_v3/issues/67",
        "CP Left Pres     | 4Dh | ok  |  7.1 | Absent\nCP Right Pres    | 4Eh | ok  |  7.1 | Present\n",
        {},
        FALSE,
    ),
    Case(
        "empty-drive-slots",
        "https://github.com/canonical/hardware-observer-operator/issues/449",
        "Drive 1          | A1h | ok  |  4.1 | Drive Present\nDrive 7          | A7h | ok  |  4.7 | \n",
        {},
        FALSE,
    ),
    Case(
        "supply-unplugged",
        "https://github.com/thomas-krenn/check_ipmi_sensor_v3/issues/66",
        "PS1 Status       | C8h | ok  | 10.1 | Presence detected\n"
        "PS2 Status       | C9h | ok  | 10.2 | Presence detected, Power Supply AC lost\n",
        {"PS2 Status": "warning"},
        MISSED,
    ),
    Case(
        "board-too-cold",
        "https://github.com/open-power/occ/issues/6",
        "Board_Temp       | 0Ch | lnc |  7.0 | 20 degrees C\n",
        {"Board_Temp": "warning"},
        MISSED,
    ),
    Case(
        "supply-failed-behind-watts",
        IPMITOOL,
        "Power Supply 1   | 06h | ok  | 10.1 | 0 Watts, Presence detected, Failure detected\n",
        {"Power Supply 1": "critical"},
        MISSED,
    ),
    Case(
        "corrected-errors-log-full",
        IPMITOOL,
        "Memory | 2Bh | ok | 7.7 | Correctable ECC, Correctable ECC logging limit reached, "
        "Presence Detected\n",
        {"Memory": "warning"},
        "A module that fails more every day is told when it takes a node down.",
    ),
    Case(
        "processor-died",
        IPMITOOL,
        "CPU0_Status | 20h | ok | 3.1 | IERR, Presence detected\n"
        "CPU1_Status | 21h | ok | 3.2 | Thermal Trip, Presence detected\n"
        "CPU2_Status | 22h | ok | 3.3 | Presence detected\n",
        {"CPU0_Status": "critical", "CPU1_Status": "critical"},
        MISSED,
    ),
    Case(
        "bus-error-in-a-slot",
        IPMITOOL,
        "PCIe Slot 5 | 71h | ok | 11.5 | Bus Fatal Error\nGPU3 Status | 70h | ok | 11.3 | "
        "Transition to Critical from less severe\n",
        {"PCIe Slot 5": "critical", "GPU3 Status": "critical"},
        MISSED,
    ),
    Case(
        "vendor-word",
        "Kontron's own states in ipmitool 1.8.19 (oem_kontron_event_types)",
        "FRU Init | 80h | ok | 7.1 | Post Error (see data2)\n",
        {"ipmi: Post Error (see data2)": "warning"},
        "A state that nobody here knows is called well.",
    ),
    Case(
        "tool-speaks-first",
        "ipmitool 1.8.18 over lanplus",
        "Using best available cipher suite 17\n\nFan1 | 30h | ok | 29.1 | 5880 RPM\n",
        {},
        "A whole board is unknown for a line about the connection.",
    ),
    Case(
        "gpu-without-a-unit",
        "https://github.com/openbmc/openbmc/issues/3008",
        "gv100card0       | C5h | ok  | 216.1 | 0 unspecified\n",
        {},
        FALSE,
    ),
    Case(
        "lenovo-healthy",
        "https://github.com/canonical/hardware-observer-operator/issues/449 (in ipmitool's words)",
        "PSU Mismatch     | B0h | ok  | 19.1 | Transition to OK\n"
        "PS Heavy Load    | B1h | ok  | 19.1 | State Deasserted\n"
        "PSU 1 Failure    | B2h | ok  | 10.1 | Transition to OK\n",
        {},
        FALSE,
    ),
    Case(
        "older-board-healthy",
        "https://github.com/ateodorescu/home-assistant-ipmi/issues/33 (in ipmitool's words)",
        "SEL_Status       | 01h | ok  |  6.1 | \n"
        "BMC_Boot_Up      | 02h | ok  |  6.1 | Initiated by hard reset\n"
        "CPU_CATERR       | 03h | ok  |  3.1 | \n"
        "Memory_Status    | 04h | ok  |  8.1 | Presence Detected\n",
        {},
        FALSE,
    ),
    Case(
        "catastrophic-error",
        "https://github.com/ateodorescu/home-assistant-ipmi/issues/33 (its CPU_CATERR asserted)",
        "CPU_CATERR       | 03h | ok  |  3.1 | State Asserted\n",
        {"CPU_CATERR": "warning"},
        MISSED,
    ),
    Case(
        "log-full",
        IPMITOOL,
        "SEL Fullness     | 05h | ok  |  6.1 | Log full\nSEL 2 | 06h | ok | 6.1 | Log almost full\n",
        {"SEL Fullness": "warning"},
        "What happens next is not written down.",
    ),
    Case(
        "battery-low",
        IPMITOOL,
        "ROMB Battery     | 11h | ok  | 26.3 | Low, Presence Detected\n",
        {"ROMB Battery": "warning"},
        MISSED,
    ),
    Case(
        "health-degraded",
        IPMITOOL,
        "Sys. Health LED  | 01h | ok  | 23.1 | Transition to Degraded\n",
        {"Sys. Health LED": "warning"},
        MISSED,
    ),
    Case(
        "ecc-severity",
        IPMITOOL,
        "Mem ECC Warning  | 1Bh | ok  |  8.1 | Transition to Non-critical from OK\n"
        "Mem ECC 2        | 1Ch | ok  |  8.1 | Transition to Non-recoverable\n",
        {"Mem ECC Warning": "warning", "Mem ECC 2": "critical"},
        MISSED,
    ),
    Case(
        "fans-less-redundant",
        IPMITOOL,
        "Fan Redundancy   | 75h | ok  |  7.1 | Redundancy Degraded from Fully Redundant\n",
        {"Fan Redundancy": "warning"},
        MISSED,
    ),
    Case(
        "limit-exceeded",
        IPMITOOL,
        "Pwr Limit        | 76h | ok  |  7.1 | Limit Exceeded\nPwr 2 | 77h | ok | 7.1 | Limit Not Exceeded\n",
        {"Pwr Limit": "warning"},
        MISSED,
    ),
    Case(
        "firmware-was-changed",
        IPMITOOL,
        "Version Change   | 9Ch | ok  | 34.1 | Firmware or software change detected, BIOS/EFI change\n",
        {},
        FALSE,
    ),
    Case(
        "asleep",
        IPMITOOL,
        "ACPI State       | 90h | ok  | 23.1 | S3: sleeping, processor & hw context lost, memory retained\n",
        {},
        FALSE,
    ),
    Case(
        "drive-rebuilds",
        IPMITOOL,
        "Drive 4 | A4h | ok | 26.4 | Drive Present, Rebuild In Progress\n"
        "Drive 5 | A5h | ok | 26.5 | Drive Present, Drive Fault\n"
        "Drive 6 | A6h | ok | 26.6 | Drive Present, In Failed Array\n",
        {"Drive 5": "critical", "Drive 6": "critical"},
        MISSED,
    ),
    Case(
        "doors-are-nobodys-fault",
        IPMITOOL,
        "Chassis Intru    | AAh | ok  | 23.1 | General Chassis intrusion\n",
        {},
        FALSE,
    ),
    Case(
        "controller-lost-its-parts",
        IPMITOOL,
        "Mgmt Health      | 97h | ok  |  7.1 | Controller access degraded or unavailable\n",
        {"Mgmt Health": "warning"},
        "A board that sees nothing is called well.",
    ),
)
def test_a_board(case: Case) -> None:
    assert bad_sensors(case.form) == case.right
