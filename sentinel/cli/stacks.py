"""`sentinel stacks JOBID`: shows where every rank of a job is in its code, the ranks that differ
first."""

import argparse
import json
import os
import sys
from typing import Any

import msgspec

from sentinel.cli import add_config_option, add_json_option
from sentinel.cli.common import parse_seconds
from sentinel.core.text import visible
from sentinel.stacks import StacksRequest
from sentinel.stacks.bundle import EvidenceNotSaved, dump_as_plain, save_bundle
from sentinel.stacks.parse import dump_lines, group_ranks
from sentinel.stacks.parse.model import StandKind
from sentinel.stacks.recordings import RecordingsOrder, read_recordings, recordings_of_job
from sentinel.wiring import actions, app
from sentinel.wiring.app import UsageError

MIN_LIMIT_S = 5.0


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
    add_config_option(parser)
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
    saving = parser.add_mutually_exclusive_group()
    saving.add_argument(
        "--save", default="", metavar="DIR", help="the directory into which the stacks are saved"
    )
    saving.add_argument("--no-save", action="store_true", help="save nothing")
    add_json_option(parser)
    parser.set_defaults(call=call_stacks)


def call_stacks(args: argparse.Namespace) -> int:
    """Print stacks. Returns 0 if every rank was read, 1 if something could not be reached or
    read."""
    if args.dumps:
        return _report_dumps(args)
    if not args.job:
        raise UsageError("name a JOBID, or --dumps PATH")
    settings = app.load_settings_or_default(args.config)
    looker, client = actions.make_stack_looker(settings)
    asked = StacksRequest(
        job=args.job,
        limit=_parse_limit(args.limit),
        native=args.native,
        tool=_require_absolute_path(args.py_spy),
        evidence=not args.no_save,
    )
    target, dump = looker.look_at_job(asked)
    recorded = recordings_of_job(client, target, dump)
    where = "" if args.no_save else _save_evidence(args, settings, client, target, dump, recorded)
    if args.json:
        found = {"flight_recorder": _build_recorder_document(recorded), "evidence": where}
        print(json.dumps({**dump_as_plain(dump), **found}, indent=1))
    else:
        if recorded.standstill_words:
            print(f"flight recorder: {recorded.standstill_words}\n")
        print("\n".join(dump_lines(dump)))
    if where and not args.json:
        print(f"\nsaved in {where}", file=sys.stderr)
    return int(not _is_complete(dump))


def _report_dumps(args: argparse.Namespace) -> int:
    """Judge recorded dumps. Returns 0 if a culprit is named, else 1."""
    if args.job:
        raise UsageError("a JOBID finds its own dumps; leave out --dumps, or the JOBID")
    path = os.path.abspath(args.dumps)
    folder = os.path.isdir(path)
    found = read_recordings(
        RecordingsOrder(places=(f"{path}/" if folder else path,), limit=_parse_limit(args.limit))
    )
    none = f"no flight recorder dumps in {path}" if folder else f"no dumps {path}0, {path}1, ..."
    print(
        json.dumps(_build_recorder_document(found), indent=1)
        if args.json
        else found.standstill_words or visible(none)
    )
    return int(not found.joint_standstill.culprits)


def _build_recorder_document(found: Any) -> dict[str, Any]:
    told = msgspec.to_builtins(found.joint_standstill)
    return {
        "summary": found.standstill_words,
        **told,
        "refused": dict(found.refused),
        "older": found.older,
    }


def _is_complete(dump: Any) -> bool:
    groups = group_ranks(dump)
    blind = {StandKind.UNREADABLE, StandKind.UNREACHED}
    return bool(groups) and not dump.missed and not any(g.kind in blind for g in groups)


def _save_evidence(
    args: argparse.Namespace, settings: Any, client: Any, target: Any, dump: Any, recorded: Any
) -> str:
    """Save the evidence. The stacks are shown even if they cannot be saved."""
    try:
        return save_bundle(
            args.save or app.get_evidence_folder(settings), client, target, dump, recorded
        )
    except EvidenceNotSaved as error:
        print(f"sentinel: {error}", file=sys.stderr)
        return ""


def _parse_limit(text: str) -> float:
    limit = parse_seconds(text, "--limit")
    if limit < MIN_LIMIT_S:
        raise UsageError(
            f"--limit: {text} is too short to reach a node; at least {MIN_LIMIT_S:.0f}s"
        )
    return limit


def _require_absolute_path(path: str) -> str:
    if path and not os.path.isabs(path):
        raise UsageError(f"--py-spy: {path!r} is no absolute path; it must be one on every node")
    return path
