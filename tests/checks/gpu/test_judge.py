"""What one GPU says of itself, field by field: what is told, and what goes into the ledger."""

from typing import Any

import pytest

from sentinel.checks.gpu.judge import CRIT, WARN, events, problems, values
from sentinel.core.model import Status
from sentinel.gpu.model import Ecc, Gpu, RemappedRows, RetiredPages
from sentinel.testing import START


def gpu(**more: Any) -> Gpu:
    return Gpu(uuid="GPU-1", bus="0:1", **more)


def worst(**more: Any) -> str:
    """The status and how many problems there are."""
    found = list(problems(gpu(**more), WARN, CRIT))
    return f"{found[0][0].value} {len(found)}" if found else "nothing"


def ledger(**more: Any) -> list[tuple[str, str]]:
    return [(event.what, event.text) for event in events(gpu(**more), "n1", "boot", START)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"temperature": 84.9}, "nothing"),
        ({"temperature": 85}, "warning 1"),
        ({"temperature": 94.9}, "warning 1"),
        ({"temperature": 95}, "critical 1"),
        ({"memory_temperature": 94.9}, "nothing"),
        ({"memory_temperature": 95}, "warning 1"),
        ({"memory_temperature": 104.9}, "warning 1"),
        ({"memory_temperature": 105}, "critical 1"),
        ({"pcie_rx": 19_999e6}, "nothing"),
        ({"pcie_rx": 20_000e6}, "warning 1"),
        ({"remapped": RemappedRows(corrected=256, uncorrected=255)}, "nothing"),
        ({"remapped": RemappedRows(corrected=256, uncorrected=256)}, "critical 1"),
        ({"remapped": RemappedRows(corrected=512)}, "critical 1"),
        ({"remapped": RemappedRows()}, "nothing"),
        ({"remapped": RemappedRows(corrected=511)}, "nothing"),
        ({"remapped": RemappedRows(uncorrected=511)}, "nothing"),
        ({"retired": RetiredPages(single_bit=31, double_bit=31)}, "nothing"),
        ({"retired": RetiredPages(single_bit=31, double_bit=32)}, "critical 1"),
        ({"retired": RetiredPages(double_bit=63)}, "critical 1"),
        ({"retired": RetiredPages()}, "nothing"),
        ({"retired": RetiredPages(single_bit=62)}, "nothing"),
        ({"retired": RetiredPages(double_bit=62)}, "nothing"),
        ({"ecc_life": Ecc(sram_uncorrected=4)}, "nothing"),
        ({"ecc_life": Ecc(sram_uncorrected=5)}, "warning 1"),
        ({"ecc_life": Ecc(sram_uncorrected=5), "sram_threshold": True}, "critical 1"),
        ({"unrepairable": True}, "critical 1"),
        ({"repairs": ("channel",)}, "warning 1"),
        ({"ecc": Ecc(deferred=0, sram_uncorrected=0, dram_uncorrected=0)}, "nothing"),
        ({"ecc": Ecc(deferred=1)}, "warning 1"),
        ({"ecc": Ecc(sram_uncorrected=1)}, "warning 1"),
        ({"ecc": Ecc(dram_uncorrected=1)}, "warning 1"),
        ({"remapped": RemappedRows(failed=True)}, "critical 1"),
        ({"remapped": RemappedRows(pending=True)}, "warning 1"),
        ({"retired": RetiredPages(pending=True)}, "warning 1"),
        ({"throttled": ("sw_power_cap",)}, "nothing"),
        ({"throttled": ("sw_power_cap", "hw_slowdown")}, "warning 1"),
        ({"fabric": "In Progress"}, "warning 1"),
        ({"recovery": ""}, "nothing"),
        ({"recovery": "Reset"}, "critical 1"),
        ({"recovery": "Dance"}, "warning 1"),
        ({"remarks": ("one", "two")}, "warning 2"),
        ({"untold": ("ECC",)}, "unknown 1"),
    ],
)
def test_both_sides_of_each_bound(more: dict[str, Any], expected: str) -> None:
    """NVIDIA's thresholds count both kinds of rows, pages and errors together."""
    assert worst(**more) == expected


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ({"remapped": RemappedRows(failed=True)}, [("remap failed", "")]),
        (
            {"remapped": RemappedRows(pending=True, uncorrected=3)},
            [("remap pending", "3 uncorrectable rows")],
        ),
        ({"remapped": RemappedRows(pending=True)}, [("remap pending", "0 uncorrectable rows")]),
        ({"unrepairable": True}, [("memory unrepairable", "")]),
        ({"sram_threshold": True}, [("sram threshold", "")]),
        ({"retired": RetiredPages(double_bit=63)}, [("retired pages", "")]),
        ({"retired": RetiredPages(pending=True)}, [("retired pending", "")]),
        ({"repairs": ("channel", "tpc")}, [("repair pending", "channel, tpc")]),
        ({"ecc": Ecc(deferred=2)}, [("ecc deferred", "2 since the driver was loaded")]),
        (
            {"ecc": Ecc(dram_uncorrected=2, sram_uncorrected=3)},
            [("ecc uncorrected", "5 since the driver was loaded")],
        ),
        ({"recovery": "Reset"}, [("recovery Reset", "")]),
        ({"recovery": "Dance"}, [("recovery Dance", "")]),
        ({"recovery": "None"}, []),
        ({"answers": False, "troubles": ("a", "b", "c", "d")}, [("unreadable", "a; b; c")]),
        ({"troubles": ("a",)}, []),
        # told, but no event: a count of its life, all spare rows used
        ({"ecc_life": Ecc(sram_uncorrected=5)}, []),
        ({"remapped": RemappedRows(corrected=512)}, []),
    ],
)
def test_what_the_ledger_remembers(more: dict[str, Any], written: list[tuple[str, str]]) -> None:
    """Each fault by its name, so that a lemon is known; nothing of a GPU that is well."""
    assert ledger(**more) == written
    assert ledger() == []


