"""The tests of each level of `dcgmi diag -r LEVEL`, and which of them ran on every GPU. Pure.

Levels: FillTestVectors in nvvs/src/NvidiaValidationSuite.cpp of DCGM 2.1.4 to 4.6.0. Tests that
DCGM may leave out: nvvs/diag-skus.yaml.in (`is_allowed`, by GPU model), plugins without source in
nvvs/plugin_src (they are packages of their own), and tests that need root.

https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/plugins/index.html"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from sentinel.gpu.dcgm.model import Document, Result

SOFTWARE = ("deployment", "software")
NEWEST = 4
"""The newest major version of DCGM whose documents and levels are known here."""


class Test(Struct, frozen=True, kw_only=True):
    """A test by its plugin's name. `absent`, `skipped`: why a complete run may lack or skip it;
    empty if it may not."""

    name: str
    level: int
    absent: str = ""
    skipped: str = ""


_PACKAGE = "a package of its own, not installed"
_MODEL = "not for this model of GPU"
_ROOT = "only for root, with NVIDIA's field diagnostic installed"

TESTS: tuple[Test, ...] = (
    Test(name="software", level=1),
    Test(name="memory", level=2),
    Test(name="pcie", level=2),
    Test(name="diagnostic", level=3),
    Test(name="targeted_stress", level=3),
    Test(name="targeted_power", level=3),
    # DCGM runs these on every model since Volta.
    Test(name="memory_bandwidth", level=3, absent=_PACKAGE),
    # 2.1 to 3.0 only.
    Test(name="sm_stress", level=3, absent=_PACKAGE, skipped=_MODEL),
    # Since 3.1.
    Test(name="eud", level=3, absent=_ROOT, skipped=_ROOT),
    # Since 4.0.
    Test(name="cpu_eud", level=3, absent=_ROOT, skipped=_ROOT),
    Test(name="nvbandwidth", level=3, absent=_PACKAGE, skipped=_MODEL),
    # Since 4.5: needs several GPUs and the NCCL tests' own program.
    Test(name="nccl_tests", level=3, absent=_PACKAGE, skipped=_PACKAGE),
    # Since 4.6.
    Test(name="rist", level=3, absent=_PACKAGE, skipped=_PACKAGE),
    # Since 2.4, as is the level.
    Test(name="memtest", level=4),
    Test(name="pulse_test", level=4, absent=_PACKAGE, skipped=_MODEL),
)
_ALIASES = {"gpu_memory": "memory", "eud_test": "eud", "cpu_eud_test": "cpu_eud"}


def too_new(version: str) -> bool:
    """Whether the major version of DCGM is newer than NEWEST."""
    found = re.match(r"v?([0-9]{1,4})\.", version)
    return found is not None and int(found[1]) > NEWEST


def unrun(found: Document, level: int) -> str:
    """Which test of the level did not run, and on which GPU, in words; empty if all necessary ones
    ran."""
    due = gpus(found)
    for test in TESTS:
        if test.level > level:
            continue
        results = [r for r in found.results if name_of(r) == test.name]
        if not results:
            if not test.absent:
                return f"{test.name}, a test of level {level}, did not run"
        elif not _ran(results):
            if not test.skipped:
                return f"skipped: {test.name} ran on no GPU{_why(results)}"
        elif lacking := _lacking(results, due):
            return f"skipped: {test.name} did not run on GPU {lacking}{_why(results)}"
    return ""


def left_out(found: Document) -> tuple[str, ...]:
    """Tests that ran nowhere by the document, in its order."""
    names = dict.fromkeys(name_of(r) for r in found.results)
    return tuple(n for n in names if not _ran([r for r in found.results if name_of(r) == n]))


def gpus(found: Document) -> set[int]:
    """Every GPU that the document mentions."""
    return {i for r in found.results if r.entity == "GPU" for i in r.ids} | set(found.gpus)


def name_of(result: Result) -> str:
    """The plugin's name of a test: tables and JSON of DCGM 2 and 3 call `memory` "GPU Memory", and
    have a row for each part of `software`."""
    if result.category.lower().startswith(SOFTWARE):
        return "software"
    name = re.sub("[ _-]+", "_", result.test.strip().lower())
    return _ALIASES.get(name, name)


def _ran(results: Sequence[Result]) -> bool:
    return any(r.status == "pass" for r in results)


def _lacking(results: Sequence[Result], due: set[int]) -> str:
    passed = [r for r in results if r.status == "pass" and r.entity == "GPU"]
    done = {i for r in passed for i in r.ids}
    if any(not r.ids for r in passed):
        due = {i for r in results if r.status != "pass" and r.entity == "GPU" for i in r.ids}
    return ", ".join(map(str, sorted(due - done)))


def _why(results: Sequence[Result]) -> str:
    """DCGM's own reason in brackets; empty if it has none."""
    said = next(_words(results), "")
    return f" ({said})" if said else ""


def _words(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.status != "pass":
            yield from (fault.text for fault in result.faults if fault.text)
            yield from filter(None, [result.info])
