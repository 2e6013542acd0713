"""What drivers of network cards and PCIe say in the kernel's log. Pure.

Each row has its source in Linux (drivers/…): the text is the driver's own, the meaning ours. A
link that goes down and comes back is not here: the counters tell it, with its recovery. An error of
a driver that is in no row is a warning with the driver's own words: what is unknown is not mild.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sentinel.core.kernel_lines import PCI_ADDRESS_REGEX, is_trouble_line, parse_card_line
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import KernelLine

_MLX5_SOURCE = "drivers/net/ethernet/mellanox/mlx5/core"


class DriverMessage(Struct, frozen=True):
    """A text of a driver, how bad it is, and what it means."""

    drivers: tuple[str, ...]
    pattern: str
    """From the beginning of the driver's words on, whatever their capitals."""
    status: Status | None
    """None: it is no trouble of the card."""
    meaning: str
    source: str


MLX5, EFA, BNXT, ICE = (
    ("mlx5_core", "mlx5_pcie"),
    ("efa",),
    ("bnxt_en", "bnxt_re"),
    ("ice", "irdma"),
)

DRIVER_MESSAGES = (
    DriverMessage(
        MLX5,
        r".{0,120}\b(?:device's health compromised|health recovery (?:flow aborted|failed))",
        Status.CRITICAL,
        "the card's firmware does not work any more; reset the card or reboot the node",
        f"{_MLX5_SOURCE}/health.c",
    ),
    DriverMessage(
        MLX5,
        r".{0,120}\b(?:Fatal error \d+ detected|Health issue observed, .{0,80}severity\([0-3]\))",
        Status.CRITICAL,
        "the card reports a fatal error; reset the card or reboot the node",
        f"{_MLX5_SOURCE}/health.c",
    ),
    DriverMessage(
        MLX5,
        r".{0,120}\bPort module event\[error\]",
        Status.WARNING,
        "the cable or transceiver has an error; reseat or replace it",
        f"{_MLX5_SOURCE}/events.c",
    ),
    DriverMessage(
        MLX5,
        r".{0,120}\bHigh temperature on sensors",
        Status.WARNING,
        "the card is too hot; look at fans and airflow",
        f"{_MLX5_SOURCE}/events.c",
    ),
    DriverMessage(
        MLX5,
        r".{0,120}\bDetected insufficient power on the PCIe slot",
        Status.WARNING,
        "the slot gives the card too little power",
        f"{_MLX5_SOURCE}/events.c",
    ),
    DriverMessage(
        MLX5,
        r".{0,120}\btimeout\. Will cause a leak of a command resource",
        Status.WARNING,
        "the card's firmware did not answer a command; where it goes on, reset the card",
        f"{_MLX5_SOURCE}/cmd.c",
    ),
    DriverMessage(
        MLX5,
        r".{0,120}\b(?:failed, status (?:bad|limits exceeded|not supported)|dump(?: error |_)cqe)",
        None,
        "the answer to a wrong request of a program",
        f"{_MLX5_SOURCE}/cmd.c",
    ),
    DriverMessage(
        MLX5,
        r"print_health_info:\d{1,6}:\(pid \d{1,10}\): (?!Health issue)",
        None,
        "a detail of the health issue that stands above it",
        f"{_MLX5_SOURCE}/health.c",
    ),
    DriverMessage(
        BNXT,
        r".{0,80}\b(?:Firmware not responding|Detected firmware fatal condition)",
        Status.CRITICAL,
        "the card's firmware does not work any more; reset the card or reboot the node",
        "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
    ),
    DriverMessage(
        ICE,
        r".{0,80}\b(?:PCI error|Firmware has entered recovery mode)",
        Status.WARNING,
        "the card's firmware or PCIe link has failed; reset the card or reboot the node",
        "drivers/net/ethernet/intel/ice/ice_main.c",
    ),
    DriverMessage(
        EFA,
        r"(?:admin queue is closed|Reading (?:request|register) timed out"
        r"|Wait for completion \(polling\) timeout|The device (?:sent a completion|didn't send))",
        Status.WARNING,
        "the adapter does not answer its driver; reboot the instance, or ask for another",
        "drivers/infiniband/hw/efa/efa_com.c",
    ),
    DriverMessage(
        EFA,
        r"Failed to (?:register mr|create|reg(?:ister)?_?mr|process command (?:CREATE|REG|ALLOC))",
        None,
        "the answer to a wrong request of a program",
        "drivers/infiniband/hw/efa/efa_verbs.c",
    ),
    DriverMessage(
        (*MLX5, *BNXT, *ICE, *EFA),
        r"(?:NIC )?Link (?:is )?(?:down|up)\b",
        None,
        "the state of a link, which is read itself",
        "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
    ),
)

