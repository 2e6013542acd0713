"""Finds the log of a job, its files and their new text, and what the text means."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

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
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.new_lines import MAX_END_CHARS
from sentinel.checks.log.reader import LogReader
from sentinel.checks.log.recognition import NEWEST_CHARS, LogRecognition
from sentinel.checks.log.rows import list_carriers
from sentinel.checks.log.scan import LogEvent, LogPatterns
from sentinel.checks.log.wish_number import WishNumber
from sentinel.checks.log.wish_watch import find_followed_wish
from sentinel.core import hostlist
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.logtext import decode_log
from sentinel.core.long_lines import count_cut_lines
from sentinel.core.patterns import compile_by_line
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.slurm.filename_patterns import fill_symbols, is_glob, job_output_path, whose_path
from sentinel.user_files.whose import Whose

MAX_JOB_FILES = 256
"""How many files of one job are read: one per node of most trainings."""

HEAD_BYTES = 2**16
"""How many bytes at the beginning of a long log are read."""


class LogSource(Struct, frozen=True, kw_only=True):
    """Which logs are read, and how.

    path: None means the job's own output.
    auto: Whether the number that advances is found automatically.
    reader: The reader that interprets a text.
    metrics: Files of metrics, maybe patterns: their step has to advance.
    """

    path: str | None
    patterns: LogPatterns  # The patterns for the lines.
    by_number: bool  # Whether numbers have to advance. Otherwise the file has to grow.
    auto: bool = False
    reader: LogReader = LogReader(in_child=False)
    metrics: tuple[str, ...] = ()


def observe_log(
    ctx: Context, job: Job | None, seen: LogState | None, source: LogSource, files: LogFiles
) -> LogObservation:
    """The observation of one log. `error` says why it could not be seen."""
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
    """The user with whose rights the log is read. A job chooses the path of its output. So the file
    must belong to the job's user. Otherwise a link could lead to a file that only sentinel may
    read."""
    if source.path or job is None:
        return whose_path(source.path or "", job)
    return Whose(user=job.user, owned=True)


def find_log_path(ctx: Context, job: Job | None, seen: LogState | None, source: LogSource) -> str:
    """The path for the LogState of this run of the job: its output, or `path` with the symbols
    filled in. Raises CannotTell if Slurm does not tell the output."""
    if source.path:
        return fill_symbols(source.path, job) if job else source.path
    if job is None or (seen and seen.path and seen.started == job.started):
        return seen.path if seen else ""
    end = ctx.slurm.job_end(job.job_id)
    if end is None or not end.stdout:
        raise CannotTell(f"Slurm does not tell where job {visible(job.id)} writes; give the `path`")
    return job_output_path(end.stdout, job)


def list_job_nodes(job: Job | None) -> tuple[str, ...]:
    """The names of its nodes. Empty if Slurm's list cannot be parsed."""
    try:
        return hostlist.expand_printed(job.nodes) if job and job.nodes else ()
    except Invalid:
        return ()


def _list_log_files(
    path: str, job: Job | None, source: LogSource, files: LogFiles, whose: Whose
) -> dict[str, str]:
    """The files, each with the node that writes it. Empty means any node."""
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
    """The observation with what is new in each file. A log that only has to grow need not be
    readable."""
    places, reading = (seen.places, seen.reading) if seen else ({}, None)
    carriers = list_carriers(seen.rows) if seen else ()
    events: list[LogEvent] = []
    after: dict[str, ReadPosition] = {}
    unread, cut_lines = "", 0
    texts: dict[str, str] = {}
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
        scan = partial(source.reader.scan_text, text, patterns, path, paths.get(path, ""), carriers)
        before = partial(_read_earlier, path, look, place, after[path], text, files, now.whose)
        events += _scan_text(scan, before)
        texts[path] = text
    return replace(
        now,
        places=after,
        events=tuple(events),
        unread=unread,
        reading=reading,
        cut_lines=cut_lines,
        wished=_search_wish(now, texts, seen, source),
    )


