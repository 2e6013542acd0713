"""`sentinel plugins`: lists the kinds, one line each, and where each comes from."""

import argparse
import json
from typing import Any

from rich.text import Text

from sentinel.cli import add_json_option
from sentinel.cli.tables import make_console, make_plain_table
from sentinel.core.text import visible
from sentinel.wiring import actions, app


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "plugins", help="kinds of checks, channels and actions, one line each"
    )
    parser.add_argument(
        "-c", "--config", metavar="FILE", help="the configuration file whose `checks_from` counts"
    )
    add_json_option(parser)
    parser.set_defaults(call=call_plugins)


def call_plugins(args: argparse.Namespace) -> int:
    """Print the kinds. A kind that cannot be loaded is listed with the reason, which is its
    author's error."""
    app.load_configured_kinds(args.config)
    found = {"check": app.CHECKS, "channel": app.CHANNELS, "action": actions.ACTIONS}
    rows = [
        {"what": what, "kind": name, "from": origin, "description": line}
        for what, registry in found.items()
        for name, origin, line in (
            *(
                (name, registry.kind_origin(name), _read_summary_line(registry, name))
                for name in registry.kind_names()
            ),
            *registry.hidden_kinds(),
        )
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    _print_kinds(rows)
    return 0


def _print_kinds(rows: list[dict[str, str]]) -> None:
    table = make_plain_table("what", "kind", "from", "description")
    for row in rows:
        table.add_row(*(Text(visible(value)) for value in row.values()))
    make_console().print(table)


def _read_summary_line(registry: Any, name: str) -> str:
    try:
        text = registry.load_kind(name).__doc__ or ""
    except Exception as error:
        return str(error)
    return (text.strip().splitlines() or [""])[0]
