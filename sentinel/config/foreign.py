"""Kinds from plugins: from entry points and from files in `checks_from`, and the requirements on
their classes. Nothing is imported before such a kind is used."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct

from sentinel.config.problems import UnfitKind
from sentinel.config.shapes import (
    LeafShape,
    ListShape,
    RecordShape,
    TableShape,
    UnionShape,
    settings_fields,
    type_shape,
)
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import CannotTell, ChannelError
from sentinel.core.kinds import Action, Channel, Check
from sentinel.core.model import Notification, Receipt, Report
from sentinel.core.ports import Context
from sentinel.core.settings import ChannelCommon, CheckCommon, FilePath, Secret
from sentinel.core.shown import Column
from sentinel.core.text import shortened, visible
from sentinel.trust import (
    TrustFault,
    UntrustedFile,
    describe_trusted_users,
    find_site_fault,
    find_tree_fault,
    get_trusted_gids,
    get_trusted_uids,
)

_COMMON: dict[Any, Any] = {Check: CheckCommon, Channel: ChannelCommon}
_NEEDED: dict[type, tuple[str, ...]] = {
    Check: ("run",),
    Channel: ("send",),
    Action: ("limits", "look", "commands"),
}
_SHORTEST_S, _LONGEST_S = 1.0, 365 * 86_400.0
"""Between runs, or for one: less would spin, and no clock counts to infinity."""
_PLAIN = (str, int, float, bool, type(None), Any, Secret, FilePath, re.Pattern)


def _are_seconds(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and _SHORTEST_S <= value <= _LONGEST_S  # type: ignore[operator]


def _is_tuple_of(item: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(isinstance(one, item) for one in value)


_SECONDS = "seconds like 60.0, from 1 s to a year"
_CONSTANTS: dict[Any, dict[str, tuple[Callable[[Any], bool], str]]] = {
    Check: {
        "EVERY": (_are_seconds, _SECONDS),
        "TIMEOUT": (_are_seconds, _SECONDS),
        "FOLLOW": (lambda value: value is None or _are_seconds(value), f"None, or {_SECONDS}"),
        "METRICS": (_is_tuple_of(Metric), "a tuple of Metric; one alone has a comma: (…,)"),
        "PANEL": (get_args(Panel).__contains__, f"one of {', '.join(get_args(Panel))}"),
        "SOURCES": (_is_tuple_of(str), "a tuple of str; one alone has a comma: (…,)"),
        "COLUMNS": (_is_tuple_of(Column), "a tuple of Column; one alone has a comma: (…,)"),
        "ROW_COLUMNS": (_is_tuple_of(Column), "a tuple of Column; one alone has a comma: (…,)"),
        "RUNBOOK": (lambda value: isinstance(value, str), "a text"),
    }
}
"""The questions to all kinds, each with the test for its answer and the expected type. A wrong
answer would prevent all other checks from running."""


class BrokenCheck(Check, frozen=True):
    """Stands for a check whose kind does not load: it cannot tell, and says why; the rest runs."""

    why: str

    def run(self, ctx: Context) -> Report:
        """Raises CannotTell."""
        raise CannotTell(self.why)


class BrokenChannel(Channel, frozen=True):
    """Stands for a channel whose kind does not load: what it is given waits until it does."""

    why: str

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Raises ChannelError."""
        raise ChannelError(self.why, reason="internal")


BROKEN: dict[Any, Callable[[str], Check | Channel]] = {
    Check: lambda why: BrokenCheck(why=why),
    Channel: lambda why: BrokenChannel(why=why),
}


