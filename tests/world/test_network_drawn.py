"""Network and sensors, drawn by a seed from `sources/network.txt`; the answers were committed before the program ran.

A source whose form a test has already, or that has none for these checks, gives its place to the next of the draw.
"""

from __future__ import annotations

from collections.abc import Callable

from sentinel.checks.network.driver_lines import find_driver_errors
from sentinel.checks.network.judge import LinkPast, NetworkLink, judge_link
from sentinel.core.values import Rate
from sentinel.nodes.probe import KernelLine
from tests.world.case import Case, each
from tests.world.test_network import bad_sensors

GITHUB = "https://github.com/"
LINUX = "https://git.kernel.org/torvalds/linux "
COST = "A card that does not work is given to jobs, or somebody is woken for one that does."


def lines(*texts: str, level: int | None = 3) -> dict[str, str]:
    """By card, the last status of what its driver said at that level."""
    records = [KernelLine(at=1.0, level=level, text=text) for text in texts]
    return {card: status.value for card, status, _ in find_driver_errors(records)}


def link(now: NetworkLink, past: LinkPast, custom: NetworkLink | None = None) -> list[str]:
    """The statuses of a look a minute after `past`."""
    flaps = Rate("3 in 1h")
    problems, _, _ = judge_link(now, past, custom, 1060.0, "boot", 300, flaps)
    return [status.value for status, _ in problems]


UP = LinkPast(at=1000, boot="boot", up=True, rate=400, counters={"port_xmit_wait": 5})

# Seed 20261127, from 66 sources.
DRAWN_1 = (
    Case(
        "driver-is-renewed", GITHUB + "oracle/oracle-linux/issues/85",
        lambda: lines("mlx5_core 36fd:00:02.0: Successfully unregistered panic handler for port 1",
                      "hv_netvsc 002248c0-7a74-0022-48c0-7a74002248c0 eth0: VF unregistering: eth1", level=6), {}, COST,
    ),
    Case(
        "waits-are-no-errors", GITHUB + "guilbaults/infiniband-exporter/issues/12",
        lambda: link(NetworkLink(name="mlx5_0/1", rate=400, counters={"port_xmit_wait": 4_000_000_000}), UP), [], COST,
    ),
    Case(
        "polls-for-ten-minutes", GITHUB + "linux-rdma/rdma-core/pull/847",
        lambda: link(NetworkLink(name="mlx5_0/1", up=False, state="DOWN, Polling"),
                     LinkPast(at=1000, boot="boot", up=True, rate=400, down=400)), ["critical"], COST,
    ),
    Case(
        "a-person-resets-the-firmware", LINUX + "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        lambda: lines("mlx5_core 0000:08:00.0: mlx5_sync_reset_now_event:607:(pid 98): Sync Reset now. Device is going to reset.", level=4), {}, COST,
    ),
    Case(
        "e1000e-hangs", GITHUB + "Ysurac/openmptcprouter/issues/286",
        lambda: lines("e1000e 0000:00:19.0 eth0: Detected Hardware Unit Hang:\n  TDH                  <ec>"), {"0000:00:19.0": "warning"}, COST,
    ),
    Case(
        "the-kernel-s-own-watchdog", GITHUB + "mtorromeo/r8168/issues/64",
        lambda: lines("r8168 0000:05:00.0 nic1: NETDEV WATCHDOG: CPU: 2: transmit queue 0 timed out 6464 ms"), {"0000:05:00.0": "warning"}, COST,
    ),
    Case(
        "corrected-and-nobody-there", GITHUB + "larixer/hid-asus-dkms/issues/33",
        lambda: lines("pcieport 0000:00:1c.5: AER: Multiple Corrected error received: id=00e5", "pcieport 0000:00:1c.5: can't find device of ID00e5",
                      "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5(Receiver ID)"), {}, COST,
    ),
    Case(
        "igb-hangs", GITHUB + "Avnu/OpenAvnu/issues/210",
        lambda: lines("igb 0000:09:00.0: Detected Tx Unit Hang\n  Tx Queue             <3>"), {"0000:09:00.0": "warning"}, COST,
    ),
    Case(
        "no-device-recovers", GITHUB + "minisforum-docs/MS-02-Ultra/issues/10",
        lambda: lines("pcieport 0000:80:1b.4: AER: Uncorrectable (Non-Fatal) error message received from 0000:80:1b.4",
                      "pcieport 0000:80:1b.4: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Receiver ID)",
                      "xhci_hcd 0000:97:00.0: AER: can't recover (no error_detected callback)", "pcieport 0000:80:1b.4: AER: device recovery failed"),
        {"0000:80:1b.4": "warning"}, COST,
    ),
    Case(
        "corrected-many-times", GITHUB + "geerlingguy/raspberry-pi-pcie-devices/issues/64",
        lambda: lines("pcieport 0000:00:1d.0: AER: Multiple Corrected error received: id=00e8", "pcieport 0000:00:1d.0:    [ 0] Receiver Error        "), {}, COST,
    ),
    Case(
        "ice-recovers-its-firmware", LINUX + "drivers/net/ethernet/intel/ice/ice_main.c",
        lambda: lines("ice 0000:18:00.0: Firmware recovery mode detected. Limiting functionality.\nRefer to the Intel(R) Ethernet Adapters and Devices User Guide for details on firmware recovery mode."),
        {"0000:18:00.0": "warning"}, COST,
    ),
    Case(
        "igb-resets-itself", GITHUB + "openstreetmap/operations/issues/45",
        lambda: lines("igb 0000:02:00.1 em2: Reset adapter"), {"0000:02:00.1": "warning"}, COST,
    ),
    Case(
        "bnxt-updates-itself", LINUX + "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
        lambda: lines("bnxt_en 0000:18:00.0 ens1f0np0: Firmware non-fatal reset event received, max wait time 4200 msec", level=4), {}, COST,
    ),
    Case(
        "a-cable-is-wrong", "ipmitool 1.8.19, include/ipmitool/ipmi_sel.h, Cable/Interconnect",
        lambda: bad_sensors("Cable 1          | D0h | ok  |  7.1 | Connected\nCable 2          | D1h | ok  |  7.2 | Config Error\n"), {"Cable 2": "warning"}, COST,
    ),
    Case(
        "no-registry-of-vendors", GITHUB + "ateodorescu/home-assistant-ipmi/issues/25",
        lambda: bad_sensors("IANA PEN registry open failed: No such file or directory\nMB_Inlet_TEMP    | 01h | ok  |  7.1 | 21 degrees C\n"
                            "PVDDQ_EF         | 07h | ns  |  8.1 | No Reading\nPVCCIO           | 09h | ok  |  7.1 | 1.06 Volts\n"), {}, COST,
    ),
)  # fmt: skip

