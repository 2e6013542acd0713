"""What each test executes of a module, and how long it takes."""

import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork")


class SeenTest(NamedTuple):
    """One test, as it went without a fault."""

    name: str
    seconds: float
    lines: frozenset[int]
    """Of the module, executed in this process."""
    starts: bool
    """Whether it starts Python elsewhere, where the lines that it executes are not seen."""


class Watch:
    """A plugin that notes it."""

    def __init__(self, path: Path, module: str) -> None:
        self.path, self.module = str(path), module
        self.failed = ""
        self.now = ""
        self.seconds: dict[str, float] = {}
        self.starters: set[str] = set()
        os.environ["COVERAGE_CORE"] = "ctrace"  # the one that tells tests apart
        self.coverage = coverage.Coverage(data_file=None, include=[self.path], config_file=False)
        # No line of the module may be run by its tests: each of its faults goes unnoticed then.
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.coverage.start()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event in STARTS and (event == "os.fork" or "python" in str(args).lower()):
            self.starters.add(self.now)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        self.now, began = item.nodeid, time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds.setdefault(item.nodeid, time.monotonic() - began)
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or f"{report.nodeid}\n{report.longreprtext}"

    def finish(self) -> tuple[str, list[tuple[str, float, frozenset[int], bool]]]:
        """The first failure, and the tests as SeenTest has them."""
        self.coverage.stop()
        lines: dict[str, set[int]] = {}
        for line, names in self.coverage.get_data().contexts_by_lineno(self.path).items():
            for name in names:
                lines.setdefault(name, set()).add(line)
        return self.failed, [
            (name, took, frozenset(lines.get(name, ())), name in self.starters)
            for name, took in self.seconds.items()
        ]
