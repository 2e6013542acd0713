"""What takes a node out: every error of DCGM, and Xids, with the right answer written down before the program ran.

`sources/dcgm-errors.txt`: number, severity, category and words of each error of dcgmi diag, from
https://github.com/NVIDIA/DCGM, dcgmlib/dcgm_errors.h and src/dcgm_errors.c of 4.6.0.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel.gpu.dcgm import Ran, judge
from tests.lab.gpus import Failure, dcgmi_json, dcgmi_table
from tests.world.gpu_answers import MILD, advice

ROWS = [
    (int(number), int(severity), int(category), text)
    for line in (Path(__file__).parent / "sources" / "dcgm-errors.txt").read_text().splitlines()
    for number, severity, category, text in [line.split(" ", 3)]
]

DRAINS = {
    *(3, 4, 6, 7, 8, 9, 13, 14, 15, 30, 31, 45, 50, 52, 57, 58, 62, 63, 70, 71, 79, 80, 81, 83, 84, 85),
    *(86, 87, 88, 95, 98, 99, 100, 103, 104, 106, 107, 109, 110, 111, 113, 114, 115, 116, 118, 119),
    *(120, 121, 125, 126, 127, 128, 132),
}  # fmt: skip
"""The numbers of what the device itself has: memory, links, speed, power, a lost GPU, NVIDIA's own wish."""

BY_TEXT = {5, 10, 11, 12, 16, 17, 40, 41, 42, 43, 61, 75, 76, 102, 105, 131}
"""Where the words alone tell less than the severity: whether they drain is not asked there."""


def failure(number: int, severity: int, category: int, text: str) -> Failure:
    return Failure(
        gpu=3, test="pcie", text=text, error_id=number, severity=severity, category=category
    )


@pytest.mark.parametrize(("number", "severity", "category", "text"), ROWS, ids=str)
def test_an_error_of_dcgm_drains_where_it_is_the_device_s_own(
    number: int, severity: int, category: int, text: str
) -> None:
    whole = dcgmi_json("4", [failure(number, severity, category, text)], level=3)
    found = judge(Ran(out=whole, code=226, level=3, gpus=8))
    right = "fail" if number in DRAINS else "inconclusive"
    assert (found.outcome, found.confirmed) == (right, right == "fail")


def test_the_words_alone_drain_nothing_that_the_number_does_not() -> None:
    """A table of an older DCGM has neither number nor severity."""
    drained = []
    for number, severity, category, text in ROWS:
        table = dcgmi_table([failure(number, severity, category, text)])
        outcome = judge(Ran(out=table, code=226, level=2, gpus=8)).outcome
        assert outcome in ("fail", "inconclusive")
        if outcome == "fail" and number not in DRAINS | BY_TEXT:
            drained.append((number, text))
    assert drained == []


def test_a_number_of_tomorrow_drains_nothing() -> None:
    for severity in range(9):
        for category in range(19):
            one = failure(200, severity, category, "Detected a condition of tomorrow for GPU 3")
            found = judge(Ran(out=dcgmi_json("4", [one], level=3), code=226, level=3, gpus=8))
            assert found.outcome == "inconclusive", (severity, category)


XIDS_OF_PROGRAMS = (
    *(8, 11, 13, 14, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 45, 60, 66, 67, 68, 69, 70, 71, 72, 75),
    *(76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 92, 93, 94, 96, 97, 98, 99, 100, 101, 102, 103, 104),
    *(105, 106, 107, 121, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137, 139, 141, 152, 153, 157),
)  # fmt: skip
"""RESTART_APP and IGNORE of https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html."""
XIDS_OF_DEVICES = (46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158)
"""RESET_GPU, RESTART_BM and the workflow of Xid 48 of the same."""


@pytest.mark.parametrize("code", XIDS_OF_PROGRAMS)
def test_an_xid_of_a_program_asks_nothing_of_the_device(code: int) -> None:
    assert advice(f"NVRM: Xid (PCI:0000:41:00): {code}, pid=311, name=python, Ch 00000001") == MILD


@pytest.mark.parametrize("code", XIDS_OF_DEVICES)
def test_an_xid_of_the_device_asks_for_more(code: int) -> None:
    said = advice(f"NVRM: Xid (PCI:0000:41:00): {code}, pid='<unknown>', name=<unknown>, x")
    assert said not in (MILD, "ask the vendor's support")


@pytest.mark.parametrize("code", [1, 21, 51, 58, 73, 178, 250, 999, 65535])
def test_an_xid_that_nobody_knows_is_neither_well_nor_a_drain(code: int) -> None:
    said = advice(f"NVRM: Xid (PCI:0000:41:00): {code}, pid=311, name=python, x")
    assert said == "ask the vendor's support"