def test_an_event_is_of_one_boot_and_one_count() -> None:
    """The same count again is the same event; a greater one is another."""
    two, three = (
        next(events(gpu(ecc=Ecc(dram_uncorrected=n)), "n1", "boot", START)) for n in (2, 3)
    )
    assert two.id == "boot GPU-1 ecc uncorrected 2 since the driver was loaded"
    assert (two.subject, two.node, two.at) == ("GPU-1", "n1", START)
    assert three.id != two.id


def test_what_a_message_has_of_it() -> None:
    """Every number that is known, DRAM and SRAM together; what was not told is left out."""
    full = gpu(
        temperature=41.0, power=71.5, utilization=3.0, memory_used=7,
        ecc=Ecc(dram_uncorrected=1, sram_uncorrected=2), ecc_life=Ecc(dram_uncorrected=4),
        remapped=RemappedRows(corrected=9, uncorrected=5), serial="S1", model="H100",
        fabric="In Progress",
    )  # fmt: skip
    assert values(full) == {
        "temperature_c": 41.0,
        "power_w": 71.5,
        "utilization_percent": 3.0,
        "memory_used_bytes": 7,
        "ecc_uncorrected": 3,
        "ecc_uncorrected_life": 4,
        "remapped_uncorrected": 5,
        "serial": "S1",
        "slot": "0:1",
        "model": "H100",
        "fabric": "In Progress",
    }
    assert values(gpu()) == {
        "ecc_uncorrected": 0,
        "ecc_uncorrected_life": 0,
        "slot": "0:1",
        "model": "",
    }


def test_nothing_is_wrong_with_a_gpu_that_tells_nothing_wrong() -> None:
    """The healthy control of all above."""
    assert list(problems(gpu(temperature=41.0, recovery="None"), WARN, CRIT)) == []
    found = list(problems(gpu(answers=False, troubles=("lost",)), WARN, CRIT))
    assert found == [(Status.CRITICAL, "does not answer properly (lost)")]
    found = list(problems(gpu(troubles=("power",)), WARN, CRIT))
    assert found == [(Status.WARNING, "answers, but 1 of its fields cannot be read (power)")]


def test_three_of_what_cannot_be_read_are_named_and_all_are_counted() -> None:
    many = ("a", "b", "c", "d")
    assert list(problems(gpu(troubles=many), WARN, CRIT)) == [
        (Status.WARNING, "answers, but 4 of its fields cannot be read (a; b; c)")
    ]
    slow = gpu(throttled=("hw_slowdown", "sw_power_cap", "hw_power_brake_slowdown"))
    assert list(problems(slow, WARN, CRIT)) == [
        (Status.WARNING, "slowed down by the hardware (hw_slowdown, hw_power_brake_slowdown)")
    ]
    fast = gpu(pcie_rx=20_500e6)
    assert list(problems(fast, WARN, CRIT)) == [
        (Status.WARNING, "receives over PCIe 20500 MB/s (warning from 20000 MB/s)")
    ]
