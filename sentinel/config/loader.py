"""The file -> Settings: read, converted and checked as a whole, or every reason why not."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.config.convert import FAILED, Converter
from sentinel.config.nodes import Entry, Items, Node, Scalar, Table, line_at
from sentinel.config.problems import Collector, Path, Problem, did_you_mean, near
from sentinel.config.reader import read
from sentinel.config.registry import BrokenKind, Registries, Registry, UnknownKind
from sentinel.config.review import Review
from sentinel.config.settings import Settings
from sentinel.config.shapes import fields, item_of, lists
from sentinel.config.sources import Reference, Sources, contents
from sentinel.config.wording import got
from sentinel.core import cron
from sentinel.core.errors import Invalid
from sentinel.core.patterns import LIMIT
from sentinel.core.settings import ChannelCommon, ChannelConfig, CheckConfig, Common
from sentinel.core.text import visible


def timezone(name: str) -> str:
    """The name of a zone that this host knows, or an empty one; raises Invalid."""
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return name and ZoneInfo(name).key
    except (ValueError, OSError, LookupError):
        known = available_timezones()
    if not known:
        raise Invalid("this host has no time zone data; install tzdata")
    close = near(name, known)
    hint = f" (did you mean '{close}'?)" if close else "; write it like Europe/Berlin or UTC"
    raise Invalid(f"there is no time zone '{name}'{hint}")


SHORTEST_EVERY = 1.0
"""Seconds; more often than that nothing is seen that the last run did not see."""


class Kinds:
    """Builds checks and channels of the kinds that the registries know."""

    def __init__(
        self,
        converter: Converter,
        collector: Collector,
        registries: Registries,
        strict: bool = False,
    ) -> None:
        """`strict`: a kind that does not load is an error, and not what its check says."""
        self._converter, self._collector = converter, collector
        self.registries, self._strict = registries, strict
        self._checks = registries.checks

    def check(self, entry: Entry) -> Iterator[CheckConfig]:
        """The check, or nothing where something is wrong."""
        path = ("checks", entry.key)
        kind, cls = self._kind(entry.value, self._checks, path)
        shared, own = _parted(entry.value, Common)
        common = self._common(replace(shared, entries={**shared.entries, "kind": kind}), path)
        if cls is None:
            return
        plugin = self._plugin(own, cls, path, Common, kind, self._checks)
        if common is not FAILED and plugin is not FAILED:
            yield CheckConfig(name=entry.key, common=common, plugin=plugin)

    def channel(self, entry: Entry) -> Iterator[ChannelConfig]:
        """The channel, or nothing where something is wrong."""
        path = ("channels", entry.key)
        registry = self.registries.channels
        assert registry is not None, "channels are left out"
        kind, cls = self._kind(entry.value, registry, path)
        if cls is None:
            return
        shared, own = _parted(entry.value, ChannelCommon)
        shared = replace(shared, entries={**shared.entries, "kind": kind})
        common = self._converter.record(shared, ChannelCommon, path)
        plugin = self._plugin(own, cls, path, ChannelCommon, kind, registry)
        if common is not FAILED and plugin is not FAILED:
            name = kind.value.text
            yield ChannelConfig(name=entry.key, kind=name, plugin=plugin, common=common)

    def look_in(self, folders: Sequence[str], root: Table) -> None:
        """Find kinds of checks in the files of the directories of `checks_from`."""
        readable = []
        for place, folder in enumerate(folders):
            try:
                os.listdir(folder)
                readable.append(folder)
            except OSError as error:
                where, why = ("checks_from", place), error.strerror or str(error)
                self._collector.error(line_at(root, where), where, f"{folder}: {why}")
        self._checks.look_in(readable)
        for _, origin, words in self._checks.hidden() if readable else ():
            line = line_at(root, ("checks_from",))
            self._collector.warn(line, ("checks_from",), f"{origin}: {words}")

    def _plugin(
        self, own: Table, cls: Any, path: Path, common: Any, kind: Entry, registry: Registry
    ) -> Any:
        """The settings object; what stands for a kind that does not load has none to be judged."""
        if not isinstance(cls, type):
            return cls
        if registry.origin(kind.value.text) == "sentinel":
            return self._converter.record(own, cls, path, others=fields(common))
        from sentinel.config.foreign import tried

        try:
            plugin = self._converter.record(own, cls, path, others=fields(common))
            return plugin if plugin is FAILED else tried(plugin, registry.base)
        except Exception as error:  # somebody else's code
            return self._unfit(error, cls, kind, registry, path)

    def _unfit(
        self, error: Exception, cls: Any, kind: Entry, registry: Registry, path: Path
    ) -> Any:
        """What stands for a kind whose code raised while the file was read."""
        from sentinel.config.foreign import Unfit, raised

        name = kind.value.text
        words = str(error) if isinstance(error, Unfit) else raised(error, cls)
        place = registry.origin(name)
        broken = BrokenKind(f"kind {name!r} from {place} does not work: {words}")
        return self._broken(broken, kind, registry, path)

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
        except BrokenKind as error:
            return entry, self._broken(error, entry, registry, path)
        except UnknownKind as error:
            self._collector.error(entry.line, (*path, "kind"), _unknown(error, entry, registry))
            return entry, None

    def _broken(self, error: BrokenKind, entry: Entry, registry: Registry, path: Path) -> Any:
        """What stands for a kind that is there and does not load: its fault is its author's, and
        must not cost the other checks."""
        tell = self._collector.error if self._strict else self._collector.warn
        tell(entry.line, (*path, "kind"), str(error))
        from sentinel.config.foreign import BROKEN

        return BROKEN[registry.base](str(error))

    def _common(self, shared: Table, path: Path) -> Any:
        common = self._converter.record(shared, Common, path)
        if common is FAILED:
            return FAILED
        errors = list(_contradictions(common))
        for error in errors:
            self._collector.error(line_at(shared, error.path), (*path, *error.path), str(error))
        return FAILED if errors else common


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
    if common.cron is not None:
        try:
            cron.parse(common.cron)
        except Invalid as error:
            yield Invalid(str(error), "cron")


def _unknown(error: UnknownKind, entry: Entry, registry: Registry) -> str:
    names, kind = registry.names(), entry.value.text
    return str(error) if kind in names else f"there is no kind '{kind}'{did_you_mean(kind, names)}"


NAMED = ("checks", "channels")
SECTIONS = tuple(key for key in fields(Settings) if key != "path")
_NO_ITEMS = (*NAMED, "checks_from")
LISTS = tuple(key for key in lists(Settings) if key not in _NO_ITEMS)
PLAIN = tuple(key for key in SECTIONS if key not in (*NAMED, *LISTS))
"""Lists and plain sections mean what their type says; a new field of Settings is one more."""

PRIVATE = "x-"
"""Keys of the top level that begin so are the user's own: a place for anchors."""


