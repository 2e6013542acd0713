"""Loads everything that a service may need at its start, so that an upgrade of the files does not
change a running service."""

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import suppress

import sentinel
from sentinel.config.foreign import BrokenChannel, BrokenCheck
from sentinel.config.settings import Settings
from sentinel.proc.own_package import PROGRAM_FILES, read_program_file
from sentinel.wiring.needed_modules import find_needed

OTHERS = (
    "sentinel.__main__", "sentinel.cli", "sentinel.init", "sentinel.doctor", "sentinel.testing",
    "sentinel.training", "sentinel.plugin",
)  # fmt: skip
"""Modules that only commands, or only other programs, use."""

LIBRARIES = (
    "aiohttp", "aiohttp.web", "aiosmtplib", "apscheduler.schedulers.asyncio", "jinja2",
    "jinja2.sandbox", "prometheus_client", "psutil", "regex", "ssl", "yaml", "zoneinfo",
)  # fmt: skip
"""Libraries that are normally imported only when they are used."""

LIBRARIES_BY_KIND = {"apprise": ("apprise",)}
"""Libraries of kinds of channels; they are loaded if such a channel is configured."""

_PROGRAMS = ("program", "append", "tap", "node_test")
"""Modules that are helper programs: the program loads them itself."""


def preload(settings: Settings) -> dict[str, str]:
    """Import all modules. Returns why a check or channel of the configuration cannot be used, by
    `check NAME` or `channel NAME`. A library that only others need may be missing. A module with files
    of its own (templates of pages) reads them by its `load_own_files`."""
    kinds = {channel.kind for channel in settings.channels}
    more = [name for kind in kinds for name in LIBRARIES_BY_KIND.get(kind, ())]
    failed: dict[str, str] = {}
    for name in (*_list_modules(), *LIBRARIES, *more):
        try:
            module = importlib.import_module(name)
            getattr(module, "load_own_files", lambda: None)()
        except Exception as error:  # the code that needs it gets the error again
            failed[name] = str(error) or type(error).__name__
    for name in PROGRAM_FILES:
        with suppress(OSError):
            read_program_file(name)
    return dict(_find_unloaded(settings, failed))


def _find_unloaded(settings: Settings, failed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    parts = [(f"check {c.name}", c.plugin) for c in settings.checks]
    for part, plugin in (*parts, *((f"channel {c.name}", c.plugin) for c in settings.channels)):
        if isinstance(plugin, BrokenCheck | BrokenChannel):
            yield part, plugin.why
        elif failed and (needed := find_needed(type(plugin).__module__, failed)):
            yield part, f"{needed}: {failed[needed]}"


def _list_modules() -> list[str]:
    folder = os.path.dirname(sentinel.__file__)
    found = (m.name for m in pkgutil.walk_packages([folder], "sentinel.") if not _is_other(m.name))
    return sorted(found)


def _is_other(name: str) -> bool:
    return name.rpartition(".")[2] in _PROGRAMS or any(
        name == other or name.startswith(f"{other}.") for other in OTHERS
    )
