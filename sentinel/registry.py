"""Which kinds of checks, channels and actions there are, and where each comes from."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sentinel.core.errors import SentinelError


class UnknownKind(SentinelError):
    """No such kind, or one that does not load; the text says which and why."""


class Registry:
    """Built-in kinds by an explicit list, third-party ones by entry points of `group`.

    Nothing is imported before it is asked for. A built-in name cannot be taken over.
    """

    def __init__(self, builtin: Mapping[str, str], group: str) -> None:
        self._builtin = builtin
        self._group = group

    def load(self, name: str) -> Any:
        """The class of that kind; raises UnknownKind."""
        target = self._builtin.get(name)
        if target is None:
            return self._load_foreign(name)
        module, _, attribute = target.partition(":")
        return getattr(import_module(module), attribute)

    def names(self) -> list[str]:
        """All kinds, sorted."""
        return sorted({*self._builtin, *self._foreign()})

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
        try:
            return entry.load()
        except Exception as error:
            raise UnknownKind(
                f"kind {name!r} from {self.origin(name)} does not load: {error!r}"
            ) from error

    def _foreign(self) -> dict[str, Any]:
        from importlib.metadata import entry_points

        return {e.name: e for e in entry_points(group=self._group) if e.name not in self._builtin}
