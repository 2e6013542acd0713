"""Real output in a folder that SENTINEL_SAMPLES names, where there is one: all of it is read.

The folder is whoever's runs the tests; none comes with the project. Files are known by name:
nvidia-smi-*, dcgmi-*-pass*, dcgmi-*fail*, *xid*, *schema.json (of dcgmi diag -j).
"""

import json
import os
from pathlib import Path

import jsonschema

from sentinel.gpu import smi, xid
from sentinel.gpu.advice import Advice
from sentinel.gpu.dcgm import Ran, judge
from tests.lab.gpus import Failure, dcgmi_json

NAMED = os.environ.get("SENTINEL_SAMPLES", "")
FILES = sorted(p for p in Path(NAMED).iterdir() if p.is_file()) if NAMED else []


def test_real_output_is_read_right() -> None:
    """By what the name says it is: a pass passes, a failure fails, nothing is passed over."""
    for path in FILES:
        text = path.read_text(errors="surrogateescape")
        if path.name.startswith("nvidia-smi"):
            _inventory(path.name, text)
        elif path.name.startswith("dcgmi"):
            _diagnostic(path.name, text)
        elif "xid" in path.name:
            _kernel(text)
        elif path.name.endswith("schema.json"):
            _fits(text)


def _fits(text: str) -> None:
    """What our fixtures of DCGM 4 are shaped like is what NVIDIA's own tests demand."""
    for failures in ((), (Failure(gpu=3),)):
        jsonschema.Draft7Validator(json.loads(text)).validate(json.loads(dcgmi_json("4", failures)))


def _inventory(name: str, text: str) -> None:
    found = smi.parse(text)
    assert found.driver
    assert found.gpus
    for gpu in found.gpus:
        assert gpu.bus
        assert gpu.model
        assert gpu.ecc.dram_uncorrected == 0
        assert gpu.troubles == ()
        if found.form != "text":
            assert gpu.uuid.startswith("GPU-")
            assert gpu.temperature
    if "pending" in name:
        assert all(g.remapped is not None and g.remapped.pending for g in found.gpus)
    if "t4" in name:
        assert all(g.retired is not None and g.retired.pending is False for g in found.gpus)


def _diagnostic(name: str, text: str) -> None:
    found = judge(Ran(out=text, code=None, level=2))
    expected = "fail" if "-fail" in name else "pass" if "-pass" in name else "inconclusive"
    assert found.outcome == expected, found.why
    if "rowremap" in name:
        assert found.advice is Advice.RESET
        assert [b.index for b in found.blames] == [3]
    if "configfail" in name:
        assert {b.kind for b in found.blames} == {"config"}


def _kernel(text: str) -> None:
    lines = text.splitlines()
    found = xid.read(lines)
    marks = ("Xid (", "SXid (", "has fallen off the bus", "NVRM: fallen off the bus")
    due = [n for n, line in enumerate(lines) if _is_event(line, marks)]
    assert [event.line for event in found.events] == due
    assert all(event.bus for event in found.events)


def _is_event(line: str, marks: tuple[str, ...]) -> bool:
    return any(m in line for m in marks) and ", Data {" not in line
