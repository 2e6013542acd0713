"""`sentinel doctor --report`: what those who mend sentinel need to know, fit to be shown in public."""

import os
import platform
import re
import sqlite3
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from typing import Any

from msgspec import Struct

from sentinel import __version__
from sentinel.alerting.state import Store
from sentinel.config.yamltext import yaml_text
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import CheckRun, Status
from sentinel.core.values import duration_text
from sentinel.doctor import DoctorItem
from sentinel.doctor.public_words import HIDDEN, PublicWords

DISTRIBUTION = "slurm-sentinel"
MAX_ERRORS = 20
"""How many errors of each sort are shown: runs that could not see, and messages that were not
accepted."""

_SYSTEMS = frozenset(
    [
        "almalinux",
        "amzn",
        "arch",
        "centos",
        "cos",
        "debian",
        "fedora",
        "ol",
        "opensuse-leap",
        "rhel",
        "rocky",
        "sles",
        "ubuntu",
    ]
)
_VERSION = re.compile(r"\d+(?:\.\d+){0,3}")


class StateErrors(Struct, frozen=True):
    """The errors that the state remembers, not masked yet."""

    runs: Sequence[
        tuple[str, float, str]
    ] = ()  # Kind, age in seconds, and what the run could not see.
    unsent: Sequence[
        tuple[str, int, str]
    ] = ()  # Kind of the channel, attempts, and the last error.
    private: Sequence[str] = ()  # Names that occur in the state.
    trouble: str = ""  # Why the state cannot be read or written.


def read_state_errors(store: Store, channel_kinds: dict[str, str], now: Instant) -> StateErrors:
    """What could not be seen or sent when it was tried last. Raises StoreError."""
    runs, outbox = store.read_runs(), store.read_outbox()
    alerts = store.read_alerts()
    labels = [text for a in alerts for text in a.labels.values()]
    subjects = [a.key.subject for a in alerts] + [row.notification.subject for row in outbox]
    unsent = [row for row in outbox if row.error]
    return StateErrors(
        runs=[(r.kind, get_elapsed_s(r.at, now), r.summary) for r in runs if _could_not_see(r)],
        unsent=[(channel_kinds.get(r.channel, ""), r.attempts, r.error) for r in unsent],
        private=[*labels, *subjects, *(r.check for r in runs), *(r.channel for r in outbox)],
        trouble=store.trouble.why if store.trouble else "",
    )


def _could_not_see(run: CheckRun) -> bool:
    return run.blind or run.status is Status.UNKNOWN


def render_report(
    words: PublicWords, items: Iterable[DoctorItem], config: dict[str, Any], errors: StateErrors
) -> Iterator[str]:
    """The lines, in Markdown."""
    found = list(items)
    yield f"Words that are not sentinel's own are hidden as {HIDDEN}. Look it over before you show it."
    yield "\n## Versions\n"
    yield from _list_versions(found)
    yield "\n## What works here\n"
    for item in found:
        text = "" if item.status is Status.OK else f": {words.mask_text(item.text)}"
        yield f"- {item.status.value}: {words.mask_text(item.name)}{text}"
    yield "\n## Configuration\n\n```yaml"
    yield f"{yaml_text(config).rstrip()}\n```"
    yield "\n## Last errors\n"
    yield from _list_errors(words, errors)


def _list_versions(items: Iterable[DoctorItem]) -> Iterator[str]:
    slurm = [i.text for i in items if i.name.startswith("Slurm version")]
    libc = " ".join(platform.libc_ver())
    yield f"- sentinel {__version__}, {_describe_installation()}{', as root' * (not os.geteuid())}"
    yield f"- Python {platform.python_version()}, {platform.machine()}, {libc}"
    yield f"- {_describe_system()}, Linux {_find_version(platform.release())}"
    yield f"- Slurm {', '.join(map(_find_version, slurm)) or 'not asked'}"
    yield f"- SQLite {sqlite3.sqlite_version}, {', '.join(_list_libraries())}"


def _describe_installation() -> str:
    if zipfile.is_zipfile(sys.argv[0]):
        return "one file"
    return "in an environment" if sys.prefix != sys.base_prefix else "in the system's Python"


def _describe_system() -> str:
    """Only known names of distributions are shown, because a site may have its own."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return "another system"
    name = found.get("ID", "")
    if name not in _SYSTEMS:
        return "another system"
    return f"{name} {_find_version(found.get('VERSION_ID', ''))}"


def _find_version(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else "?"


def _list_libraries() -> Iterator[str]:
    """The libraries that sentinel names, with the versions that are here."""
    try:
        wanted = metadata.requires(DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return
    for name in sorted({re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in wanted}):
        try:
            yield f"{name} {_find_version(metadata.version(name))}"
        except metadata.PackageNotFoundError:
            continue


def _list_errors(words: PublicWords, errors: StateErrors) -> Iterator[str]:
    if not (errors.runs or errors.unsent or errors.trouble):
        yield "none"
    if errors.trouble:
        yield f"- state: {words.mask_text(errors.trouble)}"
    for kind, age, text in errors.runs[:MAX_ERRORS]:
        yield f"- {words.mask_text(kind)}, {duration_text(age)} ago: {words.mask_text(text)}"
    for kind, attempts, text in errors.unsent[:MAX_ERRORS]:
        tried = f"{min(attempts, 999)} attempts"
        yield f"- channel {words.mask_text(kind)}, {tried}: {words.mask_text(text)}"
    for what, found in (("runs", errors.runs), ("messages", errors.unsent)):
        if len(found) > MAX_ERRORS:
            yield f"- and {len(found) - MAX_ERRORS} more {what}"