# The next fifteen of the same draw.
DRAWN_2 = (
    Case(
        "somebody-pulls-a-cable", LINUX + "drivers/net/ethernet/mellanox/mlx5/core/events.c",
        lambda: lines("mlx5_core 0000:01:00.0: Port module event: module 0, Cable unplugged", level=6), {}, COST,
    ),
    Case(
        "corrected-of-a-drive", GITHUB + "pop-os/pop/issues/751",
        lambda: lines("pcieport 0000:00:1d.0: AER: Multiple Corrected error received: 0000:03:00.0",
                      "nvme 0000:03:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "nvme 0000:03:00.0: AER: [ 0] RxErr",
                      "nvme 0000:03:00.0: AER: Error of this Agent is reported first", level=4), {}, COST,
    ),
    Case(
        "a-slot-is-emptied", LINUX + "drivers/pci/hotplug/pciehp_ctrl.c",
        lambda: lines("pcieport 0000:3a:01.0: pciehp: Slot(3): Link Down", "pcieport 0000:3a:01.0: pciehp: Slot(3): Card not present", level=6), {}, COST,
    ),
    Case(
        "an-old-board-without-words", GITHUB + "prometheus-community/ipmi_exporter/pull/31",
        lambda: bad_sensors("CPU1 Temp        | 01h | ok  |  3.1 | \nCPU2 Temp        | 02h | ok  |  3.2 | \nSystem Temp      | 03h | ok  |  7.1 | 25 degrees C\n"
                            "CPU2 Vcore       | 05h | ns  |  3.2 | No Reading\nPS Status        | 71h | ok  | 10.1 | Presence detected\n"), {}, COST,
    ),
    Case(
        "ilo-is-well", GITHUB + "prometheus-community/ipmi_exporter/issues/54",
        lambda: bad_sensors("UID              | AEh | ok  | 23.1 | \nSysHealth_Stat   | ACh | ok  | 23.1 | Transition to OK\n01-Inlet Ambient | A2h | ok  | 55.1 | 19 degrees C\n"
                            "05-PMM 1-6       | FEh | ns  |  7.1 | Disabled\n12-HD Max        | 98h | ns  |  4.3 | Disabled\nFans             | B6h | ok  |  7.4 | Fully Redundant\n"
                            "Fan 1            | 0Ch | ok  |  7.1 | 25.48 percent\nPower Supplies   | B1h | ok  | 10.3 | Fully Redundant\n"), {}, COST,
    ),
    Case(
        "never-up-here", GITHUB + "leptonai/gpud/pull/482",
        lambda: link(NetworkLink(name="mlx5_10/1", up=False, state="DOWN, Polling", rate=10), LinkPast(at=1000, boot="boot"),
                     NetworkLink(name="mlx5_10/1", up=True, rate=400)), ["warning"], COST,
    ),
    Case(
        "a-port-is-contained", LINUX + "drivers/pci/pcie/dpc.c",
        lambda: lines("pcieport 0000:80:01.0: DPC: containment event, status:0x1f01 source:0x0000", "pcieport 0000:80:01.0: DPC: unmasked uncorrectable error detected"),
        {"0000:80:01.0": "warning"}, COST,
    ),
    Case(
        "a-card-begins-well", GITHUB + "geerlingguy/arm-nas/issues/16",
        lambda: lines("mlx5_core 0004:01:00.0: firmware version: 16.27.2048", "mlx5_core 0004:01:00.0: Port module event: module 0, Cable plugged",
                      "mlx5_core 0004:01:00.0: mlx5_pcie_event:294:(pid 542): PCIe slot advertised sufficient power (75W).", level=None), {}, COST,
    ),
    Case(
        "no-room-for-virtual-ones", GITHUB + "Mellanox/mstflint/issues/448",
        lambda: lines("pci 0000:04:00.0: BAR 7: no space for [mem size 0x01000000 64bit pref]", "pci 0000:04:00.0: BAR 7: failed to assign [mem size 0x01000000 64bit pref]"), {}, COST,
    ),
    Case(
        "ixgbe-hangs", GITHUB + "tempesta-tech/tempesta/issues/430",
        lambda: lines("ixgbe 0000:02:00.1 eth3: Detected Tx Unit Hang\n  Tx Queue             <6>"), {"0000:02:00.1": "warning"}, COST,
    ),
    Case(
        "the-watchdog-bit-once", "ipmitool 1.8.19, include/ipmitool/ipmi_sel.h, Watchdog 2",
        lambda: bad_sensors("Watchdog         | CAh | ok  |  6.1 | Hard reset\nFAN1             | 41h | ok  | 29.1 | 3800 RPM\n"), {}, COST,
    ),
    Case(
        "ena-hears-nothing", LINUX + "drivers/net/ethernet/amazon/ena/ena_netdev.c",
        lambda: lines("ena 0000:00:05.0: Keep alive watchdog timeout."), {"0000:00:05.0": "warning"}, COST,
    ),
    Case(
        "supermicro-is-well", GITHUB + "ateodorescu/home-assistant-ipmi/issues/54",
        lambda: bad_sensors("VBAT             | 33h | ok  |  7.18 | 3.12 Volts\nPS1 Status       | C8h | ok  | 10.1 | Presence detected\n"
                            "P1-DIMMA1 TEMP   | B0h | ok  | 32.64 | 33 degrees C\nFANA             | 47h | ns  | 29.7 | No Reading\nVDIMM AB         | 34h | ok  |  7.1 | 1.50 Volts\n"), {}, COST,
    ),
    Case(
        "no-device-recovers-in-old-words", GITHUB + "geerlingguy/raspberry-pi-pcie-devices/issues/600",
        lambda: lines("pcieport 0000:00:00.0: AER: Uncorrected (Non-Fatal) error received: 0000:00:00.0", "ahci 0000:01:00.0: AER: can't recover (no error_detected callback)",
                      "pcieport 0000:00:00.0: AER: device recovery failed", level=None), {"0000:00:00.0": "warning"}, COST,
    ),
    Case(
        "a-queue-of-mlx5-failed", LINUX + "drivers/net/ethernet/mellanox/mlx5/core/en/health.c",
        lambda: lines("mlx5_core 0000:01:00.0 eth2: Error cqe on cqn 0x41d, ci 0x1, qn 0x1b2, opcode 0xd, syndrome 0x2, vendor syndrome 0x68"), {"0000:01:00.0": "warning"}, COST,
    ),
)  # fmt: skip