class Assembler:
    """Builds the Settings of one file; everything that is wrong goes to the collector."""

    def __init__(self, converter: Converter, collector: Collector, kinds: Kinds) -> None:
        self._converter, self._collector, self._kinds = converter, collector, kinds

    def settings(self, root: Node, path: str = "") -> Settings:
        """What could be understood; it is only complete if the collector holds no error."""
        if not isinstance(root, Table):
            self._collector.error(root.line, (), f"the file must be a mapping, not {got(root)}")
            return Settings(path=path)
        self._refuse_unknown(root)
        lists = {key: self._list(root, key) for key in LISTS}
        plain = {key: self._plain(root.entries[key]) for key in PLAIN if given(root, key)}
        folders = plain.get("checks_from", ())
        if folders is not FAILED:
            beside = os.path.dirname(os.path.abspath(path))
            self._kinds.look_in([os.path.join(beside, folder) for folder in folders], root)
        read: dict[str, Any] = {
            **plain,
            **{key: tuple(items.values()) for key, items in lists.items()},
            "checks": tuple(self._named(root, "checks", self._kinds.check)),
            "channels": tuple(self._channels(root)),
        }
        settings = Settings(path=path, **{k: v for k, v in read.items() if v is not FAILED})
        Review(self._collector, root, settings, self._kinds.registries).all(lists)
        return settings

    def _channels(self, root: Table) -> Iterator[ChannelConfig]:
        if self._kinds.registries.channels is not None:
            yield from self._named(root, "channels", self._kinds.channel)

    def _refuse_unknown(self, root: Table) -> None:
        for entry in root.entries.values():
            if entry.key not in SECTIONS and not entry.key.startswith(PRIVATE):
                hint = did_you_mean(entry.key, SECTIONS, "this version knows")
                self._collector.error(entry.line, (entry.key,), f"unknown key{hint}")

    def _plain(self, entry: Entry) -> Any:
        path, hint = (entry.key,), fields(Settings)[entry.key].type
        value = self._converter.convert(entry.value, hint, path)
        judge = {"state": self._converter.place, "timezone": timezone}.get(entry.key)
        if judge is None or value is FAILED:
            return value
        try:
            return judge(value)
        except Invalid as error:
            return self._converter.fault(error, entry.value, path)

    def _list(self, root: Table, key: str) -> dict[int, Any]:
        """The items that could be read, by their place, so that the others' faults hide nothing."""
        node = root.entries[key].value if given(root, key) else Items(())
        if not isinstance(node, Items):
            self._collector.error(node.line, (key,), f"expected a list, got {got(node)}")
            return {}
        item = item_of(fields(Settings)[key].type)
        read = {i: self._converter.convert(n, item, (key, i)) for i, n in enumerate(node.items)}
        return {index: value for index, value in read.items() if value is not FAILED}

    def _named(self, root: Table, section: str, build: Callable[[Entry], Any]) -> Iterator[Any]:
        named = root.entries[section].value if given(root, section) else Table({})
        if not isinstance(named, Table):
            problem = f"expected a mapping of names, got {got(named)}"
            self._collector.error(named.line, (section,), problem)
            return
        for entry in named.entries.values():
            self._judge_name(section, entry)
            if isinstance(entry.value, Table):
                yield from build(entry)
            else:
                problem = f"expected a mapping with the key 'kind', got {got(entry.value)}"
                self._collector.error(entry.line, (section, entry.key), problem)

    def _judge_name(self, section: str, entry: Entry) -> None:
        name = entry.key
        if not name or name != visible(name).strip() or name.startswith("-"):
            problem = "a name must not be empty, begin with '-', or hold control characters or outer blanks"
            self._collector.error(entry.line, (section, name), problem)


