"""`sentinel state`: checks the state, copies it, restores a copy, and migrates it to this
version."""

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sentinel.actions.service import DISTRUST_PAUSE_S
from sentinel.cli import add_config_option
from sentinel.cli.common import describe_operator
from sentinel.clock import SystemClock
from sentinel.core.actions import ActionSwitch
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.store.audit_log import SWITCHES
from sentinel.store.copies import CopyRefused, copy_database, open_read_only
from sentinel.store.inspection import inspect_state
from sentinel.store.opening import migrate_state, open_sql_audit_log
from sentinel.store.restore_copy import restore_state
from sentinel.trust import find_site_fault
from sentinel.wiring import app, last_good

if TYPE_CHECKING:
    from sentinel.config.settings import Settings


class NoStateFile(SentinelError):
    """There is no state that this command could copy."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("state", help="look at the state, copy it, put a copy back")
    parser.set_defaults(call=lambda _args: _print_usage(parser))
    below = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_command(
        below, "check", call_check, "say who wrote it and whether this version can read it"
    )
    _add_command(
        below, "migrate", call_migrate, "bring it to this version now, where that needs asking"
    )
    _add_command(
        below,
        "repair",
        call_repair,
        "set aside what cannot be read and keeps actions from being done",
    )
    backup = _add_command(below, "backup", call_backup, "copy it while sentinel runs")
    backup.add_argument("file", metavar="FILE", help="the copy; it must not be there yet")
    restore = _add_command(below, "restore", call_restore, "put a copy in its place")
    restore.add_argument("file", metavar="FILE", help="a copy that `state backup` made")


def _print_usage(parser: Any) -> int:
    parser.print_help()
    return 64


def _add_command(
    below: Any, name: str, call: Callable[[argparse.Namespace], int], text: str
) -> Any:
    parser = below.add_parser(name, help=text)
    add_config_option(parser)
    parser.set_defaults(call=call)
    return parser


def call_check(args: argparse.Namespace) -> int:
    """Check the state. Returns 0 if it can be read, also if there is none yet; 74 if not; 3 if that
    is not known."""
    settings = last_good.load_as_far_as_valid(args.config, quiet=True)
    if not app.has_state(settings):
        print(f"{app.describe_state_location(settings)}: no state yet")
        return 0
    with app.guard_state_reads(settings):
        found = inspect_state(app.get_state_location(settings))
    then = (
        "; the next service or pass changes it to this version's" if found.needs_migration else ""
    )
    print(f"{visible(found.place)}: schema {found.version}, {found.rows} rows in use{then}")
    for name, count in found.unreadable.items():
        print(f"{count} {name} cannot be read; the next service or pass keeps them apart")
    for name, count in found.blocking.items():
        print(f"{count} {name} cannot be read, so no action is done: sentinel state repair")
    return 0


def call_repair(args: argparse.Namespace) -> int:
    """Set unreadable rows of the audit log aside. Returns 0 if nothing blocks actions any more;
    then they pause for an hour."""
    settings = _load_settings(args)
    if not app.has_state(settings):
        raise NoStateFile(f"{app.describe_state_location(settings)}: no state yet")
    now, why = SystemClock().now(), "rows of the audit log could not be read and were set aside"
    pause = ActionSwitch(since=now, seconds=DISTRUST_PAUSE_S, why=why, by=describe_operator())
    with (
        app.guard_state_reads(settings),
        closing(open_sql_audit_log(app.get_state_location(settings))) as log,
    ):
        moved = log.set_unreadable_aside(pause)
    for name, count in moved.items():
        print(f"{count} {name} could not be read; kept in the table `unreadable`")
    if not moved:
        print("all can be read; nothing was changed")
        return 0
    rest = "until: sentinel nodes maintenance off" if SWITCHES in moved else "for an hour"
    print(
        f"sentinel: what was done lately is not wholly known: actions rest {rest}", file=sys.stderr
    )
    return 0


def call_backup(args: argparse.Namespace) -> int:
    """Copy the state. Returns 0 if the copy is complete; 73 if a file is in the way; 74 if it
    cannot be written."""
    directory = _require_directory(args, "pg_dump --format=custom")
    target = os.path.abspath(args.file)
    if os.path.lexists(target):
        raise CopyRefused(f"{target}: is there already; name another file")
    _require_private_place(target)
    source = os.path.join(directory, "sentinel.db")
    with closing(open_read_only(source)) as connection:
        copy_database(connection, target)
    print(f"{visible(target)}: {os.path.getsize(target)} bytes")
    return 0


def _require_private_place(target: str) -> None:
    """Raise CopyRefused if others could take the copy while it is made, or replace it; in a sticky
    directory such as /tmp they cannot."""
    folder = os.path.dirname(target)
    try:
        with TemporaryDirectory(dir=folder, prefix=".sentinel-copy-") as private:
            fault = find_site_fault(private)
    except OSError as error:
        raise CopyRefused(f"{target}: cannot be made: {error.strerror}") from error
    if fault:
        raise CopyRefused(
            f"{visible(target)}: others could read or replace a copy there: {fault.text}; name a"
            " file in a directory of your own"
        )


def call_restore(args: argparse.Namespace) -> int:
    """Restore a copy. Returns 0 if it is in place; 73 if the file is no state; 74 while a sentinel
    leads."""
    directory = _require_directory(args, "pg_restore", existing=False)
    if not os.path.isfile(args.file):
        raise NoStateFile(f"{args.file}: no such file")
    if fault := find_site_fault(os.path.abspath(args.file)):
        print(f"sentinel: others could have changed this copy: {fault.text}", file=sys.stderr)
    aside = restore_state(directory, os.path.abspath(args.file), SystemClock().now())
    kept = f"; what was there is kept as {visible(aside)}" if aside else ""
    print(f"{visible(directory)}: restored{kept}")
    print(
        "sentinel: what happened since that copy is not known: actions rest for an hour",
        file=sys.stderr,
    )
    return 0


def call_migrate(args: argparse.Namespace) -> int:
    """Migrate the state. Returns 0 if it is of this version; 74 while an older sentinel leads."""
    settings = _load_settings(args)
    if not app.has_state(settings):
        raise NoStateFile(f"{app.describe_state_location(settings)}: no state yet")
    with app.guard_state_reads(settings):
        migrate_state(app.get_state_location(settings))
    return call_check(args)


def _load_settings(args: argparse.Namespace) -> "Settings":
    return last_good.load_as_far_as_valid(args.config)


def _require_directory(args: argparse.Namespace, tool: str, *, existing: bool = True) -> str:
    settings = _load_settings(args)
    state = app.get_state_location(settings)
    place = app.describe_state_location(settings)
    if "://" in state:
        raise NoStateFile(f"{place}: is copied by the server's own tools: {tool} (postgresql.org)")
    if existing and not app.has_state(settings):
        raise NoStateFile(f"{place}: no state yet")
    return os.path.abspath(state)
