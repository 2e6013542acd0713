"""Hundreds of made-up forms of dcgmi diag: what drains a node, or keeps one in service, is tried on
more than a few examples.

The answers stand here in another form than in the program: a rule of a few lines and a list.
"""

import itertools
import json
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from sentinel.gpu.dcgm import Ran, Verdict, judge
from tests.lab.gpus import Failure, dcgmi_json, dcgmi_table


class Said(NamedTuple):
    """A message of dcgmi with its number. `proves`: it names a fault of the hardware, by number and
    words; `in_a_table`: by its words alone, as a table has no numbers."""

    error_id: int
    text: str
    proves: bool
    in_a_table: bool


MESSAGES = (
    Said(52, "Found 3 faulty memory elements on GPU 1", True, True),
    Said(58, "A memory mismatch was detected on GPU 1, but no error was reported", True, True),
    Said(14, "GPU 1's NvLink link 4 is currently down", True, True),
    Said(80, "Row remapping failed. GPU 1", True, True),
    Said(85, "Row remappings are pending on GPU 1", True, True),
    Said(120, "GPU 1 has fallen off the bus", True, True),
    Said(101, "Detected XID 79 for GPU 1", True, True),
    Said(101, "Detected XID 145 for GPU 1", False, False),
    Said(101, "Detected XID 31 for GPU 1", False, False),
    Said(101, "Detected XID 4711 for GPU 1", False, False),
    Said(33, "Detected 2 ecc_dbe_volatile_total for GPU 1", True, False),
    Said(38, "The memory copy utilization for the GPU: 1 is greater than 10%.", False, False),
    Said(29, "Persistence mode for GPU 1 is disabled.", False, False),
    Said(47, "Test was aborted early due to user signal", False, False),
    Said(51, "Error using CUDA API cuInit 'unspecified launch failure'", False, False),
    Said(129, "Output missing expected result lines", False, False),
    Said(133, "GPU 1 said something of tomorrow", False, False),
    Said(4711, "GPU 1 has a double-bit ECC error", False, True),
)
STATUSES = ("Pass", "Fail", "Skip")
SEVERITIES = (None, *range(8))
CATEGORIES = (None, *range(18))
PLUGINS = ("memory", "nvbandwidth", "software", "nccl_tests", "tomorrow")
REQUIRED = ("memory", "software")
"""Those of level 2; the others may be skipped for a reason that is no fault."""
GENERATIONS = ("3", "4")

ACTS = (None, 2, 4, 6)
"""Severities with which a GPU has to leave service: ISOLATE, TRIAGE, RESET."""
DEVICE = (None, 1, 2, 5, 7, *range(9, 16))
"""Categories that may be the device: performance, Xids, field diagnostic, hardware."""


class Form(NamedTuple):
    """One message in one document."""

    said: Said
    status: str
    severity: int | None
    category: int | None
    plugin: str
    generation: str

    @property
    def right(self) -> set[str]:
        """The answers that do no harm: a failure only where all agree; a pass only where DCGM says
        itself that the GPU does its work, in words of today."""
        fails = self.severity in ACTS and self.category in DEVICE and self.said.proves
        if self.status == "Fail":
            return {"fail"} if fails else {"inconclusive"}
        if self.status == "Skip" and self.plugin not in REQUIRED:
            return {"inconclusive"} if fails else {"inconclusive", "pass"}
        today = self.said.error_id <= 132 and self.category in range(1, 17)
        remark = self.status == "Pass" and self.severity in (0, 1) and today
        return {"pass"} if remark else {"inconclusive"}


def document(form: Form) -> str:
    """All tests of level 2 pass on two GPUs but for this message of GPU 1."""
    whole = json.loads(dcgmi_json(form.generation, gpus=2))
    root = whole[next(key for key in whole if key.startswith("DCGM"))]
    warning = {"warning": form.said.text, "error_id": form.said.error_id}
    if form.severity is not None:
        warning["error_severity"] = form.severity
    if form.category is not None:
        warning["error_category"] = form.category
    tests = [test for category in root["test_categories"] for test in category["tests"]]
    names = {test["name"]: test for test in tests}
    if form.plugin not in names:
        extra = json.loads(json.dumps(tests[-1])) | {"name": form.plugin}
        root["test_categories"][-1]["tests"].append(extra)
        names[form.plugin] = extra
    entry = names[form.plugin]["results"][1]
    entry |= {"status": form.status, "warnings": [warning]}
    return json.dumps(whole)


def verdict(text: str, code: int) -> Verdict:
    return judge(Ran(out=text, code=code, level=2, gpus=2))


def forms(seed: int, count: int) -> list[Form]:
    every = itertools.product(MESSAGES, STATUSES, SEVERITIES, CATEGORIES, PLUGINS, GENERATIONS)
    likely = list(map(Form._make, every))
    draw = random.Random(seed)
    proving = [f for f in likely if f.right == {"fail"}]
    remarks = [f for f in likely if f.right == {"pass"}]
    part = count // 4
    return [
        *draw.sample(likely, count - 2 * part),
        *draw.sample(proving, part),
        *draw.sample(remarks, part),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_documents_are_judged_right(seed: int) -> None:
    """Three statuses, every severity and category and one beyond, five tests, DCGM 3.3 and 4."""
    wrong = []
    for form in forms(seed, 200):
        for code in (0, 205, 226):
            found = verdict(document(form), code)
            if found.outcome not in form.right or found.confirmed != (found.outcome == "fail"):
                wrong.append((form, code, found.outcome, found.why))
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0]}"


def tables() -> Iterator[tuple[str, str, str]]:
    """A name, a table, and the right answer."""
    for said, version, passed in itertools.product(MESSAGES, ("3", "4"), (False, True)):
        text = dcgmi_table([Failure(gpu=1, text=said.text)], gpus=2, version=version)
        right = "fail" if said.in_a_table else "inconclusive"
        if passed:
            text, right = text.replace("Fail", "Pass"), "inconclusive"
        yield f"{version} {passed} {said.text}", text, right


def test_tables_are_judged_by_their_words() -> None:
    """They tell neither number nor severity; what passed did not fail."""
    for name, text, right in tables():
        for code in (0, 226):
            assert verdict(text, code).outcome == right, (name, code)


def test_a_document_without_any_message_passes() -> None:
    """The control: what the forms above are made of is well."""
    for generation in GENERATIONS:
        assert verdict(dcgmi_json(generation, gpus=2), 0).outcome == "pass"
    assert verdict(dcgmi_table(gpus=2), 0).outcome == "pass"
