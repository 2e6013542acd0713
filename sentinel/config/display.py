"""Settings -> the YAML that would make them, without any secret."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.config.problems import Path
from sentinel.config.settings import Settings
from sentinel.config.shapes import field_default, settings_fields
from sentinel.config.sources import TextReference
from sentinel.config.yamltext import yaml_text
from sentinel.core.patterns import GuardedPattern
from sentinel.core.settings import ChannelConfig, CheckCommon, CheckConfig, FilePath, Secret
from sentinel.core.values import Duration, Share, Size

HIDDEN = "***"

_PASSWORD_IN_URL = re.compile(r"(\w://[^:/?#\s]*):[^/?#\s]*@")


def show_settings(
    settings: Settings, references: Mapping[Path, TextReference] | None = None
) -> str:
    """The effective configuration, defaults included, as YAML that `load` reads.

    Texts that are kept elsewhere appear as their references, plain secrets as `***`.
    """
    return yaml_text(ShownSettings(references or {}).settings_data(settings))


class ShownSettings:
    """Settings as plain data; the path of every value decides whether it may be shown."""

    def __init__(self, references: Mapping[Path, TextReference]) -> None:
        self._references = references

    def settings_data(self, settings: Settings) -> dict[str, Any]:
        """The sections in the order of Settings."""
        state = settings.state
        state = _without_password(state) if "://" in state else FilePath(state)
        sections = {
            **self.plain_value(replace(settings, path="", state=state, checks=(), channels=()), ()),
            "checks": dict(self._check_entry(check) for check in settings.checks),
            "channels": dict(self._channel_entry(channel) for channel in settings.channels),
        }
        return {key: sections[key] for key in settings_fields(Settings) if key in sections}

    def plain_value(self, value: Any, path: Path) -> Any:
        """The value as dictionaries, lists, texts and numbers, as in the file."""
        if path in self._references:
            return {self._references[path].how: self._references[path].name}
        if isinstance(value, Struct):
            return dict(self._telling_keys(value, path))
        if isinstance(value, Mapping):
            return {str(k): self.plain_value(v, (*path, str(k))) for k, v in value.items()}
        if isinstance(value, list | tuple | AbstractSet):
            return [self.plain_value(item, (*path, index)) for index, item in enumerate(value)]
        return _single_value(value)

    def _telling_keys(self, value: Struct, path: Path) -> Iterator[tuple[str, Any]]:
        """The keys that are shown. Empty defaults are left out, and so are keys without effect
        beside the others."""
        idle = {name for name, _ in getattr(value, "unused", tuple)()}
        for key, info in settings_fields(type(value)).items():
            if info.name in idle:
                continue
            item = getattr(value, info.name)
            shown = self.plain_value(item, (*path, key))
            if shown not in (None, "", [], {}) or item != field_default(info):
                yield key, shown

    def _check_entry(self, check: CheckConfig) -> tuple[str, dict[str, Any]]:
        path = ("checks", check.name)
        known = {**self.plain_value(check.common, path), **_effective_timing(check)}
        common = {key: known[key] for key in settings_fields(CheckCommon) if key in known}
        own = self.plain_value(check.plugin, path)
        return check.name, {"kind": common.pop("kind"), **own, **common}

    def _channel_entry(self, channel: ChannelConfig) -> tuple[str, dict[str, Any]]:
        path = ("channels", channel.name)
        common = {**self.plain_value(channel.common, path), "kind": channel.kind}
        own = self.plain_value(channel.plugin, path)
        return channel.name, {"kind": common.pop("kind"), **own, **common}


def _effective_timing(check: CheckConfig) -> dict[str, str]:
    """The effective `every` and `timeout`. If they are not set, those of the kind."""
    common, kind = check.common, check.plugin
    every = common.every if common.every is not None else kind.EVERY
    timeout = common.timeout if common.timeout is not None else kind.TIMEOUT
    known = {"every": None if common.cron else every, "timeout": timeout}
    return {key: Duration(value).exact() for key, value in known.items() if value is not None}


def _single_value(value: Any) -> Any:
    if isinstance(value, Secret):
        return HIDDEN
    if isinstance(value, Duration | Size | Share):
        return value.exact()
    if isinstance(value, re.Pattern | GuardedPattern):
        return value.pattern
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, FilePath):
        return _unexpanded(value)
    return _PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}@", str(value))


def _without_password(url: str) -> str:
    """A database's URL takes it before an @, whatever it holds, and in its query."""
    return re.sub(r"(://[^:/@]*:)[^@]*(?=@)|(password=)[^&]*", rf"\1\2{HIDDEN}", url)


def _unexpanded(path: str) -> str:
    """So that the loader's expansion gives this path again."""
    return ("./" if path.startswith("~") else "") + path.replace("$", "$$")
