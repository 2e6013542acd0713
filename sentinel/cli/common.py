"""Helpers of all commands: common options, reading words, who runs the command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sentinel.cli import add_config_option, add_json_option
from sentinel.core import hostlist
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import describe_nodes
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.homes import get_invoking_user
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

if TYPE_CHECKING:
    from sentinel.config.settings import Settings
    from sentinel.core.cluster import Node


def add_action_parser(
    verbs: Any, name: str, text: str, function: Any, *, configured: bool = True
) -> Any:
    """The parser of one action, with --json, and with --config if the action reads the
    configuration."""
    parser = verbs.add_parser(name, help=text)
    if configured:
        add_config_option(parser)
    add_json_option(parser)
    parser.set_defaults(call=function)
    return parser


def load_command_settings(args: argparse.Namespace) -> Settings:
    """The configuration that applies, or the built-in one; without channels, since these commands
    send nothing.

    Raises HiddenConfig if there is one that this user may not read: then it is not known what it
    allows and where its log is."""
    return app.find_settings(args.config, sending=False) or app.load_builtin_settings(sending=False)


def parse_seconds(text: str, option: str) -> float:
    """Seconds of a duration as people write it. Raises UsageError."""
    try:
        return float(Duration.parse(text))
    except Invalid as error:
        raise UsageError(f"{option}: {error}") from None


def expand_node_names(words: Sequence[str]) -> tuple[str, ...]:
    """The names in these host lists. Raises UsageError."""
    try:
        return tuple(
            dict.fromkeys(name for word in words for name in hostlist.expand_hostlist(word))
        )
    except Invalid as error:
        raise UsageError(str(error)) from None


def select_nodes(words: Sequence[str], nodes: Sequence[Node]) -> list[Node]:
    """The nodes in these host lists. Raises UsageError for a text that is not one, or a node that
    Slurm does not know."""
    known, wanted = {node.name: node for node in nodes}, expand_node_names(words)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        what = (
            f"no node {unknown[0]}"
            if len(unknown) == 1
            else f"no nodes {hostlist.fold_for_people(unknown)}"
        )
        raise UsageError(f"Slurm knows {what} (see: sentinel nodes list)")
    return [known[name] for name in wanted]


def print_node_count(names: Iterable[str]) -> None:
    """Print `5 nodes: node[18-19,110-112]` on stderr, before anything is done to them; stdout is
    for the results."""
    print(describe_nodes([*names]), file=sys.stderr, flush=True)


def describe_operator() -> str:
    """The same user, in the form for the audit log."""
    return visible(f"{get_invoking_user()}@{os.uname().nodename} by hand")
