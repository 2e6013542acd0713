"""`sentinel doctor`: what this environment can and cannot do, each with the remedy."""

import argparse
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from sentinel.cli import config_option, json_option
from sentinel.config.settings import Settings
from sentinel.core.model import Status
from sentinel.doctor import Item
from sentinel.wiring import app


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "doctor", help="what works on this host, what does not, and how to mend it"
    )
    config_option(parser)
    json_option(parser)
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0 when nothing is critical, else 1. Changes nothing and sends nothing."""
    settings = app.settings_or_default(args.config)
    items = list(_items(settings))
    if args.json:
        print(
            json.dumps(
                [
                    {"name": i.name, "status": i.status.value, "text": i.text, "remedy": i.remedy}
                    for i in items
                ],
                indent=1,
            )
        )
    else:
        _show(items)
    return int(any(i.status is Status.CRITICAL for i in items))


def _items(settings: Settings) -> Iterator[Item]:
    import asyncio

    from sentinel.doctor import channels, cron, host, nodes, ok, slurm, warn

    source = settings.path
    yield (
        ok("configuration", source)
        if source
        else warn(
            "configuration",
            "none found: the built-in default",
            "write one with: sentinel config init",
        )
    )
    yield host.state(app.state_of(settings))
    yield host.clock(app.zone(settings), datetime.now(timezone.utc), app.why_utc(settings))
    snapshot = app.snapshot(settings)
    yield from slurm.examine(snapshot, settings.slurm)
    for name in settings.clusters:
        yield from slurm.elsewhere(name, app.snapshot(settings, name))
    yield from cron.examine(app.chain_folder(settings), snapshot.client, settings.spare_state)
    yield host.munge()
    yield from _way_to_nodes(settings, snapshot)
    if _reboots(settings):
        yield nodes.rebooting(snapshot)
    yield from host.tools()
    yield from asyncio.run(_all(channels.reach(settings.channels)))


def _reboots(settings: Settings) -> bool:
    """Whether anything in the configuration may reboot nodes."""
    from sentinel.actions.service import grants

    action = settings.actions.get("reboot")
    by_itself = action is not None and action.enabled
    return by_itself or any("reboot" in grants(check) for check in settings.checks)


def _way_to_nodes(settings: Settings, snapshot: Any) -> Iterator[Item]:
    """Only where Slurm answers: it knows the nodes."""
    from sentinel.core.errors import CannotTell
    from sentinel.doctor import nodes
    from sentinel.wiring import actions

    try:
        known = snapshot.nodes()
    except CannotTell:
        return
    remote, limit = actions.remote(settings)
    yield from nodes.reaching(known, remote, limit)


async def _all(items: Any) -> list[Item]:
    return [item async for item in items]


def _show(items: list[Item]) -> None:
    from rich.text import Text

    from sentinel.cli.tables import console, plain_table, status_cell

    table = plain_table("", "what", "found")
    for item in items:
        found = Text(item.text)
        if item.remedy and item.status is not Status.OK:
            found.append(f"\n→ {item.remedy}", style="dim")
        table.add_row(status_cell(item.status), Text(item.name), found)
    console().print(table)
