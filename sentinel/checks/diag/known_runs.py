"""Reads facts about earlier runs from the queue, the records of actions, the ledger and the check's
memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sentinel.checks.diag import archive, runs
from sentinel.checks.diag.probation import RETURN_INTEREST_S
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
from sentinel.checks.users import own_user_name
from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, StoreError
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.model import Finding, Status
from sentinel.core.ports import Context
from sentinel.core.stored_memory import decode_memory

MAX_NODE_RECORDS = 20
"""How many of the newest records of a node are searched."""

DAY_S = 86_400

VERDICT_SHOWN_S = 14 * DAY_S
"""Seconds for which a verdict is shown; a day if the node could not be tested when it came back."""


def read_queue(ctx: Context) -> Sequence[Job] | None:
    """The jobs in the queue. None if the queue cannot be read; then runs are left as they are."""
    try:
        return ctx.slurm.jobs()
    except CannotTell:
        return None


def find_action_record(ctx: Context, action: str, node: str, name: str) -> ActionRecord | None:
    """The newest record of this action on the node with this name; None if there is none."""
    if ctx.logbook is None:
        return None
    found = ctx.logbook.records(node, MAX_NODE_RECORDS)
    return next((r for r in found if r.action == action and r.params.get("name") == name), None)


def explain_refusal(ctx: Context, run: DiagRun) -> str:
    """Why the guard or Slurm refused the run, by the records of actions; empty if they did not."""
    record = None if run.job else find_action_record(ctx, "diag", run.node, run.name)
    if record is None or record.outcome.has_effect:
        return ""
    said = record.why if record.rule else record.detail
    return f"not dispatched ({record.rule or record.outcome.value}): {said}"


def is_never_requested(ctx: Context, run: DiagRun) -> bool:
    """Whether sentinel ended before it could request the test of a reserved node."""
    young = ctx.now.wall - run.asked < RETURN_INTEREST_S * SECOND
    return bool(run.kept and not run.job and young) and not find_action_record(
        ctx, "diag", run.node, run.name
    )


def list_unrequested_runs(ctx: Context, waiting: Sequence[DiagRun]) -> list[DiagRun]:
    old = [run for run in waiting if ctx.now.wall - run.asked > runs.QUEUE_GRACE_S * SECOND]
    return [run for run in old if is_never_requested(ctx, run)]


def get_submitters() -> list[str]:
    """The users who may submit the tests, also through sudo, and use the reservation."""
    return sorted({"root", own_user_name()})


def find_suspect_nodes(ctx: Context) -> frozenset[str]:
    """Nodes that are suspect by the ledger, or have a suspect GPU. Raises CannotTell."""
    if ctx.gpus is None:
        return frozenset()
    try:
        standings = ctx.gpus.read_standings(ctx.now)
        bad = [ctx.gpus.read_entry(s) for s, held in standings.items() if held.judged != "good"]
    except StoreError as error:
        raise CannotTell(str(error)) from error
    return frozenset(entry.node for entry in bad if entry is not None)


def read_cleared_times(ctx: Context) -> Mapping[str, int]:
    try:
        entries = ctx.gpus.read_entries() if ctx.gpus is not None else ()
    except StoreError:
        return {}
    return {entry.subject: entry.cleared for entry in entries if entry.cleared}


def is_cleared(one: LastDiagVerdict, cleared: Mapping[str, int]) -> bool:
    """Whether somebody has cleared every GPU that the verdict blames."""
    blamed = one.outcome == "fail" and bool(one.gpus)
    return blamed and all(cleared.get(uuid, 0) > one.at for uuid in one.gpus)


def is_still_shown(one: LastDiagVerdict, ctx: Context) -> bool:
    untested = one.back and one.outcome == "inconclusive"
    return ctx.now.wall - one.at < (DAY_S if untested else VERDICT_SHOWN_S) * SECOND


def recall_verdicts(ctx: Context) -> dict[str, LastDiagVerdict]:
    return dict(decode_memory(ctx.memory.get("last"), dict[str, LastDiagVerdict]) or {})


def find_newest_outputs(ctx: Context) -> dict[str, int]:
    """When the last output of each node was begun (epoch seconds), among those that were read."""
    found = {
        n: archive.parse_output_name(os.path.basename(one.file))
        for n, one in recall_verdicts(ctx).items()
    }
    return {node: file.at for node, file in found.items() if file}


def recall_runs(ctx: Context) -> list[DiagRun]:
    return list(decode_memory(ctx.memory.get("runs"), list[DiagRun]) or [])


def record_gpu_events(ctx: Context, events: Sequence[GpuEvent]) -> list[Finding]:
    """Add the events to the ledger. Returns a finding if that fails."""
    if ctx.gpus is None or not events:
        return []
    try:
        ctx.gpus.add_events(events)
    except StoreError as error:
        return [Finding(subject="ledger", status=Status.UNKNOWN, summary=str(error))]
    return []
