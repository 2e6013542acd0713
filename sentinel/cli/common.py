"""What the commands have in common: their usual options, words that make sense, who calls."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sentinel.cli import add_config_option, add_json_option
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

if TYPE_CHECKING:
    from sentinel.config.settings import Settings
    from sentinel.core.cluster import Node


def add_action_parser(verbs: Any, name: str, text: str, function: Any) -> Any:
    """The parser of one action, with --config and --json."""
    parser = verbs.add_parser(name, help=text)
    add_config_option(parser)
    add_json_option(parser)
    parser.set_defaults(call=function)
    return parser


def load_command_settings(args: argparse.Namespace) -> Settings:
    """The configuration that applies, or the built-in one; raises config.Hidden where one applies
    that this user may not read: what it allows and where it keeps its log is not known. It has no
    channels: these commands send nothing."""
    return app.find_settings(args.config, sending=False) or app.load_builtin_settings(sending=False)


def parse_seconds(text: str, option: str) -> float:
    """A duration as people write it; raises UsageError."""
    from sentinel.core.errors import Invalid
    from sentinel.core.values import Duration

    try:
        return float(Duration.parse(text))
    except Invalid as error:
        raise UsageError(f"{option}: {error}") from None


def expand_node_names(words: Sequence[str]) -> tuple[str, ...]:
    """The names in these host lists; raises UsageError."""
    from sentinel.core import hostlist
    from sentinel.core.errors import Invalid

    try:
        return tuple(
            dict.fromkeys(name for word in words for name in hostlist.expand_hostlist(word))
        )
    except Invalid as error:
        raise UsageError(str(error)) from None


def select_nodes(words: Sequence[str], nodes: Sequence[Node]) -> list[Node]:
    """The nodes of these host lists; raises UsageError for what is none, or not known to Slurm."""
    from sentinel.core import hostlist

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
    """`5 nodes: node[18-19,110-112]`, before anything is done to them. On stderr: stdout is for
    what came of it."""
    from sentinel.core.hostlist import describe_nodes

    print(describe_nodes([*names]), file=sys.stderr, flush=True)


def get_invoking_user() -> str:
    """Who typed it, root's sudo seen through."""
    from getpass import getuser

    try:
        return os.environ.get("SUDO_USER") or getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def describe_operator() -> str:
    """The same for the audit log."""
    from sentinel.core.text import visible

    return visible(f"{get_invoking_user()}@{os.uname().nodename} by hand")