def given(root: Table, key: str) -> bool:
    """Whether the section is there and not left empty."""
    return key in root.entries and getattr(root.entries[key].value, "value", ...) is not None


_LARGEST = 4 * 1024 * 1024


class Loaded(Struct, frozen=True):
    """A configuration that can be used, and what is odd about it.

    `references` are the paths of the texts that are kept elsewhere, for `show`.
    """

    settings: Settings
    warnings: tuple[Problem, ...] = ()
    references: Mapping[Path, Reference] = {}


def load(
    path: str,
    checks: Registry,
    channels: Registry | None,
    env: Mapping[str, str] | None = None,
    actions: Registry | None = None,
    strict: bool = False,
    text: bytes | None = None,
) -> Loaded:
    """Raises ConfigError with every problem at once; `env` is by default the process's own.

    A check or channel whose kind does not load is there, and says so when it is run; `strict`: it is
    an error, and what only costs time is warned of. `channels` None: they are left out, and nothing
    is said of them. `text` is read in place of the file, as if it stood there.
    """
    collector = Collector(path)
    data, mode = _bytes(path, collector) if text is None else (text, 0)
    root = read(data, collector)
    folder = os.path.dirname(os.path.abspath(path))
    converter = Converter(collector, Sources(os.environ if env is None else env, folder))
    kinds = Kinds(converter, collector, Registries(checks, channels, actions), strict)
    settings = Assembler(converter, collector, kinds).settings(root, path)
    if mode & stat.S_IROTH:
        _warn_exposed(converter, collector, path)
    if strict:
        _warn_guarded(converter, collector)
    collector.check()
    return Loaded(settings, collector.warnings(), converter.references)


def _bytes(path: str, collector: Collector) -> tuple[bytes, int]:
    try:
        return contents(path, _LARGEST)
    except OSError as error:
        collector.refuse(0, f"the file cannot be read: {error.strerror or error}")


def _warn_exposed(converter: Converter, collector: Collector, path: str) -> None:
    for key, line in converter.exposed:
        collector.warn(
            line,
            key,
            f"a secret stands in a file that everybody can read; chmod 600 {path}, "
            "or write {file: PATH} in its place",
        )


def _warn_guarded(converter: Converter, collector: Collector) -> None:
    for key, line in converter.guarded:
        collector.warn(
            line,
            key,
            "this regular expression may search without an end: each search is given up after "
            f"{LIMIT:g} s, and a long log may be read three times as slowly (names of jobs and files "
            "are short). Begin it with ^.* or end each * and + at a character that it cannot match",
        )