# The next of the same draw: 43, 44, 46 to 49, 52 to 58, 60, 61. The others were used or have no form for these checks.
DRAWN_3 = (
    Case("a-regulator-over-its-limit", "ipmitool 1.8.19, include/ipmitool/ipmi_sel.h, Voltage",
         lambda: bad_sensors("PVCCIN_CPU0      | 61h | ok  |  3.1 | Limit Exceeded\nPVCCIN_CPU1      | 62h | ok  |  3.2 | Limit Not Exceeded\n"), {"PVCCIN_CPU0": "warning"}, COST),
    Case("ice-has-an-hmc-error", GITHUB + "intel/ethernet-linux-ice/issues/12",
         lambda: lines("ice 0000:31:00.0: ice_misc_intr: HMC Error: type 11, index 4",
                       "ice 0000:31:00.0 irdma0: ICE OICR event notification: oicr = 0x06000803"), {"0000:31:00.0": "warning"}, COST),
    Case("i40e-queue-hangs", GITHUB + "open-power/op-build/issues/3274",
         lambda: lines("i40e 0001:01:00.0 enP1p1s0f0: tx_timeout: VSI_seid: 396, Q 31, NTC: 0x1cb, HWB: 0x1cb, NTU: 0x1f5, TAIL: 0x1f5, INT: 0x1",
                       "i40e 0001:01:00.0 enP1p1s0f0: tx_timeout recovery level 2, hung_queue 31", level=None), {"0001:01:00.0": "warning"}, COST),
    Case("efa-drops-a-little", GITHUB + "NVIDIA/NVSentinel/pull/1750",
         lambda: link(NetworkLink(name="rdmap68s0/1", rate=100, counters={"rx_drops": 3, "retrans_timeout_events": 1}),
                      LinkPast(at=1000, boot="boot", up=True, rate=100, counters={"rx_drops": 2, "retrans_timeout_events": 1})), [], COST),
    Case("correctable-in-new-words", GITHUB + "pop-os/pop/issues/3363",
         lambda: lines("pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0",
                       "pcieport 0000:00:03.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
                       "pcieport 0000:00:03.1:    [12] Timeout               ", level=None), {}, COST),
    Case("details-below-a-health-issue", LINUX + "drivers/net/ethernet/mellanox/mlx5/core/health.c",
         lambda: lines("mlx5_core 0000:08:00.0: print_health_info:438:(pid 0): assert_var[0] 0x00000001", "mlx5_core 0000:08:00.0: print_health_info:445:(pid 0): assert_exit_ptr 0x20870430",
                       "mlx5_core 0000:08:00.0: print_health_info:459:(pid 0): ext_synd 0x8a03"), {}, COST),
    Case("redundancy-is-unknown", GITHUB + "centreon/centreon-plugins/issues/2974 (in ipmitool's words)",
         lambda: bad_sensors("PS Redundancy    | 77h | ns  |  7.1 | Disabled\nPwr Consumption  | 77h | ok  |  7.1 | 98 Watts\n"), {}, COST),
    Case("a-usb-card-times-out", GITHUB + "openwrt/openwrt/issues/14707", lambda: lines("r8152 4-1:1.0 eth1: Tx timeout"), {}, "A plug of USB is nobody's fabric."),
    Case("omni-path-bounces", LINUX + "drivers/infiniband/hw/hfi1/chip.c",
         lambda: lines("hfi1 0000:5e:00.0: hfi1_0: Switching to NO_DMA_RTAIL", "hfi1 0000:5e:00.0: hfi1_0: logical state changed to PORT_DOWN (0x1)", level=6), {}, COST),
    Case("fatal-above-a-gpu", GITHUB + "rwth-i6/returnn/issues/1500",
         lambda: lines("pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0",
                       "nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)", "pcieport 0000:00:03.0: AER: Root Port link has been reset (0)"), {"0000:00:03.0": "warning"}, COST),
    Case("no-failure-is-predicted", GITHUB + "prometheus-community/ipmi_exporter/issues/139 (in ipmitool's words)",
         lambda: bad_sensors("PSU1 PF Failure  | 10h | ok  | 10.1 | Predictive Failure Deasserted\nPSU1 IN Failure  | 11h | ok  | 10.1 | State Deasserted\nDrive 1          | 9Fh | ok  |  4.1 | \n"), {}, COST),
    Case("a-port-was-disabled", GITHUB + "tuananh0788/Exadata/issues/2",
         lambda: link(NetworkLink(name="mlx4_0/2", up=False, state="DOWN, Disabled", rate=2.5), LinkPast(at=1000, boot="boot")), [], COST),
    Case("the-watchdog-of-linux-3", GITHUB + "ntop/PF_RING/issues/74", lambda: lines("NETDEV WATCHDOG: cap0 (i40e): transmit queue 0 timed out", level=4), {"cap0": "warning"}, COST),
    Case("a-queue-of-commands-is-stuck", LINUX + "drivers/infiniband/hw/bnxt_re/qplib_rcfw.c",
         lambda: lines("bnxt_re 0000:18:00.0: cmdq[0xe]=0x9 timedout (60000 msec)"), {"0000:18:00.0": "warning"}, COST),
    Case("half-the-rate", GITHUB + "leptonai/gpud/pull/230",
         lambda: link(NetworkLink(name="mlx5_4/1", rate=200), LinkPast(at=1000, boot="boot", up=True, rate=400)), ["warning"], COST),
)  # fmt: skip


