"""The file -> Settings: read, converted and checked as a whole, or every reason why not."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.config.convert import FAILED, SettingsConverter
from sentinel.config.nodes import ConfigNode, ListNode, ScalarNode, TableEntry, TableNode, line_at
from sentinel.config.problems import Path, Problem, ProblemCollector, did_you_mean, nearest_word
from sentinel.config.reader import read_yaml
from sentinel.config.registry import BrokenKind, KindRegistries, KindRegistry, UnknownKind
from sentinel.config.review import ConfigReview
from sentinel.config.settings import Settings
from sentinel.config.shapes import list_item_type, list_keys, settings_fields
from sentinel.config.sources import ConfigSources, TextReference, read_contents
from sentinel.config.wording import describe_given
from sentinel.core import cron
from sentinel.core.errors import Invalid
from sentinel.core.patterns import SEARCH_TIMEOUT_S
from sentinel.core.settings import ChannelCommon, ChannelConfig, CheckCommon, CheckConfig
from sentinel.core.text import visible


def check_timezone(name: str) -> str:
    """The name of a zone that this host knows, or an empty one; raises Invalid."""
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return name and ZoneInfo(name).key
    except (ValueError, OSError, LookupError):
        known = available_timezones()
    if not known:
        raise Invalid("this host has no time zone data; install tzdata")
    close = nearest_word(name, known)
    hint = f" (did you mean '{close}'?)" if close else "; write it like Europe/Berlin or UTC"
    raise Invalid(f"there is no time zone '{name}'{hint}")


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
        from sentinel.config.foreign import try_plugin

        try:
            plugin = self._converter.convert_record(own, cls, path, others=settings_fields(common))
            return plugin if plugin is FAILED else try_plugin(plugin, registry.base)
        except Exception as error:  # somebody else's code
            return self._stand_in_for_unfit(error, cls, kind, registry, path)

    def _stand_in_for_unfit(
        self, error: Exception, cls: Any, kind: TableEntry, registry: KindRegistry, path: Path
    ) -> Any:
        """What stands for a kind whose code raised while the file was read."""
        from sentinel.config.foreign import UnfitKind, describe_error

        name = kind.value.text
        words = str(error) if isinstance(error, UnfitKind) else describe_error(error, cls)
        place = registry.kind_origin(name)
        broken = BrokenKind(f"kind {name!r} from {place} does not work: {words}")
        return self._stand_in_for_broken(broken, kind, registry, path)

    def _find_kind(
        self, table: TableNode, registry: KindRegistry, path: Path
    ) -> tuple[TableEntry, Any]:
        """The entry that names the kind (an empty one where there is none), and its class."""
        nameless = TableEntry("kind", table.line, ScalarNode("", "", table.line))
        entry = table.entries.get("kind", nameless)
        if not isinstance(entry.value, ScalarNode) or not entry.value.text:
            what = (
                "this key is missing" if entry is nameless else f"got {describe_given(entry.value)}"
            )
            problem = f"{what}; expected one of {', '.join(registry.kind_names())}"
            self._collector.add_error(entry.line, (*path, "kind"), problem)
            return nameless, None
        entry = replace(
            entry, value=ScalarNode(entry.value.text, entry.value.text, entry.value.line)
        )
        try:
            return entry, registry.load_kind(entry.value.text)
        except BrokenKind as error:
            return entry, self._stand_in_for_broken(error, entry, registry, path)
        except UnknownKind as error:
            self._collector.add_error(
                entry.line, (*path, "kind"), _unknown_kind_error(error, entry, registry)
            )
            return entry, None

    def _stand_in_for_broken(
        self, error: BrokenKind, entry: TableEntry, registry: KindRegistry, path: Path
    ) -> Any:
        """What stands for a kind that is there and does not load: its fault is its author's, and
        must not cost the other checks."""
        tell = self._collector.add_error if self._strict else self._collector.add_warning
        tell(entry.line, (*path, "kind"), str(error))
        from sentinel.config.foreign import BROKEN

        return BROKEN[registry.base](str(error))

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


NAMED_SECTIONS = ("checks", "channels")
SECTIONS = tuple(key for key in settings_fields(Settings) if key != "path")
_NO_ITEMS = (*NAMED_SECTIONS, "checks_from")
LIST_SECTIONS = tuple(key for key in list_keys(Settings) if key not in _NO_ITEMS)
PLAIN_SECTIONS = tuple(key for key in SECTIONS if key not in (*NAMED_SECTIONS, *LIST_SECTIONS))
"""Lists and plain sections mean what their type says; a new field of Settings is one more."""

PRIVATE_PREFIX = "x-"
"""Keys of the top level that begin so are the user's own: a place for anchors."""


