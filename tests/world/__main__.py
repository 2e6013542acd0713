"""Run the corpus and print how many answers were right, by subject.

With `--answers` each case that records them is a line: what was written down before, and what was answered.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest


class Tally:
    """Counts the outcomes of the tests of each module."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {}
        self.answers: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that ran, and one that could not be set up or was skipped."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            subject = Path(report.nodeid.split("::")[0]).stem.removeprefix("test_")
            self.outcomes.setdefault(subject, Counter())[report.outcome] += 1
        said = dict(report.user_properties)
        if report.when == "call" and "right" in said:
            name = report.nodeid.rpartition("[")[2].removesuffix("]")
            verdict = "right" if report.passed else "WRONG"
            self.answers.append(
                f"{verdict}  {name}\n    written down: {said['right']}\n    answer:       {said['answer']}"
            )


def main() -> int:
    """Run all cases; the words of the command line go to pytest. Returns pytest's exit code."""
    tally = Tally()
    words = [word for word in sys.argv[1:] if word != "--answers"]
    code = pytest.main(["-q", str(Path(__file__).parent), *words], plugins=[tally])
    if "--answers" in sys.argv:
        print("\n" + "\n".join(tally.answers))
    print(f"\n{'subject':<16}{'right':>7}{'wrong':>7}{'skipped':>9}")
    total: Counter[str] = Counter()
    for subject, counts in sorted(tally.outcomes.items()):
        print_row(subject, counts)
        total += counts
    print_row("all", total)
    return int(code)


def print_row(subject: str, counts: Counter[str]) -> None:
    """Print one line of the table."""
    print(f"{subject:<16}{counts['passed']:>7}{counts['failed']:>7}{counts['skipped']:>9}")


if __name__ == "__main__":
    sys.exit(main())
