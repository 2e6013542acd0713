"""Loads everything that a service may need at its start, so that an upgrade of the files does not
change a running service."""

import importlib
import os
import pkgutil
from contextlib import suppress

import sentinel
from sentinel.config.settings import Settings
from sentinel.proc.own_package import PROGRAM_FILES, read_program_file

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

_PROGRAMS = ("program", "append", "tap", "nvml", "node_test")
"""Modules that are helper programs: the program loads them itself."""


def preload(settings: Settings) -> None:
    """Import all modules. A library that is not installed is left out, and the code that needs it
    reports that. A module with files of its own (templates of pages) reads them by its
    `load_own_files`."""
    kinds = {channel.kind for channel in settings.channels}
    more = [name for kind in kinds for name in LIBRARIES_BY_KIND.get(kind, ())]
    for name in (*_list_modules(), *LIBRARIES, *more):
        with suppress(Exception):  # the code that needs it gets the error again, and reports it
            module = importlib.import_module(name)
            getattr(module, "load_own_files", lambda: None)()
    for name in PROGRAM_FILES:
        with suppress(OSError):
            read_program_file(name)


def _list_modules() -> list[str]:
    folder = os.path.dirname(sentinel.__file__)
    found = (m.name for m in pkgutil.walk_packages([folder], "sentinel.") if not _is_other(m.name))
    return sorted(found)


def _is_other(name: str) -> bool:
    return name.rpartition(".")[2] in _PROGRAMS or any(
        name == other or name.startswith(f"{other}.") for other in OTHERS
    )
