"""`sentinel diag run|list|show`: dispatch dcgmi diag, follow it, read its archive."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.actions.action_rules import ActionRequester
from sentinel.checks.diag import DiagCheck, archive, dispatch, epilog_test, run_reports
from sentinel.checks.diag.archived_runs import read_archived_verdict
from sentinel.checks.diag.runs import QUEUE_GRACE_S
from sentinel.cli import diag_tables as tables
from sentinel.cli.common import (
    add_action_parser,
    describe_operator,
    expand_node_names,
    load_command_settings,
    print_node_count,
    select_nodes,
)
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core import hostlist
from sentinel.core.errors import CannotTell
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.work import hide_work, track_work
from sentinel.wiring import actions, app
from sentinel.wiring.app import UsageError
from sentinel.wiring.audit_log import open_audit_log

if TYPE_CHECKING:
    from sentinel.checks.diag.archive import ArchivedOutput
    from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
    from sentinel.core.actions import ActionRecord

POLL_INTERVAL_S = 2.0
"""Seconds between two checks of a run that the command waits for."""

DIAG_EXIT_CODES = {"pass": 0, "fail": 2, "inconclusive": 3}
"""Exit codes as those of a check: 0 all passed, 2 one failed, 3 not known."""


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("diag", help="run `dcgmi diag` on nodes and read its results")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    run = add_action_parser(
        verbs,
        "run",
        "submit one diag job for each node, within the limits of `actions`",
        call_diag_run,
    )
    run.add_argument(
        "nodes", nargs="+", metavar="NODES", help="a host list such as node-[0-3],gpu08"
    )
    run.add_argument(
        "--level",
        type=int,
        choices=(1, 2, 3, 4),
        help="the level of dcgmi diag; default: that of the check, or 2",
    )
    run.add_argument("--check", metavar="NAME", help="the configured check whose settings apply")
    run.add_argument(
        "--wait", action="store_true", help="wait until all jobs have ended and print the results"
    )
    run.add_argument("--dry-run", action="store_true", help="say what would be done and why")
    listed = add_action_parser(verbs, "list", "the newest result of each node", call_diag_list)
    listed.add_argument(
        "nodes",
        nargs="*",
        metavar="NODES",
        help="a host list such as node-[0-3],gpu08; default: all nodes",
    )
    listed.add_argument("--all", action="store_true", help="every output, not only the newest")
    shown = add_action_parser(
        verbs, "show", "what the newest run on a node found, fault by fault", call_diag_show
    )
    shown.add_argument("node", metavar="NODE", help="a node, or the name of an output")
    here = add_action_parser(
        verbs,
        "here",
        "a quick test of this machine's GPUs, for epilogs",
        call_diag_here,
        configured=False,
    )
    here.add_argument(
        "--level", type=int, choices=(1, 2, 3, 4), default=1, help="level of the test (1)"
    )
    here.add_argument("--limit", default="90", metavar="SECONDS", help="then it is ended (90)")
    here.add_argument("--gpus", default="", metavar="LIST", help="like 0,1: those of a job")
    for one in (run, listed, shown, here):
        one.add_argument("--archive", metavar="DIR", help="the directory that holds the outputs")


def call_diag_run(args: argparse.Namespace) -> int:
    """Submit runs. Returns 0 if all were submitted (with --wait: if all passed), 1 if one was
    not."""
    settings, clock = load_command_settings(args), SystemClock()
    check = _select_diag_check(settings, args)
    chosen = select_nodes(args.nodes, actions.connect_slurm(settings, clock).nodes())
    print_node_count(node.name for node in chosen)
    level = args.level or check.level
    runs = [
        dispatch.make_run(node, level, check.archive_directory, check.sbatch, clock.now())
        for node in chosen
    ]
    records = _dispatch_runs(settings, check, runs, args)
    if args.wait and not args.dry_run:
        return _report_until_done(settings, check, runs, records, args)
    tables.print_dispatch_report(runs, records, args)
    return int(any(not tables.is_dispatched(r) for r in records))


def _dispatch_runs(
    settings: Settings, check: DiagCheck, runs: Sequence[DiagRun], args: argparse.Namespace
) -> list[ActionRecord]:
    """Submit runs through the guard and record them, like every other action by hand."""
    clock = SystemClock()
    log = open_audit_log(settings, dry_run=args.dry_run)
    try:
        snapshot = actions.connect_slurm(settings, clock)
        actor = actions.make_actor(settings, snapshot, log, clock, dry_run=args.dry_run)
        asker = ActionRequester(name=describe_operator(), consent=True, by_hand=True)
        return [
            actor.execute_request(
                dispatch.request_run(run, check.sbatch, check.starts_within), asker
            )
            for run in runs
        ]
    finally:
        log.close()


def _report_until_done(
    settings: Settings,
    check: DiagCheck,
    runs: Sequence[DiagRun],
    records: Sequence[ActionRecord],
    args: argparse.Namespace,
) -> int:
    """Wait for every run that was submitted; each ends by its own time limit."""
    if not args.json:
        tables.print_dispatch_report(runs, records, args)
    started = [
        run for run, record in zip(runs, records, strict=True) if tables.is_dispatched(record)
    ]
    longest = max((run.limit for run in started), default=0) + check.starts_within + QUEUE_GRACE_S
    told: list[LastDiagVerdict] = []
    for last in _wait_for_results(settings, started, longest):
        told.append(last)
        if not args.json:
            print("\n".join(tables.render_diag_lines(last)), flush=True)
    if args.json:
        print(json.dumps([tables.build_diag_row(one) for one in told], indent=1))
    refused = [1 for record in records if not tables.is_dispatched(record)]
    return _choose_worst_exit_code([*(DIAG_EXIT_CODES[one.outcome] for one in told), *refused])


def _wait_for_results(
    settings: Settings, runs: Sequence[DiagRun], seconds: float
) -> Iterator[LastDiagVerdict]:
    """Each result as its run ends; runs that have not ended within that time come last."""
    waiting, deadline = list(runs), time.monotonic() + seconds
    with track_work("waiting for results", "runs", len(waiting)) as tracked:
        while waiting and time.monotonic() < deadline:
            for run in _find_finished_runs(waiting):
                waiting.remove(run)
                tracked.advance()
                hide_work()
                yield _record_verdict(settings, run)
            if waiting:
                time.sleep(POLL_INTERVAL_S)
    for run in waiting:
        yield run_reports.make_lost_verdict(run, "it left no result in time", SystemClock().now())


def _find_finished_runs(runs: Sequence[DiagRun]) -> list[DiagRun]:
    """Runs that have left a result. A shared disk that hangs is asked again later."""
    try:
        done = archive.find_finished_runs([run.out for run in runs])
    except CannotTell as error:
        print(f"sentinel: {visible(str(error))}", file=sys.stderr)
        return []
    return [run for run in runs if run.out in done]


def _record_verdict(settings: Settings, run: DiagRun) -> LastDiagVerdict:
    """The verdict of a run, which is also written into the ledger of GPUs."""
    now = SystemClock().now()
    try:
        found, gpus = archive.read_diag_verdict(run.out, run.level, run.gpus)
    except CannotTell as error:
        return run_reports.make_lost_verdict(run, str(error), now)
    _store_gpu_events(settings, list(run_reports.make_gpu_events(run, found, gpus, now)))
    return run_reports.make_last_verdict(run, found, gpus, now)


def _store_gpu_events(settings: Settings, events: Sequence[Any]) -> None:
    if not events:
        return
    gpus = app.open_gpu_ledger(settings)
    try:
        gpus.add_events(events)
    finally:
        gpus.close()


def call_diag_list(args: argparse.Namespace) -> int:
    """Print verdicts. Returns 0 if all of them are passes, 2 if one failed, 3 if one is not known,
    also for a named node without output."""
    settings = load_command_settings(args)
    place, wanted = (
        _select_diag_check(settings, args).archive_directory,
        expand_node_names(args.nodes) if args.nodes else (),
    )
    found = [f for f in archive.list_outputs(place) if not wanted or f.node in wanted]
    if unproven := sorted({*wanted} - {f.node for f in found}):
        print(
            f"sentinel: no output of {hostlist.fold_for_people(unproven)} in {visible(place)}",
            file=sys.stderr,
        )
    chosen = found if args.all else list({f.node: f for f in found}.values())
    last = [_read_archived_result(place, file) for file in chosen]
    if args.json:
        print(json.dumps([tables.build_diag_row(one) for one in last], indent=1))
    elif last:
        tables.print_diag_table(last, app.get_time_zone(settings))
    elif not wanted:
        print(f"no output of dcgmi diag in {visible(place)}")
    unknown = [DIAG_EXIT_CODES["inconclusive"]] if unproven else []
    return _choose_worst_exit_code([*(DIAG_EXIT_CODES[one.outcome] for one in last), *unknown])


def call_diag_show(args: argparse.Namespace) -> int:
    """Print one verdict. Returns the same codes as `list`."""
    place = _select_diag_check(load_command_settings(args), args).archive_directory
    found = [f for f in archive.list_outputs(place) if args.node in (f.node, f.name)]
    if not found:
        raise UsageError(visible(f"no output of {args.node} in {place}; see: sentinel diag list"))
    last = _read_archived_result(place, found[-1])
    print(
        json.dumps(tables.build_diag_row(last), indent=1)
        if args.json
        else "\n".join(tables.render_diag_lines(last))
    )
    return DIAG_EXIT_CODES[last.outcome]


def call_diag_here(args: argparse.Namespace) -> int:
    """Test this machine. Returns 1 for a confirmed hardware fault, else 0, even if the test could
    not run: any other code of an epilog takes the node out of service."""
    if args.gpus and not re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3})*", args.gpus):
        raise UsageError(visible(f"--gpus {args.gpus!r} is no list like 0,1"))
    if not re.fullmatch(r"[1-9][0-9]{0,4}", args.limit):
        raise UsageError(visible(f"--limit {args.limit!r} is no number of seconds"))
    said = epilog_test.test_this_machine(
        args.level, float(args.limit), args.gpus, args.archive, SystemClock().now()
    )
    if args.json:
        print(json.dumps({"outcome": said.outcome, "confirmed": said.confirmed, "text": said.text}))
    else:
        print(said.text)
    return int(said.confirmed)


def _read_archived_result(place: str, file: ArchivedOutput) -> LastDiagVerdict:
    return read_archived_verdict(place, file)


def _select_diag_check(settings: Settings, args: argparse.Namespace) -> DiagCheck:
    """The settings of the named check, of the only one there is, or the defaults."""
    there = {c.name: c.plugin for c in settings.checks if c.common.kind == "diag"}
    name = getattr(args, "check", None)
    if name is not None and name not in there:
        raise UsageError(f"no check {name!r} of kind diag; there are: {', '.join(there) or 'none'}")
    chosen = there[name] if name else next(iter(there.values())) if len(there) == 1 else DiagCheck()
    if args.archive:
        chosen = replace(chosen, archive=FilePath(os.path.abspath(args.archive)))
    return chosen


def _choose_worst_exit_code(codes: Iterable[int]) -> int:
    """The worst code: a failure before an unknown result. 0 if there is none."""
    return max(codes, key=lambda code: (code == 2, code), default=0)
