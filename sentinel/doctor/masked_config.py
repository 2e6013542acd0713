"""The shape of a configuration: kinds, keys, numbers and words that sentinel itself defines."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, get_args

from msgspec import Struct

from sentinel.config.problems import Path
from sentinel.config.registry import KindRegistry
from sentinel.config.settings import Settings
from sentinel.config.shapes import (
    TableShape,
    allowed_words,
    field_default,
    is_text,
    list_item_type,
    possible_shapes,
    settings_fields,
)
from sentinel.config.sources import TextReference
from sentinel.core.patterns import GuardedPattern
from sentinel.core.settings import Secret
from sentinel.core.values import Duration, Share, Size
from sentinel.doctor.public_words import HIDDEN


class ConfigMask:
    """Shows of each value its place, and the value itself where it can be no name or secret. `hidden`
    are the texts that it did not show."""

    def __init__(
        self,
        references: Mapping[Path, TextReference],
        checks: KindRegistry,
        channels: KindRegistry,
    ) -> None:
        self._references = references
        self._checks, self._channels = checks, channels
        self.hidden: list[str] = []

    def mask_settings(self, settings: Settings) -> dict[str, Any]:
        """The sections that say something; checks and channels without their names."""
        shown = dict(self._mask_fields(settings, (), leave_out=("path", "checks", "channels")))
        shown["checks"] = [
            self._mask_kind(c.common, c.plugin, self._checks, ("checks", c.name))
            for c in settings.checks
        ]
        shown["channels"] = [
            self._mask_kind(c.common, c.plugin, self._channels, ("channels", c.name))
            for c in settings.channels
        ]
        return shown

    def _mask_kind(
        self, common: Any, plugin: Any, registry: KindRegistry, path: Path
    ) -> dict[str, Any]:
        """Nothing is shown of the settings of a plugin's kind."""
        self.hidden.append(str(path[-1]))
        if registry.kind_origin(common.kind) != "sentinel" or not isinstance(plugin, Struct):
            self.hidden += [common.kind, *_find_texts(plugin), *_find_texts(common)]
            return {"kind": HIDDEN}
        shared = dict(self._mask_fields(common, path, leave_out=("kind",)))
        return {"kind": common.kind, **dict(self._mask_fields(plugin, path)), **shared}

    def _mask_fields(
        self, value: Any, path: Path, leave_out: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, Any]]:
        """The keys that were given another value than their default."""
        for key, info in settings_fields(value.__class__).items():
            item = getattr(value, info.name)
            if key not in leave_out and item != field_default(info):
                yield key, self._mask_value(item, info.type, (*path, key))

    def _mask_value(self, value: Any, hint: Any, path: Path) -> Any:
        if path in self._references:
            self.hidden += _find_texts(value)
            return {self._references[path].how: HIDDEN}
        if isinstance(value, Struct):
            return dict(self._mask_fields(value, path))
        if isinstance(value, Mapping):
            inner = next((s.value for s in possible_shapes(hint) if isinstance(s, TableShape)), Any)
            self.hidden += map(str, value)
            return {
                f"name {n}": self._mask_value(item, inner, (*path, str(key)))
                for n, (key, item) in enumerate(value.items(), 1)
            }
        if isinstance(value, list | tuple | AbstractSet):
            item_hint = list_item_type(hint)
            return [self._mask_value(item, item_hint, (*path, n)) for n, item in enumerate(value)]
        return self._mask_single(value, hint)

    def _mask_single(self, value: Any, hint: Any) -> Any:
        if isinstance(value, Duration | Size | Share):
            return value.exact()
        word = value.value if isinstance(value, Enum) else value
        if value is None or isinstance(value, bool) or word in allowed_words(hint):
            return word
        if isinstance(value, int | float) and not _may_be_text(hint):
            return value
        self.hidden += _find_texts(value)
        return HIDDEN


def _may_be_text(hint: Any) -> bool:
    """A number where text may stand too may be an address (a chat's)."""
    return any(is_text(alternative) for alternative in get_args(hint) or (hint,))


def _find_texts(value: Any) -> Iterator[str]:
    """Every text and name in it, secrets too."""
    if isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, re.Pattern | GuardedPattern):
        yield value.pattern
    elif isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _find_texts(getattr(value, name))
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from _find_texts(pair)
    elif isinstance(value, list | tuple | AbstractSet):
        for item in value:
            yield from _find_texts(item)
