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
from sentinel.chain.folder import ChainFolder
from sentinel.chain.install import InstallRequest
from sentinel.chain.model import Chain
from sentinel.chain.timers import cron_runs
from sentinel.core.due import describe_pace
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_lines
from sentinel.slurm.client import SlurmClient
from sentinel.user_files.identity import user_name

CallerKind = Literal["service", "systemd", "crontab", "scrontab", "chain", "none"]
CALLER_ORDER: tuple[CallerKind, ...] = ("service", "systemd", "crontab", "scrontab", "chain")
"""The fastest first: a service checks all the time, a chain every ten minutes."""

SERVICE_UNIT = "sentinel.service"
UNIT_DIRS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
SYSTEMCTL_TIMEOUT_S = 10.0
OFTEN, SELDOM = 60.0, 600.0
PASS_CORE_S = 10.0
"""Seconds of one core that a link takes with its start, rounded up: docs/benchmarks.md."""


class CallerUnavailable(SentinelError):
    """This way does not exist here; the text says why."""

    exit_code = 69


class CallerPlan(Struct, frozen=True, kw_only=True):
    """What will call sentinel. `others`: the ways that do not work here, with the reason."""

    by: CallerKind
    words: str
    jobs: int = 0
    core_hours: float = 0.0
    chain: Chain | None = None
    others: tuple[str, ...] = ()


class CallerRequest(Struct, frozen=True, kw_only=True):
    """The facts for choosing a caller: the file, the folder of the chain, the state, and the sbatch
    options with which the user's own jobs are accepted."""

    config: str
    folder: str
    state: str
    options: tuple[str, ...] = ()


def find_caller(wanted: CallerRequest, client: SlurmClient, by: str = "") -> CallerPlan:
    """The first way that this environment allows; changes nothing. Raises CallerUnavailable where the one
    that was asked for is not there."""
    others: list[str] = []
    for name in (by,) if by else CALLER_ORDER:
        try:
            return replace(_CALLER_TRIES[name](wanted, client), others=tuple(others))
        except (SentinelError, CannotTell, OSError) as error:
            if by:
                raise CallerUnavailable(f"--by {by}: {error}") from error
            others.append(f"{name}: {error}")
    words = "nothing: no way was found that calls sentinel by itself"
    return CallerPlan(by="none", words=words, others=tuple(others))


def install_caller(way: CallerPlan, wanted: CallerRequest, client: SlurmClient) -> Iterator[str]:
    """Install it. Returns lines that say what was done. Raises a SentinelError."""
    if way.by == "service":
        _run_systemctl("enable", "--now", SERVICE_UNIT)
        yield f"{SERVICE_UNIT}: enabled and started"
    elif way.chain is not None:
        yield from install.install_chain(way.chain, wanted.folder, client, show_only=False)


def remove_caller(by: str, folder: str, client: SlurmClient) -> Iterator[str]:
    """Take away what `install_caller` made."""
    if by == "service":
        _run_systemctl("disable", "--now", SERVICE_UNIT)
        yield f"{SERVICE_UNIT}: stopped and disabled"
    elif by != "none":
        yield from install.remove_chain(folder, client)


def _try_service(_wanted: CallerRequest, _client: SlurmClient) -> CallerPlan:
    if os.geteuid():
        raise CallerUnavailable("only root may install a service")
    if not os.path.isdir("/run/systemd/system"):
        raise CallerUnavailable("systemd does not run on this host")
    if not any(os.path.exists(os.path.join(folder, SERVICE_UNIT)) for folder in UNIT_DIRS):
        raise CallerUnavailable(
            f"{SERVICE_UNIT} is not installed; `make service` in a checkout does that"
        )
    return CallerPlan(
        by="service", words=f"systemctl enable --now {SERVICE_UNIT}: it looks all the time"
    )


def _try_user_timer(wanted: CallerRequest, client: SlurmClient) -> CallerPlan:
    if which("systemctl") is None or not os.environ.get("XDG_RUNTIME_DIR"):
        raise CallerUnavailable("no systemd of your own runs here")
    _run_or_refuse(["systemctl", "--user", "show-environment"])
    lingers = _run_or_refuse(
        ["loginctl", "show-user", user_name(os.geteuid()), "-p", "Linger", "--value"]
    )
    if lingers.strip() != "yes":
        raise CallerUnavailable(
            "it would end when you log out; `loginctl enable-linger` changes that"
        )
    return _make_timer_plan("systemd", "a timer of your own systemd", wanted, client)


