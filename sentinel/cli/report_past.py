"""`sentinel report --from GLOB…`: the ledger of past jobs, made from their files. It writes nothing."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from glob import iglob
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from sentinel.cli.common import load_command_settings
from sentinel.clock import SystemClock
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.report.run_report import RunReport
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.endings import BookedRuns
from sentinel.slurm.past_accounting import ask_past_runs
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

if TYPE_CHECKING:
    from datetime import tzinfo

    from sentinel.checks.log.past_runs import PastLedger

MAX_FILES = 5000
MAX_SHOWN = 5

PAST_HINTS = {
    "nothing": "no job of these files ran then, or they tell no times",
    "gpus": "held GPUs, but how many is not known. Say it by --gpus",
    "log": "no line of these logs shows a step with its time",
    "checkpoint": "nothing that --from names tells which checkpoints are complete. Let it name their"
    " folder too, or Megatron's progress.txt",
    "unknown": "the files that --from names tell nothing of it",
}
"""What is missing where something is not known, in place of checks to add."""


class PastReading(NamedTuple):
    """What was read, and when."""

    ledger: PastLedger
    now: int  # µs UTC
    zone: tzinfo


def read_past_ledger(args: argparse.Namespace) -> PastReading:
    """The ledger of the files that `--from` names. Raises UsageError, and CannotTell if no file says
    anything."""
    try:
        from sentinel.checks.log.past_runs import PastOptions, name_past_job, read_past_runs
    except ModuleNotFoundError:  # the kind `log` was taken out
        raise UsageError(
            "--from needs the kind `log`, which is not part of this installation"
        ) from None
    if args.gpus is not None and args.gpus < 1:
        raise UsageError("--gpus: how many GPUs each job held is 1 or more")
    settings, clock = load_command_settings(args), SystemClock()
    now = clock.now()
    paths = find_past_files(args.past_files)
    wanted = args.run if not any(sign in args.run for sign in "*?[") else ""
    booked = BookedRuns()
    if args.sacct:
        ids = {job.job for job in map(name_past_job, paths) if job.has_id}
        if not ids:
            raise UsageError("--sacct: no name of these files has the id of a job")
        slurm = settings.slurm
        client = SlurmClient(limit=slurm.timeout, prefix=slurm.command_prefix)
        booked = ask_past_runs(client, clock, ids)
    options = PastOptions(
        zone=app.get_time_zone(settings),
        now=now.wall,
        run=wanted,
        gpus=args.gpus,
        accounting=booked.runs if args.sacct else None,
    )
    ledger = read_past_runs(paths, options)
    unread = [f"not read: {line}" for line in ledger.unread]
    if booked.unasked:
        unread.insert(0, f"accounting was not asked about all jobs: {booked.unasked}")
    _print_notes(unread)
    if not ledger.rows:
        raise CannotTell("nothing is known: none of these files could be read as the log of a job")
    return PastReading(ledger, now.wall, options.zone)


def _print_notes(notes: Sequence[str]) -> None:
    for line in notes[:MAX_SHOWN]:
        print(line, file=sys.stderr)
    if len(notes) > MAX_SHOWN:
        print(f"and {len(notes) - MAX_SHOWN} more", file=sys.stderr)


def describe_past(report: RunReport, ledger: PastLedger) -> RunReport:
    """The report, with what could not be known of the run from its files."""
    account = report.account
    doubts = (*account.doubts, *ledger.doubts.get(account.run, ()))
    return replace(report, account=replace(account, doubts=doubts))


def find_past_files(patterns: Sequence[str]) -> list[str]:
    """The files of these patterns, each once. A folder counts if it is named without a pattern. Raises UsageError where one finds none, or there are
    too many."""
    found = dict[str, None]()
    for pattern in patterns:
        paths = [*islice(iglob(os.path.expanduser(pattern), recursive=True), MAX_FILES + 1)]
        files = sorted(path for path in paths if path == pattern or not os.path.isdir(path))
        if not files:
            raise UsageError(f"--from: no file is named {visible(pattern)}")
        found |= dict.fromkeys(files)
    if len(found) > MAX_FILES:
        raise UsageError(f"--from: more than {MAX_FILES} files; name those of one training")
    return [*found]