class SettingsAssembler:
    """Builds the Settings of one file; everything that is wrong goes to the collector."""

    def __init__(
        self, converter: SettingsConverter, collector: ProblemCollector, kinds: KindBuilder
    ) -> None:
        self._converter, self._collector, self._kinds = converter, collector, kinds

    def assemble_settings(self, root: ConfigNode, path: str = "") -> Settings:
        """What could be understood; it is only complete if the collector holds no error."""
        if not isinstance(root, TableNode):
            self._collector.add_error(
                root.line, (), f"the file must be a mapping, not {describe_given(root)}"
            )
            return Settings(path=path)
        self._refuse_unknown(root)
        lists = {key: self._list_section(root, key) for key in LIST_SECTIONS}
        plain = {
            key: self._plain_section(root.entries[key])
            for key in PLAIN_SECTIONS
            if is_given(root, key)
        }
        folders = plain.get("checks_from", ())
        if folders is not FAILED:
            beside = os.path.dirname(os.path.abspath(path))
            self._kinds.add_folders([os.path.join(beside, folder) for folder in folders], root)
        read: dict[str, Any] = {
            **plain,
            **{key: tuple(items.values()) for key, items in lists.items()},
            "checks": tuple(self._named_section(root, "checks", self._kinds.build_check)),
            "channels": tuple(self._read_channels(root)),
        }
        settings = Settings(path=path, **{k: v for k, v in read.items() if v is not FAILED})
        ConfigReview(self._collector, root, settings, self._kinds.registries).review_all(lists)
        return settings

    def _read_channels(self, root: TableNode) -> Iterator[ChannelConfig]:
        if self._kinds.registries.channels is not None:
            yield from self._named_section(root, "channels", self._kinds.build_channel)

    def _refuse_unknown(self, root: TableNode) -> None:
        for entry in root.entries.values():
            if entry.key not in SECTIONS and not entry.key.startswith(PRIVATE_PREFIX):
                hint = did_you_mean(entry.key, SECTIONS, "this version knows")
                self._collector.add_error(entry.line, (entry.key,), f"unknown key{hint}")

    def _plain_section(self, entry: TableEntry) -> Any:
        path, hint = (entry.key,), settings_fields(Settings)[entry.key].type
        value = self._converter.convert_node(entry.value, hint, path)
        judge = {"state": self._converter.state_place, "timezone": check_timezone}.get(entry.key)
        if judge is None or value is FAILED:
            return value
        try:
            return judge(value)
        except Invalid as error:
            return self._converter.collect_fault(error, entry.value, path)

    def _list_section(self, root: TableNode, key: str) -> dict[int, Any]:
        """The items that could be read, by their place, so that the others' faults hide nothing."""
        node = root.entries[key].value if is_given(root, key) else ListNode(())
        if not isinstance(node, ListNode):
            self._collector.add_error(
                node.line, (key,), f"expected a list, got {describe_given(node)}"
            )
            return {}
        item = list_item_type(settings_fields(Settings)[key].type)
        read = {
            i: self._converter.convert_node(n, item, (key, i)) for i, n in enumerate(node.items)
        }
        return {index: value for index, value in read.items() if value is not FAILED}

    def _named_section(
        self, root: TableNode, section: str, build: Callable[[TableEntry], Any]
    ) -> Iterator[Any]:
        named = root.entries[section].value if is_given(root, section) else TableNode({})
        if not isinstance(named, TableNode):
            problem = f"expected a mapping of names, got {describe_given(named)}"
            self._collector.add_error(named.line, (section,), problem)
            return
        for entry in named.entries.values():
            self._judge_name(section, entry)
            if isinstance(entry.value, TableNode):
                yield from build(entry)
            else:
                problem = (
                    f"expected a mapping with the key 'kind', got {describe_given(entry.value)}"
                )
                self._collector.add_error(entry.line, (section, entry.key), problem)

    def _judge_name(self, section: str, entry: TableEntry) -> None:
        name = entry.key
        if not name or name != visible(name).strip() or name.startswith("-"):
            problem = "a name must not be empty, begin with '-', or hold control characters or outer blanks"
            self._collector.add_error(entry.line, (section, name), problem)


