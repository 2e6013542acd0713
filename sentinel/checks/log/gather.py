"""From a job to what its log shows now: which files, what is new in them, what that says."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.file_offset import (
    MOST,
    Look,
    Place,
    Span,
    beginning,
    continues,
    ending,
    taken,
    wanted,
)
from sentinel.checks.log.files import Files
from sentinel.checks.log.progress import Seen, Sight
from sentinel.checks.log.reader import Reader
from sentinel.checks.log.recognition import NEWEST, Recognised
from sentinel.checks.log.scan import Event, Patterns
from sentinel.core import hostlist
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.logtext import cut_count, decoded
from sentinel.core.patterns import by_line
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.slurm.filename_patterns import fill_symbols, is_glob, output_of, whose_path
from sentinel.user_files.whose import Whose

MOST_FILES = 256
"""Files of one job: one per node of most trainings."""

HEAD = 2**16
"""Bytes of the beginning of a long log."""


class Source(Struct, frozen=True, kw_only=True):
    """Where logs are, and how they are read. `path` None: the job's own output. `auto`: the
    number that advances is found out. `reader`: who finds out what a text says."""

    path: str | None
    patterns: Patterns
    by_number: bool
    auto: bool = False
    reader: Reader = Reader(in_child=False)


def sight(ctx: Context, job: Job | None, seen: Seen | None, source: Source, files: Files) -> Sight:
    """One log now; what keeps it from being seen is told in `error`."""
    whose = whose_log(job, source)
    now = Sight(path=seen.path if seen else source.path or "", at=ctx.now, job=job, whose=whose)
    try:
        now = replace(now, path=path_of(ctx, job, seen, source))
        paths = _paths(now.path, job, source, files, whose)
        now = replace(now, meant=tuple(paths))
        looks = files.looks(list(paths)[:MOST_FILES], whose) if paths else {}
        now = replace(now, looks=looks)
        return _read(now, paths, seen, source, files)
    except CannotTell as error:
        return replace(now, looks={}, error=str(error))


def whose_log(job: Job | None, source: Source) -> Whose:
    """A job names its output itself: that has to be its user's own file too, for without root that
    alone keeps a link from leading to what only sentinel may read."""
    if source.path or job is None:
        return whose_path(source.path or "", job)
    return Whose(user=job.user, owned=True)


def path_of(ctx: Context, job: Job | None, seen: Seen | None, source: Source) -> str:
    """What this run of the job is remembered by: its output, or `path` with symbols filled in."""
    if source.path:
        return fill_symbols(source.path, job) if job else source.path
    if job is None or (seen and seen.path and seen.started == job.started):
        return seen.path if seen else ""
    end = ctx.slurm.job_end(job.job_id)
    if end is None or not end.stdout:
        raise CannotTell(f"Slurm does not tell where job {visible(job.id)} writes; give the `path`")
    return output_of(end.stdout, job)


def nodes_of(job: Job | None) -> tuple[str, ...]:
    """The names of its nodes; none where Slurm's list cannot be read."""
    try:
        return hostlist.printed(job.nodes) if job and job.nodes else ()
    except Invalid:
        return ()


def _paths(
    path: str, job: Job | None, source: Source, files: Files, whose: Whose
) -> dict[str, str]:
    """Files with the node that writes each (empty: any)."""
    if source.path and job and job.node_count > 1 and "%" in source.path:
        per_node = {
            fill_symbols(source.path, replace(job, nodes=node)): node for node in nodes_of(job)
        }
        if len(per_node) > 1:
            return per_node
    if source.path and is_glob(source.path):
        newest = files.newest_log(path, whose)
        return {newest: ""} if newest else {}
    return {path: ""}


