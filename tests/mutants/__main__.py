"""Plant faults in the modules that judge, delete, kill or tell, and see whether a test notices.

`python -m tests.mutants [--module M] [--seed S] [--limit N]`. Each fault is tried in a copy of the
tree, with the tests of that module. 0 when all but the known survivors are killed, else 1.
"""

import argparse
import difflib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import aiohttp  # noqa: F401  # loaded once, for all runs
import hypothesis  # noqa: F401
import pytest

from tests.mutants.changes import Change, changes
from tests.mutants.known import SURVIVORS, TESTS

ROOT = Path(__file__).parents[2]
FORK = multiprocessing.get_context("fork")
LOADED = "ignore::pytest.PytestAssertRewriteWarning"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "pictures")


class Copy:
    """A copy of the tree in which one module at a time has a fault."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sentinel", "tests", "docs", "config", "slurm"):
            shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def passes(self, module: str, limit: float | None = None) -> bool:
        """Whether all tests of the module pass; a run that takes too long has failed."""
        run = FORK.Process(target=self._run, args=(module,))
        run.start()
        run.join(limit)
        with suppress(ProcessLookupError):  # what the tests have left behind goes too
            os.killpg(run.pid or 0, signal.SIGKILL)
        run.join()
        return run.exitcode == 0

    def _run(self, module: str) -> None:
        """In a child that has the libraries, but nothing of ours, loaded already."""
        os.setsid()
        os.chdir(self.folder)
        for name in [n for n in sys.modules if n.partition(".")[0] in ("tests", "sentinel")]:
            del sys.modules[name]
        sys.path.insert(0, str(self.folder))
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        options = ["-x", "-q", "-m", "not lab", "-p", "no:cacheprovider", "-W", LOADED]
        os._exit(pytest.main([*options, *TESTS[module]]))


def tried(copy: Copy, module: str, chosen: list[Change]) -> tuple[int, list[Change]]:
    """How many were killed, and what survived without being known."""
    path, source = copy.folder / module, (ROOT / module).read_text()
    began = time.monotonic()
    if not copy.passes(module):
        sys.exit(f"{module}: its tests fail without any fault: {' '.join(TESTS[module])}")
    limit = 10 + 5 * (time.monotonic() - began)
    killed, survived = 0, []
    for change in chosen:
        path.write_text(change.applied(source))
        dead = not copy.passes(module, limit)
        path.write_text(source)
        killed += dead
        known = reason(module, source, change)
        print(
            f"{'killed  ' if dead else 'SURVIVED'} {module}:{change.line}  {known if not dead else ''}"
        )
        if not dead and not known:
            survived.append(change)
            print(diff(source, change), flush=True)
    return killed, survived


def reason(module: str, source: str, change: Change) -> str:
    """Why it is known to survive; empty where it is not."""
    line = source.splitlines()[change.line - 1].strip()
    return SURVIVORS.get((module, line, change.new), "")


def diff(source: str, change: Change) -> str:
    """What changes, as a person reads it."""
    both = source.splitlines(), change.applied(source).splitlines()
    return "\n".join(list(difflib.unified_diff(*both, n=0, lineterm=""))[2:])


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--module", action="append", choices=[*TESTS], metavar="M")
    parser.add_argument("--seed", type=int, default=1, help="which faults are drawn; 1")
    parser.add_argument("--limit", type=int, default=25, help="so many a module, 0 for all; 25")
    asked = parser.parse_args()
    dead = all_of_them = 0
    left: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sentinel-mutants-") as folder:
        os.chmod(folder, 0o755)  # tests become other users, who read the code too
        copy = Copy(Path(folder) / "tree")
        for module in asked.module or TESTS:
            every = changes((ROOT / module).read_text())
            draw = random.Random(f"{asked.seed} {module}")
            chosen = draw.sample(every, min(asked.limit or len(every), len(every)))
            killed, survived = tried(copy, module, sorted(chosen))
            print(f"{module}: {killed} of {len(chosen)} killed ({len(every)} possible)", flush=True)
            dead, all_of_them = dead + killed, all_of_them + len(chosen)
            left += [f"{module}:{change.line}" for change in survived]
    print(f"{dead} of {all_of_them} killed, {len(left)} survived unexplained: {' '.join(left)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
