"""The proof of watching: each check, what is asked of whom and how often, and what nobody sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text

if TYPE_CHECKING:
    from sentinel.alerting.observations import Outcome
    from sentinel.config.settings import Settings
    from sentinel.core.settings import CheckConfig

LONGEST = 400
AT_WORK = ("clean", "diag", "du", "exec")
"""Kinds whose look costs something, or runs a program of the user's: their last run counts."""


class Gap(Struct, frozen=True):
    """What is not watched, and what to do about it."""

    what: str
    remedy: str


def prove(
    settings: Settings, *, caller: str = "", progress: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Lines for people: each check is run once, without telling anybody. `caller`: what calls
    sentinel on time, where that is known already; else it is looked up."""
    gaps: list[Gap] = []
    yield "What is watched:"
    for check in settings.checks:
        progress(f"looking: {check.name}")
        yield from _one(check, settings, gaps)
    yield ""
    gaps += _whose(settings)
    yield f"What calls it: {caller or _caller(settings, gaps)}"
    yield f"Who is told: {_told(settings, gaps)}"
    gaps += _slurm_gaps(settings)
    gaps += _general_gaps(settings)
    yield ""
    yield "What is not watched:"
    for gap in gaps:
        yield f"  - {gap.what}"
        yield f"    What to do: {gap.remedy}"


def _one(check: CheckConfig, settings: Settings, gaps: list[Gap]) -> Iterator[str]:
    outcome = None if check.common.kind in AT_WORK else _look(check, settings)
    status = _status(outcome) if outcome else None
    seen = (
        f"now {status.value}: {_line(outcome.headline)}" if outcome and status else "not tried now"
    )
    yield f"  {visible(check.name)} ({check.common.kind}), {_often(check)}; {seen}"
    for source in check.plugin.SOURCES:
        yield f"      asks: {source}"
    if outcome and status is Status.UNKNOWN:
        text = f"{visible(check.name)} cannot see: {_line(outcome.headline)}"
        gaps.append(Gap(text, f"see {_page(check)}sentinel doctor"))
    elif outcome and outcome.partly:
        text = f"{visible(check.name)}: {_line(outcome.partly)}"
        gaps.append(Gap(text, f"nothing, if that is so; else see {_page(check)}sentinel doctor"))


def _page(check: CheckConfig) -> str:
    return f"{check.plugin.RUNBOOK}, and " if check.plugin.RUNBOOK else ""


def _look(check: CheckConfig, settings: Settings) -> Outcome:
    from sentinel.wiring import app

    return app.look(check, settings)


def _status(outcome: Outcome) -> Status:
    return max((f.status for f in outcome.findings), key=lambda s: s.rank)


def _often(check: CheckConfig) -> str:
    if check.common.cron is not None:
        return f"by the crontab line {check.common.cron!r}"
    from sentinel.core.due import every

    return f"every {duration_text(every(check))}"


def _line(text: str) -> str:
    return shortened(visible(text), LONGEST)


def _caller(settings: Settings, gaps: list[Gap]) -> str:
    from sentinel.chain import status
    from sentinel.slurm.client import Client
    from sentinel.wiring import app

    client = Client(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)
    try:
        facts = status.facts(app.chain_folder(settings), client)
    except SentinelError:
        facts = None
    if facts:
        gaps += [Gap(problem, "sentinel cron ensure") for problem in facts["problems"]]
        return f"{facts['mode']}, one pass every {duration_text(facts['every_s'])}"
    if leader := _leader(settings):
        return f"a service: {leader}"
    gaps.append(Gap(
        "anything at all: nothing calls sentinel by itself",
        "sentinel run in tmux, systemctl enable --now sentinel, or sentinel cron install",
    ))  # fmt: skip
    return "nothing"


def _whose(settings: Settings) -> Iterator[Gap]:
    """That somebody else's sentinel uses this file: it may see less, or more."""
    import os
    import pwd

    from sentinel.wiring import app

    state = app.state_of(settings)
    try:
        owner = os.stat(state).st_uid
    except OSError:
        return
    if owner != os.geteuid():
        try:
            name = pwd.getpwuid(owner).pw_name
        except KeyError:
            name = f"#{owner}"
        yield Gap(
            f"this is what you see; {name}, to whom {visible(state)} belongs, may see less",
            f"runuser -u {name} -- sentinel config check --proof -c {visible(settings.path)}",
        )


def _leader(settings: Settings) -> str:
    from sentinel.clock import SystemClock
    from sentinel.wiring import app

    try:
        if "://" not in app.state_of(settings) and not app.has_state(settings):
            return ""
        store, _ = app.open_state(settings, SystemClock(), mending=False)
    except SentinelError:
        return ""
    try:
        return visible(store.leader())
    except SentinelError:
        return ""
    finally:
        store.close()


def _told(settings: Settings, gaps: list[Gap]) -> str:
    from sentinel.clock import SystemClock
    from sentinel.config.route_preview import nobody, rehearse

    rows = list(rehearse(settings, SystemClock().now()))
    for name in dict.fromkeys(row.check for row in nobody(rows)):
        gaps.append(
            Gap(f"{visible(name)}: no channel hears of it", "sentinel config check --routes")
        )
    if all(c.kind in ("console", "file") for c in settings.channels):
        gaps.append(Gap(
            "nobody is told away from this machine", "sentinel add mail you@example.org"
        ))  # fmt: skip
    return ", ".join(f"{visible(c.name)} ({c.kind})" for c in settings.channels) or "nobody"


def _slurm_gaps(settings: Settings) -> Iterator[Gap]:
    from sentinel.wiring import app

    kinds = {c.common.kind for c in settings.checks}
    if not app.slurm_here() and not settings.slurm.command_prefix:
        yield Gap(
            "jobs and nodes: no Slurm was found on this host",
            "run sentinel where squeue works, or set slurm: {command_prefix: [ssh, LOGIN-NODE]}",
        )
        return
    if not kinds & {"job", "log"}:
        yield Gap("your trainings: no check of kind job", "sentinel add job NAME")
    if "job" in kinds and "checkpoint" not in kinds:
        yield Gap(
            "checkpoints: no folder of them was found, so work at risk is not counted",
            "add a check of kind checkpoint: docs/checkpoint.md",
        )
    yield from _accounting(settings)


def _accounting(settings: Settings) -> Iterator[Gap]:
    from sentinel.wiring import app

    try:
        config = app.snapshot(settings).config()
    except CannotTell as error:
        yield Gap(f"how Slurm is set up: {_line(str(error))}", "sentinel doctor")
        return
    if not config.accounting:
        keeps = duration_text(config.min_job_age)
        yield Gap(
            f"how a job ended, once Slurm has forgotten it after {keeps}: there is no accounting",
            "keep the passes closer together than that; an administrator can set up slurmdbd",
        )


def _general_gaps(settings: Settings) -> Iterator[Gap]:
    if settings.heartbeat is None:
        yield Gap(
            "sentinel itself: nobody notices when this whole machine or cluster is gone",
            'take an address at healthchecks.io and add heartbeat: {url: "…"}: docs/alerts.md',
        )
