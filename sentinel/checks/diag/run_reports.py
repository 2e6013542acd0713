"""Verdicts as findings, ledger events and wishes. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec.structs import replace

from sentinel.checks.diag import archive
from sentinel.checks.diag.archive import ArchivedOutput
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict, format_test_name
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import NODE_PREFIX, GpuEvent
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.text import shortened
from sentinel.core.values import duration_text
from sentinel.gpu.advice import Advice
from sentinel.gpu.dcgm import Blame, Verdict
from sentinel.gpu.ledger_update import blamed
from sentinel.gpu.model import Inventory

MILD_ADVICE = (Advice.RESET, Advice.MONITOR)
MAX_WHY_CHARS = 240


def make_last_verdict(
    run: DiagRun, found: Verdict, gpus: Inventory | None, now: Instant
) -> LastDiagVerdict:
    """What is remembered of a run."""
    bad = [b for b in found.blames if found.outcome != "fail" or b.counts]
    names = dict.fromkeys(_format_gpu_ids(b, gpus) for b in bad)
    about = f" ({', '.join(list(names)[:3])})" if found.outcome == "fail" and any(names) else ""
    return LastDiagVerdict(
        node=run.node,
        level=run.level,
        test=run.test,
        back=run.back,
        outcome=found.outcome,
        why=shortened(found.why, MAX_WHY_CHARS) + about,
        at=now.wall,
        needs_a_person=any(b.needs_a_person for b in found.blames),
        gpus=tuple(dict.fromkeys(u for b in bad if (u := archive.identify_gpu(b, gpus)[0]))),
        details=tuple(_format_blame(b, gpus) for b in found.blames[:50]),
        file=run.out,
    )


def make_lost_verdict(run: DiagRun, why: str, now: Instant) -> LastDiagVerdict:
    """Of a run that left no result."""
    return LastDiagVerdict(
        node=run.node,
        level=run.level,
        test=run.test,
        back=run.back,
        outcome="inconclusive",
        why=why,
        at=now.wall,
        file=run.out,
    )


def make_verdict_finding(last: LastDiagVerdict, now: Instant) -> Finding:
    """One about the node; critical for what failed, unknown for what nobody can tell. People hear as
    a warning of a fault that proves nothing, and of a node that came back and was not tested."""
    status = {"pass": Status.OK, "fail": Status.CRITICAL}.get(last.outcome, Status.UNKNOWN)
    if (last.needs_a_person or last.back) and status is Status.UNKNOWN:
        status = Status.WARNING
    age = duration_text(max(0, now.wall - last.at) // SECOND)
    word = {"pass": "passed", "fail": "failed"}.get(last.outcome, last.outcome)
    said = f"{format_test_name(last.level, last.test)} {word} {age} ago"
    if last.back:
        untested = f"came back, and {age} ago it was given back to jobs without its test"
        said = untested if last.outcome == "inconclusive" else f"{said}, after it came back"
    return Finding(
        subject=last.node,
        status=status,
        summary=f"{said}: {last.why}",
        values={"level": last.level, "outcome": last.outcome},
        details="\n".join(last.details),
        labels={"node": last.node},
        commands=() if status is Status.OK else _suggest_commands(last),
    )


def _suggest_commands(last: LastDiagVerdict) -> tuple[str, ...]:
    if last.test:
        return (f"sentinel nodes test {last.node} --test {last.test}",)
    return (f"sentinel diag show {last.node}", *(f"sentinel gpus show {u}" for u in last.gpus))


def make_run_finding(run: DiagRun, now: Instant) -> Finding:
    """A node of which nothing is known yet."""
    age = duration_text(max(0, now.wall - run.asked) // SECOND)
    state = run.state.lower() or "under way"
    kept = f"; kept in {run.kept} until then" if run.kept else ""
    summary = f"{run.display_name} {state}, asked for {age} ago{kept}"
    return Finding(subject=run.node, status=Status.OK, summary=summary, labels={"node": run.node})


def make_gpu_events(
    run: DiagRun, found: Verdict, gpus: Inventory | None, now: Instant
) -> Iterator[GpuEvent]:
    """For the ledger: each GPU that failed, once; the node where nobody knows which it was, or
    where it is half of its GPUs."""
    due = (gpus.attached or 0) if gpus is not None else run.gpus
    yield from blamed([*_make_blame_events(run, found, gpus, now)], run.node, due)


def _make_blame_events(
    run: DiagRun, found: Verdict, gpus: Inventory | None, now: Instant
) -> Iterator[GpuEvent]:
    if found.outcome != "fail":
        return
    struck: dict[str, list[Blame]] = {}
    for blame in found.blames:
        if blame.counts:
            uuid = archive.identify_gpu(blame, gpus)[0]
            struck.setdefault(uuid or f"{NODE_PREFIX}{run.node}", []).append(blame)
    for subject, blames in struck.items():
        yield GpuEvent(
            id=f"{os.path.basename(run.out)} {subject}",
            subject=subject,
            what=_choose_event_type(blames),
            at=now,
            node=run.node,
            text=shortened(f"-r {run.level}: {blames[0].test}: {blames[0].text}", 300),
        )


def _choose_event_type(blames: list[Blame]) -> str:
    """A GPU that only needs a reset is not as bad as one that computes wrongly."""
    return "diag fail" if any(b.advice not in MILD_ADVICE for b in blames) else "diag reset"


def request_drain(last: LastDiagVerdict) -> ActionRequest:
    """A wish to take the node out, with the reason people will read in sinfo."""
    return ActionRequest(
        action="drain",
        target=last.node,
        reason=f"{format_test_name(last.level, last.test)} failed: {shortened(last.why, 160)}",
        evidence={"file": last.file, "faults": "\n".join(last.details)},
    )


def _format_gpu_ids(blame: Blame, gpus: Inventory | None) -> str:
    uuid, serial = archive.identify_gpu(blame, gpus)
    return " ".join(filter(None, [uuid, serial and f"serial {serial}"]))


def _format_blame(blame: Blame, gpus: Inventory | None) -> str:
    where = f"{blame.entity} {blame.index}" if blame.index is not None else blame.entity
    name = _format_gpu_ids(blame, gpus)
    number = f" (error {blame.error_id})" if blame.error_id is not None else ""
    about = f" {name}" if name else ""
    return shortened(
        f"{where}{about}: {blame.test}: {blame.text}{number}: {blame.advice.value}", 400
    )


# Single outputs of the archive, as verdicts with their own time.


def make_archived_run(place: str, file: ArchivedOutput) -> DiagRun:
    """As if it had been asked for at the time that its name says."""
    return DiagRun(
        node=file.node,
        name=file.name,
        level=file.level,
        out=os.path.join(place, file.name),
        asked=file.at * SECOND,
        limit=0.0,
    )


def read_archived_verdict(place: str, file: ArchivedOutput) -> LastDiagVerdict:
    """What an output proves. CannotTell if it cannot be read."""
    run = make_archived_run(place, file)
    found, gpus = archive.read_diag_verdict(run.out, run.level)
    last = make_last_verdict(run, found, gpus, Instant(wall=run.asked))
    return replace(last, at=run.asked)
