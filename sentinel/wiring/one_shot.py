"""Makes and runs checks that a command line requests once, by kind and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sentinel.clock import SystemClock
from sentinel.config.near_misses import nearest_word
from sentinel.config.options import as_typed, help_lines, required_options
from sentinel.config.options import settings_from_options as convert
from sentinel.config.problems import BadOptions
from sentinel.config.registry import UnknownKind
from sentinel.core.ports import Context
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.wiring.app import CHECKS, UsageError, load_readable_settings
from sentinel.wiring.lazy import LazyRemote, LazySettings, LazySlurm

if TYPE_CHECKING:
    from sentinel.alerting.observations import RunOutcome
    from sentinel.config.settings import Settings
    from sentinel.core.ports import Logbook


def make_one_shot_check(
    kind: str, options: Mapping[str, list[str]], names: Sequence[str] = ()
) -> CheckConfig:
    """A check of that kind with settings from the command line. Raises UsageError."""
    cls = _load_check_kind(kind, names)
    try:
        plugin = convert(cls, options)
    except BadOptions as error:
        needed = required_options(cls)
        so = f"usage: sentinel check {kind} {needed}\n" if needed else ""
        text = f"{as_typed(cls, str(error))}\n{so}all options: sentinel check {kind} --help"
        raise UsageError(text) from error
    return CheckConfig(name=kind, common=CheckCommon(kind=kind), plugin=plugin)


def describe_options(kind: str, width: int = 100) -> list[str]:
    """Help lines for the options of a kind."""
    from textwrap import wrap  # only help needs it

    cls = _load_check_kind(kind, ())
    what = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
    more = [*(f"Asked: {source}" for source in cls.SOURCES)]
    more += [f"Read more: {cls.RUNBOOK}"] if cls.RUNBOOK else []
    return [
        *wrap(f"sentinel check {kind}: {what}", width),
        "",
        *help_lines(cls, width),
        "",
        *(
            row
            for line in more
            for row in wrap(line, width, initial_indent="  ", subsequent_indent="    ")
        ),
        "  --json, --nagios, --timeout TIME, -c FILE",
    ]


def run_check_once(
    check: CheckConfig, settings: Settings | None, logbook: Logbook | None = None
) -> RunOutcome:
    """Run a check once; nothing is stored. `logbook`: the history of nodes, if there is one."""
    from sentinel.engine.runner import CheckRunner

    clock = SystemClock()
    surroundings = LazySettings(lambda: settings or load_readable_settings(None, quiet=True))
    ctx = Context(
        name=check.name,
        now=clock.now(),
        limit=check.timeout_s,
        slurm=LazySlurm(surroundings, [check], clock, check.common.cluster),
        remote=None if check.common.cluster else LazyRemote(surroundings),
        logbook=None if check.common.cluster else logbook,
        one_shot=True,
    )
    return CheckRunner().run(check, ctx)


def _load_check_kind(kind: str, names: Sequence[str]) -> Any:
    try:
        return CHECKS.load_kind(kind)
    except UnknownKind as error:
        known = f"; configured checks: {', '.join(names)}" if names else ""
        kinds = ", ".join(CHECKS.kind_names())
        close = nearest_word(kind, [*CHECKS.kind_names(), *names])
        hint = f" (did you mean {close!r}?)" if close else ""
        text = (
            str(error)
            if kind in CHECKS.kind_names()
            else f"no check or kind {kind!r}; kinds: {kinds}{known}{hint}. "
            "A kind of your own is known from the file that has `checks_from`: -c FILE"
        )
        raise UsageError(text) from error
