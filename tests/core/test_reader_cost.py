"""No text that a user or a tool writes costs its reader more than another of its length.

The readers are found in the source, so a new one is in the test with its first commit. Measured are
seconds of this thread on the processor, beside a reader that does the least in the same moment, and
how they grow with the text.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache

import pytest

from sentinel.core.logtext import decode_log
from tests.core.our_patterns import HardText
from tests.core.readers import PLAIN, Reader, cost_of, find_readers, read_plainly
from tests.lab.gpus import Failure, dcgmi_json, gpus_of, nvidia_smi
from tests.slurm.answers import NONCE, listed, row

TIMES_PLAIN = 30
"""What a character of the hardest text may cost, in costs of a character of a short line that is split off
and matched."""

GROWTH = 3.0
"""A reader that begins anew at each place of a text has one of about 8, any other one of 1."""

ITS_OWN = {
    "core.pattern_rules.is_harmless": "patterns of the configuration, of at most 10,000 characters",
    "core.pattern_rules.explain_ambiguity": "the same",
    "core.patterns.compile_pattern": "the same",
    "core.cron.parse_cron": "a key of the configuration",
}
"""Readers that see only what the operator wrote."""

LOGS = ("checks.log.", "checks.job.output.")
"""Their readers see text as `decode_log` gives it."""

_NODE = (
    "NodeName=n1 Arch=x86_64 State=IDLE+DRAIN CPUTot=8 Partitions=main Reason={} [root@1790000000] "
    "Comment={}\n"
)


def _in_smi(text: str) -> str:
    page = nvidia_smi(gpus_of(0, 1))
    safe = "".join(c if c.isprintable() and c not in "<>&" else " " for c in text)
    return page.replace("</product_name>", f"{safe}</product_name>", 1)


def _in_diag(text: str) -> str:
    page = dcgmi_json("3", [Failure(gpu=0)], gpus=1)
    return page.replace('"warning": "', f'"warning": "{json.dumps(text)[1:-1]}', 1)


PAGES: Mapping[str, Callable[[str], str]] = {
    "slurm.queue.read_queue": lambda text: listed(row(name=text.encode())).decode(),
    "slurm.queue.read_jobs": lambda text: row(reason=text.encode()).decode(),
    "slurm.nodes.read_nodes": lambda text: _NODE.format(text.replace("\n", " "), text),
    "gpu.smi.parse": _in_smi,
    "gpu.dcgm.read.parse": _in_diag,
    "nodes.probe.kernel.log_of_json": lambda text: json.dumps(
        {"dmesg": [{"pri": 4, "time": 1.0, "msg": text}]}
    ),
    "nodes.test_results.verdicts": lambda text: f"{NONCE} node1 fail {text}",
}
"""How a text becomes a part of what the reader takes for a whole page."""


class _Pages(dict[str, Callable[[str], str]]):
    def get(self, name: str, default: Callable[[str], str]) -> Callable[[str], str]:  # type: ignore[override]
        if name.startswith(LOGS):
            return lambda text: decode_log(text.encode())
        return PAGES.get(name, default)


@cache
def _readers() -> tuple[Reader, ...]:
    return tuple(one for one in find_readers(_Pages()) if one.name not in ITS_OWN)


PARTS = 8


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_a_reader_looks_through_a_text_once(part: int) -> None:
    dear = []
    for reader in _readers()[part::PARTS]:
        cost = cost_of(reader)
        if cost.times_plain > TIMES_PLAIN or (cost.growth > GROWTH and cost.times_plain > 1):
            dear.append(f"{reader.name}: {cost}")
    assert dear == []


def test_the_readers_are_found() -> None:
    names = {one.name for one in find_readers({})}
    assert len(names) > 120
    assert {*PAGES, *ITS_OWN} <= names


def test_a_page_gets_further_than_its_first_line() -> None:
    """A page that its reader refuses measures nothing."""
    calls = {one.name: one.call for one in _readers()}
    for name in PAGES:
        calls[name]("word")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("call", "bad"),
    [
        (read_plainly, False),
        (lambda text: [text[at:].count("a") for at in range(0, len(text), 4)], True),
        (lambda text: [text.count(word) for word in dict.fromkeys(text.split("\n"))], False),
        (lambda text: [sum(range(500)) for _ in text], True),
    ],
)
def test_the_measure_tells_one_from_the_other(call: Callable[[str], object], bad: bool) -> None:
    cost = cost_of(Reader("here", call, ()))
    assert (cost.times_plain > TIMES_PLAIN or cost.growth > GROWTH) is bad, cost


def test_hard_texts_are_as_long_as_asked_for() -> None:
    assert len(HardText("a", "bc").of(99)) == 99
    assert len(PLAIN) > 8000
