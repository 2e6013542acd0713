"""On a machine with a real NVIDIA GPU: NVML and nvidia-smi agree."""

import shutil
import subprocess

import pytest

from sentinel.checks.gpu import nvml
from sentinel.gpu import smi
from sentinel.gpu.nouns import Gpu

MOVING = frozenset(
    [
        "temperature",
        "memory_temperature",
        "power",
        "sm_clock",
        "memory_clock",
        "utilization",
        "pcie_rx",
        "memory_used",
        "pcie_generation",
    ]
)
"""What changes between two questions: both have to tell it, and that is all."""

ONLY_XML = frozenset(
    [
        "sram_threshold",
        "retired",
        "throttled",
        "fabric",
        "mig_devices",
        "recovery",
        "reset_required",
        "processes",
        "troubles",
        "pcie_generation_most",
        "memory_temperature",
        "pcie_rx",
    ]
)


def _text() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        pytest.skip("no NVIDIA GPU here (nvidia-smi is not installed)")
    done = subprocess.run([tool, "-q", "-x"], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(f"no NVIDIA GPU here: {done.stdout.strip()[:80]}")
    return done.stdout


def test_inventory_by_xml_and_by_nvml_agree_field_by_field() -> None:
    """Every field that both know."""
    by_xml, by_nvml = smi.parse(_text()), nvml.inventory()
    assert (by_xml.driver, len(by_xml.gpus)) == (by_nvml.driver, len(by_nvml.gpus))
    for one, two in zip(by_xml.gpus, by_nvml.gpus, strict=True):
        for name in Gpu.__struct_fields__:
            if name in ONLY_XML:
                continue
            left, right = getattr(one, name), getattr(two, name)
            if name in MOVING:
                assert (left is None) == (right is None), name
            else:
                assert left == right, name
