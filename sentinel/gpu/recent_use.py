"""Reads `nvidia-smi -q -d UTILIZATION`: how busy each GPU was in the last seconds. Pure.

The driver keeps a sample every 0.2 seconds. On an H200 with driver 580 that reached 14 seconds back. A
program that computes for one second of ten showed 0 % in 19 of 22 single readings, and its peak in
these samples always."""

from sentinel.gpu.bus import bus_id
from sentinel.gpu.quantities import number
from sentinel.gpu.smi_tree import from_text

_PLACES = ("utilization/gpu_util", "gpu_utilization_samples/max")


def parse_peak_use(text: str) -> dict[str, float]:
    """The highest utilization of each GPU in percent, by bus id. A GPU that does not report it is left
    out. Raises Unreadable."""
    found: dict[str, float] = {}
    for node in from_text(text).all("gpu"):
        values = [value for path in _PLACES if (value := number(node.at(path))) is not None]
        if values:
            found[bus_id(node.mark)] = max(values)
    return found
