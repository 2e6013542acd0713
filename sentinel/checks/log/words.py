"""From verdicts to findings: what a person reads, and what routes and machines get."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.files import Files
from sentinel.checks.log.judge import Verdict, values
from sentinel.checks.log.progress import GROWTH, Seen, Sight
from sentinel.checks.log.secondary import TOPICS, Aside, cause, lines
from sentinel.checks.log.witness import Testimony
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.logtext import cut_words
from sentinel.core.model import Finding, Sample, Status
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import duration_text

SHOWN = 8192  # bytes of the end that a bad finding quotes from
QUOTED = 20  # lines of it
DOUBT = 2.0  # times the limit for which a witness that contradicts is believed


class Watched(Struct, frozen=True, kw_only=True):
    """One log with what was seen, what is remembered, and what that means.

    `at_risk`: the work that its hang costs, in words; `slower`: that its steps take longer;
    `asked_early`: actions were asked for because of a closer look; `onward`: commands by which it
    goes on without the culprit.
    """

    sight: Sight
    seen: Seen
    verdict: Verdict
    testimony: Testimony = Testimony()
    asides: tuple[Aside, ...] = ()
    peers: Mapping[str, str] = {}
    at_risk: str = ""
    slower: str = ""
    asked_early: bool = False
    onward: tuple[str, ...] = ()


def weighed(verdict: Verdict, testimony: Testimony) -> Verdict:
    """With what the second witnesses say. One that contradicts makes a warning of it, for as
    long again as the limit: a log may be buffered, but not for ever.
    """
    if not verdict.hung or not (testimony.words or testimony.culprit):
        return verdict
    said = (testimony.culprit, verdict.summary, testimony.words)
    summary = "; ".join(filter(None, said))
    limit = verdict.limit.seconds if verdict.limit else 0.0
    if testimony.contradicts and verdict.quiet < DOUBT * limit:
        until = duration_text(DOUBT * limit)
        doubt = f"{summary}; so only a warning until {until}: is the log buffered?"
        return replace(verdict, status=Status.WARNING, summary=doubt)
    return replace(verdict, summary=summary)


def findings(
    subject: str, watched: Sequence[Watched], told: Iterable[str], files: Files
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The subject's own finding, those of further topics, and which of these were ever told."""
    first = _progress(subject, watched, files)
    further = {topic: _aside(subject, topic, watched) for topic in TOPICS}
    bad = {topic for topic, finding in further.items() if finding and finding.status.bad}
    kept = tuple(topic for topic in TOPICS if topic in bad or topic in {*told})
    shown = [further[topic] or _nothing(subject, topic) for topic in kept]
    return (first, *shown), kept


def samples(subject: str, watched: Sequence[Watched]) -> tuple[Sample, ...]:
    """The numbers worth a history, where one log stands for the subject."""
    if len(watched) != 1:
        return ()
    marks = watched[0].seen.marks.items()
    counted = {name: mark.value for name, mark in marks if name != GROWTH}
    found = {
        "size_bytes": watched[0].sight.size,
        "progress": next(iter(counted.values()), None),
        **{event.name: event.value for event in watched[0].sight.events if event.what == "value"},
    }
    return tuple(Sample(subject, name, float(n)) for name, n in found.items() if n is not None)


def last_lines(one: Watched, files: Files) -> str:
    """The end of the log as it may be quoted, or why it cannot be read."""
    newest = max(one.sight.looks.items(), key=lambda pair: pair[1].mtime, default=None)
    if newest is None:
        return ""
    try:
        text = files.tail(newest[0], SHOWN, one.sight.whose) or ""
    except CannotTell as error:
        return str(error)
    return "\n".join(shortened(line, 300) for line in visible_lines(text).splitlines()[-QUOTED:])


def _progress(subject: str, watched: Sequence[Watched], files: Files) -> Finding:
    """The worst log speaks; how many others are not well is added."""
    worst, *others = sorted(watched, key=lambda one: one.verdict.status.rank, reverse=True)
    unwell = sum(one.verdict.status is not Status.OK for one in others)
    more = f"; {unwell} more of {len(watched)} running jobs likewise" if unwell else ""
    bad = worst.verdict.status.bad
    return Finding(
        subject=subject,
        status=worst.verdict.status,
        summary=_summary(worst) + more,
        values=values(worst.sight, worst.seen, worst.verdict),
        details=_details(worst, files) if bad else "",
        commands=_commands(worst.sight, worst.onward, hung=worst.verdict.hung) if bad else (),
        labels=_labels(worst.sight.job),
        began=int(worst.sight.at.wall / SECOND - worst.verdict.quiet) if bad else None,
    )


def _summary(one: Watched) -> str:
    why = cause(one.seen.troubles, one.peers) if one.verdict.status.bad else ""
    parts = [
        one.verdict.summary,
        f"before that: {why}" if why else "",
        one.at_risk,
        one.slower,
        f"{one.sight.unread}, so errors in it go unseen" if one.sight.unread else "",
        cut_words(one.sight.cut_lines),
    ]
    return "; ".join(part for part in parts if part)


def _details(one: Watched, files: Files) -> str:
    troubles = lines(one.seen.troubles, one.peers)
    return "\n".join(part for part in (troubles, last_lines(one, files)) if part)


def _aside(subject: str, topic: str, watched: Sequence[Watched]) -> Finding | None:
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
        commands=_commands(one.sight) if aside.status.bad else (),
        labels=_labels(one.sight.job),
    )


def _nothing(subject: str, topic: str) -> Finding:
    return Finding(subject=f"{subject} {topic}", status=Status.OK, summary="nothing seen")


def _commands(sight: Sight, onward: Sequence[str] = (), *, hung: bool = False) -> tuple[str, ...]:
    """What to run next; where every rank stands comes first when it hangs."""
    from shlex import quote

    job = sight.job
    stacks = (f"sentinel stacks {quote(visible(job.job_id))}",) if job and hung else ()
    asked = (f"scontrol show job {quote(visible(job.job_id))}",) if job else ()
    return (*stacks, *onward, *asked, f"tail -n 50 {quote(visible(sight.file))}")


def _labels(job: Job | None) -> dict[str, str]:
    if job is None:
        return {}
    return {"job": visible(job.name), "user": job.user, "partition": job.partition}
