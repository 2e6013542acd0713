"""`sentinel config`: write a configuration, check it, show what is in effect, its schema."""

import argparse
import os
import shlex
import sys
from typing import Any

from sentinel.cli import config_option

HAS_ERRORS = 2
NO_CONFIG = 78
CANNOT_CREATE = 73
"""The last two are EX_CONFIG and EX_CANTCREAT of sysexits(3)."""


def register(subparsers: Any) -> None:
    """Add the parsers."""
    parser = subparsers.add_parser("config", help="write, check and show the configuration")
    parser.set_defaults(call=lambda _args: _usage(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _register_init(commands)
    _register_check(commands)
    show = commands.add_parser(
        "show", help="print all settings in effect, with defaults and without secrets"
    )
    config_option(show)
    show.set_defaults(call=show_command)
    schema = commands.add_parser("schema", help="print the JSON Schema of the file, for editors")
    config_option(schema)
    schema.set_defaults(call=schema_command)


def _register_init(commands: Any) -> None:
    init = commands.add_parser(
        "init", help="write a commented configuration that works; `sentinel init` does more"
    )
    init.add_argument(
        "file", nargs="?", metavar="FILE",
        help="default: ~/.config/sentinel/sentinel.yaml; root: /etc/sentinel/sentinel.yaml",
    )  # fmt: skip
    init.add_argument(
        "--cluster", default="", metavar="NAME", help="the cluster's name, a label on every message"
    )
    init.add_argument(
        "--user", default="", metavar="NAME", help="whose jobs are watched; default: yours"
    )
    init.set_defaults(call=init_command)


def _register_check(commands: Any) -> None:
    check = commands.add_parser(
        "check", help="find every mistake in the file; exit 2 if there is one"
    )
    config_option(check)
    check.set_defaults(call=check_command)
    check.add_argument("-q", "--quiet", action="store_true", help="print errors only, for hooks")
    check.add_argument(
        "--routes",
        action="store_true",
        help="show who would be told of each check, and of which nobody is told",
    )
    check.add_argument(
        "--proof",
        action="store_true",
        help="run each check once and say what is watched, how, and what is not",
    )
    check.add_argument(
        "--times",
        action="store_true",
        help="show the next runs and time windows, also around clock changes",
    )


def init_command(args: argparse.Namespace) -> int:
    """Write a new file; 73 where one is in the way or cannot be made."""
    from msgspec.structs import replace

    from sentinel.config.places import SERVICE, new
    from sentinel.config.starter import make_folder, starter, write_new
    from sentinel.init.survey import survey

    user, file = args.user or _user(), args.file or new(os.environ)
    here = survey(user, service=os.path.abspath(file) == SERVICE).here
    if args.cluster:
        here = replace(here, cluster=args.cluster)
    try:
        if not args.file:
            make_folder(os.path.dirname(file))
        write_new(file, starter(here, user=user))
    except FileExistsError:
        return _fail(f"{file} exists and is left as it is; name another FILE", CANNOT_CREATE)
    except OSError as error:
        return _fail(f"{file} cannot be written: {error.strerror}", CANNOT_CREATE)
    named = f" -c {shlex.quote(file)}" if args.file else ""
    print(f"{file}: written; check it with: sentinel config check{named}")
    return 0


def check_command(args: argparse.Namespace) -> int:
    """Print every problem and return 2, or one line and 0; warnings go to standard error."""
    from sentinel.config.problems import ConfigError

    path = _path(args)
    if path is None:
        return NO_CONFIG
    try:
        loaded = _load(path, strict=True)
    except ConfigError as error:
        print(error)
        return HAS_ERRORS
    checks, channels = len(loaded.settings.checks), len(loaded.settings.channels)
    if not args.quiet:
        print(f"{path}: ok: {_count(checks, 'check')}, {_count(channels, 'channel')}")
    if args.routes:
        _show_routes(loaded.settings)
    if args.times:
        _show_times(loaded.settings)
    if args.proof:
        from sentinel.init.proof import prove
        from sentinel.wiring import app

        print("\n".join(prove(app.with_chain(loaded.settings))))
    return 0


def _show_times(settings: Any) -> None:
    import time

    from sentinel.cli.times import times
    from sentinel.wiring import app

    print("\n".join(times(settings, time.time(), app.zone(settings))))


def _show_routes(settings: Any) -> None:
    from sentinel.clock import SystemClock
    from sentinel.config.route_preview import nobody, rehearse
    from sentinel.core.text import visible

    rows = list(rehearse(settings, SystemClock().now()))
    width = max((len(visible(row.check)) for row in rows), default=0)
    for row in rows:
        way = ",".join(f"routes[{n}]" for n in row.routes) or ("" if settings.routes else "all")
        told = f"{way or 'no route':<9}  {_told(row)}"
        print(f"{visible(row.check):<{width}}  {row.severity.value:<8}  {visible(told)}")
    if lost := len(nobody(rows)):
        print(
            f"warning: {lost} of these {len(rows)} would reach nobody (`unknown` is a check that "
            "cannot see, `sentinel` what sentinel says of itself)",
            file=sys.stderr,
        )


def _told(row: Any) -> str:
    later = f"; later, unless acknowledged: {', '.join(row.later)}" if row.later else ""
    maybe = f"; by subject or label also: {', '.join(row.maybe)}" if row.maybe else ""
    return (", ".join(row.channels) or "NOBODY") + later + maybe


def show_command(args: argparse.Namespace) -> int:
    """Print the effective configuration; raises ConfigError where it has errors."""
    from sentinel.config.display import show

    path = _path(args)
    if path is None:
        return NO_CONFIG
    if not args.config:
        print(f"sentinel: configuration: {path}", file=sys.stderr)
    loaded = _load(path)
    print(show(loaded.settings, loaded.references), end="")
    return 0


def schema_command(args: argparse.Namespace) -> int:
    """Print the JSON Schema of every kind that is installed."""
    import json

    from sentinel.config.json_schema import schema
    from sentinel.wiring import app

    app.find_kinds(args.config)
    print(json.dumps(schema(app.CHECKS, app.CHANNELS), indent=2))
    return 0


def _load(path: str, *, strict: bool = False) -> Any:
    from sentinel.config.loader import load
    from sentinel.wiring import app

    loaded = load(path, app.CHECKS, app.CHANNELS, actions=app.ACTIONS, strict=strict)
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return loaded


def _path(args: argparse.Namespace) -> str | None:
    from sentinel.config.places import Hidden, find, searched

    try:
        path = find(args.config, os.environ)
    except Hidden as error:
        _fail(str(error), NO_CONFIG)
        return None
    if path is None:
        _fail(searched(os.environ), NO_CONFIG)
    return path


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _fail(message: str, code: int) -> int:
    print(f"sentinel config: {message}", file=sys.stderr)
    return code


def _usage(parser: Any) -> int:
    parser.print_help(sys.stderr)
    return 64


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "alice"
