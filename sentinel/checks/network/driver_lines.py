"""Judges what drivers of network cards and PCIe write into the kernel's log. Pure.

Each row names its source in Linux (drivers/…): the text is the driver's, the meaning is ours. A
link that goes down and comes back is not here, since the counters show that and its recovery. An
error that is in no row is a warning with the driver's own words: an unknown error is never
harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sentinel.core.kernel_lines import (
    NETWORK_DRIVERS,
    PCI_ADDRESS_REGEX,
    is_trouble_line,
    is_warning,
    parse_card_line,
)
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import KernelLine

_MLX5_SOURCE = "drivers/net/ethernet/mellanox/mlx5/core"


class DriverMessage(Struct, frozen=True):
    """A text of a driver, how bad it is, and what it means."""

    drivers: tuple[str, ...]  # Names of the drivers that print it.
    pattern: str
    """Matches from the beginning of the driver's words, in upper or lower case."""
    status: Status | None
    """None: the message is not about a trouble of the card."""
    meaning: str  # What it means, for people.
    source: str  # The driver's source file.


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
        # The MLX5_CMD_STAT_* codes that a program's wrong request causes. Left out on purpose:
        # 0x1 (internal error), 0x4 (bad system state) and every number that is not known.
        r".{0,120}\b(?:failed, status [a-z ]{1,40}\(0x(?:[235689af]|10|30|40|50|51)\)"
        r"|failed, status not supported|dump(?: error |_)cqe)",
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
        BNXT,
        # The HWRM_ERR_CODE_* codes that a program's wrong request causes. Left out on purpose:
        # 0x1 (fail), 0xa and 0xb (hot reset), 0xf, 0x12, 0x13 and every number that is not known.
        r"hwrm req_type 0x[0-9a-f]{1,8} seq id 0x[0-9a-f]{1,8} error 0x0{0,3}(?:[2-9cde]|1[01]|ffff)\b",
        None,
        "the answer to a wrong request of a program",
        "drivers/net/ethernet/broadcom/bnxt/bnxt_hwrm.c",
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
        # EFA_ADMIN_*: 6 means "unknown error"; 0 means that the device did not answer in time.
        r"Failed to (?:register mr|create|reg(?:ister)?_?mr"
        r"|process command \w{1,40} \(opcode [0-9]{1,5}\) comp_status [123457] err )",
        None,
        "the answer to a wrong request of a program",
        "drivers/infiniband/hw/efa/efa_verbs.c",
    ),
    DriverMessage(
        NETWORK_DRIVERS,
        r".{0,120}\b(?:High temperature on|temperature has gone above|over ?heat)",
        Status.WARNING,
        "the card is too hot; look at fans and airflow",
        f"{_MLX5_SOURCE}/events.c, bnxt.c, ixgbe_main.c and igb_main.c",
    ),
    DriverMessage(
        BNXT,
        r"Chip temperature has gone below",
        None,
        "the card was too hot and is cooler again",
        "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
    ),
    DriverMessage(
        NETWORK_DRIVERS,
        r".{0,120}\bsufficient for optimal performance|.{0,120}\binsufficient for optimal performance",
        None,
        "a slot that is slower than the card, said at each start",
        "drivers/net/ethernet/intel/i40e/i40e_main.c",
    ),
    DriverMessage(
        NETWORK_DRIVERS,
        r"(?:NIC )?Link (?:is )?(?:down|up)\b",
        None,
        "the state of a link, which is read itself",
        "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
    ),
)

_COMPILED_MESSAGES = [(row, re.compile(row.pattern, re.IGNORECASE)) for row in DRIVER_MESSAGES]

UNKNOWN_ERROR_TEXT = "the driver reports an error that sentinel does not know"

_INFINIBAND_PATTERN = re.compile(
    r"infiniband ((?:mlx5|efa|rdmap|bnxt_re|irdma|rocep|ibp)[\w-]{0,40}): (.*)"
)
"""Matches lines that dev_printk() writes about an RDMA device that is not registered yet, or no
longer."""
_DRIVERS_BY_PREFIX = {"mlx5": MLX5, "efa": EFA, "rdmap": EFA, "bnxt_re": BNXT, "irdma": ICE}
"""Drivers of an RDMA device by the beginning of its name; udev gives other names."""

_MLX5_PART_PATTERN = re.compile(
    rf"mlx5_(?:core|ib)\.[a-z]{{1,20}} (mlx5_core\.[a-z]{{1,20}}\.[0-9]{{1,9}}): (.*)"
    rf"|mlx5_core: (?=probe of ({PCI_ADDRESS_REGEX}) failed)(.*)"
)
"""Matches lines about mlx5's parts on the auxiliary bus, and about a card for which the driver
could not start."""

_PCIE_ERROR_PATTERN = re.compile(
    rf"[a-z][\w-]{{2,30}} ({PCI_ADDRESS_REGEX}): (?:AER: )?(?:"
    r"PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)"
    r"|(?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error"
    r"|device recovery failed|DPC: containment event)"
)
"""Matches lines of any driver, because the text after the address is written by the kernel itself.
With a name of three letters driver and address are longer than a process's name."""
PCIE_MEANING = "a PCIe link has failed; reseat the card, look at slot and riser"
"""drivers/pci/pcie/aer.c, err.c and dpc.c."""

_QUEUE_PATTERN = re.compile(
    rf"(?:[a-z][\w-]{{2,30}} ({PCI_ADDRESS_REGEX}) [^\s:()]{{1,63}}: NETDEV WATCHDOG: CPU: [0-9]{{1,5}}: "
    r"|NETDEV WATCHDOG: ([^\s:()]{1,63}) \([^\s()]{1,31}\): )transmit queue [0-9]{1,5} timed out"
)
"""Matches for any driver: dev_watchdog() in net/sched/sch_generic.c, before Linux 6.8 without the
card."""
QUEUE_MEANING = "the card sent nothing for seconds; its driver resets it"


def find_driver_errors(lines: Iterable[KernelLine]) -> Iterator[tuple[str, Status, str]]:
    """For each record about a trouble: the card's PCI address, or the name of its RDMA device, the
    status, and the reason."""
    for line in lines:
        first = line.text.partition("\n")[0]
        if found := _PCIE_ERROR_PATTERN.match(first):
            yield found[1], Status.WARNING, _format_driver_error(PCIE_MEANING, first)
        elif found := _QUEUE_PATTERN.match(first):
            card = found[1] or found[2]
            if not found[1] and not is_warning(line.level):
                continue
            yield card, Status.WARNING, _format_driver_error(QUEUE_MEANING, first)
        elif speaker := _parse_driver_line(first):
            card, drivers, said = speaker
            if not re.fullmatch(PCI_ADDRESS_REGEX, card) and not is_warning(line.level):
                continue
            if (judged := _judge_driver_line(drivers, said, line.level)) is not None:
                yield card, judged[0], _format_driver_error(judged[1], first)


def _parse_driver_line(text: str) -> tuple[str, tuple[str, ...], str] | None:
    """The card, its possible drivers, and their words; None for any other line."""
    if found := parse_card_line(text):
        driver, card, said = found
        return card, (driver,), said
    if other := _MLX5_PART_PATTERN.match(text):
        return other[1] or other[3], MLX5, other[2] or other[4]
    if found_name := _INFINIBAND_PATTERN.match(text):
        name = found_name[1]
        drivers = next(
            (d for head, d in _DRIVERS_BY_PREFIX.items() if name.startswith(head)),
            NETWORK_DRIVERS,
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
