"""From verdicts to findings: what a person reads, and what routes and machines get."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.judge import LogVerdict, list_log_values
from sentinel.checks.log.progress import GROWTH_NAME, LogObservation, LogState
from sentinel.checks.log.topics import EXTRA_TOPICS, TopicAnswer, describe_cause, format_troubles
from sentinel.checks.log.witness import Testimony
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.logtext import describe_cut_lines
from sentinel.core.model import Finding, Sample, Status
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import duration_text

MAX_TAIL_BYTES = 8192  # bytes of the end that a bad finding quotes from
MAX_QUOTED_LINES = 20  # lines of it
DOUBT_FACTOR = 2.0  # times the limit for which a witness that contradicts is believed


class WatchedLog(Struct, frozen=True, kw_only=True):
    """One log with what was seen, what is remembered, and what that means.

    `at_risk`: the work that its hang costs, in words; `slower`: that its steps take longer;
    `asked_early`: actions were asked for because of a closer look; `onward`: commands by which it
    goes on without the culprit.
    """

    sight: LogObservation
    seen: LogState
    verdict: LogVerdict
    testimony: Testimony = Testimony()
    asides: tuple[TopicAnswer, ...] = ()
    peers: Mapping[str, str] = {}
    at_risk: str = ""
    slower: str = ""
    asked_early: bool = False
    onward: tuple[str, ...] = ()


def apply_testimony(verdict: LogVerdict, testimony: Testimony) -> LogVerdict:
    """With what the second witnesses say. One that contradicts makes a warning of it, for as
    long again as the limit: a log may be buffered, but not for ever.
    """
    if not verdict.hung or not (testimony.words or testimony.culprit):
        return verdict
    said = (testimony.culprit, verdict.summary, testimony.words)
    summary = "; ".join(filter(None, said))
    limit = verdict.limit.seconds if verdict.limit else 0.0
    if testimony.contradicts and verdict.quiet < DOUBT_FACTOR * limit:
        until = duration_text(DOUBT_FACTOR * limit)
        doubt = f"{summary}; so only a warning until {until}: is the log buffered?"
        return replace(verdict, status=Status.WARNING, summary=doubt)
    return replace(verdict, summary=summary)


def make_findings(
    subject: str, watched: Sequence[WatchedLog], told: Iterable[str], files: LogFiles
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The subject's own finding, those of further topics, and which of these were ever told."""
    first = _make_progress_finding(subject, watched, files)
    further = {topic: _make_topic_finding(subject, topic, watched) for topic in EXTRA_TOPICS}
    bad = {topic for topic, finding in further.items() if finding and finding.status.bad}
    kept = tuple(topic for topic in EXTRA_TOPICS if topic in bad or topic in {*told})
    shown = [further[topic] or _make_empty_finding(subject, topic) for topic in kept]
    return (first, *shown), kept


def make_samples(subject: str, watched: Sequence[WatchedLog]) -> tuple[Sample, ...]:
    """The numbers worth a history, where one log stands for the subject."""
    if len(watched) != 1:
        return ()
    marks = watched[0].seen.marks.items()
    counted = {name: mark.value for name, mark in marks if name != GROWTH_NAME}
    found = {
        "size_bytes": watched[0].sight.size_bytes,
        "progress": next(iter(counted.values()), None),
        **{event.name: event.value for event in watched[0].sight.events if event.what == "value"},
    }
    return tuple(Sample(subject, name, float(n)) for name, n in found.items() if n is not None)


def read_last_lines(one: WatchedLog, files: LogFiles) -> str:
    """The end of the log as it may be quoted, or why it cannot be read."""
    newest = max(one.sight.looks.items(), key=lambda pair: pair[1].mtime, default=None)
    if newest is None:
        return ""
    try:
        text = files.read_tail(newest[0], MAX_TAIL_BYTES, one.sight.whose) or ""
    except CannotTell as error:
        return str(error)
    return "\n".join(
        shortened(line, 300) for line in visible_lines(text).splitlines()[-MAX_QUOTED_LINES:]
    )


def _make_progress_finding(subject: str, watched: Sequence[WatchedLog], files: LogFiles) -> Finding:
    """The worst log speaks; how many others are not well is added."""
    worst, *others = sorted(watched, key=lambda one: one.verdict.status.rank, reverse=True)
    unwell = sum(one.verdict.status is not Status.OK for one in others)
    more = f"; {unwell} more of {len(watched)} running jobs likewise" if unwell else ""
    bad = worst.verdict.status.bad
    return Finding(
        subject=subject,
        status=worst.verdict.status,
        summary=_format_summary(worst) + more,
        values=list_log_values(worst.sight, worst.seen, worst.verdict),
        details=_format_details(worst, files) if bad else "",
        commands=_suggest_log_commands(worst.sight, worst.onward, hung=worst.verdict.hung)
        if bad
        else (),
        labels=_make_job_labels(worst.sight.job),
        began=int(worst.sight.at.wall / SECOND - worst.verdict.quiet) if bad else None,
    )


def _format_summary(one: WatchedLog) -> str:
    why = describe_cause(one.seen.troubles, one.peers) if one.verdict.status.bad else ""
    parts = [
        one.verdict.summary,
        f"before that: {why}" if why else "",
        one.at_risk,
        one.slower,
        f"{one.sight.unread}, so errors in it go unseen" if one.sight.unread else "",
        describe_cut_lines(one.sight.cut_lines),
    ]
    return "; ".join(part for part in parts if part)


def _format_details(one: WatchedLog, files: LogFiles) -> str:
    troubles = format_troubles(one.seen.troubles, one.peers)
    return "\n".join(part for part in (troubles, read_last_lines(one, files)) if part)


def _make_topic_finding(subject: str, topic: str, watched: Sequence[WatchedLog]) -> Finding | None:
    said = [(a, one) for one in watched for a in one.asides if a.topic == topic]
    if not said:
        return None
    aside, one = max(said, key=lambda pair: pair[0].status.rank)
    return Finding(
        subject=f"{subject} {topic}",
        status=aside.status,
        summary=aside.summary,
        values=aside.values,
        details=aside.details,
        commands=_suggest_log_commands(one.sight) if aside.status.bad else (),
        labels=_make_job_labels(one.sight.job),
    )


def _make_empty_finding(subject: str, topic: str) -> Finding:
    return Finding(subject=f"{subject} {topic}", status=Status.OK, summary="nothing seen")


def _suggest_log_commands(
    sight: LogObservation, onward: Sequence[str] = (), *, hung: bool = False
) -> tuple[str, ...]:
    """What to run next; where every rank stands comes first when it hangs."""
    from shlex import quote

    job = sight.job
    stacks = (f"sentinel stacks {quote(visible(job.job_id))}",) if job and hung else ()
    asked = (f"scontrol show job {quote(visible(job.job_id))}",) if job else ()
    return (*stacks, *onward, *asked, f"tail -n 50 {quote(visible(sight.shown_path))}")


def _make_job_labels(job: Job | None) -> dict[str, str]:
    if job is None:
        return {}
    return {"job": visible(job.name), "user": job.user, "partition": job.partition}
