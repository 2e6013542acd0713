"""What kinds have in common about wishes of users: who wants no messages, and what is refused. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from sentinel.core.cluster import Job
from sentinel.core.digests import blake2b
from sentinel.core.guidance import quote_command
from sentinel.core.letters import Letter
from sentinel.core.text import shorten_to_line, visible
from sentinel.core.wishes import Wish, parse_wish

MAX_LETTERS_PER_RUN = 20
"""Refusals told to one user by one run of a check. A user may have thousands of jobs."""

NO_WISH = Wish()

_SHOWN_CHARS = 200
_REMEDY = (
    "Each word that is not named is followed. The grammar is in docs/wishes.md; correct a job that"
    " is there with: {command}"
)


def find_wish(job: Job | None) -> Wish:
    """The wish of the job's owner; one without words if there is none."""
    return (job and job.wish and parse_wish(job.wish)) or NO_WISH


def is_owner_muted(job: Job | None) -> bool:
    """Whether the job's owner wants no messages about it."""
    # The word itself is looked for first: 10,000 jobs may have wishes, and few of them this one.
    return job is not None and "off" in job.wish and find_wish(job).off


def make_letter_id(*parts: str) -> str:
    """A short name for these texts."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=6).hexdigest()


def refusal_letter(subject: str, job: Job, why: str) -> Letter:
    """Tells the author what of the wish is not followed: once a day, however many jobs have the same
    words."""
    asked = shorten_to_line(job.wish, _SHOWN_CHARS)
    correct = quote_command("scontrol", "update", f"JobId={job.job_id}", "Comment=sentinel: …")
    return Letter(
        id=make_letter_id(job.user, job.wish, why),
        user=job.user,
        subject=subject,
        job=visible(job.name),
        severity="warning",
        summary=f"your wish is not followed: {why}",
        details=f"{asked}\n{_REMEDY.format(command=correct)}",
    )


def list_refusals(jobs: Iterable[Job], find_subject: Callable[[Job], str]) -> tuple[Letter, ...]:
    """One letter for each text of each user that cannot be followed, the first jobs first."""
    letters: list[Letter] = []
    ids, seen = defaultdict[str, set[str]](set), set[tuple[str, str, str]]()
    for job in jobs:  # 10,000 jobs may have the same words, and each letter costs time
        refused = find_wish(job).refused
        if not (refused or job.wish_trouble):
            continue
        words = (job.user, job.wish, job.wish_trouble)
        if words in seen or len(ids[job.user]) >= MAX_LETTERS_PER_RUN:
            continue
        seen.add(words)
        subject = find_subject(job)
        mine = [refusal_letter(subject, job, why) for why in refused]
        mine += [_trouble_letter(subject, job)] if job.wish_trouble else []
        ids[job.user].update(letter.id for letter in mine)
        letters += mine
    return limit_letters(letters)


def _trouble_letter(subject: str, job: Job) -> Letter:
    """Tells that the wish in the script is not known."""
    letter = refusal_letter(subject, job, job.wish_trouble)
    return replace(letter, summary=f"{job.wish_trouble} (job {visible(job.job_id)})")


def limit_letters(letters: Iterable[Letter]) -> tuple[Letter, ...]:
    """Each letter once, and at most MAX_LETTERS_PER_RUN for each user."""
    return tuple(_iterate_first_letters(letters))


def _iterate_first_letters(letters: Iterable[Letter]) -> Iterator[Letter]:
    counts, seen = Counter[str](), set[tuple[str, bool]]()
    for one in letters:
        if (one.id, one.over) in seen or counts[one.user] >= MAX_LETTERS_PER_RUN:
            continue
        seen.add((one.id, one.over))
        counts[one.user] += 1
        yield one
