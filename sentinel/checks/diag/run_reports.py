"""Makes findings, ledger events and requests from verdicts. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sentinel.checks.diag import archive
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict, format_test_name
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import NODE_PREFIX, GpuEvent
from sentinel.core.guidance import (
    ADMINISTRATOR,
    ActingCommand,
    Guidance,
    LookingCommand,
    avoid_node,
    drain_node,
    list_drain_commands,
    look,
)
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.text import first_lines, shortened
from sentinel.core.values import clock_text, duration_text
from sentinel.gpu.advice import Advice
from sentinel.gpu.dcgm import Blame, Verdict
from sentinel.gpu.ledger_update import blamed
from sentinel.gpu.model import Inventory

MILD_ADVICE = (Advice.RESET, Advice.MONITOR)
MAX_WHY_CHARS = 240
MAX_BLAMES = 50


def make_last_verdict(
    run: DiagRun, found: Verdict, gpus: Inventory | None, now: Instant
) -> LastDiagVerdict:
    """The part of a verdict that the check remembers."""
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
        details=tuple(first_lines([_format_blame(b, gpus) for b in found.blames], MAX_BLAMES)),
        file=run.out,
    )


def make_lost_verdict(run: DiagRun, why: str, now: Instant) -> LastDiagVerdict:
    """The verdict about a run that left no result."""
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


_OUTCOME_WORDS = {"pass": "passed", "fail": "failed"}


def make_verdict_finding(last: LastDiagVerdict, now: Instant) -> Finding:
    """The finding about a node's verdict: CRITICAL if the test failed, UNKNOWN if it proved
    nothing. WARNING if an unproven fault needs a person, or a node came back and was not tested."""
    status = {"pass": Status.OK, "fail": Status.CRITICAL}.get(last.outcome, Status.UNKNOWN)
    if (last.needs_a_person or last.back) and status is Status.UNKNOWN:
        status = Status.WARNING
    ago = clock_text(last.at / SECOND, now.wall / SECOND)
    word = _OUTCOME_WORDS.get(last.outcome, last.outcome)
    said = f"{format_test_name(last.level, last.test)} {word} {ago}"
    if last.back:
        untested = f"came back, and was given back to jobs {ago} without its test"
        said = untested if last.outcome == "inconclusive" else f"{said}, after it came back"
    return Finding(
        subject=last.node,
        status=status,
        summary=f"{said}: {last.why}",
        values={"level": last.level, "outcome": last.outcome},
        details="\n".join(last.details),
        labels={"node": last.node},
        commands=() if status is Status.OK else _suggest_diag_commands(last, status),
        acts=() if status is Status.OK or not last.test else (_test_again(last),),
        guidance=_guide_verdict(last, status),
    )


def _guide_verdict(last: LastDiagVerdict, status: Status) -> Guidance:
    test, why = format_test_name(last.level, last.test), shortened(last.why, 120)
    if status is Status.OK:
        return Guidance()
    if status is Status.UNKNOWN:
        return Guidance(
            impact=f"Whether {last.node} computes well is not known until a test ends with a result; jobs"
            " go on there meanwhile.",
            todo=f"`sentinel diag show` below shows what the test said. Run it again: `{_test_again(last).render()}`. It is a job"
            " of its own and waits until the node is free. If that ends without a result too, the test or the"
            f" driver on {last.node} needs an administrator.",
            ask=f"run the test again on {last.node}: {test} {last.outcome}",
        )
    return Guidance(
        impact=f"Jobs on {last.node} may fail or compute wrongly until it is repaired."
        if status is Status.CRITICAL
        else "",
        todo=f"{avoid_node(last.node)} {drain_node('repair what the test found (below)')}",
        ask=f"drain {last.node} and look at it: {test} {_OUTCOME_WORDS.get(last.outcome, last.outcome)}: {why}",
    )


def _test_again(last: LastDiagVerdict) -> ActingCommand:
    return ActingCommand(
        owner=ADMINISTRATOR,
        argv=("sentinel", "nodes", "test", last.node, "--test", last.test)
        if last.test
        else ("sentinel", "diag", "run", last.node),
    )


def _suggest_diag_commands(last: LastDiagVerdict, status: Status) -> tuple[LookingCommand, ...]:
    gpus = [look("sentinel gpus show {}", uuid) for uuid in last.gpus]
    shown = [] if last.test else [look("sentinel diag show {}", last.node), *gpus]
    return *shown, *list_drain_commands(last.node, f"test failed: {last.why}", is_bad=status.bad)


def make_run_finding(run: DiagRun, now: Instant) -> Finding:
    """The finding about a node that has no verdict yet."""
    age = duration_text(max(0, now.wall - run.asked) // SECOND)
    state = run.state.lower() or "under way"
    kept = f"; kept in {run.kept} until then" if run.kept else ""
    summary = f"{run.display_name} {state}, asked for {age} ago{kept}"
    return Finding(subject=run.node, status=Status.OK, summary=summary, labels={"node": run.node})


def make_gpu_events(
    run: DiagRun, found: Verdict, gpus: Inventory | None, now: Instant
) -> Iterator[GpuEvent]:
    """Events for the ledger: each GPU that failed, once. The node itself if the GPU is not known,
    or if half of its GPUs failed."""
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
    """The type of the event: a GPU that only needs a reset is not as bad as one that computes
    wrongly."""
    return "diag fail" if any(b.advice not in MILD_ADVICE for b in blames) else "diag reset"


def request_drain(last: LastDiagVerdict) -> ActionRequest:
    """The request to drain the node, with a reason that people read in sinfo."""
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
    number = f" (DCGM error {blame.error_id})" if blame.error_id is not None else ""
    about = f" {name}" if name else ""
    return shortened(
        f"{blame.advice.value}: {where}{about}: {blame.test}: {blame.text}{number}", 400
    )