def _read(
    now: Sight, paths: Mapping[str, str], seen: Seen | None, source: Source, files: Files
) -> Sight:
    """With what is new in each file. A log that only has to grow need not be readable."""
    places, reading = (seen.places, seen.reading) if seen else ({}, None)
    events: list[Event] = []
    after: dict[str, Place] = {}
    unread, cut_lines = "", 0
    for path, look in now.looks.items():
        place = places.get(path)
        if place and place.same(look):
            after[path] = place
            continue
        try:
            source.reader.refuse_resting(path)
            after[path], text = new_text(path, look, place, files, now.whose)
        except CannotTell as error:
            if source.by_number or (reading and reading.number):
                raise
            after[path] = Place(inode=look.inode, size=look.size, mtime=look.mtime)
            unread = str(error)
            continue
        cut_lines += cut_count(text)
        patterns = source.patterns
        if source.auto:
            reading = _reading(reading, path, look, text, files, now.whose, source.reader)
            patterns = with_number(patterns, reading)
        events += source.reader.scan(text, patterns, path, paths.get(path, ""))
    return replace(
        now,
        places=after,
        events=tuple(events),
        unread=unread,
        reading=reading,
        cut_lines=cut_lines,
    )


def _reading(
    before: Recognised | None,
    path: str,
    look: Look,
    text: str,
    files: Files,
    whose: Whose,
    reader: Reader,
) -> Recognised:
    """What the log is now. Of a long one that is seen for the first time the beginning is read:
    there a trainer introduces itself; where nothing was found, all again when twice as much is
    there: the lines of one look may be few."""
    head = ""
    if before is None and look.size > MOST:
        head = decoded(files.part(path, Span(0, HEAD, 0), whose, look.inode))
    elif before and not before.number and not before.mixed and look.size >= 2 * before.size:
        text = decoded(files.part(path, beginning(look), whose, look.inode))
        before = None
    now = reader.followed(path, before, text, head)
    if now != before:
        return replace(now, size=look.size, last=look.size)
    if now.number and reader.found_in(path, now, text):
        return replace(now, last=look.size)
    return _without_its_number(now, path, look, text, files, whose, reader)


def _without_its_number(
    known: Recognised,
    path: str,
    look: Look,
    text: str,
    files: Files,
    whose: Whose,
    reader: Reader,
) -> Recognised:
    """A log that goes on without its number: asked anew whenever twice as much has come since."""
    since, asked = look.size - known.last, known.size - known.last
    if not known.number or known.mixed or since < max(1, 2 * asked):
        return known
    newest = decoded(files.part(path, ending(look, NEWEST), whose, look.inode))
    now = reader.reconsidered(path, known, newest)
    if now.number and now.number != known.number and not reader.found_in(path, now, text):
        now = known  # its next line, which is told then, decides
    last = known.last if now.number == known.number else look.size
    return replace(now, size=look.size, last=last)


def earlier(
    source: Source, logs: Sequence[str], own: Collection[str], files: Files, whose: Whose
) -> Iterator[tuple[str, str, Patterns, bool]]:
    """Each log of an earlier job: its path, its text, how it is read, and whether that is all of it: of a pattern of the newest, and none that is `own`.
    What is not there or cannot be read is left out."""
    for path in logs:
        try:
            found = files.newest_log(path, whose, own) if is_glob(path) else path
            look = files.looks([found], whose).get(found) if found and found not in own else None
            if look:
                text = new_text(found, look, None, files, whose)[1]
                reads = (
                    with_number(source.patterns, source.reader.recognise(found, text))
                    if source.auto
                    else source.patterns
                )
                yield found, text, reads, look.size <= MOST
        except CannotTell:
            continue


def with_number(patterns: Patterns, reading: Recognised) -> Patterns:
    """Those of a log that is this."""
    if reading.number is None:
        return patterns
    number = by_line(re.compile(reading.number.pattern))
    return replace(patterns, numbers={reading.number.name: number})


def new_text(
    path: str, look: Look, place: Place | None, files: Files, whose: Whose
) -> tuple[Place, str]:
    """Whole lines that were written since, and where reading goes on; raises CannotTell."""
    span = wanted(place, look)
    data = files.part(path, span, whose, look.inode)
    if not continues(place, span, data):
        span = beginning(look)
        data = files.part(path, span, whose, look.inode)
    return taken(look, span, data)
