"""Asks squeue for jobs, and reads its answer.

Names, comments, directories and dependencies are the users' own text: newlines, escape sequences,
bytes in no encoding, rows that pretend to be other jobs. So fields and records end with marks that
are drawn anew for every call: no text that a user wrote earlier can hold them. `-o` prints whatever
stands between its letters, which exist in every version from 20.11 to 26.05 (src/squeue/opts.c),
and a letter without a width is never cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.cluster import MAX_WISH_CHARS, WISH_MARK, Job, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.text import shortened
from sentinel.slurm.words import (
    WordMemo,
    count_elements,
    decode_list,
    decode_optional_text,
    decode_text,
    find_uid,
    parse_count,
    parse_epoch,
    parse_time_limit,
)

_OWN = "%i %A %F %K %V %S %e %N"  # fields with Slurm's own words, which contain no blank
# fields with values that thousands of jobs share
_SHARED = ("%u", "%a", "%P", "%T", "%r", "%l", "%D", "%x")
_FILES = ("%Z", "%o")
_COMMENT = "%k"
_PIECE = 1 << 20  # bytes that are split at once, which limits the use of memory
_MAX_NAME_BYTES = 1024  # Slurm accepts no longer names
_MAX_REMEMBERED = 1 << 14  # distinct texts that are shared between jobs; more would only use memory


SLUIDS = ("squeue", "-a", "-t", "all", "-O", "JobId:32,SLUID:32")
"""Asks for the SLUID of every job that slurmctld remembers (squeue(1), since 25.11)."""

_SLUID = lazy_pattern(r"s[0-9A-HJKMNP-TV-Z]{13}")  # print_sluid() in src/common/sluid.c
_NO_SLUID = "s0000000000000"  # the job was started by an older slurmctld


class QueueMarks(Struct, frozen=True):
    """Marks of one call: `group` ends a group of columns, `field` a field within it, `record` a
    record."""

    group: bytes
    field: bytes  # The mark at the end of a field.
    record: bytes  # The mark at the end of a record.


def make_marks(nonce: str) -> QueueMarks:
    """The marks in the answer of the call that was given this nonce."""
    return QueueMarks(*(f"{nonce}{end}".encode("ascii") for end in ("|", ";", ".\n")))


def squeue_format(nonce: str) -> str:
    """The value of squeue's `-o` for an answer that `read_jobs` understands."""
    field = f"{nonce};"
    groups = (_OWN, field.join(_SHARED), "%j", "%E", _COMMENT, field.join(_FILES))
    return f"{nonce}|".join(groups) + f"{nonce}."


def read_queue(out: bytes, nonce: str) -> list[Job]:
    """All jobs of an answer with a header. Raises CannotTell as `read_jobs` does.

    squeue prints the header once slurmctld has answered (print_jobs_array() in src/squeue/print.c).
    So an empty list without a header is not an answer, whatever the exit code."""
    return read_jobs(out, nonce, header_end(out, nonce))


def header_end(out: bytes, nonce: str) -> int:
    """The offset of the first row behind the header of an answer to `-o` or `-O`. Raises CannotTell
    if there is no header. The answer is not copied: it may have hundreds of megabytes."""
    mark = make_marks(nonce).record
    found = out.find(mark)
    if found < 0 or not out.startswith(b"JOBID"):
        raise CannotTell(
            f"squeue's answer is not in the form asked for: it begins with {decode_text(out[:80])!r}"
            if out
            else "squeue printed nothing, not even its header, with exit code 0: what stands "
            "before it (a wrapper, command_prefix) has lost its answer"
        )
    return found + len(mark)


def read_jobs(out: bytes, nonce: str, start: int = 0) -> list[Job]:
    """All jobs of an answer, from offset `start` on. Raises CannotTell unless every record is whole
    and in the form asked for."""
    ends = make_marks(nonce)
    jobs: list[Job] = []
    reader = _JobReader(ends)
    try:
        for piece in record_chunks(out, ends.record, start):
            reader.read_records(piece.split(ends.record), jobs)
    except ValueError as error:
        raise CannotTell(
            f"squeue's answer is not in the form asked for, after {len(jobs)} jobs: {error}"
        ) from None
    return jobs


def read_sluids(out: bytes) -> dict[str, str]:
    """Job ids by SLUID (since 26.05 cgroups are named by it). A SLUID that two jobs have is left
    out. Raises CannotTell unless the header and every line have the known form."""
    found, twice = dict[str, str](), set[str]()
    header, *lines = decode_lines(out).splitlines() or [""]
    if header.split() != ["JOBID", "SLUID"]:
        raise CannotTell(f"squeue's answer is no list of SLUIDs: {shortened(header, 80)!r}")
    for line in lines:
        job, _, sluid = line.strip().partition(" ")
        sluid = sluid.strip()
        if not (job.isascii() and job.isdigit() and _SLUID.fullmatch(sluid)):
            raise CannotTell(f"squeue's answer is no list of SLUIDs: {shortened(line, 80)}")
        if found.setdefault(sluid, job) != job:
            twice.add(sluid)
    return {s: job for s, job in found.items() if s != _NO_SLUID and s not in twice}


