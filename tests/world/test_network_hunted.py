"""Network and sensors, hunted by somebody who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable

from sentinel.checks.network.judge import LinkPast, NetworkLink, judge_missing_link
from tests.world.case import Case, each
from tests.world.test_network import bad_sensors
from tests.world.test_network_drawn import COST, LINUX, lines, link

IPMITOOL = "ipmitool 1.8.19, lib/ipmi_sdr.c"

HUNTED_1 = (
    Case("bnxt-does-not-know-a-request", LINUX + "drivers/net/ethernet/broadcom/bnxt/bnxt_hwrm.c",
         lambda: lines("bnxt_en 0000:18:00.0 ens1f0np0: hwrm req_type 0x90 seq id 0x3 error 0x4"), {}, COST),
    Case("efa-lets-go-of-a-program", LINUX + "drivers/infiniband/hw/efa/efa_com.c",
         lambda: lines("efa 0000:00:06.0 rdmap0s6: Failed to process command DESTROY_AH (opcode 6) comp_status 4 err -22"), {}, COST),
    Case("mlx5-has-no-more-for-a-program", LINUX + "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
         lambda: lines("mlx5_core 0000:44:00.0: mlx5_cmd_out_err:838:(pid 77): CREATE_QP(0x500) op_mod(0x0) failed, status no resources(0xf), syndrome (0x2d8bd8), err(-11)"), {}, COST),
    Case("records-that-are-no-sensors", IPMITOOL,
         lambda: bad_sensors("BMC FRU          | 00h | ns  |  7.1 | Logical FRU @00h\nME               | 00h | ok  |  7.1 | Dynamic MC @ 2Ch\n"
                             "BMC              | 00h | ok  |  6.1 | Static MC @ 20h\nSession Audit    | 0Ch | ns  |  7.1 | Event-Only\nFAN1             | 41h | ok  | 29.1 | 3800 RPM\n"), {}, COST),
    Case("not-recoverable", IPMITOOL, lambda: bad_sensors("GPU3 Temp        | 83h | nr  | 11.3 | 104 degrees C\nGPU4 Temp        | 84h | nc  | 11.4 | 88 degrees C\n"),
         {"GPU3 Temp": "critical", "GPU4 Temp": "warning"}, COST),
    Case("a-processor-is-throttled", IPMITOOL, lambda: bad_sensors("CPU0_Status      | 20h | ok  |  3.1 | Presence detected, Throttled\n"), {"CPU0_Status": "warning"}, COST),
    Case("a-leak", "Supermicro SYS-421GE-TNHR2-LCC", lambda: bad_sensors("Liquid_Leak      | 9Ah | ok  |  7.1 | State Asserted\n"), {"Liquid_Leak": "warning"}, COST),
    Case("water", "racks with liquid cooling: a rope in the drip tray", lambda: bad_sensors("Water_Detect     | 9Bh | ok  |  7.1 | State Asserted\n"), {"Water_Detect": "warning"}, COST),
    Case("bnxt-debugs", LINUX + "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
         lambda: lines("bnxt_en 0000:18:00.0 ens1f0np0: Received firmware debug notification, data1: 0xffffffff, data2: 0xffffffff", level=4), {}, COST),
    Case("igb-says-its-name-twice", LINUX + "drivers/net/ethernet/intel/igb/igb_main.c", lambda: lines("igb 0000:02:00.0 em1: igb: em1 NIC Link is Down", level=None), {}, COST),
    Case("mlx4-fails", LINUX + "drivers/net/ethernet/mellanox/mlx4/cmd.c", lambda: lines("mlx4_core 0000:04:00.0: device is going to be reset"), {"0000:04:00.0": "warning"}, COST),
    Case("a-counter-that-is-full", "IBTA, PortCounters: 16 bits that stay at their end",
         lambda: link(NetworkLink(name="mlx5_0/1", rate=400, counters={"symbol_error": 65535}), LinkPast(at=1000, boot="boot", up=True, rate=400, counters={"symbol_error": 65535})), [], COST),
    Case("half-the-lanes", "sysfs-bus-pci, current_link_width",
         lambda: link(NetworkLink(name="pcie/0000:44:00.0", rate=32, lanes=8), LinkPast(at=1000, boot="boot", up=True, rate=32, lanes=16)), ["warning"], COST),
    Case("a-port-that-is-gone", "a card that fell off the bus", lambda: gone(), "critical", COST),
    Case("one-flap", "sysfs-class-net, carrier_changes",
         lambda: link(NetworkLink(name="eth2", rate=100, counters={"carrier_changes": 8}), LinkPast(at=1000, boot="boot", up=True, rate=100, counters={"carrier_changes": 6})), [], COST),
)  # fmt: skip


def gone() -> str:
    """The status of a link that was up, at the second look without it."""
    problem, past = judge_missing_link(LinkPast(at=1000, up=True), 1060, told=False)
    assert problem is None
    assert past is not None
    problem, _ = judge_missing_link(past, 1120, told=False)
    return problem[0].value if problem else ""


def partly(board_lines: str) -> list[str]:
    """Sensors of that board that are critical, whatever is said beside them."""
    return sorted(name for name, status in bad_sensors(board_lines).items() if status == "critical")


HUNTED_2 = (
    Case("the-tool-ends-with-words", IPMITOOL, lambda: partly("Fan1             | 30h | ok  | 29.1 | 5880 RPM\nFan4B            | 3Dh | lcr | 29.4 | 0 RPM\nGet SDR 0081 command failed: Timeout\n"), ["Fan4B"], COST),
    Case("a-board-that-is-off", IPMITOOL, lambda: bad_sensors("CPU1 Temp        | 01h | ns  |  3.1 | No Reading\nFAN1             | 41h | ns  | 29.1 | No Reading\n"), {}, COST),
    Case("words-in-other-capitals", IPMITOOL, lambda: bad_sensors("PSU1             | C8h | ok  | 10.1 | presence DETECTED\n"), {}, COST),
    Case("two-states-of-redundancy", IPMITOOL, lambda: bad_sensors("Pwr Redundancy   | 77h | ok  |  7.1 | Redundancy Lost, Non-Redundant: Insufficient Resources\n"), {"Pwr Redundancy": "critical"}, COST),
    Case("supplies-of-two-vendors", IPMITOOL, lambda: bad_sensors("PSU2             | C9h | ok  | 10.2 | Presence detected, Config Error: Vendor Mismatch\n"), {"PSU2": "warning"}, COST),
    Case("a-bare-number", IPMITOOL, lambda: bad_sensors("OEM Status       | 01h | ok  |  6.1 | 0x8000\n"), {"ipmi: 0x8000": "warning"}, COST),
    Case("below-zero", IPMITOOL, lambda: bad_sensors("Inlet Temp       | 04h | ok  | 64.1 | -12 degrees C\nPIN1             | 05h | ok  | 10.1 | 0.13 Amps\n"), {}, COST),
    Case("efa-waits-in-vain", LINUX + "drivers/infiniband/hw/efa/efa_com.c",
         lambda: lines("efa 0000:00:06.0 rdmap0s6: Failed to process command MODIFY_QP (opcode 2) comp_status 0 err -110"), {"0000:00:06.0": "warning"}, COST),
    Case("mlx5-answers-with-a-new-word", LINUX + "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
         lambda: lines("mlx5_core 0000:44:00.0: mlx5_cmd_out_err:838:(pid 77): CREATE_QP(0x500) op_mod(0x0) failed, status unknown status(0x55), syndrome (0x0), err(-5)"), {"0000:44:00.0": "warning"}, COST),
    Case("a-drive-is-inaccessible", LINUX + "drivers/pci/pcie/aer.c", lambda: lines("nvme 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Inaccessible, (Unregistered Agent ID)"), {"0000:3b:00.0": "warning"}, COST),
    Case("contained-in-new-words", LINUX + "drivers/pci/pcie/dpc.c of 6.16", lambda: lines("pcieport 0000:80:01.0: DPC: containment event, status:0x1f05 source:0x8100: ERR_FATAL received from 0000:81:00.0"), {"0000:80:01.0": "warning"}, COST),
    Case("a-port-was-reset", LINUX + "drivers/pci/pcie/err.c", lambda: lines("pcieport 0000:80:01.0: AER: Root Port link has been reset (0)", "pcieport 0000:80:01.0: AER: device recovery successful"), {}, COST),
    Case("a-program-called-igb", LINUX + "arch/x86/mm/fault.c", lambda: lines("igb 0000:02:00.[77]: segfault at 0 ip 000055ac sp 00007ffd error 6 in x: PCIe link lost[55ac+1000]"), {}, COST),
    Case("four-flaps-in-a-minute", "sysfs-class-net, carrier_changes",
         lambda: link(NetworkLink(name="eth2", rate=100, counters={"carrier_changes": 14}), LinkPast(at=1000, boot="boot", up=True, rate=100, counters={"carrier_changes": 6})), ["warning"], COST),
    Case("a-rate-that-is-not-told", "sysfs-class-net, speed: -1 or EINVAL", lambda: link(NetworkLink(name="eth2", rate=None), LinkPast(at=1000, boot="boot", up=True, rate=100)), [], COST),
)  # fmt: skip


@each(*HUNTED_1, *HUNTED_2)
def test_a_form_of_networks_and_sensors_that_was_hunted(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