KERNEL = LINUX + "drivers/net/ethernet/"
SEL = "ipmitool 1.8.19, include/ipmitool/ipmi_sel.h"
SYSFS = "sysfs-class-infiniband and sysfs-class-net of Linux"


def board(line: str) -> dict[str, str]:
    return bad_sensors(line + "\n")


def counted(name: str, before: int, now: int, over: int = 1) -> list[str]:
    """The statuses of a port whose counter rose in a minute, after `over` such looks."""
    past = LinkPast(
        at=1000, boot="boot", up=True, rate=400, counters={name: before}, over={name: over}
    )
    return link(NetworkLink(name="mlx5_0/1", rate=400, counters={name: now}), past)


# Seed 20261130, from 47 sources that were added to the 66 for it.
DRAWN_4 = (
    Case("ice-sees-malice", KERNEL + "intel/ice/ice_main.c", lambda: lines("ice 0000:31:00.0: Malicious Driver Detection event 1 on TX queue 5 PF# 0 VF# 0", level=6), {}, COST),
    Case("a-timer-interrupts", SEL, lambda: board("OS Watchdog Time | 23h | ok  | 34.1 | Timer interrupt"), {}, COST),
    Case("bnxt-resets-on-request", KERNEL + "broadcom/bnxt/bnxt_ethtool.c", lambda: lines("bnxt_en 0000:18:00.0 ens1: Firmware reset request successful.", level=6), {}, COST),
    Case("a-hundred-symbols", SYSFS, lambda: counted("symbol_error", 100, 200), [], COST),
    Case("twenty-recoveries", SYSFS, lambda: counted("link_error_recovery", 100, 120), ["warning"], COST),
    Case("a-program-s-queue-pair", LINUX + "drivers/infiniband/hw/mlx5/qp.c", lambda: lines("infiniband mlx5_0: create_qp:3206:(pid 9): Create QP type 2 failed", level=4), {}, COST),
    Case("bnxt-sends-nothing", KERNEL + "broadcom/bnxt/bnxt.c", lambda: lines("bnxt_en 0000:18:00.0 ens1: TX timeout detected, starting reset task!"), {"0000:18:00.0": "warning"}, COST),
    Case("ena-sends-late", KERNEL + "amazon/ena/ena_netdev.c", lambda: lines("ena 0000:00:05.0 ens5: Found a Tx that wasn't completed on time, qid 3, index 7. 5000 usecs have passed since last napi execution."), {"0000:00:05.0": "warning"}, COST),
    Case("a-slot-without-power", SEL, lambda: board("PCIe Slot 1      | 71h | ok  | 11.1 | Slot Power is Off"), {}, COST),
    Case("mlx5-begins-a-recovery", KERNEL + "mellanox/mlx5/core/health.c", lambda: lines("mlx5_core 0000:08:00.0: mlx5_health_try_recover:338:(pid 9): handling bad device here", level=4), {}, COST),
    Case("i40e-is-promiscuous", KERNEL + "intel/i40e/i40e_main.c", lambda: lines("i40e 0000:01:00.0: Error OK adding RX filters on PF, promiscuous mode forced on", level=4), {}, COST),
    Case("ice-cannot-be-rebuilt", KERNEL + "intel/ice/ice_main.c", lambda: lines("ice 0000:31:00.0: Rebuild failed, unload and reload driver"), {"0000:31:00.0": "warning"}, COST),
    Case("igb-lost-its-slot", KERNEL + "intel/igb/igb_main.c", lambda: lines("igb 0000:02:00.0 em1: PCIe link lost"), {"0000:02:00.0": "warning"}, COST),
    Case("less-redundant", SEL, lambda: board("PSU Redundancy   | 77h | ok  |  7.1 | Redundancy Degraded"), {"PSU Redundancy": "warning"}, COST),
    Case("counters-begin-anew", SYSFS, lambda: counted("symbol_error", 90000, 3), [], COST),
)  # fmt: skip

