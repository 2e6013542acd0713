"""The last configuration that was valid: what runs goes on with it while the file has errors.

A copy lies beside the state and, as the name of the state may be what is wrong, outside of it.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress

from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.config.sources import expand_path, read_contents
from sentinel.core.digests import blake2b
from sentinel.core.errors import Invalid
from sentinel.proc.threads import BoundedWorker
from sentinel.store.errors import StateRefused
from sentinel.store.journal import MAX_JOURNAL_BYTES
from sentinel.store.spare_journals import JournalDir, make_volatile_dirs
from sentinel.wiring import app

_STATE_LINE = re.compile(r"^state:[ \t]*['\"]?([^'\"#\n]+?)['\"]?[ \t]*(?:#.*)?$", re.MULTILINE)


def load_or_last_good(path: str | None, *, default: bool = False) -> tuple[Settings, str]:
    """The configuration that applies, and what is wrong with its file: then it is the last good
    one. `default`: the built-in one where there is no file. Raises as app.load_settings does where
    no good one was kept."""
    try:
        found = app.load_settings_or_default(path) if default else app.load_settings(path)
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


def load_as_far_as_valid(path: str | None, *, quiet: bool = False) -> Settings:
    """For what only has to find the state: also a file with errors is read so far, and no copy is
    kept."""
    try:
        return app.load_settings_or_default(path, quiet=quiet)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return _read_last_good(path) or Settings(
            path=_find_config_file(path), state=_parse_state_key(_find_config_file(path))
        )


def store_last_good(found: Settings) -> None:
    """As the last good one from now on. Written where it has changed only; that it cannot be is no reason not to watch."""
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
            elif place.journal.read_records():  # of an earlier time, with the secrets of then
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
    for place in _list_copy_places(
        file, app.get_chain_folder(Settings(state=_parse_state_key(file)))
    ):
        with suppress(OSError, StateRefused, ConfigError):
            place.do(place.find_earlier_folder)
            for text in place.do(place.journal.read_records)[:1]:
                return app.load_settings_from(file, text)
    return None


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
    from sentinel.config.places import find_config

    return find_config(path, os.environ) or ""


def _parse_state_key(file: str) -> str:
    """What a file with errors says of `state:`, as far as that can be read."""
    with suppress(OSError, Invalid):
        data, _ = read_contents(file, MAX_JOURNAL_BYTES)
        if found := _STATE_LINE.search(data.decode("utf-8", "replace")):
            return expand_path(found[1], os.environ)
    return ""
