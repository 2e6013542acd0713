"""`sentinel notify`: sends a test message through each channel, or shows what its messages look
like."""

import argparse
import asyncio
import sys
from typing import Any

from sentinel.cli import EXIT_USAGE, add_config_option
from sentinel.cli.preview import print_previews, write_html_preview
from sentinel.core.text import visible
from sentinel.wiring import app

SAMPLE_NAMES = ("firing", "resolved", "grouped")


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("notify", help="send a test message through the channels")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    test = actions.add_parser(
        "test", help="send a real test message and print what each server answered"
    )
    test.add_argument("channels", nargs="*", metavar="CHANNEL", help="default: all")
    add_config_option(test)
    test.set_defaults(call=call_notify_test)
    look = actions.add_parser("preview", help="show what messages look like; sends nothing")
    look.add_argument("channels", nargs="*", metavar="CHANNEL", help="default: all")
    look.add_argument("--sample", choices=SAMPLE_NAMES, help="default: all of them")
    look.add_argument("--html", metavar="FILE", help="write the HTML of one sample there")
    add_config_option(look)
    look.set_defaults(call=call_notify_preview)


def call_notify_test(args: argparse.Namespace) -> int:
    """Send test messages. Returns 0 if every channel took its message, 1 if one did not, or
    answered so that this is not known."""
    settings = app.load_settings(args.config)
    chosen = _select_channels(args, settings)
    return EXIT_USAGE if chosen is None else _send_test_messages(chosen, settings)


def call_notify_preview(args: argparse.Namespace) -> int:
    """Print messages. Returns 0, or 1 if a template fails or the file for --html cannot be
    written."""
    chosen = _select_channels(args, app.load_settings(args.config))
    if chosen is None:
        return EXIT_USAGE
    if args.html:
        return write_html_preview(chosen, args.sample or "firing", args.html)
    return print_previews(chosen, [args.sample] if args.sample else SAMPLE_NAMES)


def _select_channels(args: argparse.Namespace, settings: Any) -> dict[str, Any] | None:
    """The requested channels by name; None, after a message about it, if there are none."""
    known = {c.name: c.plugin for c in settings.channels}
    missing = next((name for name in args.channels if name not in known), None)
    if not known:
        print("sentinel: no channel is configured", file=sys.stderr)
    elif missing is not None:
        have = ", ".join(known)
        print(f"sentinel: no channel {visible(missing)}; channels: {have}", file=sys.stderr)
    else:
        return {name: known[name] for name in args.channels or known}
    return None


def _send_test_messages(channels: dict[str, Any], settings: Any) -> int:
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
        failed += bool(receipt.refused or receipt.doubt)
        if receipt.doubt:
            print(f"{name}: IN DOUBT: {visible(receipt.doubt)}: see whether it arrived{refused}")
        else:
            print(f"{name}: ok: {visible(receipt.text)}{refused}")
    return 1 if failed else 0
