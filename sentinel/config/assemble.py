"""The sections of a configuration, and what a name in `checks` and `channels` holds."""

from collections.abc import Callable, Iterator
from typing import Any

from sentinel.config.convert import FAILED, Converter, fields, got, is_list, item_of
from sentinel.config.kinds import Kinds
from sentinel.config.problems import Collector
from sentinel.config.reader import Entry, Items, Node, Table
from sentinel.config.review import Review
from sentinel.config.settings import Settings
from sentinel.config.wording import did_you_mean
from sentinel.config.zones import timezone
from sentinel.core.errors import Invalid
from sentinel.core.text import visible

NAMED = ("checks", "channels")
SECTIONS = tuple(key for key in fields(Settings) if key != "path")
LISTS = tuple(key for key in SECTIONS if key not in NAMED and is_list(fields(Settings)[key].type))
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
        read: dict[str, Any] = {
            **{key: self._plain(root.entries[key]) for key in PLAIN if given(root, key)},
            **{key: tuple(items.values()) for key, items in lists.items()},
            "checks": tuple(self._named(root, "checks", self._kinds.check)),
            "channels": tuple(self._named(root, "channels", self._kinds.channel)),
        }
        settings = Settings(path=path, **{k: v for k, v in read.items() if v is not FAILED})
        registries, cron = self._kinds.known()
        Review(self._collector, root, settings, registries, cron).all(lists)
        return settings

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
