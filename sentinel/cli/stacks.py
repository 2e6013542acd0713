"""`sentinel stacks JOBID`: where every rank of a job stands, the odd ones first."""

import argparse
import json
import os
import sys
from typing import Any

from sentinel.cli import config_option, json_option
from sentinel.cli.common import seconds
from sentinel.core.text import visible
from sentinel.wiring import actions, app
from sentinel.wiring.app import BadCall

SHORTEST = 5.0


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "stacks", help="the stack of every process of a job, the odd ones first"
    )
    parser.add_argument(
        "job",
        metavar="JOBID",
        nargs="?",
        help="4711, 4711_3 for an array's element, 4711+1 for a part",
    )
    parser.add_argument(
        "--dumps", metavar="PATH", help="read these flight recorder dumps: a folder, or PREFIX"
    )
    config_option(parser)
    parser.add_argument(
        "--native", action="store_true", help="C and C++ frames too; stops each task for a moment"
    )
    parser.add_argument(
        "--limit",
        default="20s",
        metavar="TIME",
        help="time limit for the whole command; default 20s",
    )
    parser.add_argument(
        "--py-spy", default="", metavar="PATH", help="the path of py-spy on the nodes"
    )
    parser.add_argument(
        "--save", default="", metavar="DIR", help="the directory into which the stacks are saved"
    )
    parser.add_argument("--no-save", action="store_true", help="save nothing")
    json_option(parser)
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0 when every rank was read or named, 1 when something was not reached or not readable."""
    if args.dumps:
        return _dumps(args)
    if not args.job:
        raise BadCall("name a JOBID, or --dumps PATH")
    from sentinel.stacks import Asked
    from sentinel.stacks.bundle import plain
    from sentinel.stacks.parse import lines
    from sentinel.stacks.recordings import of_job

    settings = app.settings_or_default(args.config)
    looker, client = actions.looker(settings)
    asked = Asked(
        job=args.job,
        limit=_limit(args.limit),
        native=args.native,
        tool=_tool(args.py_spy),
        evidence=not args.no_save,
    )
    target, dump = looker.look(asked)
    recorded = of_job(client, target, dump)
    where = "" if args.no_save else _saved(args, settings, client, target, dump, recorded)
    if args.json:
        found = {"flight_recorder": _plain(recorded), "evidence": where}
        print(json.dumps({**plain(dump), **found}, indent=1))
    else:
        if recorded.words:
            print(f"flight recorder: {recorded.words}\n")
        print("\n".join(lines(dump)))
    if where and not args.json:
        print(f"\nsaved in {where}", file=sys.stderr)
    return int(not _whole(dump))


def _dumps(args: argparse.Namespace) -> int:
    """0 when a culprit is named, 1 when none is."""
    from sentinel.stacks.recordings import Order, read

    if args.job:
        raise BadCall("a JOBID finds its own dumps; leave out --dumps, or the JOBID")
    path = os.path.abspath(args.dumps)
    folder = os.path.isdir(path)
    found = read(Order(places=(f"{path}/" if folder else path,), limit=_limit(args.limit)))
    none = f"no flight recorder dumps in {path}" if folder else f"no dumps {path}0, {path}1, ..."
    print(json.dumps(_plain(found), indent=1) if args.json else found.words or visible(none))
    return int(not found.standstill.culprits)


def _plain(found: Any) -> dict[str, Any]:
    import msgspec

    told = msgspec.to_builtins(found.standstill)
    return {"summary": found.words, **told, "refused": dict(found.refused), "older": found.older}


def _whole(dump: Any) -> bool:
    from sentinel.stacks.parse import grouped
    from sentinel.stacks.parse.model import Kind

    groups = grouped(dump)
    blind = {Kind.UNREADABLE, Kind.UNREACHED}
    return bool(groups) and not dump.missed and not any(g.kind in blind for g in groups)


def _saved(
    args: argparse.Namespace, settings: Any, client: Any, target: Any, dump: Any, recorded: Any
) -> str:
    """What was seen is shown, also where it cannot be kept."""
    from sentinel.stacks.bundle import NotSaved, save

    try:
        return save(args.save or app.evidence(settings), client, target, dump, recorded)
    except NotSaved as error:
        print(f"sentinel: {error}", file=sys.stderr)
        return ""


def _limit(text: str) -> float:
    limit = seconds(text, "--limit")
    if limit < SHORTEST:
        raise BadCall(f"--limit: {text} is too short to reach a node; at least {SHORTEST:.0f}s")
    return limit


def _tool(path: str) -> str:
    if path and not os.path.isabs(path):
        raise BadCall(f"--py-spy: {path!r} is no absolute path; it must be one on every node")
    return path
