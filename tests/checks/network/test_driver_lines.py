"""What drivers of cards say: by their own prefix alone, and what is unknown is not mild."""

import re

import pytest

from sentinel.checks.network.driver_lines import (
    DRIVER_MESSAGES,
    UNKNOWN_ERROR_TEXT,
    find_driver_errors,
)
from sentinel.core.model import Status
from sentinel.nodes.probe import KernelLine

MLX5, EFA = "mlx5_core 0000:5e:00.0: ", "efa 0000:1e:00.0 rdmap30s0: "
WARNING, CRITICAL = Status.WARNING, Status.CRITICAL


def judged(text: str, level: int | None = 3) -> list[tuple[str, Status]]:
    lines = [KernelLine(at=1.0, level=level, text=text)]
    return [(card, status) for card, status, _ in find_driver_errors(lines)]


@pytest.mark.parametrize("level", [3, None])
@pytest.mark.parametrize(
    ("text", "card", "status"),
    [
        (MLX5 + "poll_health:967:(pid 0): Fatal error 3 detected", "0000:5e:00.0", CRITICAL),
        (
            MLX5 + "print_health_info:455:(pid 0): Health issue observed, high temperature, "
            "severity(3) ERROR:",
            "0000:5e:00.0",
            CRITICAL,
        ),
        (
            MLX5 + "print_health_info:455:(pid 0): Health issue observed, fan, severity(4) WARNING:",
            "",
            None,
        ),
        (
            MLX5 + "wait_func:1195:(pid 7): ACCESS_REG(0x805) timeout. Will cause a leak of a "
            "command resource",
            "0000:5e:00.0",
            WARNING,
        ),
        (MLX5 + "mlx5_pcie_event:301:(pid 7): Detected insufficient power on the PCIe slot (27W).", "0000:5e:00.0", WARNING),
        ("mlx5_core 0000:5e:00.0 eth4: TX timeout detected", "0000:5e:00.0", WARNING),
        ("mlx5_core 0000:5e:00.0 (unnamed net_device) (uninitialized): alloc failed", "0000:5e:00.0", WARNING),
        (EFA + "Admin queue is closed", "0000:1e:00.0", WARNING),
        (EFA + "Reading register timed out. expected: req id[12] offset[0x54]", "0000:1e:00.0", WARNING),
        (EFA + "a fault of the future: error 7", "0000:1e:00.0", WARNING),
        ("infiniband rdmap30s0: Wait for completion (polling) timeout", "rdmap30s0", WARNING),
        ("mlx5_core: probe of 0000:01:00.0 failed with error -22", "0000:01:00.0", WARNING),
        ("mlx5_core.eth mlx5_core.eth.0: mlx5e_probe:6040:(pid 7): mlx5e_resume failed, -12", "mlx5_core.eth.0", WARNING),
        ("infiniband mlx5_3: mlx5_ib_dev_res_init failed", "mlx5_3", WARNING),
        ("bnxt_en 0000:18:00.0 ens1f0np0: Firmware not responding, status: 0x1", "0000:18:00.0", CRITICAL),
        ("ice 0000:18:00.0: PCI error detected, state 2", "0000:18:00.0", WARNING),
        ("nvme 0000:3b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer", "0000:3b:00.0", WARNING),
        ("pcieport 0000:3a:00.0: AER: Uncorrectable (Fatal) error message received from 0000:3b:00.0", "0000:3a:00.0", WARNING),
        ("ixgbe 0000:01:00.0 eth0: initiating reset due to tx timeout", "0000:01:00.0", WARNING),
        ("NETDEV WATCHDOG: ib0 (mlx5_core): transmit queue 3 timed out", "ib0", WARNING),
        (MLX5 + "mlx5_cmd_out_err:838:(pid 7): QUERY_HCA_CAP(0x100) op_mod(0x1) failed, status internal error(0x1)", "0000:5e:00.0", WARNING),
        (EFA + "Failed to process command DESTROY_QP (opcode 4) comp_status 0 err -62", "0000:1e:00.0", WARNING),
        (EFA + "Failed to process command CREATE_QP (opcode 1) comp_status 6 err -22", "0000:1e:00.0", WARNING),
        (EFA + "Failed to process command CREATE_QP (opcode 1) comp_status 9 err -22", "0000:1e:00.0", WARNING),
        (EFA + "Failed to process command CREATE_QP (opcode 1) comp_status 5 err -22", "", None),
        (MLX5 + "mlx5_cmd_out_err:838:(pid 7): CREATE_QP(0x500) op_mod(0x0) failed, status a word of the future(0x60), syndrome (0x1), err(-5)", "0000:5e:00.0", WARNING),
        (MLX5 + "mlx5_cmd_out_err:838:(pid 7): CREATE_QP(0x500) op_mod(0x0) failed, status bad system state(0x4), syndrome (0x1), err(-5)", "0000:5e:00.0", WARNING),
        (MLX5 + "mlx5_cmd_out_err:838:(pid 7): CREATE_QP(0x500) op_mod(0x0) failed, status limits exceeded(0x8), syndrome (0x1), err(-12)", "", None),
        ("bnxt_en 0000:18:00.0 ens1f0np0: hwrm req_type 0x90 seq id 0x3 error 0xb", "0000:18:00.0", WARNING),
        ("bnxt_en 0000:18:00.0 ens1f0np0: hwrm req_type 0x90 seq id 0x3 error 0x77", "0000:18:00.0", WARNING),
        ("bnxt_en 0000:18:00.0 ens1f0np0: hwrm req_type 0x90 seq id 0x3 error 0x2", "", None),
        ("bnxt_en 0000:18:00.0 ens1f0np0: Error (timeout: 5000) msg {0x15 0x8d} len:0", "0000:18:00.0", WARNING),
        # healthy controls: answers to programs, details, states of links, other drivers
        (MLX5 + "mlx5_cmd_out_err:838:(pid 7): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3), syndrome (0x6c4d48), err(-22)", "", None),
        (MLX5 + "print_health_info:459:(pid 0): synd 0x8: unrecoverable hardware error", "", None),
        ("mlx5_core 0000:5e:00.0 mlx5_0: dump_cqe:278:(pid 7): dump error cqe", "", None),
        ("bnxt_en 0000:18:00.0 ens1f0np0: NIC Link is Down", "", None),
        (EFA + "Failed to register mr [-12]", "", None),
        ("ixgbe 0000:01:00.0 eth0: NIC Link is Down", "", None),
        ("i40e 0000:01:00.0: PCI-Express bandwidth available for this device may be insufficient for optimal performance.", "", None),
        ("igb 0000:02:00.0: added PHC on eth0", None, None),
        ("e1000e 0000:00:1f.6: Interrupt Throttling Rate (ints/sec) set to dynamic conservative mode", None, None),
        ("tg3 0000:02:00.0 eth0: attached PHY is 5720C (10/100/1000Base-T Ethernet) (WireSpeed[1], EEE[1])", None, None),
        ("ena 0000:00:05.0: ENA device version: 0.10", None, None),
        ("nvme 0000:3b:00.0: Identify Descriptors failed", "", None),
        ("pcieport 0000:3a:00.0: AER: device recovery successful", "", None),
        ("xhci_hcd 0000:97:00.0: AER: can't recover (no error_detected callback)", "", None),
    ],
)  # fmt: skip
def test_what_drivers_say(
    text: str, card: str | None, status: Status | None, level: int | None
) -> None:
    """Also where the log tells no level: then its words decide, if a card's address is in it."""
    if status is None and "severity(4)" in text:
        level = 4
    if card is None:  # said at each start, as information
        level = level and 6
    counts = status and (level is not None or re.search(r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", text))
    assert judged(text, level) == ([(card, status)] if counts else [])


@pytest.mark.parametrize(
    ("line", "card", "real"),
    [
        ("NETDEV WATCHDOG: ib0 (mlx5_core): transmit queue 3 timed out", "ib0", 4),
        ("infiniband rdmap30s0: Wait for completion (polling) timeout", "rdmap30s0", 3),
        ("infiniband mlx5: mlx5_ib_dev_res_init failed", "mlx5", 3),
    ],
)
def test_a_line_without_an_address_counts_by_its_level(line: str, card: str, real: int) -> None:
    """`infiniband mlx5` is as long as the name of a process may be."""
    assert judged(line, real) == [(card, WARNING)]
    assert judged(line, 6) == judged(line, None) == []


def test_a_driver_and_an_address_are_longer_than_a_name() -> None:
    """15 bytes of a name hold two letters and an address."""
    said = "0000:3b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=x"
    assert judged(f"aa {said}") == []
    assert judged(f"ice {said}") == [("0000:3b:00.0", WARNING)]


HOT = "Chip temperature has gone {} the {} thermal threshold!"


@pytest.mark.parametrize("level", [4, None])
@pytest.mark.parametrize(
    ("driver", "said", "status"),
    [
        ("bnxt_en", HOT.format("above", "critical"), WARNING),
        ("bnxt_en", HOT.format("above", "warning"), WARNING),
        ("mlx5_core", "temp_warn:201:(pid 0): High temperature on sensors with bit set 0 1", WARNING),
        ("ixgbe", "Network adapter has been stopped because it has over heated. Restart the computer.", WARNING),
        ("igb", "The network adapter link speed was downshifted because it overheated", WARNING),
        # the controls: it is cooler again, and what was measured
        ("bnxt_en", HOT.format("below", "critical"), None),
        ("bnxt_en", "Temperature (In Celsius), Current: 101, threshold: 105", None),
        ("ice", "temperature sensor registered", None),
    ],
)  # fmt: skip
def test_a_card_that_is_too_hot(
    driver: str, said: str, status: Status | None, level: int | None
) -> None:
    """Broadcom's driver and Intel's warn of it as Mellanox's does (bnxt.c, ixgbe_main.c, igb_main.c in Linux)."""
    told = judged(f"{driver} 0000:3b:00.0 ens1f0np0: {said}", level)
    assert told == ([("0000:3b:00.0", status)] if status else [])


def test_an_unknown_line_is_judged_by_its_level() -> None:
    """From warnings on it is mild, in whatever words; the words count only where no level is told."""
    for said in ("a fault of the future", "temperature error, card failed"):
        ((_, status, why),) = find_driver_errors([KernelLine(at=1.0, level=3, text=MLX5 + said)])
        assert (status, why.startswith(UNKNOWN_ERROR_TEXT), said in why) == (WARNING, True, True)
        assert judged(MLX5 + said, 4) == judged(MLX5 + said, 6) == []
    assert judged(MLX5 + "firmware version: 28.39.1002", None) == []
    assert judged("mlx5_core 0000:5e:00.0 eth4: Link up", None) == []


@pytest.mark.parametrize(
    "text",
    [
        # names of processes (15 bytes) and of files
        "mlx5_core 0000:[7]: segfault at 0 error 4 in 5e:00.0: Fatal error 3 detected[4+1]",
        "mlx5_core[7]: segfault at 0 error 4 in Fatal error 3 detected[4+1]",
        "efa 0000:1e:00.[7]: segfault at 0 error 4 in 0: Admin queue is closed[4+1]",
        "x 0000:01:00.0:[7]: segfault at 0 error 4 in PCIe Bus Error: severity=Uncorrectable (Fatal)",
        "infiniband mlx5[7]: segfault at 0 error 4 in _0: mlx5_ib_dev_res_init failed[4+1]",
        "process 'mlx5_core 0000:5e:00.0: Fatal error 3 detected' started with executable stack",
        "overlayfs: x\nmlx5_core 0000:5e:00.0: poll_health:967:(pid 0): Fatal error 3 detected",
        "\nefa 0000:1e:00.0 rdmap30s0: Admin queue is closed",
    ],
)
def test_a_line_counts_only_from_its_driver(text: str) -> None:
    """Users choose names of processes and files; the kernel puts them into its records."""
    assert judged(text) == judged(text, None) == []


@pytest.mark.parametrize(
    "whole",
    [
        MLX5 + "poll_health:967:(pid 0): Fatal error 3 detected",
        "infiniband mlx5_3: mlx5_ib_dev_res_init failed",
        "mlx5_core.eth mlx5_core.eth.0: mlx5e_probe:6040:(pid 7): mlx5e_resume failed, -12",
        "mlx5_core: probe of 0000:01:00.0 failed with error -22",
        "nvme 0000:3b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer",
    ],
)
@pytest.mark.parametrize("name", ["mlx5_core 0000:", "infiniband mlx5", "x 0000:01:00.0:", "nvme"])
def test_a_driver_in_the_name_of_a_program_and_of_its_file(name: str, whole: str) -> None:
    """As Linux reports a program that crashes; the driver's own line is the control."""
    crash = f"{name}[31286]: segfault at 0 ip 000055ac sp 00007ffd error 6 in {whole}[1132+1000]"
    assert judged(crash, 6) == judged(crash, None) == []
    assert judged(whole)


def test_every_row_says_where_it_comes_from() -> None:
    """A file of Linux, and what it means."""
    assert all(row.source.startswith("drivers/") and row.meaning for row in DRIVER_MESSAGES)
