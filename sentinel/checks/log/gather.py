"""From a job to what its log shows now: which files, what is new in them, what that says."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.file_offset import (
    MAX_READ_BYTES,
    ByteRange,
    FileStat,
    ReadPosition,
    decode_new_lines,
    is_continuation,
    select_new_range,
    select_tail_range,
    select_whole_range,
)
from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.progress import LogObservation, LogState
from sentinel.checks.log.reader import LogReader
from sentinel.checks.log.recognition import NEWEST_CHARS, LogRecognition
from sentinel.checks.log.scan import LogEvent, LogPatterns
from sentinel.core import hostlist
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.logtext import count_cut_lines, decode_log
from sentinel.core.patterns import compile_by_line
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.slurm.filename_patterns import fill_symbols, is_glob, job_output_path, whose_path
from sentinel.user_files.whose import Whose

MAX_JOB_FILES = 256
"""Files of one job: one per node of most trainings."""

HEAD_BYTES = 2**16
"""Bytes of the beginning of a long log."""


class LogSource(Struct, frozen=True, kw_only=True):
    """Where logs are, and how they are read. `path` None: the job's own output. `auto`: the
    number that advances is found out. `reader`: who finds out what a text says."""

    path: str | None
    patterns: LogPatterns
    by_number: bool
    auto: bool = False
    reader: LogReader = LogReader(in_child=False)


def observe_log(
    ctx: Context, job: Job | None, seen: LogState | None, source: LogSource, files: LogFiles
) -> LogObservation:
    """One log now; what keeps it from being seen is told in `error`."""
    whose = choose_log_rights(job, source)
    now = LogObservation(
        path=seen.path if seen else source.path or "", at=ctx.now, job=job, whose=whose
    )
    try:
        now = replace(now, path=find_log_path(ctx, job, seen, source))
        paths = _list_log_files(now.path, job, source, files, whose)
        now = replace(now, meant=tuple(paths))
        looks = files.stat_files(list(paths)[:MAX_JOB_FILES], whose) if paths else {}
        now = replace(now, looks=looks)
        return _read_new_events(now, paths, seen, source, files)
    except CannotTell as error:
        return replace(now, looks={}, error=str(error))


def choose_log_rights(job: Job | None, source: LogSource) -> Whose:
    """A job names its output itself: that has to be its user's own file too, for without root that
    alone keeps a link from leading to what only sentinel may read."""
    if source.path or job is None:
        return whose_path(source.path or "", job)
    return Whose(user=job.user, owned=True)


def find_log_path(ctx: Context, job: Job | None, seen: LogState | None, source: LogSource) -> str:
    """What this run of the job is remembered by: its output, or `path` with symbols filled in."""
    if source.path:
        return fill_symbols(source.path, job) if job else source.path
    if job is None or (seen and seen.path and seen.started == job.started):
        return seen.path if seen else ""
    end = ctx.slurm.job_end(job.job_id)
    if end is None or not end.stdout:
        raise CannotTell(f"Slurm does not tell where job {visible(job.id)} writes; give the `path`")
    return job_output_path(end.stdout, job)


def list_job_nodes(job: Job | None) -> tuple[str, ...]:
    """The names of its nodes; none where Slurm's list cannot be read."""
    try:
        return hostlist.expand_printed(job.nodes) if job and job.nodes else ()
    except Invalid:
        return ()


def _list_log_files(
    path: str, job: Job | None, source: LogSource, files: LogFiles, whose: Whose
) -> dict[str, str]:
    """Files with the node that writes each (empty: any)."""
    if source.path and job and job.node_count > 1 and "%" in source.path:
        per_node = {
            fill_symbols(source.path, replace(job, nodes=node)): node
            for node in list_job_nodes(job)
        }
        if len(per_node) > 1:
            return per_node
    if source.path and is_glob(source.path):
        newest = files.find_newest_log(path, whose)
        return {newest: ""} if newest else {}
    return {path: ""}


