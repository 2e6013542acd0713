"""What drivers of network cards and PCIe say in the kernel's log. Pure.

Each row has its source in Linux (drivers/…): the text is the driver's own, the meaning ours. A link
that goes down and comes back is not here: the counters tell it, with its recovery.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import KernelLine


class Row(Struct, frozen=True):
    """A text of a driver, how bad it is, and what it means."""

    pattern: str
    status: Status
    meaning: str
    source: str


ROWS = (
    Row(
        r"(?:mlx5_core|mlx5_pcie).*(?:device's health compromised|health recovery (?:flow aborted|failed))",
        Status.CRITICAL,
        "the card's firmware does not work any more; reset the card or reboot the node",
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
    ),
    Row(
        r"mlx5_core.*Fatal error \d+ detected",
        Status.CRITICAL,
        "the card reports a fatal error; reset the card or reboot the node",
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
    ),
    Row(
        r"mlx5_core.*Port module event\[error\]",
        Status.WARNING,
        "the cable or transceiver has an error; reseat or replace it",
        "drivers/net/ethernet/mellanox/mlx5/core/events.c",
    ),
    Row(
        r"mlx5_core.*High temperature on sensors",
        Status.WARNING,
        "the card is too hot; look at fans and airflow",
        "drivers/net/ethernet/mellanox/mlx5/core/events.c",
    ),
    Row(
        r"mlx5_core.*Detected insufficient power on the PCIe slot",
        Status.WARNING,
        "the slot gives the card too little power",
        "drivers/net/ethernet/mellanox/mlx5/core/events.c",
    ),
    Row(
        r"bnxt_en.*(?:Firmware not responding|Detected firmware fatal condition)",
        Status.CRITICAL,
        "the card's firmware does not work any more; reset the card or reboot the node",
        "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
    ),
    Row(
        r"(?:irdma|ice) .*(?:PCI error|Firmware has entered recovery mode)",
        Status.WARNING,
        "the card's firmware or PCIe link has failed; reset the card or reboot the node",
        "drivers/net/ethernet/intel/ice/ice_main.c",
    ),
    Row(
        r"\befa\b.*(?:admin queue is closed|Reading request timed out|Wait for completion \(polling\) timeout)",
        Status.WARNING,
        "the adapter does not answer its driver; reboot the instance, or ask for another",
        "drivers/infiniband/hw/efa/efa_com.c",
    ),
    Row(
        r"PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)|AER: Uncorrect(?:ed|able) \(Fatal\) error",
        Status.WARNING,
        "a PCIe link has failed; reseat the card, look at slot and riser",
        "drivers/pci/pcie/aer.c",
    ),
)

_ANY = re.compile("|".join(f"(?P<row{n}>{row.pattern})" for n, row in enumerate(ROWS)))
_ADDRESS = re.compile(r"\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b")


def troubles(lines: Iterable[KernelLine]) -> Iterator[tuple[str, Status, str]]:
    """For each line of a row: the card's PCI address (empty if it has none), how bad, and why."""
    for line in lines:
        match = _ANY.search(line.text)
        if match is None:
            continue
        row = ROWS[int((match.lastgroup or "row0").removeprefix("row"))]
        at = _ADDRESS.search(line.text)
        said = shortened(visible(line.text.strip()), 160)
        yield at[1] if at else "", row.status, f"{row.meaning} ({said})"
