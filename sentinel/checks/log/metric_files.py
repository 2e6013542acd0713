"""Reads what is new in the files of `metrics`, beside the log of the job."""

from zlib import crc32

from msgspec.structs import replace

from sentinel.checks.log.file_offset import (
    SEAM_BYTES,
    FileStat,
    ReadPosition,
    is_continuation,
    select_new_range,
    select_whole_range,
)
from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.gather import LogSource, observe_log
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.metric_text import METRIC_PATTERNS, MetricLines
from sentinel.checks.log.reader import LogReader
from sentinel.checks.log.scan import LogEvent
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.slurm.filename_patterns import fill_symbols, is_glob, whose_path
from sentinel.user_files.whose import Whose


def observe_sources(
    ctx: Context, job: Job | None, seen: LogState | None, source: LogSource, files: LogFiles
) -> LogObservation:
    """The observation of one log and of the files of its `metrics`. Where these are there, a log
    that cannot be read is no trouble: the step tells the progress."""
    now = observe_log(ctx, job, seen, source, files)
    if not source.metrics:
        return now
    try:
        found = _find_metric_files(job, source, files)
        if not found:
            return now
        places = dict(seen.places) if seen else {}
        if now.error:
            now = replace(now, unread=now.error, error="")
        return _add_metrics(now, found, places, source, files)
    except CannotTell as error:
        return replace(now, looks={}, error=str(error))


def _find_metric_files(
    job: Job | None, source: LogSource, files: LogFiles
) -> dict[str, tuple[FileStat, Whose]]:
    """The files that are there, of a pattern the one that was written last. Raises CannotTell."""
    found = dict[str, tuple[FileStat, Whose]]()
    for pattern in source.metrics:
        whose = whose_path(pattern, job)
        path = fill_symbols(pattern, job) if job else pattern
        if is_glob(path):
            path = files.find_newest_log(path, whose)
        if path and (look := files.stat_files([path], whose).get(path)):
            found[path] = look, whose
    return found


def _add_metrics(
    now: LogObservation,
    found: dict[str, tuple[FileStat, Whose]],
    before: dict[str, ReadPosition],
    source: LogSource,
    files: LogFiles,
) -> LogObservation:
    looks, places, events = dict(now.looks), dict(now.places), [*now.events]
    for path, (look, whose) in found.items():
        looks[path] = look
        place = before.get(path)
        if place and place.is_unchanged(look):
            places[path] = place
            continue
        source.reader.refuse_resting_log(path)
        places[path], lines = _read_new_metrics(path, look, place, files, whose, source.reader)
        events += source.reader.scan_text(lines.text, METRIC_PATTERNS, path, "")
        end = len(lines.text)
        events += [LogEvent(end, "value", name, value) for name, value in lines.shown.items()]
    return replace(now, looks=looks, places=places, events=tuple(events), metrics=tuple(found))


def _read_new_metrics(
    path: str,
    look: FileStat,
    place: ReadPosition | None,
    files: LogFiles,
    whose: Whose,
    reader: LogReader,
) -> tuple[ReadPosition, MetricLines]:
    """The whole records that were written after `place`, and the new position. Raises CannotTell."""
    span = select_new_range(place, look)
    data = files.read_range(path, span, whose, look.inode)
    if not is_continuation(place, span, data):
        span = select_whole_range(look)
        data = files.read_range(path, span, whose, look.inode)
    begin = span.start + span.known
    is_cut = bool(span.start and not span.known)
    found = reader.read_metrics(path, data[span.known :], begin, is_cut)
    read = span.known + found.size
    after = ReadPosition(
        inode=look.inode,
        size=look.size,
        mtime=look.mtime,
        offset=span.start + read,
        seam=crc32(data[:read][-SEAM_BYTES:]),
    )
    return after, found
