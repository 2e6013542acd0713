"""Whatever a node answers: a parser's own error, and no failing test ever turned into a pass.

A short run each time; `SENTINEL_FUZZ=200000 pytest tests/gpu/test_fuzz.py --timeout 0` is a long
one (that many examples a test).
"""

import copy
import json
import os
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.gpu import amd, dmon, smi, xid
from sentinel.gpu.dcgm import Ran, judge, parse
from sentinel.gpu.errors import Unreadable
from tests.lab.gpus import Failure, dcgmi_json, dcgmi_table, gpus_of, nvidia_smi

EXAMPLES = int(os.environ.get("SENTINEL_FUZZ", "60"))
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
KEYS = [
    "status",
    "results",
    "tests",
    "test_categories",
    "warnings",
    "test_summary",
    "gpu_ids",
    "iterations",
    "DCGM Diagnostic",
    "DCGM GPU Diagnostic",
    "entity_id",
    "error_id",
]
WORDS = st.sampled_from(["Pass", "Fail", "Skip", "DCGM Diagnostic", "status", "results"])
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
SEEDS = [
    dcgmi_json("2", gpus=2),
    dcgmi_json("3", [Failure(gpu=1)], gpus=2),
    dcgmi_json("4", [Failure(gpu=1)], gpus=2),
    dcgmi_table(),
    dcgmi_table([Failure(gpu=1)], version="4"),
    nvidia_smi(gpus_of(0, 1), "v10"),
    nvidia_smi(gpus_of(0, 1), "v13"),
    "Driver Version : 1\nGPU 00000000:10:1C.0\n    Remapped Rows\n        Pending : Yes\n",
    '[{"gpu": 0, "uuid": "a", "ecc": {"total_correctable_count": 1}, "power": {"value": 1}}]',
    '{"card0": {"Unique ID": "0x1", "GPU use (%)": "3"}}',
    "# gpu pwr sm\n# Idx W %\n 0 1 2\n",
    "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=a, Contained\n",
    "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d\n",
    "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30\n",
]


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A real output, cut, repeated, and with other things put in."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 200)))
        middle = draw(
            st.text(max_size=20)
            | st.just(text[start:end] * 2)
            | st.sampled_from(list('{}[]",:<>&|'))
        )
        text = text[:start] + middle + text[end:]
    return text


@fuzz
@given(mangled() | st.text())
def test_parsers_raise_nothing_but_their_own_error(text: str) -> None:
    """All of them, over the same texts; and a verdict is always reached."""
    for parser in (smi.parse, dmon.parse, parse, lambda t: amd.parse(t, t)):
        with suppress(Unreadable):
            parser(text)
    for event in xid.read(text.splitlines()).events:
        assert event.advice.rank >= 0
    judge(Ran(out=text, code=0))


@fuzz
@given(JSONS)
def test_json_of_any_shape(value: Any) -> None:
    """Also below the roots that DCGM uses."""
    for root in ("DCGM Diagnostic", "DCGM GPU Diagnostic"):
        judge(Ran(out=json.dumps({root: value}), code=0))
        judge(Ran(out=json.dumps({root: {"test_categories": value}}), code=0))


@st.composite
def failing(draw: st.DrawFn) -> str:
    """A document with one failing result; everything else in it is changed at will."""
    generation = draw(st.sampled_from(["2", "3", "4"]))
    gpu = draw(st.integers(0, 2))
    failure = Failure(
        gpu=gpu,
        test=draw(st.sampled_from(["memory", "pcie", "software"])),
        error_id=draw(st.integers(0, 130)),
        text=draw(st.text(max_size=30)),
    )
    whole = json.loads(dcgmi_json(generation, [failure], gpus=3))
    _spoil(draw, whole, keep=True)
    noise = st.text(max_size=30)
    return draw(noise) + json.dumps(whole) + draw(noise)


def _holds_failure(value: Any) -> bool:
    """Whether the failing result itself is in there (a summary does not count)."""
    if isinstance(value, dict):
        mine = value.get("status") == "Fail" and (
            "gpu_id" in value or "gpu_ids" in value or "entity_id" in value
        )
        return mine or any(_holds_failure(v) for v in value.values())
    return isinstance(value, list) and any(_holds_failure(v) for v in value)


def _spoil(draw: st.DrawFn, value: Any, keep: bool) -> None:
    """Replace, remove or add whatever is not on the way to the failing result."""
    if isinstance(value, dict) and value.get("status") == "Fail":
        return
    children = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, child in children:
        if isinstance(child, (dict, list)) and _holds_failure(child):
            _spoil(draw, child, keep)
        elif draw(st.integers(0, 4)) == 0:
            value[key] = draw(JSONS)
    if isinstance(value, list) and draw(st.booleans()):
        value.insert(draw(st.integers(0, len(value))), copy.deepcopy(draw(JSONS)))


@fuzz
@given(failing(), st.sampled_from([None, 0, 205, 226]), st.integers(1, 4))
def test_a_failing_test_is_never_a_pass(text: str, code: int | None, level: int) -> None:
    """However odd the rest of the document, and whatever the exit code says."""
    assert judge(Ran(out=text, code=code, level=level)).outcome != "pass"