def _scan_text(
    scan: Callable[..., list[LogEvent]], read_earlier: Callable[[], str]
) -> list[LogEvent]:
    """The events of a text. If there is trouble, it is scanned with the text before it, so that is
    known what was new."""
    found = scan()
    if any(event.what == "trouble" for event in found):
        with suppress(CannotTell):  # then the error is told without what was new beside it
            earlier = read_earlier()
            return scan(earlier) if earlier else found
    return found


def _read_earlier(
    path: str,
    look: FileStat,
    place: ReadPosition | None,
    after: ReadPosition,
    text: str,
    files: LogFiles,
    whose: Whose,
) -> str:
    """What the log said before its new text, so that is known what is new at its end. Empty if the
    new text is all of it, or long enough. It is read again, because it is seldom needed."""
    room = MAX_END_CHARS - len(text)
    if place is None or room <= 0 or place.inode != after.inode or place.offset > after.offset:
        return ""
    begin = max(0, place.offset - room)
    data = files.read_range(path, ByteRange(begin, place.offset - begin, 0), whose, look.inode)
    return decode_log(data)


def _search_wish(
    now: LogObservation, texts: Mapping[str, str], seen: LogState | None, source: LogSource
) -> WishNumber:
    """What the owner's own pattern finds in the new text of the job's output, after the check has read
    all of it."""
    wish, found = find_followed_wish(now, seen), WishNumber()
    if not wish.progress or now.job is None or source.path or not source.reader.in_child:
        return found
    for path, text in texts.items():
        one = source.reader.find_wish_number(path, text, wish.progress, now.job.user)
        found = one if one.value is not None else replace(one, value=found.value)
    return found


def _update_recognition(
    before: LogRecognition | None,
    path: str,
    look: FileStat,
    text: str,
    files: LogFiles,
    whose: Whose,
    reader: LogReader,
) -> LogRecognition:
    """The log's format as it is known now.

    When a long log is seen for the first time, its beginning is read too, because trainers
    introduce themselves there. If nothing was found, the search is repeated when the log has
    doubled, because one run may read few lines.
    """
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
    """Handle a log that goes on without its number. It is recognised again each time its text has
    doubled."""
    since, asked = look.size - known.last, known.size - known.last
    if not known.number or known.mixed or since < max(1, 2 * asked):
        return known
    newest = decode_log(
        files.read_range(path, select_tail_range(look, NEWEST_CHARS), whose, look.inode)
    )
    now = reader.reconsider_number(path, known, newest)
    if now.number and now.number != known.number and not reader.has_number(path, now, text):
        now = known  # its next line will decide
    last = known.last if now.number == known.number else look.size
    return replace(now, size=look.size, last=last)


def read_earlier_logs(
    source: LogSource, logs: Sequence[str], own: Collection[str], files: LogFiles, whose: Whose
) -> Iterator[tuple[str, str, LogPatterns, bool]]:
    """The logs of an earlier job: path, text, patterns, and whether the text is complete.

    Of a pattern, the newest file is read, unless it is one of the job's `own`. Files that are
    missing or unreadable are left out.
    """
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
    """The patterns for a log with this format."""
    if reading.number is None:
        return patterns
    number = compile_by_line(re.compile(reading.number.pattern))
    return replace(patterns, numbers={reading.number.name: number})


def read_new_text(
    path: str, look: FileStat, place: ReadPosition | None, files: LogFiles, whose: Whose
) -> tuple[ReadPosition, str]:
    """The complete lines that were written after `place`, and the new position. Raises CannotTell."""
    span = select_new_range(place, look)
    data = files.read_range(path, span, whose, look.inode)
    if not is_continuation(place, span, data):
        span = select_whole_range(look)
        data = files.read_range(path, span, whose, look.inode)
    return decode_new_lines(look, span, data)
