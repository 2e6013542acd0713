"""Fixtures that start real servers: the Slurm cluster, SMTP, PostgreSQL, sentinel itself."""

import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
from hypothesis import settings

from tests.gate.outcomes import LEFT_ON_MACHINE
from tests.lab import machine, needs
from tests.lab.alertmanager import Alertmanager, why_no_alertmanager
from tests.lab.cgroups import Cgroups, cgroup_tree
from tests.lab.cluster import Lab
from tests.lab.fuse import Fuse
from tests.lab.postgres import Postgres, why_no_postgres
from tests.lab.service import Service
from tests.lab.smtp import SmtpServer

# Started in the background (nohup, `&` of a script), a process ignores these, and so would all that
# the tests start and then end by them.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

settings.register_profile("sentinel", deadline=None)  # a busy machine is no fault
settings.load_profile("sentinel")

HERE = Path(__file__).resolve().parent
SHOWN_CHANGES = 5
BEFORE = pytest.StashKey[machine.Facts]()


def pytest_configure(config: pytest.Config) -> None:
    """A run has mounts and an /etc of its own; what others see is compared at its end."""
    if hasattr(config, "workerinput"):  # its parent has done it for both
        return
    os.environ[machine.RUN] = os.urandom(8).hex()
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="sentinel-tests-")  # for journals
    if os.geteuid() == 0 and not config.option.collectonly:
        machine.own_mounts()
        config.stash[BEFORE] = machine.facts()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Whoever leaves something behind on this machine fails the run."""
    if (before := session.config.stash.get(BEFORE, None)) is None:
        return
    shutil.rmtree(os.environ["XDG_RUNTIME_DIR"], ignore_errors=True)
    if reader := sys.modules.get("sentinel.checks.text_child"):
        reader.close_idle_children()  # the child of the log check, which the end of this process would end
    config: Any = session.config
    folder = config._tmp_path_factory.getbasetemp()
    mine, others = machine.changes(before, os.environ[machine.RUN], folder)
    out: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    for line in mine:
        out.write_line(f"LEFT ON THIS MACHINE: {line}", red=True)
    for line in others[:SHOWN_CHANGES]:
        out.write_line(f"changed meanwhile, not known to be of this run: {line}")
    if len(others) > SHOWN_CHANGES:
        out.write_line(f"and {len(others) - SHOWN_CHANGES} more such changes")
    session.config.stash[LEFT_ON_MACHINE] = mine
    if mine and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if not (mine or others):
        out.write_line("this machine is as it was before the run")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays until the end: each worker spent a third of the time to look through it
    for garbage."""
    gc.disable()
    try:
        _import_own_share(session)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_own_share(session: pytest.Session) -> None:
    """Of a whole run each worker imports its share of the files first. In a fresh clone all of them
    would rewrite the asserts of all files at the same time: 17 s of a processor, six times."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [Path(arg).resolve() for arg in session.config.args] != [HERE]:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for file in sorted(HERE.rglob("test_*.py"))[number::count]:
        name = ".".join(file.relative_to(HERE.parent).with_suffix("").parts)
        with suppress(Exception, pytest.skip.Exception):  # told where it is collected
            import_module(name)


LAB_FIXTURES = {"lab", "fresh", "accounting_lab", "fresh_accounting"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A fixture gives its mark to each test that asks for it, by way of others too."""
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        if names & LAB_FIXTURES:
            item.add_marker("lab")
        if "as_root" in names:
            item.add_marker("root")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("lab"):
        _need(needs.why_no_lab())
    if item.get_closest_marker("root"):
        _need(needs.why_no_root())


def _need(missing: str | None) -> None:
    if missing:
        needs.skip(missing)


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """`sentinel.cli.main` is a process's own: what it sets is not left to the tests that follow."""
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def as_root() -> None:
    """For fixtures that mount, or become other users: their tests get the mark `root`."""
    _need(needs.why_no_root())


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The Slurm cluster of this worker: four nodes, started once. Most tests want `fresh`."""
    _need(needs.why_no_lab())
    with Lab() as lab:
        yield lab


@pytest.fixture
def fresh(lab: Lab) -> Iterator[Lab]:
    """The cluster with no jobs and no faults; whatever the test does to it is undone after."""
    lab.reset()
    yield lab
    lab.reset()


@pytest.fixture(scope="session")
def accounting_lab() -> Iterator[Lab]:
    """A cluster with slurmdbd, of two nodes; most tests want `fresh_accounting`."""
    _need(needs.why_no_lab())
    with Lab(nodes=2, accounting=True) as lab:
        yield lab


@pytest.fixture
def fresh_accounting(accounting_lab: Lab) -> Iterator[Lab]:
    """The cluster with slurmdbd, clean before and after; sacct remembers older tests' jobs."""
    accounting_lab.reset()
    yield accounting_lab
    accounting_lab.reset()


@pytest.fixture
def cgroups(tmp_path: Path, as_root: None) -> Iterator[Cgroups]:
    """A real cgroup2 tree with real processes."""
    point = tmp_path / "cgroup"
    point.mkdir()
    with ExitStack() as stack:
        try:
            tree = stack.enter_context(cgroup_tree(point))
        except CalledProcessError:
            _need("cgroup2 cannot be mounted here")
        yield tree


@pytest.fixture
def fuse(tmp_path: Path, as_root: None) -> Iterator[Fuse]:
    """A FUSE mount on this machine whose answers the test withholds."""
    _need(needs.why_no_fuse())
    with Fuse(tmp_path / "fuse") as fuse:
        yield fuse


@pytest.fixture
def smtp(tmp_path: Path) -> Iterator[SmtpServer]:
    """A plain SMTP server without login."""
    with SmtpServer(tmp_path) as server:
        yield server


@pytest.fixture
def smtp_server(tmp_path: Path) -> Iterator[Callable[..., SmtpServer]]:
    """Starts SMTP servers: `smtp_server(security="starttls", logins={"me": "secret"})`."""
    numbers = itertools.count()
    with ExitStack() as servers:

        def start(**options: Any) -> SmtpServer:
            folder = tmp_path / f"smtp-{next(numbers)}"
            folder.mkdir()
            return servers.enter_context(SmtpServer(folder, **options))

        yield start


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts sentinel: `service("run", "-c", path, env=lab.env)`; ended after the test.

    Home and state are the test's own; `env` replaces the rest of the environment.
    """
    started: list[Service] = []

    def start(*argv: object, env: dict[str, str] | None = None) -> Service:
        folder = tmp_path / f"service-{len(started)}"
        folder.mkdir()
        home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        mine = {**(env or os.environ), **home, "PYTHONUNBUFFERED": "1"}
        started.append(Service(folder, [str(word) for word in argv], mine))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this worker. Most tests want `postgres_url`."""
    _need(why_no_postgres())
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of a fresh database."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="module")
def alertmanager() -> Iterator[Callable[[str], Alertmanager]]:
    """Starts a Prometheus Alertmanager that tells this URL what it would tell people."""
    _need(why_no_alertmanager())
    with ExitStack() as servers:
        yield lambda hook: servers.enter_context(Alertmanager(hook))
