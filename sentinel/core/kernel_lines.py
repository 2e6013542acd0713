"""What is common to the readers of the kernel's log: how a device is named, and what is an error.

A line counts only from its driver. Users can put text into the kernel's log: the name of a process
(15 bytes) stands at the beginning of many records, the name of a file within them. So a pattern
begins at the beginning of the record with more than 15 bytes that only the driver prints, and has
no gap before them.
"""

from __future__ import annotations

import re

PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
"""A PCI function as dev_printk() names it."""

ERROR_LEVEL = 3
"""KERN_ERR; emergency, alert and critical are below it."""

_TROUBLE = re.compile(
    r"\b(?:err(?:or)?s?|fail(?:s|ed|ure|ures|ing)?|fatal|time(?:d ?|-)?out|hung|stuck|dead|lost"
    r"|un(?:recoverable|correctable|corrected)|corrupt(?:ed|ion)?|compromised|abort(?:s|ed|ing)?"
    r"|halt(?:s|ed)?|closed|exceed(?:s|ed)?|insufficient|critical|emergency|broken|bad)\b",
    re.IGNORECASE,
)


def tells_trouble(level: int | None, text: str) -> bool:
    """Whether a driver means an error: by the level where it is known, else by the words."""
    if level is not None:
        return level <= ERROR_LEVEL
    return bool(_TROUBLE.search(text))
