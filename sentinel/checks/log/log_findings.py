"""Turns verdicts into findings, for people, routes and machines."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.judge import LogVerdict, list_log_values
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.topics import EXTRA_TOPICS, TopicAnswer, describe_cause, format_troubles
from sentinel.checks.log.wish_watch import FollowedWish
from sentinel.checks.log.witness import Testimony
from sentinel.checks.users import own_user_name
from sentinel.checks.wishes import is_owner_muted, limit_letters, list_refusals
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import (
    NO_GUIDANCE,
    ActingCommand,
    Guidance,
    LookingCommand,
    look,
    quote_command,
    show_end,
)
from sentinel.core.letters import Letter
from sentinel.core.long_lines import describe_cut_lines
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
    is ended and goes on.
    """

    sight: LogObservation  # What was seen now.
    seen: LogState  # What is remembered.
    verdict: LogVerdict  # What that means.
    testimony: Testimony = Testimony()  # What the witnesses say.
    asides: tuple[TopicAnswer, ...] = ()  # Answers about losses, errors and speed.
    peers: Mapping[str, str] = {}  # Names of nodes, by the address in an error.
    at_risk: str = ""
    slower: str = ""
    asked_early: bool = False
    onward: tuple[ActingCommand, ...] = ()
    wish: FollowedWish = FollowedWish()  # What the owner's own wish leads to.


def apply_testimony(verdict: LogVerdict, testimony: Testimony) -> LogVerdict:
    """The verdict after the second witnesses. A witness that contradicts makes it a warning, for as
    long again as the limit: a log may be buffered, but not for ever."""
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
    shown = [
        further[topic]
        or Finding(subject=f"{subject} {topic}", status=Status.OK, summary="nothing seen")
        for topic in kept
    ]
    return (first, *shown), kept


def make_samples(subject: str, watched: Sequence[WatchedLog]) -> tuple[Sample, ...]:
    """The numbers whose history is stored. Empty unless the subject has exactly one log."""
    if len(watched) != 1:
        return ()
    found = {
        "size_bytes": watched[0].sight.size_bytes,
        "progress": watched[0].seen.step,
        **{event.name: event.value for event in watched[0].sight.events if event.what == "value"},
    }
    return tuple(Sample(subject, name, float(n)) for name, n in found.items() if n is not None)


def list_letters(subject: str, watched: Sequence[WatchedLog]) -> tuple[Letter, ...]:
    """Messages to the owners of these jobs about their own wishes."""
    jobs = (one.sight.job for one in watched if one.sight.job)
    heard = (one for one in watched if not is_owner_muted(one.sight.job))
    followed = (letter for one in heard for letter in one.wish.letters)
    return limit_letters([*followed, *list_refusals(jobs, lambda _: subject)])


def read_last_lines(one: WatchedLog, files: LogFiles) -> str:
    """The end of the log in a form that may be quoted, or the reason why it cannot be read."""
    newest = max(one.sight.texts.items(), key=lambda pair: pair[1].mtime, default=None)
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
    """The finding about the worst log. Its summary adds how many others are not well."""
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
        commands=_suggest_log_commands(worst.sight, hung=worst.verdict.hung) if bad else (),
        acts=worst.onward if bad else (),
        labels=_make_job_labels(worst.sight.job),
        began=int(worst.sight.at.wall / SECOND - worst.verdict.quiet) if bad else None,
        guidance=_guide_progress(worst) if bad else NO_GUIDANCE,
        owner_muted=worst.wish.own or is_owner_muted(worst.sight.job),
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
        patience=aside.patience,
        details=aside.details,
        commands=_suggest_topic_commands(topic, aside.status, one.sight)
        if aside.status.bad
        else (),
        labels=_make_job_labels(one.sight.job),
        guidance=_guide_topic(topic, aside.status, one.sight.job),
        owner_muted=is_owner_muted(one.sight.job),
    )