def _try_crontab(wanted: CallerRequest, client: SlurmClient) -> CallerPlan:
    if which("crontab") is None:
        raise CallerUnavailable("there is no crontab on this host")
    install.table_entry(
        _build_chain("crontab", wanted, client), ChainFolder(wanted.folder)
    ).entry_state()
    if not cron_runs():
        raise CallerUnavailable("crontab is there, but no cron daemon runs on this host")
    return _make_timer_plan(
        "crontab", f"a line in your crontab on {os.uname().nodename}", wanted, client
    )


def _try_scrontab(wanted: CallerRequest, client: SlurmClient) -> CallerPlan:
    if which("scrontab") is None:
        raise CallerUnavailable("there is no scrontab on this host")
    chain = _build_chain("scrontab", wanted, client)
    install.table_entry(chain, ChainFolder(wanted.folder)).entry_state()
    return CallerPlan(
        by="scrontab", words=f"a line in your scrontab: {_describe_pace(chain)}", chain=chain,
        jobs=1, core_hours=_estimate_core_hours(chain),
    )  # fmt: skip


def _try_job_chain(wanted: CallerRequest, client: SlurmClient) -> CallerPlan:
    if which("sbatch") is None:
        raise CallerUnavailable("there is no sbatch on this host")
    try:
        chain = _build_chain("chain", wanted, client)
        install.try_submission(chain, wanted.folder, client)
    except SentinelError:
        if not wanted.options:
            raise
        chain = _build_chain("chain", wanted, client, wanted.options)
        install.try_submission(chain, wanted.folder, client)
    return CallerPlan(
        by="chain", words=f"a chain of small Slurm jobs: {_describe_pace(chain)}", chain=chain,
        jobs=chain.strands, core_hours=_estimate_core_hours(chain),
    )  # fmt: skip


_CALLER_TRIES: dict[str, Callable[[CallerRequest, SlurmClient], CallerPlan]] = {
    "service": _try_service,
    "systemd": _try_user_timer,
    "crontab": _try_crontab,
    "scrontab": _try_scrontab,
    "chain": _try_job_chain,
    "none": lambda _wanted, _client: CallerPlan(by="none", words="nothing, as asked for"),
}


def _make_timer_plan(
    by: CallerKind, what: str, wanted: CallerRequest, client: SlurmClient
) -> CallerPlan:
    chain = _build_chain(by, wanted, client)
    return CallerPlan(by=by, words=f"{what}: {_describe_pace(chain)}", chain=chain)


def _build_chain(
    by: str, wanted: CallerRequest, client: SlurmClient, options: tuple[str, ...] = ()
) -> Chain:
    every = OFTEN if by in ("systemd", "crontab") else SELDOM
    named = ("account", "partition", "qos")
    usual = ((n, os.environ.get(f"SBATCH_{n.upper()}")) for n in named)
    wish = InstallRequest(
        mode=by,  # type: ignore[arg-type]
        every=every,
        time_limit=None,
        strands=3,
        config=wanted.config,
        options=options or tuple(f"--{name}={value}" for name, value in usual if value),
        delivers=True,
        owner=wanted.state,
    )
    return install.plan_chain(wish, wanted.folder, client)


def _describe_pace(chain: Chain) -> str:
    return f"one pass {describe_pace(chain.every)}"


def _estimate_core_hours(chain: Chain) -> float:
    return 86400 / chain.every * PASS_CORE_S / 3600


def _run_or_refuse(argv: list[str]) -> str:
    done = proc.run(argv, limit=SYSTEMCTL_TIMEOUT_S)
    if done.code:
        raise CallerUnavailable(decode_lines(done.err).strip() or f"{argv[0]} fails")
    return decode_lines(done.out)


def _run_systemctl(*words: str) -> None:
    _run_or_refuse(["systemctl", *words])
