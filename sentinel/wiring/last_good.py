"""Keeps the last valid configuration, which is used while the file has errors.

One copy lies beside the state. Another is outside of it, since the error may be in the name of the
state."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress

from sentinel.config.places import HiddenConfig, find_config
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.config.sources import expand_path, read_contents
from sentinel.core.digests import blake2b
from sentinel.core.errors import Invalid
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.proc.threads import BoundedWorker
from sentinel.store.errors import StateRefused
from sentinel.store.journal import MAX_JOURNAL_BYTES
from sentinel.store.spare_journals import JournalDir, make_volatile_dirs
from sentinel.wiring import app

_STATE_LINE = lazy_pattern(r"^state:[ \t]*['\"]?([^'\"#\n]+?)['\"]?[ \t]*(?:#.*)?$", re.MULTILINE)


def load_or_last_good(
    path: str | None, *, default: bool = False, quiet: bool = False
) -> tuple[Settings, str]:
    """The settings that apply, and the error in their file (empty: none). With an error they are
    the last valid ones.

    `default`: the built-in ones if there is no file. `quiet`: the path of the file is not printed.
    Without a valid copy it raises as app.load_settings does."""
    try:
        load = app.load_settings_or_default if default else app.load_settings
        found = load(path, quiet=quiet)
    except ConfigError as error:
        kept = _read_last_good(path)
        if kept is None:
            raise
        print(
            f"{error}\nsentinel: going on with the last configuration that was valid; "
            "actions are off until the file is",
            file=sys.stderr,
        )
        return kept, str(error)
    store_last_good(found)
    return found, ""


def find_last_good_channels(path: str | None) -> Settings | None:
    """Settings with the channels of the last valid configuration, even if this version refuses the
    rest of it; None if there is no copy."""
    file = _find_config_file(path)
    for text in _read_copies(file):
        with suppress(ConfigError):
            return app.load_channels_from(file, text)
    return None


def load_as_far_as_valid(path: str | None, *, quiet: bool = False) -> Settings:
    """Settings for a command that only has to find the state: a file with errors is read as far as
    possible, and no copy is stored."""
    try:
        return app.load_settings_or_default(path, quiet=quiet)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return _read_last_good(path) or Settings(
            path=_find_config_file(path), state=_parse_state_key(_find_config_file(path))
        )


def load_present_settings(path: str) -> Settings:
    """The settings that a service uses now: of the last valid copy of the file that is found without
    a name, or of `path` if none is. Raises ConfigError."""
    file = path
    with suppress(HiddenConfig):
        file = find_config(None, os.environ) or path
    if found := _read_last_good(file):
        return found
    return app.load_settings_from(file)


def store_last_good(found: Settings) -> None:
    """Store a copy of the file as the last valid one, if it has changed. If it cannot be stored,
    sentinel runs all the same."""
    if not found.path:
        return
    with suppress(OSError):
        text, _ = read_contents(found.path, MAX_JOURNAL_BYTES // 2)
        beside, *elsewhere = _list_copy_places(found.path, app.get_chain_folder(found))
        _write_copy(beside, text)
        taken = False
        for place in elsewhere:
            if not taken:
                taken = _write_copy(place, text)
            elif place.journal.read_records():  # an older copy may contain old secrets
                place.journal.remove_files()


def _write_copy(place: JournalDir, text: bytes) -> bool:
    def write_if_changed() -> bool:
        place.require_folder()
        if place.journal.read_records() != [text]:
            place.journal.restart_with(text)
        return True

    with suppress(OSError, StateRefused):
        return place.do(write_if_changed)
    return False


def _read_last_good(path: str | None) -> Settings | None:
    file = _find_config_file(path)
    for text in _read_copies(file):
        with suppress(ConfigError):
            return app.load_settings_from(file, text)
    return None


def _read_copies(file: str) -> Iterator[bytes]:
    """The copies of that file, one from each place."""
    places = _list_copy_places(file, app.get_chain_folder(Settings(state=_parse_state_key(file))))
    for place in places:
        with suppress(OSError, StateRefused):
            place.do(place.find_earlier_folder)
            yield from place.do(place.journal.read_records)[:1]


def _list_copy_places(file: str, chain: str) -> list[JournalDir]:
    text = os.path.abspath(file).encode("utf-8", "surrogateescape")
    name = "configuration-" + blake2b(text, digest_size=6).hexdigest()
    beside = JournalDir(
        os.path.dirname(chain),
        name,
        shared=False,
        patience=BoundedWorker(app.STATE_LOOK_TIMEOUT_S, "journal"),
    )
    return [beside, *make_volatile_dirs(name)]


def _find_config_file(path: str | None) -> str:
    return find_config(path, os.environ) or ""


def _parse_state_key(file: str) -> str:
    """The value of `state:` in a file with errors, as far as it can be read."""
    with suppress(OSError, Invalid):
        data, _ = read_contents(file, MAX_JOURNAL_BYTES)
        if found := _STATE_LINE.search(data.decode("utf-8", "replace")):
            return expand_path(found[1], os.environ)
    return ""