_COMPILED_MESSAGES = [(row, re.compile(row.pattern, re.IGNORECASE)) for row in DRIVER_MESSAGES]
_JUDGED_DRIVERS = frozenset(driver for row in DRIVER_MESSAGES for driver in row.drivers)

UNKNOWN_ERROR_TEXT = "the driver reports an error that is not known here"

_INFINIBAND_PATTERN = re.compile(
    r"infiniband ((?:mlx5|efa|rdmap|bnxt_re|irdma|rocep|ibp)[\w-]{0,40}): (.*)"
)
"""dev_printk() of an RDMA device that is not registered yet, or not any more."""
_DRIVERS_BY_PREFIX = {"mlx5": MLX5, "efa": EFA, "rdmap": EFA, "bnxt_re": BNXT, "irdma": ICE}
"""Whose an RDMA device is, by how its name begins; other names are given by udev."""

_MLX5_PART_PATTERN = re.compile(
    rf"mlx5_(?:core|ib)\.[a-z]{{1,20}} (mlx5_core\.[a-z]{{1,20}}\.[0-9]{{1,9}}): (.*)"
    rf"|mlx5_core: (?=probe of ({PCI_ADDRESS_REGEX}) failed)(.*)"
)
"""mlx5's parts on the auxiliary bus, and a card for which the driver could not start."""

_PCIE_ERROR_PATTERN = re.compile(
    rf"[a-z][\w-]{{1,30}} ({PCI_ADDRESS_REGEX}): (?:AER: )?(?:"
    r"PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)"
    r"|(?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error)"
)
"""Whatever driver has the device: what follows its address is the kernel's own text alone."""
PCIE_MEANING = "a PCIe link has failed; reseat the card, look at slot and riser"
"""drivers/pci/pcie/aer.c."""


def find_driver_errors(lines: Iterable[KernelLine]) -> Iterator[tuple[str, Status, str]]:
    """For each record that tells of trouble: the card's PCI address, or the name of its RDMA
    device, how bad it is, and why."""
    for line in lines:
        first = line.text.partition("\n")[0]
        if found := _PCIE_ERROR_PATTERN.match(first):
            yield found[1], Status.WARNING, _format_driver_error(PCIE_MEANING, first)
        elif speaker := _parse_driver_line(first):
            card, drivers, said = speaker
            if (judged := _judge_driver_line(drivers, said, line.level)) is not None:
                yield card, judged[0], _format_driver_error(judged[1], first)


def _parse_driver_line(text: str) -> tuple[str, tuple[str, ...], str] | None:
    """Card, the drivers that it may have, and their words."""
    if found := parse_card_line(text):
        driver, card, said = found
        return (card, (driver,), said) if driver in _JUDGED_DRIVERS else None
    if other := _MLX5_PART_PATTERN.match(text):
        return other[1] or other[3], MLX5, other[2] or other[4]
    if found_name := _INFINIBAND_PATTERN.match(text):
        name = found_name[1]
        drivers = next(
            (d for head, d in _DRIVERS_BY_PREFIX.items() if name.startswith(head)),
            tuple(_JUDGED_DRIVERS),
        )
        return name, drivers, found_name[2]
    return None


def _judge_driver_line(
    drivers: tuple[str, ...], said: str, level: int | None
) -> tuple[Status, str] | None:
    for row, pattern in _COMPILED_MESSAGES:
        if not set(drivers).isdisjoint(row.drivers) and pattern.match(said):
            return None if row.status is None else (row.status, row.meaning)
    return (Status.WARNING, UNKNOWN_ERROR_TEXT) if is_trouble_line(level, said) else None


def _format_driver_error(meaning: str, text: str) -> str:
    return f"{meaning} ({shortened(visible(text.strip()), 160)})"
