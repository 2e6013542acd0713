"""Which kinds of checks, channels and actions there are, and where each comes from."""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from sentinel.core.errors import SentinelError


class UnknownKind(SentinelError):
    """No such kind, or one that does not load; the text says which and why."""


class Registry:
    """Built-in kinds by an explicit list, third-party ones by entry points of `group`.

    Nothing is imported before it is asked for. A built-in name cannot be taken over. A third-party
    one is imported only if nobody could change it but root, the caller, and the owner of sentinel's
    own code, which runs already.
    """

    def __init__(self, builtin: Mapping[str, str], group: str) -> None:
        self._builtin = builtin
        self._group = group

    def load(self, name: str) -> Any:
        """The class of that kind; raises UnknownKind, or trust.Distrusted before it is imported."""
        target = self._builtin.get(name)
        if target is None:
            return self._load_foreign(name)
        module, _, attribute = target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("sentinel."):
                raise
            raise UnknownKind(
                f"kind {name!r} is not part of this installation: {error.name} was taken out"
            ) from error

    def names(self) -> list[str]:
        """All kinds, sorted; without built-in ones whose file was taken out."""
        here = {name for name, target in self._builtin.items() if _is_here(target)}
        return sorted(here | {*self._foreign()})

    def origin(self, name: str) -> str:
        """`sentinel` for a built-in kind, else the distribution and its version."""
        if name in self._builtin:
            return "sentinel"
        distribution = self._foreign()[name].dist
        return f"{distribution.name} {distribution.version}" if distribution else "unknown"

    def _load_foreign(self, name: str) -> Any:
        entry = self._foreign().get(name)
        if entry is None:
            raise UnknownKind(f"there is no kind {name!r}; known: {', '.join(self.names())}")
        _require_trusted(entry)
        try:
            return entry.load()
        except Exception as error:
            raise UnknownKind(
                f"kind {name!r} from {self.origin(name)} does not load: {error!r}"
            ) from error

    def _foreign(self) -> dict[str, Any]:
        from importlib.metadata import entry_points

        return {e.name: e for e in entry_points(group=self._group) if e.name not in self._builtin}


class Registries(Struct, frozen=True):
    """What is installed. Without `actions` the section of that name is not judged."""

    checks: Registry
    channels: Registry
    actions: Registry | None = None


def _is_here(target: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(target.partition(":")[0]) is not None
    except ModuleNotFoundError:  # not even its folder
        return False


def _require_trusted(entry: Any) -> None:
    from sentinel.trust import Distrusted, believed, believed_names, tree_fault

    trusted = believed() | {os.stat(__file__).st_uid}
    for place in _homes(entry):
        while not os.path.lexists(place):  # inside of an archive
            place = os.path.dirname(place)
        if wrong := tree_fault(place, trusted):
            mend = f"; {wrong.remedy} {wrong.path}" if wrong.remedy else ""
            raise Distrusted(
                f"the plugin {entry.name!r} in {place} is not used: {wrong.path} {wrong.why}, and "
                f"what runs here must be changed by nobody but {believed_names()}{mend}; or install it where that is so"
            )


def _homes(entry: Any) -> Iterator[str]:
    """The files of its top-level package or module, and what names it; nothing is imported."""
    from importlib.util import find_spec

    if entry.dist is not None:
        yield os.path.abspath(str(getattr(entry.dist, "_path", entry.dist.locate_file(""))))
    spec = find_spec(entry.module.partition(".")[0])
    if spec is None:
        return
    yield from spec.submodule_search_locations or ()
    if spec.origin and spec.has_location:
        yield spec.origin
