"""Lists the commands that the parsers know."""

import argparse
from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class ListedCommand(Struct, frozen=True):
    """A command by its words (none: sentinel itself), what it does, the words that may follow, its
    options with what they do, and its usage."""

    words: tuple[str, ...]
    text: str
    below: dict[str, str]
    options: dict[str, str]
    usage: str


def iterate_commands(
    parser: Any, words: tuple[str, ...] = (), text: str = ""
) -> Iterator[ListedCommand]:
    """Every command that there is, the outer ones first."""
    below, parsers, options = dict[str, str](), dict[str, Any](), dict[str, str]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            parsers |= action.choices
            below |= {name: helps.get(name, "") for name in action.choices}
        elif action.option_strings and action.help is not argparse.SUPPRESS:
            options |= dict.fromkeys(action.option_strings, action.help or "")
        elif action.choices:
            below |= dict.fromkeys(map(str, action.choices), "")
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield ListedCommand(words, text or parser.description or "", below, options, usage)
    for name, inner in parsers.items():
        yield from iterate_commands(inner, (*words, name), inner.description or below[name])


def suggest_elsewhere(parser: Any, word: str) -> str:
    """` (did you mean 'sentinel alerts ack'?)` for a word that is a command of another group."""
    found = [c.words for c in iterate_commands(parser) if c.words[1:] == (word,)]
    return f" (did you mean '{parser.prog} {' '.join(found[0])}'?)" if found else ""
