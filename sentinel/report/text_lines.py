"""The report for people: a sentence, a bar for each part, the interruptions. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping

from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.report.documents import HOUR_US
from sentinel.report.gpu_time import CLASSES, TimeClass
from sentinel.report.interruptions import (
    Interruption,
    MeanTime,
    compute_mtbf,
    compute_mttr,
    count_causes,
)
from sentinel.report.run_account import RunAccount
from sentinel.report.run_report import LOSSES, RunReport
from sentinel.report.savings import Saving

MAX_COSTS_SHOWN = 5
"""How many interruptions are shown, those that cost most."""

BAR_COLUMNS = 20
LINE_COLUMNS = 80

UNKNOWN: TimeClass = "unknown"

LABELS: Mapping[TimeClass, str] = {
    "useful": "steps in the model",
    "provisional": "steps since the last checkpoint",
    "redone": "steps lost and redone",
    "startup": "start-up",
    "checkpoint": "saving checkpoints",
    "evaluation": "evaluation",
    "slow": "slower than usual",
    "hung": "hung",
    "crashed": "crashed, GPUs still held",
    "tail": "lost at the time limit",
    "idle": "idle after the training",
    "unknown": "not known",
}
CAUSE_LABELS = {
    "file_system": "file system",
    "unknown": "not known",
    "slurm": "Slurm",
    "gpu": "GPU",
}
CLEARER_LABELS: Mapping[TimeClass, str] = {
    "slow": "extra time of steps that were slower than usual for this run",
    "tail": "lost when the time limit ended a job (its unsaved steps, and the time after its last one)",
}
"""Where a label stands alone in a sentence."""
CHECK_HINTS: Mapping[str, str] = {
    "nothing": "checks of the kinds job, log and checkpoint write down what trainings do",
    "gpus": "held no GPUs, according to Slurm",
    "checkpoint": "no complete checkpoint of it has been seen. If the configuration has no check with"
    " `kind: checkpoint` and this run as its `job`, add one; if it has, that check has seen none yet (is its path right?)",
    "log": "its log has not been seen to advance. If the configuration has no check with `kind: log` and this run"
    " as its `job`, add one; if it has, it began too late, or its path is wrong",
    "unknown": "sentinel was not running, or the log of the run was silent",
}


def render_sentence(account: RunAccount, hints: Mapping[str, str] = CHECK_HINTS) -> str:
    """The report in two or three sentences. `hints` say what is missing where something is not known."""
    name, held = visible(account.run), account.held / HOUR_US
    if not account.held:
        return f"Run {name} {hints['gpus']}."
    head = f"Run {name} held {format_hours(held)} GPU-hours."
    useful = format_share(account.parts["useful"], account.held)
    if account.goodput is None:
        missing = next((hints[kind] for kind in account.missing if kind in hints), "")
        if account.parts["useful"] * 200 >= account.held:
            return f"{head} As far as its log shows, {useful} of them went into the model; the true share is not known: {missing}."
        return f"{head} How much of that went into the model is not known: {missing}."
    return f"{head} {_describe_steps(account, useful)}{_describe_rest(account, hints['unknown'])}."


def _describe_steps(account: RunAccount, useful: str) -> str:
    share = format_share(account.parts["provisional"], account.held)
    if account.parts["useful"]:
        more = f", and another {share} into steps that no checkpoint holds yet"
        text = f"{useful} of them went into the model"
        return text + more if account.parts["provisional"] else text
    if account.parts["provisional"]:
        return f"None of them went into the model yet: {share} went into steps that no checkpoint holds"
    return "None of them went into the model: no checkpoint holds a step of that time"


def _describe_rest(account: RunAccount, why: str) -> str:
    """The largest part besides the steps. `why` that is not known, if it is."""
    worst = max((*LOSSES, UNKNOWN), key=lambda part: account.parts[part])
    before = account.parts["useful"] + account.parts["provisional"]
    share = format_share(account.parts[worst], account.held)
    label = CLEARER_LABELS.get(worst, LABELS[worst])
    if not account.parts[worst]:
        return ""
    if before + account.parts[worst] == account.held:
        share = f"the other {share}" if before else "they" if worst == UNKNOWN else "all of them"
    elif worst != UNKNOWN:
        return f". The largest part of the rest: {label} ({share} of all its GPU-hours)"
    if worst == UNKNOWN:
        return f". What {share} went into is not known: {why}"
    return f". {share[0].upper()}{share[1:]}: {label}"


def render_report(
    report: RunReport,
    format_time: Callable[[int], str],
    *,
    bars: bool = True,
    link: Callable[[str, int], str] | None = None,
    hints: Mapping[str, str] = CHECK_HINTS,
) -> Iterator[str]:
    """All lines about one run. With `bars` each has at most 80 columns, but for addresses. A
    program gets sentences whole, and names and numbers between tabs.

    link: The address of the page of a run around a moment.
    """
    account = report.account
    sentence = render_sentence(account, hints)
    yield from textwrap.wrap(sentence, LINE_COLUMNS) if bars else [sentence]
    yield from _render_parts(account, bars)
    yield from _render_ratios(account)
    if report.before is not None:
        yield from _wrap_line(f"  {describe_change(report)}", bars)
    yield from _render_interruptions(account, format_time, link)
    if report.savings:
        yield "  would have saved most:"
    for saving in report.savings:
        yield from _wrap_line(f"    {format_saving(saving)}", bars)
    for doubt in account.doubts:
        yield from _wrap_line(f"  note: {doubt}", bars)


def _wrap_line(line: str, bars: bool) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, LINE_COLUMNS, subsequent_indent=indent) if bars else [line]


def describe_change(report: RunReport) -> str:
    """How the period before was, and the loss that grew most since. Empty without a period
    before."""
    now, before, grown = report.account, report.before, report.grown
    if before is None:
        return ""
    share = "not known" if before.goodput is None else f"{float(before.goodput):.0%}"
    text = f"the period before: goodput {share}, {format_hours(before.held / HOUR_US)} GPU-hours"
    if grown is None:
        return text
    shares = [format_share(one.parts[grown], one.held) for one in (before, now)]
    return f"{text}; grew most: {LABELS[grown]}, {shares[0]} to {shares[1]}"


def format_saving(saving: Saving) -> str:
    """The saving in one sentence, with what it would have saved."""
    word = "about" if saving.kind == "checkpoint_interval" else "up to"
    return f"{saving.text}: {word} {format_hours(saving.saved / HOUR_US)} GPU-hours"


def _render_parts(account: RunAccount, bars: bool) -> Iterator[str]:
    """A line for each part that is not 0. Of several that are small none is left out: they add up
    to the whole."""
    for name in CLASSES:
        part = account.parts[name]
        if not part:
            continue
        hours, share = format_hours(part / HOUR_US), format_share(part, account.held)
        if not bars:
            yield f"{name}\t{hours}\t{share}"
            continue
        full = round(BAR_COLUMNS * part / account.held)
        bar = "█" * full + "░" * (BAR_COLUMNS - full)
        yield f"  {LABELS[name]:<32}{bar}{share:>6}{hours:>11} GPU-h"


def _render_ratios(account: RunAccount) -> Iterator[str]:
    calendar = account.calendar
    outside = [
        f"{duration_text(time / 10**6)} {what}"
        for time, what in (
            (calendar.queued, "in the queue"),
            (calendar.not_submitted, "without a job"),
            (calendar.maintenance, "of maintenance, not counted"),
        )
        if time
    ]
    if account.goodput is not None:
        ettr = f", ETTR {float(account.ettr):.0%}" if account.ettr is not None else ""
        yield f"  goodput {float(account.goodput):.0%}{ettr}"
    if outside:
        yield f"  besides: {', '.join(outside)}"


def _render_interruptions(
    account: RunAccount,
    format_time: Callable[[int], str],
    link: Callable[[str, int], str] | None,
) -> Iterator[str]:
    found = account.interruptions
    if not found:
        return
    causes = ", ".join(
        f"{CAUSE_LABELS.get(cause, cause)} {count}" for cause, count in count_causes(found).items()
    )
    yield f"  interruptions: {len(found)} ({causes})"
    between = compute_mtbf(len(found), account.calendar.held)
    if between.mean_s is not None:
        yield f"  time between them: {_format_rate(between)}"
    for ended_by, words in (("automatic", "by itself"), ("person", "by a person")):
        repair = compute_mttr(found, ended_by)
        if repair.mean_s is not None:
            yield f"  until it made steps again, {words}: {_format_rate(repair)}"
    for cost, one in list_dearest(account):
        cause = CAUSE_LABELS.get(one.cause, one.cause)
        nodes = f" {shortened(visible(one.nodes), 20)}" if one.nodes else ""
        end = {"automatic": ", went on by itself", "person": ", started again by a person"}
        yield (
            f"    {format_time(one.at)}  {format_hours(cost / HOUR_US):>8} GPU-h  "
            f"{cause}{nodes}{end.get(one.ended_by, '')}"
        )
        if link is not None:
            yield f"      {link(account.run, one.at)}"


def list_dearest(account: RunAccount) -> list[tuple[int, Interruption]]:
    """The interruptions that cost most, with their cost."""
    pairs = sorted(zip(account.costs, account.interruptions, strict=True), key=lambda p: -p[0])
    return pairs[:MAX_COSTS_SHOWN]


def _format_rate(rate: MeanTime) -> str:
    low, mean, high = (duration_text(s or 0.0) for s in (rate.low_s, rate.mean_s, rate.high_s))
    return f"{mean} ({low} to {high}, {rate.cases} cases)"


def format_hours(hours: float) -> str:
    """Hours for people."""
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}"


def format_share(part: int, whole: int) -> str:
    """`75%`; a part that is not 0 is never shown as 0, and one that is not all as all."""
    if 0 < part * 200 < whole:
        return "<1%"
    if part < whole and part * 200 > whole * 199:
        return ">99%"
    return f"{100 * part / whole:.0f}%"