def _guide_progress(one: WatchedLog) -> Guidance:
    """The guidance for a log that does not go on. It does not say that the job holds GPUs, because
    that is known only on its nodes."""
    job = one.sight.job
    if job is None:
        return Guidance(
            impact="If the program that writes it hangs, it stands still until somebody ends it.",
            todo=f"{_FIND_OWNER} If that user's program still runs (`squeue -u USER`), it probably"
            " hangs: its owner ends it (a job by `scancel JOB`), then starts it again from its last"
            " checkpoint. If it has ended, see in the last lines whether it finished.",
        )
    where = "`sentinel stacks` below shows" if one.verdict.hung else "See"
    end = f"{_end_first(job)}from its last checkpoint"
    if one.onward:
        again = any("sbatch" in command.argv for command in one.onward)
        new = "the job is queued again, and starts" if again else "the next job in the queue starts"
        end = (
            f'{visible(job.user)} runs what is under "Act on it": {new} when this one is cancelled'
        )
    return Guidance(
        impact="If it hangs, it holds its nodes and does no work until somebody or its time limit"
        " ends it.",
        todo=f"{where} where its processes stand. If nothing moves, {end}.",
        headline="HANGS" if one.verdict.hung and one.verdict.status is Status.CRITICAL else "",
    )


def _guide_topic(topic: str, status: Status, job: Job | None) -> Guidance:
    found = _TOPIC_GUIDANCE.get(topic, NO_GUIDANCE) if status.bad else NO_GUIDANCE
    if "{0}" not in found.todo:
        return found
    mend = "mends the cause of the error, " if topic == "errors" else ""
    owner = "" if job else f" {_FIND_OWNER}"
    return replace(found, todo=found.todo.format(_end_first(job, mend)) + owner)


def _end_first(job: Job | None, mend: str = "") -> str:
    """Two jobs of one training would write the same checkpoints."""
    cancel = quote_command("scancel", job.job_id if job else "JOB")
    return f"{visible(job.user) if job else 'its owner'} cancels the job (`{cancel}`), {mend}then submits it again "


_FIND_OWNER = "The job is not known; `ls` below shows who owns the log."
_TOPIC_GUIDANCE = {
    "loss": Guidance(
        impact="A training seldom recovers from this: its steps are wasted, and its new checkpoints may"
        " replace the last good one.",
        todo="`tail` below shows the newest lines, `grep` the first NaN or infinity. If the next values"
        " are no numbers either, {0}from a checkpoint that is older than the first NaN.",
    ),
    "errors": Guidance(
        impact="The job probably does not go on by itself; it may hold its nodes until its time limit.",
        todo="If the log does not go on, {0}from its last checkpoint.",
    ),
    "restarts": Guidance(
        impact="It holds its nodes, makes the same steps again and again, and gets no further.",
        todo="Mend what the errors name, or leave out the node that they share, before it starts again;"
        " if they name none, go on from an older checkpoint.",
    ),
    "speed": Guidance(
        impact="It goes on, and takes longer.",
        todo="See whether its nodes, its file system or its data have become slow.",
    ),
    "step time": Guidance(
        impact="It goes on, and takes longer.",
        todo="See whether one of its nodes has become slow.",
    ),
}


def _suggest_log_commands(
    sight: LogObservation, *, hung: bool = False
) -> tuple[LookingCommand, ...]:
    """The commands to run next. If the training hangs, the one that shows where every rank stands
    comes first."""
    job = sight.job
    if not job:
        return show_end(sight.shown_path, False), look("ls -l {} | cat -v", sight.shown_path)
    return (
        *([look("sentinel stacks {}", job.job_id)] if hung else []),
        look("scontrol show job {} | cat -v", job.job_id),
        show_end(sight.shown_path, job.user == own_user_name()),
    )


def _suggest_topic_commands(
    topic: str, status: Status, sight: LogObservation
) -> tuple[LookingCommand, ...]:
    """Where the loss is no number: where that began, too."""
    first = look("grep -n -m 1 -wE 'nan|NaN|inf|Infinity' {} | cat -v", sight.shown_path)
    is_lost = topic == "loss" and status is not Status.WARNING
    return (*_suggest_log_commands(sight), *([first] if is_lost else []))


def _make_job_labels(job: Job | None) -> dict[str, str]:
    return {"job": visible(job.name), "user": job.user, "partition": job.partition} if job else {}
