"""Writes PCI addresses in one form: that of `nvidia-smi`, `00000000:10:1C.0`."""

import re

_FORM = re.compile(
    r"(?:PCI:)?(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?"
)


def bus_id(text: str) -> str:
    """One form for `PCI:0000:10:1c`, `0000:10:1c.0` and `00000000:10:1C.0`; empty for other texts.

    The kernel leaves the function out; a GPU's is 0. A missing domain is 0, as in lspci."""
    match = _FORM.fullmatch(text.strip())
    if not match:
        return ""
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):08X}:{bus.upper()}:{device.upper()}.{function or 0}"
