"""Proves what is watched: for each check what it asks, of whom and how often, and what nobody
watches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sentinel.chain import status
from sentinel.clock import SystemClock
from sentinel.config.route_preview import preview_routes, unheard_previews
from sentinel.core.due import describe_pace, get_seen_interval_s
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.guidance import quote_command
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.slurm.client import SlurmClient
from sentinel.user_files.identity import user_name
from sentinel.wiring import app, one_shot
from sentinel.wiring.status import read_pass_interval

if TYPE_CHECKING:
    from sentinel.config.settings import Settings
    from sentinel.core.settings import CheckConfig

MAX_LINE_CHARS = 400
COSTLY_KINDS = ("clean", "diag", "du", "exec")
"""Kinds whose look costs something, or runs a program of the user's: their last run counts."""


class CoverageGap(Struct, frozen=True):
    """Something that is not watched, and what to do about it."""

    what: str
    remedy: str


def prove_watching(
    settings: Settings, *, caller: str = "", progress: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Lines for people. Each check is run once, without notifying anybody. `caller` is what calls
    sentinel. If it is None, it is searched."""
    gaps: list[CoverageGap] = []
    yield "What is watched:"
    for check in settings.checks:
        progress(f"looking: {check.name}")
        yield from _prove_check(check, settings, gaps)
    yield ""
    gaps += _find_owner_gaps(settings)
    yield f"What starts sentinel: {caller or _find_caller(settings, gaps)}"
    yield f"Who is told: {_describe_channels(settings, gaps)}"
    gaps += _find_slurm_gaps(settings)
    gaps += _find_general_gaps(settings)
    yield ""
    yield "What is not watched:"
    for gap in gaps:
        yield f"  - {gap.what}"
        yield f"    What to do: {gap.remedy}"


def _prove_check(check: CheckConfig, settings: Settings, gaps: list[CoverageGap]) -> Iterator[str]:
    outcome = (
        None if check.common.kind in COSTLY_KINDS else one_shot.run_check_once(check, settings)
    )
    status = max((f.status for f in outcome.findings), key=lambda s: s.rank) if outcome else None
    seen = (
        f"now {status.value}: {_shorten_line(outcome.headline)}"
        if outcome and status
        else "not tried now"
    )
    yield f"  {visible(check.name)} ({check.common.kind}), {_describe_interval(check, settings)}; {seen}"
    for source in check.plugin.SOURCES:
        yield f"      reads: {source}"
    if outcome and status is Status.UNKNOWN:
        text = f"{visible(check.name)} cannot see: {_shorten_line(outcome.headline)}"
        gaps.append(CoverageGap(text, f"see {_mention_runbook(check)}sentinel doctor"))
    elif outcome and outcome.unseen_summary:
        text = f"{visible(check.name)}: {_shorten_line(outcome.unseen_summary)}"
        gaps.append(
            CoverageGap(
                text, f"nothing, if that is so; else see {_mention_runbook(check)}sentinel doctor"
            )
        )


def _mention_runbook(check: CheckConfig) -> str:
    return f"{check.plugin.RUNBOOK}, and " if check.plugin.RUNBOOK else ""


def _describe_interval(check: CheckConfig, settings: Settings) -> str:
    if check.common.cron is not None:
        return f"by the crontab line {check.common.cron!r}"
    return f"every {duration_text(get_seen_interval_s(check, read_pass_interval(settings)))}"


def _shorten_line(text: str) -> str:
    return shortened(visible(text), MAX_LINE_CHARS)


def _find_caller(settings: Settings, gaps: list[CoverageGap]) -> str:
    if facts := _read_chain(settings):
        gaps += [CoverageGap(problem, "sentinel cron ensure") for problem in facts["problems"]]
        return f"{facts['mode']}, one pass {describe_pace(facts['every_s'])}"
    if leader := _find_leader(settings):
        return f"a service: {leader}"
    gaps.append(CoverageGap(
        "anything at all: nothing calls sentinel by itself",
        "sentinel run in tmux, systemctl enable --now sentinel, or sentinel cron install",
    ))  # fmt: skip
    return "nothing yet"


def _read_chain(settings: Settings) -> dict[str, Any] | None:
    """What calls sentinel in passes, and how often. None: nothing does, or it cannot be read."""
    client = SlurmClient(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)
    try:
        return status.chain_facts(app.get_chain_folder(settings), client)
    except SentinelError:
        return None


def _find_owner_gaps(settings: Settings) -> Iterator[CoverageGap]:
    """That somebody else's sentinel uses this file: it may see less, or more."""
    state = app.get_state_location(settings)
    try:
        owner = os.stat(state).st_uid
    except OSError:
        return
    if owner != os.geteuid():
        name = user_name(owner)
        yield CoverageGap(
            f"this is what you see; {name}, to whom {visible(state)} belongs, may see less",
            quote_command(
                *("runuser", "-u", name, "--", "sentinel"),
                *("config", "check", "--proof", "-c", settings.path),
            ),
        )


def _find_leader(settings: Settings) -> str:
    try:
        if "://" not in app.get_state_location(settings) and not app.has_state(settings):
            return ""
        store, _ = app.open_state(settings, SystemClock(), mending=False)
    except SentinelError:
        return ""
    try:
        return visible(store.read_leader())
    except SentinelError:
        return ""
    finally:
        store.close()


def _describe_channels(settings: Settings, gaps: list[CoverageGap]) -> str:
    rows = list(preview_routes(settings, SystemClock().now()))
    for name in dict.fromkeys(row.check for row in unheard_previews(rows)):
        gaps.append(
            CoverageGap(
                f"{visible(name)}: no channel hears of it", "sentinel config check --routes"
            )
        )
    if all(c.kind in ("console", "file") for c in settings.channels):
        gaps.append(CoverageGap(
            "nobody is told away from this machine", "sentinel add mail you@example.org"
        ))  # fmt: skip
    return ", ".join(f"{visible(c.name)} ({c.kind})" for c in settings.channels) or "nobody"


def _find_slurm_gaps(settings: Settings) -> Iterator[CoverageGap]:
    kinds = {c.common.kind for c in settings.checks}
    if not app.has_slurm() and not settings.slurm.command_prefix:
        yield CoverageGap(
            "jobs and nodes: no Slurm was found on this host",
            "run sentinel where squeue works, or set slurm: {command_prefix: [ssh, LOGIN-NODE]}",
        )
        return
    if not kinds & {"job", "log"}:
        yield CoverageGap("your trainings: no check of kind job", "sentinel add job NAME")
    if "job" in kinds and "checkpoint" not in kinds:
        yield CoverageGap(
            "checkpoints: no folder of them was found, so work at risk is not counted",
            "add a check of kind checkpoint: docs/checkpoint.md",
        )
    yield from _find_accounting_gaps(settings)


def _find_accounting_gaps(settings: Settings) -> Iterator[CoverageGap]:
    try:
        config = app.make_snapshot(settings).config()
    except CannotTell as error:
        yield CoverageGap(f"how Slurm is set up: {_shorten_line(str(error))}", "sentinel doctor")
        return
    chain = None if config.accounting else _read_chain(settings)
    closer = max(60, config.min_job_age - 60)
    if chain and chain["every_s"] > closer:
        keeps, closer_text = duration_text(config.min_job_age), duration_text(closer)
        yield CoverageGap(
            f"how a job ended, once Slurm has forgotten it after {keeps}: there is no accounting",
            f"a pass every {closer_text} sees it: sentinel cron install --mode {chain['mode']} "
            f"--every {closer_text}; an administrator can set up slurmdbd",
        )


def _find_general_gaps(settings: Settings) -> Iterator[CoverageGap]:
    if settings.heartbeat is None:
        yield CoverageGap(
            "sentinel itself: nobody notices when this whole machine or cluster is gone",
            'take an address at healthchecks.io and add heartbeat: {url: "…"}: docs/alerts.md',
        )
