"""What stands below the name of a check or a channel -> its kind's own settings object."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.config.convert import FAILED, Converter, fields, got
from sentinel.config.problems import Collector, Path
from sentinel.config.reader import Entry, Scalar, Table, line_at
from sentinel.config.registry import Registry, UnknownKind
from sentinel.config.wording import did_you_mean
from sentinel.core.errors import Invalid
from sentinel.core.settings import ChannelCommon, ChannelConfig, CheckConfig, Common

SHORTEST_EVERY = 1.0
"""Seconds; more often than that nothing is seen that the last run did not see."""


class Registries(Struct, frozen=True):
    """What is installed. Without `actions` the section of that name is not judged."""

    checks: Registry
    channels: Registry
    actions: Registry | None = None


class Kinds:
    """Builds checks and channels of the kinds that the registries know."""

    def __init__(
        self,
        converter: Converter,
        collector: Collector,
        registries: Registries,
        check_cron: Callable[[str], object],
    ) -> None:
        self._converter, self._collector = converter, collector
        self._registries, self._check_cron = registries, check_cron
        self._checks, self._channels = registries.checks, registries.channels

    def known(self) -> tuple[Registries, Callable[[str], object]]:
        """All kinds and the judge of schedules, for what stands outside of checks."""
        return self._registries, self._check_cron

    def check(self, entry: Entry) -> Iterator[CheckConfig]:
        """The check, or nothing where something is wrong."""
        path = ("checks", entry.key)
        kind, cls = self._kind(entry.value, self._checks, path)
        shared, own = _parted(entry.value, Common)
        common = self._common(replace(shared, entries={**shared.entries, "kind": kind}), path)
        if cls is None:
            return
        plugin = self._converter.record(own, cls, path, others=fields(Common))
        if common is not FAILED and plugin is not FAILED:
            yield CheckConfig(name=entry.key, common=common, plugin=plugin)

    def channel(self, entry: Entry) -> Iterator[ChannelConfig]:
        """The channel, or nothing where something is wrong."""
        path = ("channels", entry.key)
        kind, cls = self._kind(entry.value, self._channels, path)
        if cls is None:
            return
        shared, own = _parted(entry.value, ChannelCommon)
        shared = replace(shared, entries={**shared.entries, "kind": kind})
        common = self._converter.record(shared, ChannelCommon, path)
        plugin = self._converter.record(own, cls, path, others=fields(ChannelCommon))
        if common is not FAILED and plugin is not FAILED:
            name = kind.value.text
            yield ChannelConfig(name=entry.key, kind=name, plugin=plugin, common=common)

    def _kind(self, table: Table, registry: Registry, path: Path) -> tuple[Entry, Any]:
        """The entry that names the kind (an empty one where there is none), and its class."""
        nameless = Entry("kind", table.line, Scalar("", "", table.line))
        entry = table.entries.get("kind", nameless)
        if not isinstance(entry.value, Scalar) or not entry.value.text:
            what = "this key is missing" if entry is nameless else f"got {got(entry.value)}"
            problem = f"{what}; expected one of {', '.join(registry.names())}"
            self._collector.error(entry.line, (*path, "kind"), problem)
            return nameless, None
        entry = replace(entry, value=Scalar(entry.value.text, entry.value.text, entry.value.line))
        try:
            return entry, registry.load(entry.value.text)
        except UnknownKind as error:
            self._collector.error(entry.line, (*path, "kind"), _unknown(error, entry, registry))
            return entry, None

    def _common(self, shared: Table, path: Path) -> Any:
        common = self._converter.record(shared, Common, path)
        if common is FAILED:
            return FAILED
        errors = list(_contradictions(common))
        if common.cron is not None:
            errors += self._cron_errors(common.cron)
        for error in errors:
            self._collector.error(line_at(shared, error.path), (*path, *error.path), str(error))
        return FAILED if errors else common

    def _cron_errors(self, text: str) -> list[Invalid]:
        try:
            self._check_cron(text)
        except Invalid as error:
            return [Invalid(str(error), "cron")]
        return []


def _parted(table: Table, common: Any) -> tuple[Table, Table]:
    """The keys that everything of its sort takes, and the kind's own."""
    shared = {k: e for k, e in table.entries.items() if k in fields(common)}
    own = {k: e for k, e in table.entries.items() if k not in fields(common)}
    return Table(shared, table.line), Table(own, table.line)


def _contradictions(common: Common) -> Iterator[Invalid]:
    if common.every is not None and common.cron is not None:
        yield Invalid("a check runs by 'every' or by 'cron'; remove one of them", "cron")
    if common.every is not None and common.every < SHORTEST_EVERY:
        yield Invalid(f"{common.every.exact()} is too often; at least 1s", "every")
    if common.timeout is not None and common.timeout <= 0:
        yield Invalid("a run needs some time; write it like 10s", "timeout")
    if common.blind_after < 1:
        yield Invalid(f"expected at least 1 run, got {common.blind_after}", "blind_after")


def _unknown(error: UnknownKind, entry: Entry, registry: Registry) -> str:
    names, kind = registry.names(), entry.value.text
    return str(error) if kind in names else f"there is no kind '{kind}'{did_you_mean(kind, names)}"
