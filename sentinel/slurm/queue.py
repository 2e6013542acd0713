"""squeue: what is asked, and jobs from its answer.

Names, comments, directories and dependencies are the users' own text: newlines, escape
sequences, bytes in no encoding, rows that pretend to be other jobs. Fields and records are
therefore ended by marks that are drawn anew for every call, so that nothing a user wrote
earlier can hold them. `-o` prints whatever stands between its letters, which exist in every
version from 20.11 to 26.05 (src/squeue/opts.c), and a letter without a width is never cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened
from sentinel.slurm.words import (
    WordMemo,
    count_elements,
    decode_optional_text,
    decode_text,
    parse_count,
    parse_epoch,
    parse_time_limit,
)

_OWN = "%i %A %F %K %V %S %e %N"  # Slurm's own words: a blank is mark enough
_SHARED = ("%u", "%a", "%P", "%T", "%r", "%l", "%D", "%x")  # alike in thousands of jobs
_FILES = ("%Z", "%o")
_PIECE = 1 << 20  # bytes that are taken apart at once: the peak of memory stays low
_MAX_REMEMBERED = 1 << 14  # distinct texts kept for sharing; unlike ones would only cost memory


SLUIDS = ("squeue", "-a", "-t", "all", "-O", "JobId:32,SLUID:32")
"""Asks for the SLUID of every job that slurmctld remembers (squeue(1), since 25.11)."""

_SLUID = re.compile(r"s[0-9A-HJKMNP-TV-Z]{13}")  # print_sluid() in src/common/sluid.c
_NO_SLUID = "s0000000000000"  # of a job that an older slurmctld began


class QueueMarks(Struct, frozen=True):
    """The ends of one call's columns (`group`), of fields within them, and of records."""

    group: bytes
    field: bytes
    record: bytes


def make_marks(nonce: str) -> QueueMarks:
    """What separates the answer of the call that was given this nonce."""
    return QueueMarks(*(f"{nonce}{end}".encode("ascii") for end in ("|", ";", ".\n")))


def squeue_format(nonce: str) -> str:
    """The value of squeue's `-o` whose answer `read_jobs` understands."""
    field = f"{nonce};"
    groups = (_OWN, field.join(_SHARED), "%j", "%E", field.join(_FILES))
    return f"{nonce}|".join(groups) + f"{nonce}."


def read_queue(out: bytes, nonce: str) -> list[Job]:
    """All jobs of an answer that was asked for with its header; CannotTell as `read_jobs`.

    squeue prints the header once slurmctld has answered (print_jobs_array() in
    src/squeue/print.c): without it an empty list is no answer, whatever the exit code.
    """
    return read_jobs(out, nonce, header_end(out, nonce))


def header_end(out: bytes, nonce: str) -> int:
    """Where the rows begin behind the header of an answer to `-o` or `-O`; CannotTell where there is
    none. The answer itself is not copied: it may have hundreds of megabytes."""
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
    """All jobs of an answer from `start` on; CannotTell unless every record is whole and as asked
    for."""
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
    """Job ids by SLUID, by which cgroups are named since 26.05; one that two jobs have is left
    out. CannotTell unless the header and every line are as asked for."""
    found, twice = dict[str, str](), set[str]()
    header, *lines = decode_text(out).splitlines() or [""]
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
    """The answer from `start` on in pieces of whole records, each without its last mark. ValueError
    where the last one is cut off."""
    size = len(out)
    while start < size:
        end = out.rfind(record, start, start + _PIECE)
        if end < 0:
            end = out.find(record, start)
        if end < 0:
            raise ValueError("the last record is cut off")
        yield out[start:end]
        start = end + len(record)


Shared = tuple[str, str, str, str, str, int | None, int, str]


class _JobReader:
    """Jobs from records, with a memory of the words they share."""

    def __init__(self, ends: QueueMarks) -> None:
        self._ends = ends
        self._shared: WordMemo[Shared] = WordMemo(self._read_shared)
        self._files: WordMemo[tuple[str, str]] = WordMemo(self._read_files)
        self._tasks: WordMemo[tuple[str, int]] = WordMemo(_read_task)
        self._texts: WordMemo[str] = WordMemo(decode_text)

    def read_records(self, records: list[bytes], jobs: list[Job]) -> None:
        """Append one job per record. ValueError where a record has another form."""
        # 100,000 times per pass: local names, one split per kind of mark, no calls for
        # what was seen before; names and nodes are rarely alike, and a memory of them costs
        # more than it spares (benchmarks/bench_slurm.py).
        group, texts = self._ends.group, self._texts
        shared_of, files_of, tasks = self._shared, self._files, self._tasks
        add = jobs.append
        for record in records:
            own, shared, name, dependency, files = record.split(group)
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
                    name.decode("utf-8", "backslashreplace"),
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
            decode_optional_text(exclude),
        )

    def _read_files(self, raw: bytes) -> tuple[str, str]:
        workdir, command = raw.split(self._ends.field)
        return decode_optional_text(workdir), decode_optional_text(command)


def _read_task(raw: bytes) -> tuple[str, int]:
    task = decode_optional_text(raw)
    return task, count_elements(task)
