"""Run pytest, then hear the failing tests again: `python -m tests.gate.hearing STEP [WORDS FOR PYTEST...]`.

Up to ten failing tests are run twice more, each alone, in a new process. What passes both times is
*unsteady*: it is named at the end with its first failure, and the run passes with at most five of them.
More than ten failures, or one that fails again, or something that the run left on this machine, fail it.

The outcomes are written to build/gate/STEP.json, for the table of `.ci/run`. The exit code is 0 where the
run passes, 1 where it fails, and pytest's own where pytest could not run (2 interrupted, 4 usage, 5 no test
selected).
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAX_HEARD = 10
MAX_UNSTEADY = 5
TIMES_HEARD = 2
HEARING_LIMIT_S = 900.0
"""What a single test may take, its cluster's start included, before it counts as failed again."""

STOP_LIMIT_S = 60.0

ROOM_BYTES = 3 * 2**30
"""What must be free for temporary files. A whole run leaves about 1 GiB of them."""

FOLDER = Path("build/gate")


def run_with_hearing(step: str, words: Sequence[str], folder: Path = FOLDER) -> int:
    """The exit code of the step; see the module."""
    file = folder / f"{step}.json"
    file.unlink(missing_ok=True)
    began = time.monotonic()
    code = _run_pytest(words, file)
    outcomes: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    failed: dict[str, list[str]] = outcomes.get("failed", {})
    again: dict[str, list[str]] = {}
    if code == 1 and not outcomes.get("is_cut_short", True) and len(failed) <= MAX_HEARD:
        again = {test: why for test in failed if (why := _hear_again(test, folder))}
        outcomes["unsteady"] = {test: failed[test] for test in failed if test not in again}
        outcomes["failed"] = again
        if _is_passed(outcomes):
            code = 0
    outcomes["total_seconds"] = round(time.monotonic() - began)
    outcomes["exit_code"] = code
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(outcomes))
    _print_end(outcomes)
    return code


def explain_missing_room(folder: str) -> str:
    """Why the tests cannot run where their temporary files would lie; nothing where they can. On a full
    disk tests fail one after another, each for a reason of its own."""
    free = shutil.disk_usage(folder).free
    if free >= ROOM_BYTES:
        return ""
    return (
        f"the tests need {ROOM_BYTES / 2**30:.0f} GiB in {folder}, where {free / 2**30:.1f} GiB are free; "
        "make room, or set TMPDIR to a folder on another disk"
    )


def _is_passed(outcomes: dict[str, Any]) -> bool:
    return (
        not outcomes["failed"]
        and not outcomes["left"]
        and 0 < len(outcomes["unsteady"]) <= MAX_UNSTEADY
    )


def _hear_again(test: str, folder: Path) -> list[str]:
    """Why the test failed when it was alone; nothing where it passed each time."""
    for _ in range(TIMES_HEARD):
        print(f"\nagain, alone: {test}", flush=True)
        file = folder / "again.json"
        file.unlink(missing_ok=True)
        try:
            code = _run_pytest(["-q", test], file, HEARING_LIMIT_S)
        except subprocess.TimeoutExpired:
            return [f"alone it had not ended after {HEARING_LIMIT_S:.0f} s"]
        if code != 0:
            outcomes = json.loads(file.read_text()) if file.exists() else {}
            reasons = list(outcomes.get("failed", {}).values())
            lines: list[str] = reasons[0] if reasons else outcomes.get("left", [])
            return lines or [f"pytest ended with {code}"]
    return []


def _run_pytest(words: Sequence[str], file: Path, limit: float | None = None) -> int:
    argv = [sys.executable, "-m", "pytest", "-p", "tests.gate.outcomes", "--outcomes", str(file)]
    with subprocess.Popen([*argv, *words]) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # it takes its cluster down
            try:
                process.wait(STOP_LIMIT_S)
            finally:
                process.kill()
            raise


def _print_end(outcomes: dict[str, Any]) -> None:
    unsteady: dict[str, list[str]] = outcomes.get("unsteady", {})
    if unsteady:
        print(
            f"\n{len(unsteady)} unsteady (failed at first, then passed {TIMES_HEARD} times alone):"
        )
        for test, reason in unsteady.items():
            print(f"  {test}\n    {reason[0] if reason else ''}")
    if len(unsteady) > MAX_UNSTEADY:
        print(f"more than {MAX_UNSTEADY} unsteady tests fail the run")
    for test in outcomes.get("failed", {}):
        print(f"FAILED {test}")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].isidentifier():
        sys.exit("usage: python -m tests.gate.hearing STEP [WORDS FOR PYTEST...]")
    if why := explain_missing_room(tempfile.gettempdir()):
        sys.exit(why)
    try:
        sys.exit(run_with_hearing(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
