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
from sentinel.config.sources import contents, expanded
from sentinel.core.digests import blake2b
from sentinel.core.errors import Invalid
from sentinel.proc.threads import Patience
from sentinel.store.errors import Refused
from sentinel.store.journal import SIZE
from sentinel.store.spare import Place, volatile_places
from sentinel.wiring import app

_STATE = re.compile(r"^state:[ \t]*['\"]?([^'\"#\n]+?)['\"]?[ \t]*(?:#.*)?$", re.MULTILINE)


def settings(path: str | None, *, default: bool = False) -> tuple[Settings, str]:
    """The configuration that applies, and what is wrong with its file: then it is the last good
    one. `default`: the built-in one where there is no file. Raises as app.load_settings does where
    no good one was kept."""
    try:
        found = app.settings_or_default(path) if default else app.load_settings(path)
    except ConfigError as error:
        kept = _kept(path)
        if kept is None:
            raise
        print(
            f"{error}\nsentinel: going on with the last configuration that was valid; "
            "actions are off until the file is",
            file=sys.stderr,
        )
        return kept, str(error)
    keep(found)
    return found, ""


def known(path: str | None, *, quiet: bool = False) -> Settings:
    """For what only has to find the state: also a file with errors is read so far, and no copy is
    kept."""
    try:
        return app.settings_or_default(path, quiet=quiet)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return _kept(path) or Settings(path=_file(path), state=_state_named(_file(path)))


def keep(found: Settings) -> None:
    """As the last good one from now on. Written where it has changed only; that it cannot be is no reason not to watch."""
    if not found.path:
        return
    with suppress(OSError):
        text, _ = contents(found.path, SIZE // 2)
        beside, *elsewhere = _places(found.path, app.chain_folder(found))
        _write(beside, text)
        taken = False
        for place in elsewhere:
            if not taken:
                taken = _write(place, text)
            elif place.journal.read():  # of an earlier time, with the secrets of then
                place.journal.remove()


def _write(place: Place, text: bytes) -> bool:
    def write() -> bool:
        place.require()
        if place.journal.read() != [text]:
            place.journal.begin(text)
        return True

    with suppress(OSError, Refused):
        return place.do(write)
    return False


def _kept(path: str | None) -> Settings | None:
    file = _file(path)
    for place in _places(file, app.chain_folder(Settings(state=_state_named(file)))):
        with suppress(OSError, Refused, ConfigError):
            place.do(place.settle)
            for text in place.do(place.journal.read)[:1]:
                return app.settings_from(file, text)
    return None


def _places(file: str, chain: str) -> list[Place]:
    text = os.path.abspath(file).encode("utf-8", "surrogateescape")
    name = "configuration-" + blake2b(text, digest_size=6).hexdigest()
    beside = Place(
        os.path.dirname(chain), name, shared=False, patience=Patience(app.PATIENCE, "journal")
    )
    return [beside, *volatile_places(name)]


def _file(path: str | None) -> str:
    from sentinel.config.places import find

    return find(path, os.environ) or ""


def _state_named(file: str) -> str:
    """What a file with errors says of `state:`, as far as that can be read."""
    with suppress(OSError, Invalid):
        data, _ = contents(file, SIZE)
        if found := _STATE.search(data.decode("utf-8", "replace")):
            return expanded(found[1], os.environ)
    return ""
