"""`sentinel doctor`: reports what works in this environment and what does not, each with the
remedy."""

import argparse
import asyncio
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from rich.text import Text

from sentinel.actions.service import get_granted_actions
from sentinel.cli import add_config_option, add_json_option
from sentinel.cli.doctor_report import print_report
from sentinel.cli.plain_rows import is_piped
from sentinel.cli.tables import make_console, make_plain_table, render_status
from sentinel.config.places import SERVICE
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.doctor import DoctorItem, nodes
from sentinel.proc.own_package import PACKAGE_DIR
from sentinel.wiring import actions, app


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "doctor", help="what works on this host, what does not, and how to mend it"
    )
    add_config_option(parser)
    form = parser.add_mutually_exclusive_group()
    add_json_option(form)
    form.add_argument(
        "--report",
        action="store_true",
        help="print versions, the shape of the configuration and the last errors, to be shown in public",
    )
    parser.set_defaults(call=call_doctor)


def call_doctor(args: argparse.Namespace) -> int:
    """Print the items. Returns 0 if nothing is critical, else 1; with --report 0. It changes
    nothing and sends nothing."""
    if args.report:
        print_report(args.config, _list_items)
        return 0
    settings = app.load_settings_or_default(args.config)
    items = list(_list_items(settings))
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
        _print_items(items)
    return int(any(i.status is Status.CRITICAL for i in items))


def _list_items(settings: Settings) -> Iterator[DoctorItem]:
    from sentinel.doctor import (
        channels,
        cron,
        host,
        make_ok_item,
        make_warning_item,
        nodes,
        slurm,
        trust,
    )
    from sentinel.wiring.trust_review import list_trust_doubts

    source = settings.path
    yield (
        make_ok_item("configuration", source)
        if source
        else make_warning_item(
            "configuration",
            "none found: the built-in default",
            "write one with: sentinel config init",
        )
    )
    yield host.check_state_dir(app.get_state_location(settings))
    yield from trust.check_trust(
        lambda: list_trust_doubts(settings, app.get_state_location(settings))
    )
    yield host.check_time_zone(
        app.get_time_zone(settings), datetime.now(timezone.utc), app.explain_utc(settings)
    )
    snapshot = app.make_snapshot(settings)
    changes = source == SERVICE or _may_act(settings, "drain", "undrain", "reboot")
    yield from slurm.check_slurm(snapshot, settings.slurm, changes_nodes=changes)
    for name in settings.clusters:
        yield from slurm.check_other_cluster(name, app.make_snapshot(settings, name))
    yield from cron.check_chain(
        app.get_chain_folder(settings), snapshot.client, settings.spare_state
    )
    yield host.check_munge()
    yield from _check_way_to_nodes(settings, snapshot)
    if _may_act(settings, "reboot"):
        yield nodes.check_reboots(snapshot)
    yield from host.check_tools()
    yield from host.check_namesake()
    yield from host.check_bytecode(PACKAGE_DIR)
    yield from asyncio.run(_collect_async_items(channels.check_channels(settings.channels)))


def _may_act(settings: Settings, *names: str) -> bool:
    """Whether anything in the configuration may do one of these actions by itself."""
    by_itself = any(name in names and a.enabled for name, a in settings.actions.items())
    return by_itself or any({*names} & {*get_granted_actions(c)} for c in settings.checks)


def _check_way_to_nodes(settings: Settings, snapshot: Any) -> Iterator[DoctorItem]:
    """Test the way to nodes, only if Slurm answers: it knows the nodes."""
    try:
        known = snapshot.nodes()
    except CannotTell:
        return
    remote, limit = actions.connect_remote(settings)
    yield from nodes.check_node_access(known, remote, limit)


async def _collect_async_items(items: Any) -> list[DoctorItem]:
    return [item async for item in items]


def _print_items(items: list[DoctorItem]) -> None:
    """Print the items. On a terminal the remedies are below the table, on unbroken lines, since a
    command that is wrapped cannot be pasted."""
    piped, told = is_piped(), [i for i in items if i.remedy and i.status is not Status.OK]
    table = make_plain_table("", "what", "found")
    for item in items:
        found = Text(item.text)
        if piped and item in told:
            found.append(f" → {item.remedy}")
        table.add_row(render_status(item.status), Text(item.name), found)
    out = make_console()
    out.print(table)
    for item in [] if piped else told:
        out.print(Text(f"→ {item.name}: {item.remedy}"), soft_wrap=True)
