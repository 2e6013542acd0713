"""`sentinel notify preview`: shows messages about invented alerts, as each channel would word
them."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sentinel.channels.format.examples import SAMPLES
from sentinel.channels.record import json_record
from sentinel.core.model import Notification

_RULE_WIDTH = 72


def print_previews(channels: Mapping[str, Any], samples: Sequence[str]) -> int:
    """Print the parts of each message without HTML. Returns 1 if a template fails."""
    failed = False
    for name, channel in channels.items():
        for sample in samples:
            print(f"== {name}: {sample} ".ljust(_RULE_WIDTH, "="))
            for part, text in _list_message_parts(channel, SAMPLES[sample]):
                failed = failed or part == "trouble"
                print(_format_message_part(part, text))
    return int(failed)


def write_html_preview(channels: Mapping[str, Any], sample: str, path: str) -> int:
    """Write the HTML of the first channel that has any, into a file or to `-`. Returns the exit
    code."""
    pages = (
        text
        for channel in channels.values()
        for part, text in _list_message_parts(channel, SAMPLES[sample])
        if part == "html"
    )
    page = next(pages, None)
    if page is None:
        print(f"sentinel: no HTML in the messages of {', '.join(channels)}", file=sys.stderr)
        return 1
    return _write_page(path, page)


def _list_message_parts(
    channel: Any, notifications: Sequence[Notification]
) -> list[tuple[str, str]]:
    """The parts of a channel's message. A channel without words of its own sends the JSON object of
    each alert. Links are for people, and exist only if `web` is on."""
    if not channel.links:
        notifications = [replace(n, links={}) for n in notifications]
    if parts := list(channel.preview(notifications)):
        return parts
    return [("object", json_record(n).decode()) for n in notifications]


def _format_message_part(part: str, text: str) -> str:
    if part == "html":
        return f"html: {len(text)} characters; see them with --html FILE\n"
    return f"{part}:\n{text.rstrip()}\n" if "\n" in text else f"{part}: {text}\n"


def _write_page(path: str, page: str) -> int:
    if path == "-":
        print(page)
        return 0
    try:
        with open(os.path.expanduser(path), "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        print(f"sentinel: {path}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"wrote {path}")
    return 0
