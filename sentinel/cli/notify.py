"""`sentinel notify test`: a real message through each channel, and what the other side said."""

import argparse
import sys
from typing import Any

from sentinel import app
from sentinel.cli import USAGE


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("notify", help="send a test message through the channels")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    test = actions.add_parser("test", help="a real message; tells what each server answered")
    test.add_argument("channels", nargs="*", metavar="CHANNEL", help="default: all")
    test.add_argument("-c", "--config", metavar="FILE")
    test.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0 when every channel took the message, 1 when one did not."""
    settings = app.load_settings(args.config)
    known = {c.name: c.plugin for c in settings.channels}
    missing = [name for name in args.channels if name not in known]
    if missing or not known:
        have = ", ".join(known) or "none is configured"
        print(
            f"sentinel: no channel {missing[0] if missing else ''}; channels: {have}",
            file=sys.stderr,
        )
        return USAGE
    return _send({name: known[name] for name in args.channels or known}, settings)


def _send(channels: dict[str, Any], settings: Any) -> int:
    import asyncio

    from sentinel.core.text import visible

    failed = 0
    for name, channel in channels.items():
        try:
            receipt = asyncio.run(app.send_test(channel, settings))
        except app.ChannelError as error:
            failed += 1
            print(f"{name}: FAILED ({error.reason}): {visible(str(error))}")
            continue
        refused = (
            f"; refused: {', '.join(visible(r) for r in receipt.refused)}"
            if receipt.refused
            else ""
        )
        failed += bool(receipt.refused)
        print(f"{name}: ok: {visible(receipt.text)}{refused}")
    return 1 if failed else 0
