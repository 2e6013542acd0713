"""Which kinds of checks, channels and actions there are, and where each comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sentinel.config.problems import UnfitKind
from sentinel.core.errors import SentinelError
from sentinel.core.kinds import Check

if TYPE_CHECKING:
    from sentinel.config.foreign import FiledKind, PackagedKind


class UnknownKind(SentinelError):
    """No such kind, or one that does not load; the text says which and why."""


class BrokenKind(UnknownKind):
    """It is there, and does not load."""


class KindRegistry:
    """Built-in kinds come from an explicit list. Those of plugins come from entry points of
    `group`, and from files in the given directories.

    Nothing is imported before it is used. A built-in name cannot be replaced. A plugin is imported
    only if nobody but root, the caller and (for an installed one) the owner of sentinel's own code
    can change it.
    """

    def __init__(self, builtin: Mapping[str, str], group: str, base: type = Check) -> None:
        self._builtin = builtin
        self._group = group
        self.base = base
        self._folders: tuple[str, ...] = ()

    def add_folders(self, folders: Sequence[str]) -> None:
        """Kinds are in the `*.py` of these directories too, and no longer in those before."""
        self._folders = tuple(folders)

    def load_kind(self, name: str) -> Any:
        """The class of that kind; raises UnknownKind, BrokenKind where it is there and unfit, or
        trust.UntrustedFile before it is imported, or BeingReplaced."""
        target = self._builtin.get(name)
        if target is None:
            return self._load_foreign(name)
        module, _, attribute = target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("sentinel."):
                raise
            _require_settled_package()
            raise UnknownKind(
                f"kind {name!r} is not part of this installation: {error.name} was taken out"
            ) from error

    def __contains__(self, name: str) -> bool:
        return name in self._builtin or name in self._foreign_kinds()

    def kind_names(self) -> list[str]:
        """All kinds, sorted; without built-in ones whose file was taken out."""
        here = {name for name, target in self._builtin.items() if _is_here(target)}
        return sorted(here | {*self._foreign_kinds()})

    def kind_origin(self, name: str) -> str:
        """`sentinel` for a built-in kind, else the distribution and its version, or the file."""
        if name in self._builtin:
            return "sentinel"
        return " and ".join(found.kind_origin for found in self._foreign_kinds()[name])

    def hidden_kinds(self) -> Iterator[tuple[str, str, str]]:
        """Third-party kinds that are not used because sentinel has one of that name: the name, the
        origin, and the words."""
        for name, found in self._find_foreign():
            if name in self._builtin:
                words = f"{name!r} is a kind of sentinel's own, which counts; rename this one"
                yield name, found.kind_origin, words

    def _load_foreign(self, name: str) -> Any:
        found = self._foreign_kinds().get(name)
        if found is None:
            _require_settled_package()
            raise UnknownKind(f"there is no kind {name!r}; known: {', '.join(self.kind_names())}")
        if len(found) > 1:
            places = " and in ".join(one.place for one in found)
            raise BrokenKind(f"kind {name!r} is there twice, in {places}: remove or rename one")
        try:
            return found[0].load_class(self.base)
        except UnfitKind as error:
            place = found[0].place
            raise BrokenKind(f"kind {name!r} from {place} does not load: {error}") from error

    def _foreign_kinds(self) -> dict[str, list[PackagedKind | FiledKind]]:
        by_name: dict[str, list[PackagedKind | FiledKind]] = {}
        for name, found in self._find_foreign():
            if name not in self._builtin:
                by_name.setdefault(name, []).append(found)
        return by_name

    def _find_foreign(self) -> Iterator[tuple[str, PackagedKind | FiledKind]]:
        packaged = may_be_announced(self._group, sys.path)
        if not packaged and not self._folders:
            return
        from sentinel.config import foreign  # most sites have no plugins

        if packaged:
            from importlib.metadata import entry_points

            for entry in entry_points(group=self._group):
                yield entry.name, foreign.PackagedKind(entry)
        for one in foreign.find_filed_kinds(self._folders):
            yield one.kind_name, one


def may_be_announced(group: str, places: Iterable[str]) -> bool:
    """Whether some distribution in these places may have entry points of that group. What
    importlib.metadata says takes a quarter of the time of a command; mostly there is none.
    Where metadata lie: https://packaging.python.org/en/latest/specifications/entry-points/"""
    if any(hasattr(f, "find_distributions") for f in sys.meta_path if f is not PathFinder):
        return True
    head = f"[{group}]".encode()
    return any(_may_announce(place or ".", head) for place in places)


def _may_announce(place: str, head: bytes) -> bool:
    """True also of a place that cannot be looked into, such as an archive."""
    try:
        names = os.listdir(place)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    for name in names:
        if name.endswith((".dist-info", ".egg-info", ".egg")) or name == "EGG-INFO":
            inside = "EGG-INFO" if name.endswith(".egg") else ""
            try:
                with open(os.path.join(place, name, inside, "entry_points.txt"), "rb") as file:
                    if head in file.read().replace(b" ", b""):
                        return True
            except FileNotFoundError:
                continue
            except OSError:
                if name.endswith(".egg"):  # a package in a single archive file
                    return True
    return False


class KindRegistries(Struct, frozen=True):
    """What is installed. Without `actions` the section of that name is not judged, without `channels`
    theirs is not read."""

    checks: KindRegistry  # Kinds of checks.
    channels: KindRegistry | None
    actions: KindRegistry | None = None


def _require_settled_package() -> None:
    from sentinel.proc.installation import require_settled_package  # only if something is missing

    require_settled_package()


def _is_here(target: str) -> bool:
    try:
        from importlib.util import find_spec  # only lists of all kinds ask

        return find_spec(target.partition(":")[0]) is not None
    except ModuleNotFoundError:  # the folder of the kind does not exist either
        return False
