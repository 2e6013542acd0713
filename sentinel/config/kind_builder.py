"""Builds a configured check, channel or action of its kind."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.config.convert import FAILED, SettingsConverter
from sentinel.config.foreign import BROKEN, describe_error, try_plugin
from sentinel.config.near_misses import did_you_mean
from sentinel.config.nodes import ScalarNode, TableEntry, TableNode, line_at
from sentinel.config.problems import Path, ProblemCollector, UnfitKind
from sentinel.config.registry import BrokenKind, KindRegistries, KindRegistry, UnknownKind
from sentinel.config.shapes import settings_fields
from sentinel.config.wording import describe_given
from sentinel.core import cron
from sentinel.core.errors import Invalid
from sentinel.core.settings import ChannelCommon, ChannelConfig, CheckCommon, CheckConfig
from sentinel.trust import UntrustedFile

SHORTEST_EVERY = 1.0
"""Seconds; more often than that nothing is seen that the last run did not see."""


class KindBuilder:
    """Builds checks and channels of the kinds that the registries know."""

    def __init__(
        self,
        converter: SettingsConverter,
        collector: ProblemCollector,
        registries: KindRegistries,
        strict: bool = False,
    ) -> None:
        """`strict`: a kind that does not load is an error, and not what its check says."""
        self._converter, self._collector = converter, collector
        self.registries, self._strict = registries, strict
        self._checks = registries.checks

    def build_check(self, entry: TableEntry) -> Iterator[CheckConfig]:
        """The check, or nothing where something is wrong."""
        path = ("checks", entry.key)
        kind, cls = self._find_kind(entry.value, self._checks, path)
        shared, own = _split_keys(entry.value, CheckCommon)
        common = self._common_settings(
            replace(shared, entries={**shared.entries, "kind": kind}), path
        )
        if cls is None:
            return
        plugin = self._build_plugin(own, cls, path, CheckCommon, kind, self._checks)
        if common is not FAILED and plugin is not FAILED:
            yield CheckConfig(name=entry.key, common=common, plugin=plugin)

    def build_channel(self, entry: TableEntry) -> Iterator[ChannelConfig]:
        """The channel, or nothing where something is wrong."""
        path = ("channels", entry.key)
        registry = self.registries.channels
        assert registry is not None, "channels are left out"
        kind, cls = self._find_kind(entry.value, registry, path)
        if cls is None:
            return
        shared, own = _split_keys(entry.value, ChannelCommon)
        shared = replace(shared, entries={**shared.entries, "kind": kind})
        common = self._converter.convert_record(shared, ChannelCommon, path)
        plugin = self._build_plugin(own, cls, path, ChannelCommon, kind, registry)
        if common is not FAILED and plugin is not FAILED:
            name = kind.value.text
            yield ChannelConfig(name=entry.key, kind=name, plugin=plugin, common=common)

    def add_folders(self, folders: Sequence[str], root: TableNode) -> None:
        """Find kinds of checks in the files of the directories of `checks_from`."""
        readable = []
        for place, folder in enumerate(folders):
            try:
                os.listdir(folder)
                readable.append(folder)
            except OSError as error:
                where, why = ("checks_from", place), error.strerror or str(error)
                self._collector.add_error(line_at(root, where), where, f"{folder}: {why}")
        self._checks.add_folders(readable)
        for _, origin, words in self._checks.hidden_kinds() if readable else ():
            line = line_at(root, ("checks_from",))
            self._collector.add_warning(line, ("checks_from",), f"{origin}: {words}")

    def _build_plugin(
        self,
        own: TableNode,
        cls: Any,
        path: Path,
        common: Any,
        kind: TableEntry,
        registry: KindRegistry,
    ) -> Any:
        """The settings object; what stands for a kind that does not load has none to be judged."""
        if not isinstance(cls, type):
            return cls
        if registry.kind_origin(kind.value.text) == "sentinel":
            return self._converter.convert_record(own, cls, path, others=settings_fields(common))
        try:
            plugin = self._converter.convert_record(own, cls, path, others=settings_fields(common))
            return plugin if plugin is FAILED else try_plugin(plugin, registry.base)
        except Exception as error:  # a plugin's code may raise anything
            return self._stand_in_for_unfit(error, cls, kind, registry, path)

    def _stand_in_for_unfit(
        self, error: Exception, cls: Any, kind: TableEntry, registry: KindRegistry, path: Path
    ) -> Any:
        """A substitute for a kind whose code raised an error while the file was read."""
        name = kind.value.text
        words = str(error) if isinstance(error, UnfitKind) else describe_error(error, cls)
        place = registry.kind_origin(name)
        broken = f"kind {name!r} from {place} does not work: {words}"
        return self._stand_in_for_broken(broken, kind, registry, path)

    def _find_kind(
        self, table: TableNode, registry: KindRegistry, path: Path
    ) -> tuple[TableEntry, Any]:
        """The entry that names the kind (an empty one where there is none), and its class."""
        nameless = TableEntry("kind", table.line, ScalarNode("", "", table.line))
        entry = table.entries.get("kind", nameless)
        if not isinstance(entry.value, ScalarNode) or not entry.value.text:
            what = "is missing" if entry is nameless else f"got {describe_given(entry.value)}"
            problem = f"{what}; expected one of {', '.join(registry.kind_names())}"
            self._collector.add_error(entry.line, (*path, "kind"), problem)
            return nameless, None
        entry = replace(
            entry, value=ScalarNode(entry.value.text, entry.value.text, entry.value.line)
        )
        try:
            return entry, registry.load_kind(entry.value.text)
        except (BrokenKind, UntrustedFile) as error:
            return entry, self._stand_in_for_broken(str(error), entry, registry, path)
        except UnknownKind as error:
            if not self._strict and entry.value.text in registry:  # its file is not there
                return entry, self._stand_in_for_broken(str(error), entry, registry, path)
            self._collector.add_error(
                entry.line, (*path, "kind"), _unknown_kind_error(error, entry, registry)
            )
            return entry, None
        except (ImportError, SyntaxError) as error:
            if self._strict:
                raise
            from sentinel.proc.installation import require_settled_package  # only if it is broken

            require_settled_package()
            broken = f"kind {entry.value.text!r} does not load: {error}; install sentinel again"
            return entry, self._stand_in_for_broken(broken, entry, registry, path)

    def _stand_in_for_broken(
        self, error: str, entry: TableEntry, registry: KindRegistry, path: Path
    ) -> Any:
        """What stands for a kind that does not load: the fault of its author, or of an installation
        that is not whole, must not cost the other checks."""
        tell = self._collector.add_error if self._strict else self._collector.add_warning
        tell(entry.line, (*path, "kind"), error)
        return BROKEN[registry.base](error)

    def _common_settings(self, shared: TableNode, path: Path) -> Any:
        common = self._converter.convert_record(shared, CheckCommon, path)
        if common is FAILED:
            return FAILED
        errors = list(_find_contradictions(common))
        for error in errors:
            self._collector.add_error(line_at(shared, error.path), (*path, *error.path), str(error))
        return FAILED if errors else common


def _split_keys(table: TableNode, common: Any) -> tuple[TableNode, TableNode]:
    """The keys that everything of its sort takes, and the kind's own."""
    shared = {k: e for k, e in table.entries.items() if k in settings_fields(common)}
    own = {k: e for k, e in table.entries.items() if k not in settings_fields(common)}
    return TableNode(shared, table.line), TableNode(own, table.line)


def _find_contradictions(common: CheckCommon) -> Iterator[Invalid]:
    if common.every is not None and common.cron is not None:
        yield Invalid("a check runs by 'every' or by 'cron'; remove one of them", "cron")
    if common.every is not None and common.every < SHORTEST_EVERY:
        yield Invalid(f"{common.every.exact()} is too often; at least 1s", "every")
    if common.timeout is not None and common.timeout <= 0:
        yield Invalid("a run needs some time; write it like 10s", "timeout")
    if common.blind_after < 1:
        yield Invalid(f"expected at least 1 run, got {common.blind_after}", "blind_after")
    if common.cron is not None:
        try:
            cron.parse_cron(common.cron)
        except Invalid as error:
            yield Invalid(str(error), "cron")


def _unknown_kind_error(error: UnknownKind, entry: TableEntry, registry: KindRegistry) -> str:
    names, kind = registry.kind_names(), entry.value.text
    return str(error) if kind in names else f"there is no kind '{kind}'{did_you_mean(kind, names)}"
