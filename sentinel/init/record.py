"""What `init` made, written down before it is made, so that `--undo` leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.config.starter import make_folder
from sentinel.core.digests import sha256
from sentinel.core.errors import SentinelError, StoreBusy
from sentinel.core.guidance import quote_command
from sentinel.core.text import visible
from sentinel.proc.whole_files import replace_whole_file
from sentinel.wiring import app

RECORD_FILE = "init.json"
ALERT_BOOK_FILE = "alerts.jsonl"
"""The file for alerts if there is no address yet."""


class NotInitialized(SentinelError):
    """No `init` was done here."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


class InitRecord(Struct, frozen=True, kw_only=True):
    """`config` and the digest of what was written there; `folders` that were made, outermost
    first, the state among them; `by`: what calls sentinel; `chain`: its folder."""

    config: str
    digest: str
    folders: tuple[str, ...]
    state: str
    by: str
    chain: str


def list_missing_folders(path: str) -> tuple[str, ...]:
    """The directories that have to be made for this one to be there, outermost first."""
    found: list[str] = []
    while path and not os.path.isdir(path):
        found.insert(0, path)
        path = os.path.dirname(path)
    return tuple(found)


def hash_text(text: str) -> str:
    """A digest that shows later whether somebody has changed the file."""
    return sha256(text.encode()).hexdigest()


def write_record(record: InitRecord) -> None:
    """Write the record beside the state, and create its folder. Raises OSError."""
    make_folder(record.state)
    text = msgspec.json.format(msgspec.json.encode(record)) + b"\n"
    replace_whole_file(os.path.join(record.state, RECORD_FILE), text)


def read_record(state: str) -> InitRecord:
    """Raises NotInitialized, also for a record that somebody else could have written."""
    path = os.path.join(state, RECORD_FILE)
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                raise NotInitialized(f"{visible(path)} is not yours")
            return msgspec.json.decode(file.read(), type=InitRecord)
    except FileNotFoundError:
        raise NotInitialized(
            f"nothing to undo: there is no {visible(path)}, which `sentinel init` writes"
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise NotInitialized(f"{visible(path)}: {error}") from error


def has_made_state(record: InitRecord) -> bool:
    """Whether init made the state: an older one holds what somebody may want."""
    return record.state in record.folders


def describe_config_fate(record: InitRecord) -> str:
    """What will be said of the file beside its name where an undo leaves it; else empty."""
    try:
        return "" if _is_config_unchanged(record) else " (no: it was changed since and stays)"
    except FileNotFoundError:
        return " (gone already)"
    except (OSError, UnicodeDecodeError) as error:
        return f" (no: {error})"


def undo_record(record: InitRecord, *, remove_state: bool) -> Iterator[str]:
    """Remove the file, unless it was changed since; with `remove_state` the state too; and the folders
    that are empty then. What calls sentinel is gone by now. Tells what it did."""
    yield _remove_config(record)
    yield _remove_state(record, remove_state)
    for folder in reversed(record.folders):
        with suppress(OSError):
            os.rmdir(folder)
    left = [folder for folder in record.folders if os.path.isdir(folder)]
    if left and (remove_state or left[-1] != record.state):
        yield f"{visible(left[-1])}: kept, because there is something of yours in it"


def _remove_config(record: InitRecord) -> str:
    shown = visible(record.config)
    try:
        if not _is_config_unchanged(record):
            return f"{shown}: kept, because it was changed since; remove it yourself"
        os.unlink(record.config)
    except FileNotFoundError:
        return f"{shown}: was gone already"
    except (OSError, UnicodeDecodeError) as error:
        return f"{shown}: kept: {error}"
    return f"{shown}: removed"


def _is_config_unchanged(record: InitRecord) -> bool:
    with open(record.config, encoding="utf-8", newline="") as file:
        return hash_text(file.read()) == record.digest


def _remove_state(record: InitRecord, remove: bool) -> str:
    path, shown = os.path.join(record.state, RECORD_FILE), visible(record.state)
    if not remove:
        os.unlink(path)
        if has_made_state(record):
            return f"{shown}: kept, with the record of alerts; to remove it: {quote_command('rm', '-r', record.state)}"
        return f"{shown}: kept, because it was there before"
    with os.scandir(record.state) as found:
        files = [entry.path for entry in found if entry.is_file(follow_symlinks=False)]
    for file in sorted(files, key=lambda file: file == path):  # the record last
        os.unlink(file)
    return f"{shown}: removed"


def require_idle_state(state: str) -> None:
    """Raise StoreBusy while a pass or a service runs, because it would write the state again."""
    settings = Settings(state=state)
    if not app.has_state(settings):
        return
    clock = SystemClock()
    store, _ = app.open_state(settings, clock, mending=False)
    try:
        store.take_lead("init --undo", clock.now())
        store.release_lead()
    except StoreBusy as error:
        raise StoreBusy(
            f"{error}; stop it, or try again in a moment: sentinel init --undo"
        ) from None
    finally:
        store.close()
