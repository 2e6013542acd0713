"""What could call sentinel on time here: a service, a timer, crontab, scrontab, a chain of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from shutil import which
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.chain import install
from sentinel.chain.folder import Place
from sentinel.chain.install import Wish
from sentinel.chain.model import Chain
from sentinel.chain.timers import cron_runs
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.values import duration_text
from sentinel.slurm.client import Client

By = Literal["service", "systemd", "crontab", "scrontab", "chain", "none"]
ORDER: tuple[By, ...] = ("service", "systemd", "crontab", "scrontab", "chain")
"""The quickest to tell first: a service looks all the time, a chain every ten minutes."""

UNIT = "sentinel.service"
UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
LIMIT = 10.0
OFTEN, SELDOM = 60.0, 600.0
PASS = 10.0
"""Seconds of one core that a link takes with its start, rounded up: docs/benchmarks.md."""


class NotHere(SentinelError):
    """This way does not exist here; the text says why."""

    exit_code = 69


class Way(Struct, frozen=True, kw_only=True):
    """What will call sentinel. `others`: the ways that do not work here, with the reason."""

    by: By
    words: str
    jobs: int = 0
    core_hours: float = 0.0
    chain: Chain | None = None
    others: tuple[str, ...] = ()


class Wanted(Struct, frozen=True, kw_only=True):
    """For whom a way is looked for: the file, the folder of the chain, the state, and the options
    of sbatch by which the user's own jobs are taken."""

    config: str
    folder: str
    state: str
    options: tuple[str, ...] = ()


def find(wanted: Wanted, client: Client, by: str = "") -> Way:
    """The first way that this environment allows; changes nothing. Raises NotHere where the one
    that was asked for is not there."""
    others: list[str] = []
    for name in (by,) if by else ORDER:
        try:
            return replace(_TRIES[name](wanted, client), others=tuple(others))
        except (SentinelError, CannotTell, OSError) as error:
            if by:
                raise NotHere(f"--by {by}: {error}") from error
            others.append(f"{name}: {error}")
    words = "nothing: no way was found that calls sentinel by itself"
    return Way(by="none", words=words, others=tuple(others))


def begin(way: Way, wanted: Wanted, client: Client) -> Iterator[str]:
    """Do it; what was done, in lines. Raises a SentinelError."""
    if way.by == "service":
        _systemctl("enable", "--now", UNIT)
        yield f"{UNIT}: enabled and started"
    elif way.chain is not None:
        yield from install.install(way.chain, wanted.folder, client, show_only=False)


def end(by: str, folder: str, client: Client) -> Iterator[str]:
    """Take away what `begin` made."""
    if by == "service":
        _systemctl("disable", "--now", UNIT)
        yield f"{UNIT}: stopped and disabled"
    elif by != "none":
        yield from install.remove(folder, client)


def _service(_wanted: Wanted, _client: Client) -> Way:
    if os.geteuid():
        raise NotHere("only root may install a service")
    if not os.path.isdir("/run/systemd/system"):
        raise NotHere("systemd does not run on this host")
    if not any(os.path.exists(os.path.join(folder, UNIT)) for folder in UNITS):
        raise NotHere(f"{UNIT} is not installed; `make service` in a checkout does that")
    return Way(by="service", words=f"systemctl enable --now {UNIT}: it looks all the time")


def _systemd(wanted: Wanted, client: Client) -> Way:
    import getpass

    if which("systemctl") is None or not os.environ.get("XDG_RUNTIME_DIR"):
        raise NotHere("no systemd of your own runs here")
    _said(["systemctl", "--user", "show-environment"])
    lingers = _said(["loginctl", "show-user", getpass.getuser(), "-p", "Linger", "--value"])
    if lingers.strip() != "yes":
        raise NotHere("it would end when you log out; `loginctl enable-linger` changes that")
    return _entry("systemd", "a timer of your own systemd", wanted, client)


def _crontab(wanted: Wanted, client: Client) -> Way:
    if which("crontab") is None:
        raise NotHere("there is no crontab on this host")
    install.entry(_chain("crontab", wanted, client), Place(wanted.folder)).present()
    if not cron_runs():
        raise NotHere("crontab is there, but no cron daemon runs on this host")
    return _entry("crontab", f"a line in your crontab on {os.uname().nodename}", wanted, client)


def _scrontab(wanted: Wanted, client: Client) -> Way:
    if which("scrontab") is None:
        raise NotHere("there is no scrontab on this host")
    chain = _chain("scrontab", wanted, client)
    install.entry(chain, Place(wanted.folder)).present()
    return Way(
        by="scrontab", words=f"a line in your scrontab: {_pace(chain)}", chain=chain,
        jobs=1, core_hours=_core_hours(chain),
    )  # fmt: skip


def _chain_of_jobs(wanted: Wanted, client: Client) -> Way:
    if which("sbatch") is None:
        raise NotHere("there is no sbatch on this host")
    try:
        chain = _chain("chain", wanted, client)
        install.try_submission(chain, wanted.folder, client)
    except SentinelError:
        if not wanted.options:
            raise
        chain = _chain("chain", wanted, client, wanted.options)
        install.try_submission(chain, wanted.folder, client)
    return Way(
        by="chain", words=f"a chain of small Slurm jobs: {_pace(chain)}", chain=chain,
        jobs=chain.strands, core_hours=_core_hours(chain),
    )  # fmt: skip


_TRIES: dict[str, Callable[[Wanted, Client], Way]] = {
    "service": _service,
    "systemd": _systemd,
    "crontab": _crontab,
    "scrontab": _scrontab,
    "chain": _chain_of_jobs,
    "none": lambda _wanted, _client: Way(by="none", words="nothing, as asked for"),
}


def _entry(by: By, what: str, wanted: Wanted, client: Client) -> Way:
    chain = _chain(by, wanted, client)
    return Way(by=by, words=f"{what}: {_pace(chain)}", chain=chain)


def _chain(by: str, wanted: Wanted, client: Client, options: tuple[str, ...] = ()) -> Chain:
    every = OFTEN if by in ("systemd", "crontab") else SELDOM
    named = ("account", "partition", "qos")
    usual = ((n, os.environ.get(f"SBATCH_{n.upper()}")) for n in named)
    wish = Wish(
        mode=by,  # type: ignore[arg-type]
        every=every,
        time_limit=None,
        strands=3,
        config=wanted.config,
        options=options or tuple(f"--{name}={value}" for name, value in usual if value),
        delivers=True,
        owner=wanted.state,
    )
    return install.chain_of(wish, wanted.folder, client)


def _pace(chain: Chain) -> str:
    return f"one pass every {duration_text(chain.every)}"


def _core_hours(chain: Chain) -> float:
    return 86400 / chain.every * PASS / 3600


def _said(argv: list[str]) -> str:
    done = proc.run(argv, limit=LIMIT)
    if done.code:
        raise NotHere(os.fsdecode(done.err).strip() or f"{argv[0]} fails")
    return os.fsdecode(done.out)


def _systemctl(*words: str) -> None:
    _said(["systemctl", *words])