def _read_new_events(
    now: LogObservation,
    paths: Mapping[str, str],
    seen: LogState | None,
    source: LogSource,
    files: LogFiles,
) -> LogObservation:
    """With what is new in each file. A log that only has to grow need not be readable."""
    places, reading = (seen.places, seen.reading) if seen else ({}, None)
    events: list[LogEvent] = []
    after: dict[str, ReadPosition] = {}
    unread, cut_lines = "", 0
    for path, look in now.looks.items():
        place = places.get(path)
        if place and place.is_unchanged(look):
            after[path] = place
            continue
        try:
            source.reader.refuse_resting_log(path)
            after[path], text = read_new_text(path, look, place, files, now.whose)
        except CannotTell as error:
            if source.by_number or (reading and reading.number):
                raise
            after[path] = ReadPosition(inode=look.inode, size=look.size, mtime=look.mtime)
            unread = str(error)
            continue
        cut_lines += count_cut_lines(text)
        patterns = source.patterns
        if source.auto:
            reading = _update_recognition(
                reading, path, look, text, files, now.whose, source.reader
            )
            patterns = add_number_pattern(patterns, reading)
        events += source.reader.scan_text(text, patterns, path, paths.get(path, ""))
    return replace(
        now,
        places=after,
        events=tuple(events),
        unread=unread,
        reading=reading,
        cut_lines=cut_lines,
    )


def _update_recognition(
    before: LogRecognition | None,
    path: str,
    look: FileStat,
    text: str,
    files: LogFiles,
    whose: Whose,
    reader: LogReader,
) -> LogRecognition:
    """What the log is now. Of a long one that is seen for the first time the beginning is read:
    there a trainer introduces itself; where nothing was found, all again when twice as much is
    there: the lines of one look may be few."""
    head = ""
    if before is None and look.size > MAX_READ_BYTES:
        head = decode_log(files.read_range(path, ByteRange(0, HEAD_BYTES, 0), whose, look.inode))
    elif before and not before.number and not before.mixed and look.size >= 2 * before.size:
        text = decode_log(files.read_range(path, select_whole_range(look), whose, look.inode))
        before = None
    now = reader.follow_lines(path, before, text, head)
    if now != before:
        return replace(now, size=look.size, last=look.size)
    if now.number and reader.has_number(path, now, text):
        return replace(now, last=look.size)
    return _check_missing_number(now, path, look, text, files, whose, reader)


def _check_missing_number(
    known: LogRecognition,
    path: str,
    look: FileStat,
    text: str,
    files: LogFiles,
    whose: Whose,
    reader: LogReader,
) -> LogRecognition:
    """A log that goes on without its number: asked anew whenever twice as much has come since."""
    since, asked = look.size - known.last, known.size - known.last
    if not known.number or known.mixed or since < max(1, 2 * asked):
        return known
    newest = decode_log(
        files.read_range(path, select_tail_range(look, NEWEST_CHARS), whose, look.inode)
    )
    now = reader.reconsider_number(path, known, newest)
    if now.number and now.number != known.number and not reader.has_number(path, now, text):
        now = known  # its next line, which is told then, decides
    last = known.last if now.number == known.number else look.size
    return replace(now, size=look.size, last=last)


def read_earlier_logs(
    source: LogSource, logs: Sequence[str], own: Collection[str], files: LogFiles, whose: Whose
) -> Iterator[tuple[str, str, LogPatterns, bool]]:
    """Each log of an earlier job: its path, its text, how it is read, and whether that is all of it: of a pattern of the newest, and none that is `own`.
    What is not there or cannot be read is left out."""
    for path in logs:
        try:
            found = files.find_newest_log(path, whose, own) if is_glob(path) else path
            look = (
                files.stat_files([found], whose).get(found) if found and found not in own else None
            )
            if look:
                text = read_new_text(found, look, None, files, whose)[1]
                reads = (
                    add_number_pattern(source.patterns, source.reader.recognise_log(found, text))
                    if source.auto
                    else source.patterns
                )
                yield found, text, reads, look.size <= MAX_READ_BYTES
        except CannotTell:
            continue


def add_number_pattern(patterns: LogPatterns, reading: LogRecognition) -> LogPatterns:
    """Those of a log that is this."""
    if reading.number is None:
        return patterns
    number = compile_by_line(re.compile(reading.number.pattern))
    return replace(patterns, numbers={reading.number.name: number})


def read_new_text(
    path: str, look: FileStat, place: ReadPosition | None, files: LogFiles, whose: Whose
) -> tuple[ReadPosition, str]:
    """Whole lines that were written since, and where reading goes on; raises CannotTell."""
    span = select_new_range(place, look)
    data = files.read_range(path, span, whose, look.inode)
    if not is_continuation(place, span, data):
        span = select_whole_range(look)
        data = files.read_range(path, span, whose, look.inode)
    return decode_new_lines(look, span, data)