class PackagedKind(Struct, frozen=True):
    """A kind by an entry point."""

    entry: Any  # The entry point.

    @property
    def kind_origin(self) -> str:
        """The distribution and its version."""
        found = self.entry.dist
        return f"{found.name} {found.version}" if found else "unknown"

    @property
    def place(self) -> str:
        """The place of its code, for people."""
        files = [home for home in self._code_files() if home.endswith(".py")]
        return f"{self.kind_origin} ({files[0]})" if files else self.kind_origin

    def load_class(self, base: type) -> Any:
        """The class. Raises UntrustedFile before it is imported, and UnfitKind."""
        trusted = get_trusted_uids() | {os.stat(__file__).st_uid}
        for home in self._code_files():
            while not os.path.lexists(home):  # the file is inside of an archive
                home = os.path.dirname(home)
            fault = find_tree_fault(home, trusted, get_trusted_gids())
            _refuse_distrusted(fault, f"the plugin {self.entry.name!r} in {home}")
        try:
            found = self.entry.load()
        except (Exception, SystemExit) as error:
            raise UnfitKind(_error_line(error, "")) from error
        return judge_class(found, base)

    def _code_files(self) -> Iterator[str]:
        """The files of its top-level package or module, and what names it; nothing is imported."""
        if (dist := self.entry.dist) is not None:
            yield os.path.abspath(str(getattr(dist, "_path", dist.locate_file(""))))
        spec = find_spec(self.entry.module.partition(".")[0])
        if spec is None:
            return
        yield from spec.submodule_search_locations or ()
        if spec.origin and spec.has_location:
            yield spec.origin


class FiledKind(Struct, frozen=True):
    """A kind in a file with the same name."""

    path: str  # Path of the file.

    @property
    def kind_name(self) -> str:
        """The kind."""
        return os.path.basename(self.path).removesuffix(".py")

    @property
    def kind_origin(self) -> str:
        """The file."""
        return self.path

    place = kind_origin

    def load_class(self, base: type) -> Any:
        """The class; that of an unchanged file is the same each time. Raises UntrustedFile before
        anything is run, and UnfitKind."""
        try:
            for path in (os.path.dirname(self.path), self.path):
                _refuse_distrusted(find_site_fault(path), f"the plugin {self.path}")
            with open(self.path, "rb") as file:
                source = file.read()
        except OSError as error:
            raise UnfitKind(error.strerror or str(error)) from error
        known = _loaded.get(self.path)
        if known is None or known[0] != source:
            known = _loaded[self.path] = source, self._run_source(source, base)
        return judge_class(known[1], base)

    def _run_source(self, source: bytes, base: type) -> Any:
        name = f"sentinel_checks_from.{os.path.basename(self.path)}"
        module = sys.modules[name] = ModuleType(name)  # annotations are resolved in this module
        module.__file__ = self.path
        try:
            exec(compile(source, self.path, "exec"), vars(module))  # noqa: S102
        except (Exception, SystemExit) as error:
            raise UnfitKind(_error_line(error, self.path)) from error
        kinds = [
            found
            for found in vars(module).values()
            if isinstance(found, type) and issubclass(found, base) and found.__module__ == name
        ]
        if len(kinds) != 1:
            names = ", ".join(kind.__name__ for kind in kinds) or "none"
            raise UnfitKind(f"one class with the base {base.__name__} is wanted, here: {names}")
        return kinds[0]


_loaded: dict[str, tuple[bytes, Any]] = {}


def find_filed_kinds(folders: Collection[str]) -> Iterator[FiledKind]:
    """The files of these directories that hold a kind; raises OSError."""
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py") and not name.startswith((".", "_")):
                yield FiledKind(os.path.join(folder, name))


