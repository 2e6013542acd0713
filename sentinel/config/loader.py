"""The file -> Settings: read, converted and checked as a whole, or every reason why not."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.config.convert import FAILED, SettingsConverter
from sentinel.config.kind_builder import KindBuilder
from sentinel.config.near_misses import did_you_mean, nearest_word
from sentinel.config.nodes import ConfigNode, ListNode, TableEntry, TableNode
from sentinel.config.problems import ConfigError, Path, Problem, ProblemCollector
from sentinel.config.reader import read_yaml
from sentinel.config.registry import KindRegistries, KindRegistry
from sentinel.config.review import ConfigReview
from sentinel.config.settings import Settings
from sentinel.config.shapes import list_item_type, list_keys, settings_fields
from sentinel.config.sources import (
    ConfigSources,
    TextReference,
    is_open_to_everybody,
    read_contents,
)
from sentinel.config.wording import describe_given
from sentinel.core.errors import Invalid
from sentinel.core.guidance import quote_command
from sentinel.core.patterns import SEARCH_TIMEOUT_S
from sentinel.core.settings import ChannelConfig
from sentinel.core.text import visible
from sentinel.trust import find_site_trust, get_site_trust, set_site_trust


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
        # before the first kind is loaded: it may be a plugin in a folder of theirs
        named = (lists[key].values() for key in ("trust", "trust_groups"))
        set_site_trust(find_site_trust(*named))
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
        starts = {name: one.command_start for name, one in settings.clusters.items()}
        checks = (replace(c, before=starts.get(c.common.cluster, "")) for c in settings.checks)
        settings = replace(settings, checks=tuple(checks))
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

    settings: Settings  # The settings.
    warnings: tuple[Problem, ...] = ()  # Remarks that are not errors.
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
    an error, a secret that everybody can read too, and what only costs time is warned of. `channels` None: they are left out, and nothing
    is said of them. `text` is read in place of the file, as if it stood there.
    From now on this process trusts whom the file names.
    """
    collector, trusted = ProblemCollector(path), get_site_trust()
    data, mode = _read_file(path, collector) if text is None else (text, 0)
    root = read_yaml(data, collector)
    folder = os.path.dirname(os.path.abspath(path))
    converter = SettingsConverter(
        collector, ConfigSources(os.environ if env is None else env, folder)
    )
    kinds = KindBuilder(converter, collector, KindRegistries(checks, channels, actions), strict)
    settings = SettingsAssembler(converter, collector, kinds).assemble_settings(root, path)
    _tell_open_secrets(
        converter,
        path if is_open_to_everybody(path, mode) else "",
        collector.add_error if strict else collector.add_warning,
    )
    if strict:
        _warn_guarded(converter, collector)
    try:
        collector.raise_if_errors()
    except ConfigError:
        set_site_trust(trusted)
        raise
    return LoadedConfig(settings, collector.list_warnings(), converter.references)


def load_channels(path: str, text: bytes, channels: KindRegistry) -> Settings:
    """The channels in a text that may have other errors. They are used to report that the file is
    refused. Raises ConfigError if it is no YAML."""
    collector = ProblemCollector(path)
    folder = os.path.dirname(os.path.abspath(path))
    converter = SettingsConverter(collector, ConfigSources(os.environ, folder))
    registries = KindRegistries(KindRegistry({}, ""), channels, None)
    kinds = KindBuilder(converter, collector, registries)
    root = read_yaml(text, collector)
    if not isinstance(root, TableNode):
        return Settings(path=path)
    wanted = ("channels", "cluster", "state", "spare_state", "trust", "trust_groups")
    kept = {key: entry for key, entry in root.entries.items() if key in wanted}
    assembler = SettingsAssembler(converter, collector, kinds)
    return assembler.assemble_settings(TableNode(kept, root.line), path)


def _read_file(path: str, collector: ProblemCollector) -> tuple[bytes, int]:
    try:
        return read_contents(path, _MAX_FILE_BYTES)
    except OSError as error:
        collector.refuse_file(0, f"the file cannot be read: {error.strerror or error}")


def _tell_open_secrets(
    converter: SettingsConverter, open_path: str, tell: Callable[[int, Path, str], None]
) -> None:
    """Every secret that all users of this host can read; `open_path`: the file itself, where they can."""
    remedy = open_path and (
        f"a secret stands in a file that everybody can read; {quote_command('chmod', '600', open_path)},"
        " or write {file: PATH} in its place"
    )
    for key, line in converter.exposed if open_path else ():
        tell(line, key, remedy)
    for key, line, words in converter.loose:
        tell(line, key, words)


def _warn_guarded(converter: SettingsConverter, collector: ProblemCollector) -> None:
    for key, line in converter.guarded:
        collector.add_warning(
            line,
            key,
            "this regular expression may search without an end: each search is given up after "
            f"{SEARCH_TIMEOUT_S:g} s, and a long log may be read three times as slowly (names of jobs and files "
            "are short). Begin it with ^.* or end each * and + at a character that it cannot match",
        )