DRAWN_5 = (
    Case("tg3-sends-nothing", KERNEL + "broadcom/tg3.c", lambda: lines("tg3 0000:02:00.0 eth0: transmit timed out, resetting"), {"0000:02:00.0": "warning"}, COST),
    Case("a-command-came-back", KERNEL + "mellanox/mlx5/core/cmd.c",
         lambda: lines("mlx5_core 0000:08:00.0: wait_func_handle_exec_timeout:1070:(pid 9): cmd[3]: CREATE_MKEY(0x200) recovered after timeout", level=4), {}, COST),
    Case("a-port-that-nobody-uses", SYSFS, lambda: link(NetworkLink(name="eth5", up=False, state="down"), LinkPast(at=1000, boot="boot")), [], COST),
    Case("roce-starts-slowly", SYSFS, lambda: counted("roce_slow_restart", 0, 6000), ["warning"], COST),
    Case("a-drive-is-no-card", LINUX + "drivers/nvme/host/pci.c", lambda: lines("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"), {}, "Another check looks at drives."),
    Case("the-log-is-full", SEL, lambda: board("SEL              | 05h | ok  |  6.1 | Log full, Log almost full"), {"SEL": "warning"}, COST),
    Case("a-supply-without-current", SEL, lambda: board("PSU1_AC_Loss     | C1h | ok  | 10.1 | State Asserted"), {"PSU1_AC_Loss": "warning"}, COST),
    Case("nobody-knows-what", SEL, lambda: board("System Event     | 09h | ok  |  6.1 | Undetermined system hardware failure"), {"System Event": "critical"}, COST),
    Case("no-backplane", SEL, lambda: board("HDD Backplane    | 0Ah | ok  | 15.1 | Device Absent"), {}, COST),
    Case("a-module-with-an-error", SEL, lambda: board("DIMM_A1          | B0h | ok  | 32.1 | Presence Detected, Uncorrectable ECC"), {"DIMM_A1": "critical"}, COST),
    Case("eleven-volts-of-twelve", "ipmitool 1.8.19, lib/ipmi_sdr.c", lambda: board("12V              | 30h | lcr |  7.1 | 10.90 Volts"), {"12V": "critical"}, COST),
    Case("i40e-cannot-be-reset", KERNEL + "intel/i40e/i40e_main.c", lambda: lines("i40e 0000:01:00.0: PF reset failed, -15"), {"0000:01:00.0": "warning"}, COST),
    Case("a-processor-is-hot", SEL, lambda: board("CPU0_PROCHOT     | 2Ah | ok  |  3.1 | State Asserted"), {"CPU0_PROCHOT": "warning"}, COST),
    Case("a-spare-drive", SEL, lambda: board("Drive 3          | A3h | ok  | 26.3 | Drive Present, Hot Spare"), {}, COST),
    Case("somebody-pressed-a-button", SEL, lambda: board("Chassis Control  | 0Fh | ok  | 23.1 | Power Button pressed"), {}, COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2, *DRAWN_3, *DRAWN_4, *DRAWN_5)
def test_a_form_of_networks_and_sensors_that_was_drawn(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
