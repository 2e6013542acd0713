"""What the tests said on each version, and the table that tells it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from sentinel.core.text import shortened, visible
from tests.lab.paths import ROOT

PAGE = ROOT / "docs/versions.md"
FILE = ROOT / "tests/versions/results.json"
BEGIN, END = "<!-- table: python -m tests.versions table -->\n", "<!-- end of the table -->\n"

VERSIONS = (
    *("20.11", "21.08", "22.05", "23.02", "23.11"),
    *("24.05", "24.11", "25.05", "25.11", "26.05"),
)
"""Those that are said to be understood."""

Outcome = tuple[Literal["passed", "failed", "skipped"], str]
"""And the first line of why it did not pass."""

Results = dict[str, dict[str, Outcome]]
"""By version (`26.05.3`), by test."""


def read(xml: Path) -> dict[str, Outcome]:
    """The outcomes of one run of pytest with --junitxml, which writes in the form of JUnit."""
    return {
        f"{case.get('classname')}::{case.get('name')}": _outcome(case)
        for case in ElementTree.parse(xml).iter("testcase")
    }


def load() -> Results:
    """All that was kept."""
    told: Results = json.loads(FILE.read_text()) if FILE.exists() else {}
    return told


def keep(version: str, outcomes: Mapping[str, Outcome]) -> None:
    """Beside what was kept before; what a test said last counts."""
    results = load()
    results[version] = dict(sorted({**results.get(version, {}), **outcomes}.items()))
    FILE.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")


def write() -> None:
    """Put the table into the page."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{table(load())}\n{END}{tail}")


def table(results: Results) -> str:
    """A row for each version that was run, a column for each area, and below what did not pass, and why."""
    areas = sorted({area(test) for kept in results.values() for test in kept})
    rows = [["Slurm", *areas], ["---"] * (len(areas) + 1)]
    for version in VERSIONS:
        runs = [full for full in results if full.startswith(version)]
        rows += [[run, *_cells(results[run], areas)] for run in runs]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    why = [
        f"- {version}, `{_plain(test.partition('::')[2])}` {outcome}: {told}"
        for version, kept in sorted(results.items())
        for test, (outcome, told) in kept.items()
        if outcome != "passed"
    ]
    return "\n".join([*lines, *(["", *why] if why else [])]) + "\n"


def area(test: str) -> str:
    """`tests.checks.drained.test_live::test_x` is about `checks/drained`."""
    parts = test.partition("::")[0].split(".")[1:]
    ends = next((at for at, part in enumerate(parts) if part.startswith("test_")), len(parts))
    return "/".join(parts[:ends])


def _cells(kept: Mapping[str, Outcome], areas: Iterable[str]) -> list[str]:
    counts = {name: Counter[str]() for name in areas}
    for test, (outcome, _) in kept.items():
        counts[area(test)][outcome] += 1
    words = ("passed", "failed", "skipped")
    return [
        ", ".join(f"{count[word]} {word}" for word in words if count[word]) or "not run"
        for count in counts.values()
    ]


def _outcome(case: ElementTree.Element) -> Outcome:
    """An error of a fixture is a failure."""
    for tag in ("failure", "error"):
        if (found := case.find(tag)) is not None:
            return "failed", _line(found)
    found = case.find("skipped")
    return ("passed", "") if found is None else ("skipped", _line(found))


def _line(found: ElementTree.Element) -> str:
    return _plain((found.get("message") or "without a word").splitlines()[0])


def _plain(told: str) -> str:
    """As Markdown takes it, in one line."""
    return shortened(visible(told).replace("|", "/").replace("`", "'"), 160)
