"""What of a changed configuration the kept history can answer. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import fields

from sentinel.alerting.settings import Inhibit, Match, Route, SilenceWindow
from sentinel.config.settings import Settings
from sentinel.core.kinds import Check
from sentinel.core.settings import CheckConfig

NO_EFFECT_KEYS = ("kind", "runbook", "labels", "for_", "keep_firing_for", "severity", "blind_after")
"""Keys that every check takes and that the replay itself follows, or that send nobody a message."""

NEW_CHECK = "the check is new"

UNPLAYED_SECTIONS = ("slurm", "clusters", "remote", "lemons", "actions", "guard")
"""Sections of the file that decide what is seen and done, and not who hears of it."""


class CheckChange(Struct, frozen=True, kw_only=True):
    """How a check of the new file differs from the present one.

    before: Its name in the present file; empty: it is new.
    unknown: Keys whose effect cannot be known from history.
    at_least: Reasons for which more messages may have come than the replay shows.
    limits: Whether its limits differ in what samples decide.
    """

    name: str
    before: str
    unknown: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    limits: bool = False


def compare_checks(present: Settings, wanted: Settings) -> list[CheckChange]:
    """One row for each check of the wanted file, in its order."""
    before = {check.name: check for check in present.checks}
    return [_compare_check(check, before, wanted) for check in wanted.checks]


def uses_labels(settings: Settings) -> bool:
    """Whether any rule asks for labels of alerts beyond check, kind, severity and subject."""
    return any(_asks_for_labels(match) for match in _list_matches(settings)) or any(
        rule.same for rule in settings.inhibit
    )


def list_unplayed_sections(present: Settings, wanted: Settings) -> list[str]:
    """The sections that differ, and whose effect cannot be known from history."""
    return [s for s in UNPLAYED_SECTIONS if getattr(present, s) != getattr(wanted, s)]


def damps_less(present: Settings, wanted: Settings) -> bool:
    """Whether alerts that change often would be told more often: their changes are not all kept."""
    old, new = present.flapping, wanted.flapping
    return old.changes > 0 and (
        not new.changes or new.changes > old.changes or new.window < old.window
    )


def _compare_check(
    check: CheckConfig, before: Mapping[str, CheckConfig], wanted: Settings
) -> CheckChange:
    old = before.get(check.name) or _find_former_name(check, before, wanted)
    if old is None or old.common.kind != check.common.kind:
        return CheckChange(name=check.name, before="", unknown=(NEW_CHECK,))
    unknown = [
        field.encode_name
        for field in fields(check.common)
        if field.name not in NO_EFFECT_KEYS
        and getattr(check.common, field.name) != getattr(old.common, field.name)
    ]
    plugin, limits = _compare_plugin(old.plugin, check.plugin)
    return CheckChange(
        name=check.name,
        before=old.name,
        unknown=(*unknown, *plugin),
        at_least=tuple(_list_hidden_gains(old, check)),
        limits=limits,
    )


def _compare_plugin(old: Check, new: Check) -> tuple[list[str], bool]:
    """Keys of the kind whose effect cannot be known, and whether samples decide the others."""
    if old == new:
        return [], False
    rest_old, rest_new = old, new
    if new.LIMIT_SAMPLES:
        rest_old, rest_new = old.without_sampled_limits(), new.without_sampled_limits()
    unknown = [
        field.encode_name
        for field in fields(new)
        if getattr(rest_old, field.name) != getattr(rest_new, field.name)
    ]
    return unknown, rest_old == rest_new


def _find_former_name(
    check: CheckConfig, before: Mapping[str, CheckConfig], wanted: Settings
) -> CheckConfig | None:
    """The only check of that kind that is gone under its name and looks at the same."""
    names = {one.name for one in wanted.checks}
    alike = [
        old
        for old in before.values()
        if old.name not in names
        and old.common.kind == check.common.kind
        and old.plugin == check.plugin
    ]
    return alike[0] if len(alike) == 1 else None


def _list_hidden_gains(old: CheckConfig, new: CheckConfig) -> Iterator[str]:
    """Why alerts that were never told, so that nothing of them is kept, might have been told."""
    was, now = old.common, new.common
    if was.for_ is not None and (now.for_ is None or now.for_ < was.for_):
        yield "for: what was shorter than the present one is not kept"
    if now.keep_firing_for < was.keep_firing_for:
        yield "keep_firing_for: good times shorter than the present one are not kept"
    if now.blind_after < was.blind_after:
        yield "blind_after: fewer failed runs than the present number are not kept"
    if was.severity == "warning" and now.severity == "critical":
        yield "severity: what was critical is kept as a warning"


def _list_matches(settings: Settings) -> Iterator[Match]:
    rules: Sequence[Route | SilenceWindow] = (*settings.routes, *settings.silences)
    yield from (rule.match for rule in rules)
    inhibit: Sequence[Inhibit] = settings.inhibit
    for rule in inhibit:
        yield from (rule.when, rule.mute)


def _asks_for_labels(match: Match) -> bool:
    return bool(
        match.labels
        or match.matchers
        or any(v is not None for v in (match.node, match.user, match.partition, match.job))
    )
