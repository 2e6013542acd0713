"""`sentinel doctor --report`: collects everything, whatever is broken, and prints it with private
data masked."""

import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from sentinel.cli.state import OpenState
from sentinel.config.loader import load_config
from sentinel.config.places import find_config
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.core.errors import SentinelError
from sentinel.doctor import DoctorItem, make_failure_item
from sentinel.doctor.masked_config import ConfigMask
from sentinel.doctor.public_words import PublicWords
from sentinel.doctor.report import StateErrors, read_state_errors, render_report
from sentinel.wiring import app


class ReadConfig(Struct, frozen=True):
    """The configuration as far as it could be read; with errors, its settings are the built-in
    ones."""

    settings: Settings
    references: Mapping[Any, Any] = {}  # The texts that are stored elsewhere.
    problems: tuple[tuple[int, str], ...] = ()  # Line numbers in the file, and the problem of each.


def print_report(path: str | None, look: Callable[[Settings], Iterator[DoctorItem]]) -> None:
    """Print the report; whatever cannot be read becomes one of its errors. `look` yields what
    doctor finds."""
    read = _read_config(path)
    mask = ConfigMask(read.references, app.CHECKS, app.CHANNELS)
    config = mask.mask_settings(read.settings)
    errors = StateErrors() if read.problems else _read_errors(path, read.settings)
    words = PublicWords([*mask.hidden, *errors.private, *_list_own_names(read.settings)])
    if read.problems:
        lines = [f"line {line}: {words.mask_text(text)}" for line, text in read.problems]
        config = {"errors": lines}
    for line in render_report(words, _catch_errors(look(read.settings)), config, errors):
        print(line)


def _read_config(path: str | None) -> ReadConfig:
    try:
        found = find_config(path, os.environ)
        if found is None:
            return ReadConfig(app.load_builtin_settings())
        loaded = load_config(found, app.CHECKS, app.CHANNELS, actions=app.ACTIONS)
        return ReadConfig(app.add_chain_check(loaded.settings), loaded.references)
    except ConfigError as error:
        problems = tuple((p.line, p.message) for p in error.problems)
    except SentinelError as error:
        problems = ((0, str(error)),)
    return ReadConfig(app.load_builtin_settings(), problems=problems)


def _read_errors(path: str | None, settings: Settings) -> StateErrors:
    kinds = {channel.name: channel.kind for channel in settings.channels}
    try:
        with OpenState(path, telling=False) as state:
            return read_state_errors(state.store, kinds, state.now)
    except SentinelError as error:
        return StateErrors(trouble=str(error))


def _catch_errors(items: Iterator[DoctorItem]) -> Iterator[DoctorItem]:
    try:
        yield from items
    except (SentinelError, OSError) as error:
        yield make_failure_item("doctor", str(error), "")


def _list_own_names(settings: Settings) -> Iterator[str]:
    """Names to mask: of this user, this host, and other accounts."""
    yield os.uname().nodename
    yield os.path.expanduser("~")
    for name in ("USER", "LOGNAME", "SUDO_USER"):
        yield os.environ.get(name, "")
    yield from (who.pw_name for who in pwd.getpwall() if 1000 <= who.pw_uid < 65534)
    with suppress(SentinelError):
        yield app.make_snapshot(settings).controller().cluster