def is_given(root: TableNode, key: str) -> bool:
    """Whether the section is there and not left empty."""
    return key in root.entries and getattr(root.entries[key].value, "value", ...) is not None


_MAX_FILE_BYTES = 4 * 1024 * 1024


class LoadedConfig(Struct, frozen=True):
    """A configuration that can be used, and what is odd about it.

    `references` are the paths of the texts that are kept elsewhere, for `show`.
    """

    settings: Settings
    warnings: tuple[Problem, ...] = ()
    references: Mapping[Path, TextReference] = {}


def load_config(
    path: str,
    checks: KindRegistry,
    channels: KindRegistry | None,
    env: Mapping[str, str] | None = None,
    actions: KindRegistry | None = None,
    strict: bool = False,
    text: bytes | None = None,
) -> LoadedConfig:
    """Raises ConfigError with every problem at once; `env` is by default the process's own.

    A check or channel whose kind does not load is there, and says so when it is run; `strict`: it is
    an error, and what only costs time is warned of. `channels` None: they are left out, and nothing
    is said of them. `text` is read in place of the file, as if it stood there.
    """
    collector = ProblemCollector(path)
    data, mode = _read_file(path, collector) if text is None else (text, 0)
    root = read_yaml(data, collector)
    folder = os.path.dirname(os.path.abspath(path))
    converter = SettingsConverter(
        collector, ConfigSources(os.environ if env is None else env, folder)
    )
    kinds = KindBuilder(converter, collector, KindRegistries(checks, channels, actions), strict)
    settings = SettingsAssembler(converter, collector, kinds).assemble_settings(root, path)
    if mode & stat.S_IROTH:
        _warn_exposed(converter, collector, path)
    if strict:
        _warn_guarded(converter, collector)
    collector.raise_if_errors()
    return LoadedConfig(settings, collector.list_warnings(), converter.references)


def _read_file(path: str, collector: ProblemCollector) -> tuple[bytes, int]:
    try:
        return read_contents(path, _MAX_FILE_BYTES)
    except OSError as error:
        collector.refuse_file(0, f"the file cannot be read: {error.strerror or error}")


def _warn_exposed(converter: SettingsConverter, collector: ProblemCollector, path: str) -> None:
    for key, line in converter.exposed:
        collector.add_warning(
            line,
            key,
            f"a secret stands in a file that everybody can read; chmod 600 {path}, "
            "or write {file: PATH} in its place",
        )


def _warn_guarded(converter: SettingsConverter, collector: ProblemCollector) -> None:
    for key, line in converter.guarded:
        collector.add_warning(
            line,
            key,
            "this regular expression may search without an end: each search is given up after "
            f"{SEARCH_TIMEOUT_S:g} s, and a long log may be read three times as slowly (names of jobs and files "
            "are short). Begin it with ^.* or end each * and + at a character that it cannot match",
        )
