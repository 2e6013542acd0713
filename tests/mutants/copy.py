"""A copy of the tree in which one module at a time has a fault, and which runs the tests for it.

Of each module the tests are imported once, in a nursery; it forks for each fault, and the child gives
the faulty function its new code. What an import executes is tried by a process that imports everything
anew.
"""

import gc
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import aiohttp  # noqa: F401  # loaded once, for all runs
import hypothesis  # noqa: F401
import pytest
from _pytest.main import pytest_runtestloop

from tests.mutants.known import ROOT, find_tests
from tests.mutants.watch import SeenTest, Watch

FORK = multiprocessing.get_context("fork")
LOADED = "ignore::pytest.PytestAssertRewriteWarning"
LEFT_OUT = shutil.ignore_patterns(".*", "pictures", "build", "dist", "node_modules", "*.egg-info")
OPTIONS = (
    "-x",
    "-q",
    "-m",
    "not lab and not long and not nightly",
    "-p",
    "no:cacheprovider",
    "-W",
    LOADED,
)
NOT_PATCHED = 99
"""Exit code of a child that could not give the function its new code."""


class TestsFailAlready(Exception):
    """So no fault can be noticed by them."""


class Copy:
    """A copy of the tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)

    def write(self, module: str, source: str) -> None:
        """Put this text for the module; an old compiled one may have the same size and second."""
        path = self.folder / module
        path.write_text(source)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()

    def passes_afresh(self, tests: Sequence[SeenTest]) -> bool:
        """Whether these tests pass where all is imported anew; what takes too long has failed."""
        files = dict.fromkeys(test.name.partition("::")[0] for test in tests)
        run = FORK.Process(target=self._run_pytest, args=([*files], Order(tests), False))
        run.start()
        run.join(60 + 5 * sum(test.seconds for test in tests))
        _end_group(run.pid)
        run.join()
        return run.exitcode == 0

    def _run_pytest(self, paths: Sequence[str], plugin: object, may_compile: bool) -> None:
        """In a child that has the libraries, but nothing of ours, loaded already. What is compiled
        without a fault is kept."""
        os.setsid()
        os.chdir(self.folder)
        for name in [n for n in sys.modules if n.partition(".")[0] in ("tests", "sentinel")]:
            del sys.modules[name]
        sys.path.insert(0, str(self.folder))
        os.environ["PYTHONPATH"] = str(self.folder)
        sys.dont_write_bytecode = not may_compile
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        os._exit(pytest.main([*OPTIONS, *paths], plugins=[plugin]))


class Order:
    """A plugin: these tests alone, in this order."""

    def __init__(self, tests: Sequence[SeenTest]) -> None:
        self.places = {test.name: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        mine = [item for item in items if item.nodeid in self.places]
        items[:] = sorted(mine, key=lambda item: self.places[item.nodeid])


class Wish(NamedTuple):
    """What the nursery is to try: the module's text (empty: as it is), the tests, and for how long
    (seconds). Without tests all are watched."""

    source: str
    line: int
    tests: tuple[str, ...]
    limit: float


class Nursery:
    """A process that has imported all tests of a module."""

    def __init__(self, copy: Copy, module: str) -> None:
        self._module = module
        self._conversation, theirs = FORK.Pipe()
        plugin = _Server(copy.folder / module, module, theirs)
        self._run = FORK.Process(target=copy._run_pytest, args=(find_tests(module), plugin, True))
        self._run.start()
        theirs.close()

    def watch_tests(self) -> list[SeenTest]:
        """All tests of the module as they go without a fault. Raises TestsFailAlready."""
        failed, seen = self._ask(Wish("", 0, (), 1200.0)) or ("they cannot be imported", [])
        if failed:
            raise TestsFailAlready(f"{self._module}: without any fault its tests fail: {failed}")
        return [SeenTest(*test) for test in seen]

    def passes(self, tests: Sequence[SeenTest], source: str = "", line: int = 0) -> bool | None:
        """Whether these tests pass in this order, the function at that line being as in `source`;
        None where that cannot be tried here."""
        limit = 30 + 5 * sum(test.seconds for test in tests)
        code = self._ask(Wish(source, line, tuple(test.name for test in tests), limit))
        return None if code in (None, NOT_PATCHED) else code == 0

    def _ask(self, wish: Wish) -> Any:
        try:
            self._conversation.send(tuple(wish))
            return self._conversation.recv()
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        """The process ends."""
        self._conversation.close()
        _end_group(self._run.pid)
        self._run.join()


class _Server:
    """A plugin: in place of running the tests it forks for each wish."""

    def __init__(self, path: Path, module: str, conversation: Connection) -> None:
        self.path, self.module, self.conversation = path, module, conversation

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return True
        while True:
            try:
                wish = Wish(*self.conversation.recv())
            except EOFError:
                return True
            child = os.fork()
            if not child:
                os._exit(self._try_wish(session, wish))
            code = _wait_for(child, wish.limit)
            if wish.tests:
                self.conversation.send(code)
            elif code:
                self.conversation.send((f"the run ended with {code}", []))

    def _try_wish(self, session: pytest.Session, wish: Wish) -> int:
        os.setsid()
        os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="sentinel-tests-")
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        if wish.source and not patch_function(self.path, wish.source, wish.line):
            return NOT_PATCHED
        watch = None if wish.tests else Watch(self.path, self.module)
        if watch:
            session.config.pluginmanager.register(watch)
        else:
            by_name = {item.nodeid: item for item in session.items}
            session.items[:] = [by_name[name] for name in wish.tests]
        with suppress(session.Failed, session.Interrupted):
            pytest_runtestloop(session)
        if watch:
            self.conversation.send(watch.finish())
            return 0
        return 1 if session.testsfailed else 0


def patch_function(path: Path, source: str, line: int) -> bool:
    """Give the function around that line its code of `source`, wherever it is used already; False
    where it is not found. A module that is not imported yet is read from its file."""
    gc.unfreeze()
    living = [
        one
        for one in gc.get_objects()
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path)
    ]
    if not living:
        return True
    around = [
        code
        for code in _list_codes(compile(source, str(path), "exec"))
        if code.co_name != "<lambda>" and line in _list_lines(code)
    ]
    done = False
    for code in around:
        for function in living:
            old = function.__code__
            if (old.co_name, old.co_firstlineno) == (code.co_name, code.co_firstlineno):
                with suppress(ValueError):  # it closes over other variables
                    function.__code__ = code
                    done = True
    return done


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _list_codes(one)


def _list_lines(code: CodeType) -> set[int | None]:
    """Its own, and those of the functions and comprehensions in it."""
    own = {number for _, _, number in code.co_lines()}
    return own.union(*(_list_lines(one) for one in code.co_consts if isinstance(one, CodeType)))


def _wait_for(child: int, seconds: float) -> int:
    """Its exit code; what takes longer is ended and has failed. What it started goes too."""
    deadline, pause = time.monotonic() + seconds, 0.002
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)
        done, status = os.waitpid(child, os.WNOHANG)
    _end_group(child)
    if not done:
        status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def _end_group(leader: int | None) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader or 0, signal.SIGKILL)
