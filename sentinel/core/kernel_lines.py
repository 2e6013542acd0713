"""Shared by the readers of the kernel's log: how a device is named, and which lines are errors.

A line counts only if a driver wrote it. Users can put text into the kernel's log: many records
begin with the name of a process (15 bytes), or contain the name of a file. So every pattern matches
from the beginning of the record, and first of all more than 15 bytes that only the driver prints.
A line without the address of a device counts only if its level is known and that of a warning or
worse.
"""

from __future__ import annotations

import re

PCI_ADDRESS_REGEX = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
"""A PCI function as dev_printk() names it."""

NETWORK_DRIVERS = (
    *("mlx5_core", "mlx5_pcie", "mlx4_core", "bnxt_en", "bnxt_re", "ice", "irdma", "efa", "ena"),
    *("i40e", "iavf", "ixgbe", "igb", "igc", "e1000e", "tg3", "be2net", "qede", "cxgb4", "hfi1"),
)
"""Drivers of network cards. Each name has at least three letters, so that a driver's name and the
address of its card are more than 15 bytes."""

_CARD_LINE_PATTERN = re.compile(
    rf"({'|'.join(NETWORK_DRIVERS)}) ({PCI_ADDRESS_REGEX})"
    r"(?: (?:[^\s:()]{1,63}|\(unnamed net_device\))(?: \([a-z ]{1,20}\))?)?: (.*)"
)
"""dev_printk(), netdev_printk() and ibdev_printk(): driver, address, and the card's other name."""


def parse_card_line(text: str) -> tuple[str, str, str] | None:
    """Driver, PCI address and message if the first line is from a driver of network cards, else
    None."""
    found = _CARD_LINE_PATTERN.match(text)
    return (found[1], found[2], found[3]) if found else None


ERROR_LEVEL = 3
"""KERN_ERR; emergency, alert and critical are below it."""
WARNING_LEVEL = 4
"""KERN_WARNING. The kernel reports a process that crashes with KERN_INFO, with its name first and
its file behind. What it warns of by a process's name goes on in words of the kernel alone."""


def is_warning(level: int | None) -> bool:
    """Whether the kernel wrote the line as a warning or worse. False if its level is not known."""
    return level is not None and level <= WARNING_LEVEL


_TROUBLE_PATTERN = re.compile(
    r"(?<![a-z])(?:err(?:or)?s?|fail(?:s|ed|ure|ures|ing)?|fatal|time(?:d ?|-)?out|hung|stuck|dead|lost"
    r"|un(?:recoverable|correctable|corrected)|corrupt(?:ed|ion)?|compromised|abort(?:s|ed|ing)?"
    r"|hang|reset adapter|halt(?:s|ed)?|closed|exceed(?:s|ed)?|insufficient|critical|emergency|broken|bad)(?![a-z])",
    re.IGNORECASE,
)
"""Words, also as parts of a name such as `tx_timeout`."""


def is_trouble_line(level: int | None, text: str) -> bool:
    """Whether a driver's line is an error: by its level if that is known, else by its words."""
    if level is not None:
        return level <= ERROR_LEVEL
    return bool(_TROUBLE_PATTERN.search(text))
