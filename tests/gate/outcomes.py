"""A pytest plugin that writes a run's outcomes to a file: `-p tests.gate.outcomes --outcomes FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LEFT_ON_MACHINE = pytest.StashKey[list[str]]()
"""What a run left on this machine, a line each; conftest.py sets it in the stash of the configuration."""

REASON_LINES = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", metavar="FILE", help="write the outcomes to this file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Workers of xdist report to their parent, which alone writes."""
    file = config.getoption("--outcomes")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_OutcomesWriter(Path(file)))


class _OutcomesWriter:
    """Collects the reports of a run.

    The file holds `passed`, `skipped` (counts), `failed` (the reasons by test id), `seconds` (by test id:
    set-up, call and tear-down together), `left` (lines) and `is_cut_short`.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._passed: set[str] = set()
        self._skipped: set[str] = set()
        self._failed: dict[str, list[str]] = {}
        self._seconds: dict[str, float] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._add_failure(report.nodeid, report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] = self._seconds.get(test, 0.0) + getattr(report, "duration", 0.0)
        if report.failed:
            self._add_failure(test, report)
        elif report.skipped:
            self._skipped.add(test)
        elif report.when == "call":
            self._passed.add(test)

    def _add_failure(self, test: str, report: pytest.TestReport | pytest.CollectReport) -> None:
        """The first failure of a test is kept; its tear-down often fails because of it."""
        self._failed.setdefault(test, _reason(report))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._is_cut_short = bool(session.shouldstop or session.shouldfail)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        outcomes = {
            "passed": len(self._passed - self._failed.keys()),
            "skipped": len(self._skipped - self._failed.keys()),
            "failed": self._failed,
            "seconds": {test: round(seconds, 2) for test, seconds in self._seconds.items()},
            "left": config.stash.get(LEFT_ON_MACHINE, []),
            "is_cut_short": getattr(self, "_is_cut_short", True),
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(outcomes))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    """The assertion, then the last lines of what pytest prints of it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = report.longreprtext.rstrip().splitlines()
    message = str(crash.message).splitlines() if crash else []
    return [*message[:1], *text[-REASON_LINES:]]