def record_chunks(out: bytes, record: bytes, start: int = 0) -> Iterator[bytes]:
    """Split the answer, from offset `start` on, into pieces of whole records, each without its last
    mark. Raises ValueError if the last record is cut off."""
    size = len(out)
    while start < size:
        end = out.rfind(record, start, start + _PIECE)
        if end < 0:
            end = out.find(record, start)
        if end < 0:
            raise ValueError("the last record is cut off")
        yield out[start:end]
        start = end + len(record)


Row = TypeVar("Row", Job, JobRun)


def name_as_asked(rows: tuple[Row, ...], asked: Collection[str] | None) -> tuple[Row, ...]:
    """The rows with the user names by which they were asked for. One uid may have several names, and
    squeue may print another one (a directory with domains)."""
    if asked is None or all(row.user in asked for row in rows):
        return rows
    names = {user: find_asked_name(user, asked) for user in {row.user for row in rows}}
    return tuple(
        row if names[row.user] == row.user else replace(row, user=names[row.user]) for row in rows
    )


def find_asked_name(printed: str, asked: Collection[str]) -> str:
    """The requested user name, if squeue prints another name of the same uid. If the uid is not
    known and only one user was requested, that one. Otherwise the name as printed."""
    if printed in asked or not printed:
        return printed
    uid = find_uid(printed)
    same = [name for name in asked if uid is not None and find_uid(name) == uid]
    return same[0] if same else (next(iter(asked)) if len(asked) == 1 else printed)


Shared = tuple[str, str, str, str, str, int | None, int, str]


class _JobReader:
    """Reads jobs from records, and remembers the words that jobs share."""

    def __init__(self, ends: QueueMarks) -> None:
        self._ends = ends
        self._shared: WordMemo[Shared] = WordMemo(self._read_shared)
        self._files: WordMemo[tuple[str, str]] = WordMemo(self._read_files)
        self._tasks: WordMemo[tuple[str, int]] = WordMemo(_read_task)
        self._texts: WordMemo[str] = WordMemo(decode_document)

    def read_records(self, records: list[bytes], jobs: list[Job]) -> None:
        """Append one job per record to `jobs`. Raises ValueError if a record has another form."""
        # This runs 100,000 times per pass. So it uses local names, one split per mark, and no calls
        # for known words. Names and nodes are rarely equal, so remembering them costs more than it
        # saves (benchmarks/bench_slurm.py).
        group, texts = self._ends.group, self._texts
        shared_of, files_of, tasks = self._shared, self._files, self._tasks
        add = jobs.append
        for record in records:
            own, shared, name, dependency, comment, files = record.split(group)
            raw_id, raw_job, raw_array, task, submitted, started, ends, nodes = own.split(b" ")
            user, account, partition, state, reason, limit, count, exclude = shared_of[shared]
            workdir, command = files_of[files]
            index, size = tasks[task]
            if not raw_job.isdigit():
                raise ValueError(f"{decode_text(raw_job)!r} is no job id")
            job_id = raw_job.decode("ascii")
            add(
                Job(
                    job_id if raw_id == raw_job else raw_id.decode("ascii"),
                    job_id,
                    job_id if raw_array == raw_job else texts[raw_array],
                    index,
                    name.decode("utf-8", "backslashreplace")
                    if len(name) <= _MAX_NAME_BYTES
                    else decode_text(name),
                    user,
                    partition,
                    state,
                    reason,
                    nodes.decode("ascii"),
                    count,
                    "" if dependency == b"(null)" else texts[dependency],
                    parse_epoch(submitted),
                    parse_epoch(started),
                    parse_epoch(ends),
                    limit,
                    size,
                    exclude,
                    workdir,
                    account,
                    command,
                    "" if comment == b"(null)" or not comment else _read_wish(comment),
                )
            )
        self._forget_words()

    def _forget_words(self) -> None:
        for memo in (self._files, self._texts, self._tasks, self._shared):
            if len(memo) > _MAX_REMEMBERED:
                memo.clear()

    def _read_shared(self, raw: bytes) -> Shared:
        user, account, partition, state, reason, limit, nodes, exclude = raw.split(self._ends.field)
        return (
            decode_text(user),
            decode_optional_text(account),
            decode_optional_text(partition),
            decode_text(state),
            decode_text(reason),
            parse_time_limit(limit),
            parse_count(nodes),
            decode_list(exclude),
        )

    def _read_files(self, raw: bytes) -> tuple[str, str]:
        workdir, command = raw.split(self._ends.field)
        return decode_optional_text(workdir), decode_optional_text(command)


def _read_wish(comment: bytes) -> str:
    """The comment if it is a wish. Those of other tools are not kept. A wish that is too long is cut
    to one character more than is allowed, so that it is refused."""
    begin = comment.lstrip()[: 4 * (len(WISH_MARK) + MAX_WISH_CHARS + 1)]
    if begin[: len(WISH_MARK)].lower() != WISH_MARK.encode("ascii"):
        return ""
    return decode_document(begin)[: len(WISH_MARK) + MAX_WISH_CHARS + 1]


def _read_task(raw: bytes) -> tuple[str, int]:
    task = decode_optional_text(raw)
    return task, count_elements(task)