def judge_class(cls: Any, base: type) -> Any:
    """The class, if it is fit to be a kind; else raises UnfitKind with all that is wrong."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise UnfitKind(f"{cls!r} has not the base class sentinel.plugin.{base.__name__}")
    if wrong := [*_field_faults(cls, base), *_member_faults(cls, base)]:
        raise UnfitKind("; ".join(wrong))
    return cls


_ASKED: dict[type, Mapping[str, Any]] = {
    Check: {
        "may_ask": bool,
        "looks_into_nodes": bool,
        "grants": Mapping,
        "unused": Iterable,
        "watched_logs": Sequence,
        "trusted_paths": Sequence,
        "controller_log": str,
        "jobs_of": Set | None,
    },
    Channel: {
        "personal": bool,
        "per_day": int,
        "listens": bool,
        "unused": Iterable,
        "trusted_paths": Sequence,
    },
}


def try_plugin(plugin: Any, base: type) -> Any:
    """The plugin, if each hook that is called before any run gives a valid answer. Otherwise raises
    UnfitKind, because an error there would prevent all other checks from running."""
    for name, wanted in _ASKED[base].items():
        try:
            found = getattr(plugin, name)
            found = found() if isinstance(getattr(base, name), FunctionType) else found
            fits = isinstance(found, wanted)
            if isinstance(found, Iterator):
                deque(found, maxlen=0)
        # a problem of this run, not of the plugin's code; the run will report it
        except CannotTell:
            continue
        except (Exception, SystemExit) as error:
            raise UnfitKind(f"`{name}`: {_error_line(error, kind_file(plugin))}") from error
        if not fits:
            raise UnfitKind(
                f"`{name}` gives {shortened(repr(found), 80)}; see sentinel.plugin.{base.__name__}"
            )
    return plugin


def describe_error(error: BaseException, kind: Any) -> str:
    """What went wrong in the code of a kind, with the line."""
    return _error_line(error, kind_file(kind))


def kind_file(kind: Any) -> str:
    """The file of a kind's class, or of its instance's class. Empty if it has none."""
    cls = kind if isinstance(kind, type) else type(kind)
    return str(getattr(sys.modules.get(cls.__module__), "__file__", ""))


def _field_faults(cls: Any, base: type) -> Iterator[str]:
    try:
        own = settings_fields(cls)
    except (NameError, TypeError) as error:
        yield f"a field's type: {error}"
        return
    taken = settings_fields(_COMMON[base]) if base in _COMMON else {}
    for key, info in own.items():
        if key in taken:
            yield f"field {key!r} is a key that every {base.__name__.lower()} has; rename it"
        for kind in _unsupported_types(info.type):
            name = getattr(kind, "__name__", kind)
            yield (
                f"field {key!r}: the type {name} is not supported; use str, int, float, bool, Literal,"
                " Duration, Size, Share, FilePath, Secret, or a list, dict or Struct of them"
            )


def _unsupported_types(hint: Any) -> Iterator[Any]:
    found = type_shape(hint)
    if isinstance(found, UnionShape):
        for one in found.types:
            yield from _unsupported_types(one)
    elif isinstance(found, RecordShape):
        for info in settings_fields(found.cls).values():
            yield from _unsupported_types(info.type)
    elif isinstance(found, ListShape | TableShape):
        yield from _unsupported_types(found.item if isinstance(found, ListShape) else found.value)
    elif isinstance(found, LeafShape) and not _is_supported(found.type):
        yield found.type


def _is_supported(kind: Any) -> bool:
    if kind in _PLAIN or get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and (issubclass(kind, Enum) or hasattr(kind, "parse"))


def _member_faults(cls: type, base: type) -> Iterator[str]:
    for name in _NEEDED[base]:
        if _find_member(cls, name) is _find_member(base, name):
            yield f"it has no `{name}`"
    for name, (fits, wanted) in _CONSTANTS.get(base, {}).items():
        value = getattr(cls, name)
        if not fits(value):
            yield f"`{name}` is {shortened(repr(value), 80)}; expected {wanted}"


def _find_member(cls: type, name: str) -> Any:
    """The member as it is in the class. So no code of a descriptor runs."""
    return next((vars(parent)[name] for parent in cls.__mro__ if name in vars(parent)), None)


def _refuse_distrusted(wrong: TrustFault | None, what: str) -> None:
    if wrong:
        raise UntrustedFile(
            f"{what} is not used: {visible(wrong.path)} {wrong.why}, and what runs here must be changed by "
            f"nobody but {describe_trusted_users()}{f'; {wrong.mend}' if wrong.mend else ''}; or install it where that is so"
        )


def _error_line(error: BaseException, path: str) -> str:
    """The error, and the last line of the file where it arose."""
    if isinstance(error, SyntaxError):
        return f"{error!r}" if error.lineno is None else f"line {error.lineno}: {error!r}"
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == path]
    return f"line {lines[-1]}: {error!r}" if lines else repr(error)
