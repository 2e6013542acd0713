"""Prints all golden alerts as people meet them: mail subject, mail, chat, and terminal at 80 columns.

`python -m tests.checks.golden_sheet > FILE`; with `--draw 20 --seed 1` so many, drawn, to be read by
somebody who does not know the program.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from sentinel.channels.console_card import paint_card
from sentinel.channels.format.blocks import fit_blocks, make_chat
from sentinel.channels.format.text import make_card, render_text, subject_line
from sentinel.channels.markup import PLAIN
from sentinel.core.model import Notification
from tests.checks.test_golden import GOLDEN, PLACE

COLUMNS, CHAT_ROOM = 80, 4000
READABLE = {"ALERT": "4f1c09b2aa", PLACE: "/data/train/run7"}
"""What stands for the masked words of the golden file. A reader would take them for words of the
message."""


def golden_alerts() -> dict[str, Notification]:
    """Each golden alert by the name of its trouble; the second of one trouble has a number."""
    named = {}
    for name, messages in json.loads(GOLDEN.read_text()).items():
        for number, message in enumerate(messages):
            title = f"{name} {number + 1}" if number else name
            named[title] = msgspec.convert(unmask_words(message["json"]), Notification)
    return named


def unmask_words(masked: Any) -> Any:
    """The message with a real-looking id and path."""
    text = json.dumps(masked)
    for word, readable in READABLE.items():
        text = re.sub(rf"{word}\b", readable, text)
    return json.loads(text)


def golden_faces(n: Notification) -> Iterator[tuple[str, str]]:
    """The name and the text of each form of a message."""
    chat = make_chat([n])
    yield "Mail, subject", subject_line([n])
    yield "Mail", render_text([n])
    blocks = PLAIN.render_blocks(fit_blocks(chat, CHAT_ROOM))
    yield "Chat", f"{chat.tone_icon} {chat.title}\n{blocks}"
    yield f"Terminal, {COLUMNS} columns", paint_card(make_card(n), colour=False, width=COLUMNS)


def main() -> None:
    """Print the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    alerts = golden_alerts()
    names = sorted(alerts)
    if args.draw:
        names = random.Random(args.seed).sample(names, min(args.draw, len(names)))
    for number, name in enumerate(names, 1):
        # A reader who is to judge the message is not told what the trouble is called.
        print("=" * COLUMNS, f"\nAlert {number}" + ("" if args.draw else f": {name}"))
        for face, text in golden_faces(alerts[name]):
            print(f"\n--- {face}\n{text.rstrip()}")
        print()


if __name__ == "__main__":
    main()
