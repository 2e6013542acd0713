"""`sentinel config`: write a configuration, check it, show what is in effect, its schema."""

import argparse
import json
import os
import sys
import time
from typing import Any

from msgspec.structs import replace

from sentinel.cli import add_config_option, add_json_option
from sentinel.cli.plain_rows import is_piped, print_rows
from sentinel.cli.times import list_schedule_times
from sentinel.clock import SystemClock
from sentinel.config.display import show_settings
from sentinel.config.json_schema import build_schema
from sentinel.config.loader import load_config
from sentinel.config.places import (
    SERVICE,
    HiddenConfig,
    find_config,
    new_config_path,
    searched_places,
)
from sentinel.config.problems import ConfigError
from sentinel.config.route_preview import preview_routes, unheard_previews
from sentinel.config.starter import make_folder, starter_text, write_new
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import quote_command
from sentinel.core.text import visible
from sentinel.user_files.identity import user_name
from sentinel.wiring import app

EXIT_CONFIG_ERRORS = 2
EXIT_NO_CONFIG = 78
EXIT_CANNOT_CREATE = 73
"""The last two are EX_CONFIG and EX_CANTCREAT of sysexits(3)."""


def register(subparsers: Any) -> None:
    """Add the parsers."""
    parser = subparsers.add_parser("config", help="write, check and show the configuration")
    parser.set_defaults(call=lambda _args: _print_usage(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _register_config_init(commands)
    _register_config_check(commands)
    show = commands.add_parser(
        "show", help="print all settings in effect, with defaults and without secrets"
    )
    add_config_option(show)
    show.set_defaults(call=call_config_show)
    schema = commands.add_parser("schema", help="print the JSON Schema of the file, for editors")
    add_config_option(schema)
    schema.set_defaults(call=call_config_schema)


def _register_config_init(commands: Any) -> None:
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
    init.set_defaults(call=call_config_init)


def _register_config_check(commands: Any) -> None:
    check = commands.add_parser(
        "check", help="find every mistake in the file; exit 2 if there is one"
    )
    add_config_option(check)
    check.set_defaults(call=call_config_check)
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
    check.add_argument(
        "--since",
        metavar="TIME",
        help="play the past that the state keeps, for example of 30d: how many messages the file "
        "would have sent, beside the configuration in use; sends nothing",
    )
    add_json_option(check)


def call_config_init(args: argparse.Namespace) -> int:
    """Write a new file. Returns 73 if there is a file already, or it cannot be created."""
    from sentinel.init.survey import survey_host

    user, file = args.user or user_name(os.getuid()), args.file or new_config_path(os.environ)
    here = survey_host(user, service=os.path.abspath(file) == SERVICE).here
    if args.cluster:
        here = replace(here, cluster=args.cluster)
    try:
        if not args.file:
            make_folder(os.path.dirname(file))
        write_new(file, starter_text(here, user=user))
    except FileExistsError:
        return _print_failure(
            f"{file} exists and is left as it is; name another FILE", EXIT_CANNOT_CREATE
        )
    except OSError as error:
        return _print_failure(f"{file} cannot be written: {error.strerror}", EXIT_CANNOT_CREATE)
    named = ("-c", file) if args.file else ()
    print(f"{file}: written; check it with:", quote_command("sentinel", "config", "check", *named))
    return 0


def call_config_check(args: argparse.Namespace) -> int:
    """Print every problem and return 2, or one line and 0; warnings go to standard error."""
    path = _find_config_path(args)
    if path is None:
        return EXIT_NO_CONFIG
    try:
        loaded = _load_config(path, strict=True)
    except ConfigError as error:
        print(error)
        return EXIT_CONFIG_ERRORS
    doubts = _print_trust_doubts(loaded.settings)
    checks, channels = len(loaded.settings.checks), len(loaded.settings.channels)
    if args.json and not args.since:
        raise app.UsageError("--json is for --since: the other answers are lines of text")
    if not args.quiet and not args.json:
        told = (
            f"; {_format_count(doubts, 'warning')}: others could act through it" if doubts else ""
        )
        print(
            f"{path}: ok: {_format_count(checks, 'check')}, {_format_count(channels, 'channel')}{told}"
        )
    if args.routes:
        _print_routes(loaded.settings)
    if args.times:
        _print_times(loaded.settings)
    if args.proof:
        from sentinel.init.proof import prove_watching

        print("\n".join(prove_watching(app.add_chain_check(loaded.settings))))
    if args.since:
        from sentinel.cli.config_since import print_comparison  # imports the engine

        wanted = app.add_chain_check(loaded.settings)
        return print_comparison(wanted, args.since, as_json=args.json)
    return 0


def _print_trust_doubts(settings: Any) -> int:
    """Print what others could change or get, a line each. Returns how many."""
    from sentinel.wiring.trust_review import list_trust_doubts

    try:
        doubts = list_trust_doubts(settings, app.get_state_location(settings))
    except CannotTell as error:
        doubts = [str(error)]
    for doubt in doubts:
        print(f"warning: {doubt}", file=sys.stderr)
    return len(doubts)


def _print_times(settings: Any) -> None:
    print("\n".join(list_schedule_times(settings, time.time(), app.get_time_zone(settings))))


def _print_routes(settings: Any) -> None:
    rows = list(preview_routes(settings, SystemClock().now()))
    lines = [
        (
            visible(row.check),
            row.severity.value,
            ",".join(f"routes[{n}]" for n in row.routes)
            or ("no route" if settings.routes else "all"),
            visible(_describe_receivers(row)),
        )
        for row in rows
    ]
    header = ("check", "severity", "by", "who is told")
    if is_piped():
        print_rows(header, lines)
    else:
        from sentinel.cli.tables import Text, make_console, make_plain_table

        table = make_plain_table(*header)
        for line in lines:
            table.add_row(*map(Text, line))
        make_console().print(table)
    if lost := len(unheard_previews(rows)):
        print(
            f"warning: {lost} of these {len(rows)} would reach nobody (`unknown` is a check that "
            "cannot see, `sentinel` what sentinel says of itself)",
            file=sys.stderr,
        )


def _describe_receivers(row: Any) -> str:
    later = f"; later, unless acknowledged: {', '.join(row.later)}" if row.later else ""
    maybe = f"; by subject or label also: {', '.join(row.maybe)}" if row.maybe else ""
    return (", ".join(row.channels) or "NOBODY") + later + maybe


def call_config_show(args: argparse.Namespace) -> int:
    """Print the effective configuration; raises ConfigError where it has errors."""
    path = _find_config_path(args)
    if path is None:
        return EXIT_NO_CONFIG
    if not args.config:
        print(f"sentinel: configuration: {path}", file=sys.stderr)
    loaded = _load_config(path)
    print(show_settings(loaded.settings, loaded.references), end="")
    return 0


def call_config_schema(args: argparse.Namespace) -> int:
    """Print the JSON Schema of every kind that is installed."""
    app.load_configured_kinds(args.config)
    print(json.dumps(build_schema(app.CHECKS, app.CHANNELS), indent=2))
    return 0


def _load_config(path: str, *, strict: bool = False) -> Any:
    loaded = load_config(path, app.CHECKS, app.CHANNELS, actions=app.ACTIONS, strict=strict)
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return loaded


def _find_config_path(args: argparse.Namespace) -> str | None:
    try:
        path = find_config(args.config, os.environ)
    except HiddenConfig as error:
        _print_failure(str(error), EXIT_NO_CONFIG)
        return None
    if path is None:
        _print_failure(searched_places(os.environ), EXIT_NO_CONFIG)
    return path


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print_failure(message: str, code: int) -> int:
    print(f"sentinel config: {message}", file=sys.stderr)
    return code


def _print_usage(parser: Any) -> int:
    parser.print_help(sys.stderr)
    return 64
