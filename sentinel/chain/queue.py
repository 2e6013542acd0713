"""Lists, submits, releases and cancels the links of a chain in Slurm's queue.

What a link is for is written into the folder of the chain before it is submitted. sbatch gets no
comment: that of the user stays, and a site that demands or refuses comments is no obstacle.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder
from sentinel.chain.marks import LinkMark, recognise_links
from sentinel.chain.mend import (
    MendStep,
    MoveLink,
    ReleaseLink,
    SubmitLink,
    has_successors,
    plan_mending,
)
from sentinel.chain.model import STRAND_LETTERS, Chain, ChainLink
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_lines
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.complaints import describe_stderr, word_complaint
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import decode_text, make_nonce, parse_epoch

MAX_MEND_ROUNDS = 4
"""How often one mending lists the queue. If two links submit at once, each sees the other in the
next round."""

COMMENT_MARK = "sentinel"
"""The first word of the comments that sentinel wrote before 0.1.0. Slot and revision follow."""

COLUMNS = ("%A", "%j", "%T", "%e", "%k", "%r", "%P", "%V")
"""The columns of squeue that are read for each link."""

SQUEUE_COLUMNS = ("squeue", "-h", "-a")
"""-a also lists jobs in hidden partitions (squeue(1), --all), where links may wait."""


class SubmissionRefused(SentinelError):
    """Slurm refuses the job. The text is Slurm's own message."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""


class ChainQueue:
    """The jobs of a chain. Every method raises CannotTell if Slurm does not answer."""

    def __init__(
        self,
        chain: Chain,
        place: ChainFolder,
        client: SlurmClient,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._chain, self._place, self._client, self._now = chain, place, client, now
        # names by job id, submitted since the queue was last listed
        self._submitted: dict[str, str] = {}
        # marks of this process; the folder may not take them
        self._marks: list[LinkMark] = []

    def list_links(self) -> list[ChainLink]:
        """All links in the queue, also those of older installations of this chain."""
        return self._look_up_links()[0]

    def _look_up_links(self) -> tuple[list[ChainLink], list[LinkMark]]:
        """The links, and marks for those whose ids never came back."""
        mark = make_nonce()
        names = [f"{self._chain.name}-{letter}" for letter in STRAND_LETTERS]
        columns = mark.join(COLUMNS) + mark
        mine = ("-u", str(os.getuid()), "-n", ",".join(names))
        links = read_links(self._client.ask_slurm(*SQUEUE_COLUMNS, *mine, "-o", columns), mark)
        return recognise_links(self._chain, links, [*self._place.read_marks(), *self._marks])

    def mend_chain(self, me: str = "") -> tuple[bool, list[str]]:
        """Carry out the steps that are needed. Returns whether every strand goes on, and what was
        done.

        Raises SubmissionRefused with Slurm's words if a link is refused.
        """
        done: list[str] = []
        tried: set[str] = set()
        for _ in range(MAX_MEND_ROUNDS):
            links, adopted = self._look_up_links()
            for mark in adopted:
                self._write_mark(mark)
            self._require_seen(links)
            wanted = plan_mending(self._chain, links, self._now(), me=me, tried=tried)
            if not wanted:
                return has_successors(self._chain, links, me), done
            names = {link.job: link.name for link in links}
            done += [self._do_step(step, names) for step in wanted]
            tried |= {step.job for step in wanted if isinstance(step, ReleaseLink | MoveLink)}
        return has_successors(self._chain, self.list_links(), me), done

    def cancel_all(self) -> list[str]:
        """Cancel all links, waiting and running. Returns their job ids."""
        jobs = [link.job for link in self.list_links()]
        for job in jobs:
            self._client.run_command("scancel", job)
        return jobs

    def requeue_link(self, job: str) -> None:
        """Requeue a link that may not submit jobs, so that it is its own successor."""
        self._client.run_command("scontrol", "requeue", job)

    def submission_argv(self, step: SubmitLink) -> list[str]:
        """The sbatch command.

        The start is given as `now+SECONDS`, because a local time of day comes twice when summer
        time ends.
        """
        return [
            "sbatch",
            "--parsable",
            f"--job-name={step.name}",
            f"--begin=now+{self._seconds_to_slot(step)}",
            *(["--dependency=singleton"] if self._chain.mode == "chain" else []),
            "--requeue",
            "--output=/dev/null",
            f"--time={math.ceil(self._chain.time_limit / 60)}",
            "--ntasks=1",
            "--cpus-per-task=1",
            *(["--signal=B:TERM@90"] if self._chain.mode == "relay" else []),
            *self._chain.options,
            self._place.script_path,
        ]

    def _require_seen(self, links: Sequence[ChainLink]) -> None:
        """Cancel jobs that were submitted but do not appear in squeue. Raises SubmissionRefused.

        If squeue hides jobs (by a filter), each pass would submit more of them without end.
        """
        shown = {link.job for link in links}
        lost = [job for job in self._submitted if job not in shown and not self._is_known_job(job)]
        names, self._submitted = self._submitted, {}
        for job in lost:
            self._client.run_command("scancel", f"--name={names[job]}", job)
        if lost:
            raise SubmissionRefused(
                f"sbatch accepted {', '.join(lost)}, but squeue does not show it: no chain can be kept "
                "like this, and it was cancelled"
            )

    def _is_known_job(self, job: str) -> bool:
        """Whether slurmctld knows the job, running or ended."""
        done = self._client.run_command(*SQUEUE_COLUMNS, "-t", "all", "-j", job, "-o", "%A")
        if b"Invalid job id" in done.err:
            return False
        return job in decode_lines(self._client.believe_output("squeue", done)).split()

    def _do_step(self, step: MendStep, names: Mapping[str, str]) -> str:
        if isinstance(step, SubmitLink):
            job = self._submit_link(step)
            self._submitted[job] = step.name
            return f"submitted {job} for {_clock_text(step.slot)}"
        if isinstance(step, ReleaseLink):
            done = self._client.run_command("scontrol", "release", step.job)
            return _describe_step(f"released {step.job}, which was held", done.code, done.err)
        if isinstance(step, MoveLink):
            return self._move_link(step, names[step.job])
        self._client.run_command("scancel", step.job)
        return f"cancelled {step.job}: {step.why}"

    def _move_link(self, step: MoveLink, name: str) -> str:
        start = f"starttime=now+{self._seconds_to_slot(step)}"
        done = self._client.run_command("scontrol", "update", f"jobid={step.job}", start)
        if not done.code:
            self._write_mark(replace(self._make_mark(name, step.slot), job=step.job))
        said = f"moved {step.job}, which was requeued, to {_clock_text(step.slot)}"
        return _describe_step(said, done.code, done.err)

    def _make_mark(self, name: str, slot: int) -> LinkMark:
        return LinkMark(name=name, slot=slot, revision=self._chain.revision, at=self._now())

    def _write_mark(self, mark: LinkMark) -> None:
        self._marks.append(mark)
        self._place.append_mark(mark)

    def _seconds_to_slot(self, step: SubmitLink | MoveLink) -> int:
        return max(0, math.ceil(step.slot - self._now()))

    def _submit_link(self, step: SubmitLink) -> str:
        mark = self._make_mark(step.name, step.slot)
        self._write_mark(mark)
        done = self._client.run_command(*self.submission_argv(step))
        said = describe_stderr(done.err)
        job = submitted_job(done.out)
        if done.code or not job:
            raise submission_refusal(said, done.code)
        self._write_mark(replace(mark, job=job))
        return job


def submission_refusal(said: str, code: int) -> SubmissionRefused:
    """Why sbatch refused, in its own words. They usually begin with its name, which is removed."""
    return SubmissionRefused(
        f"sbatch: {said.removeprefix('sbatch: ') or f'exit code {code} without a word'}"
    )


def read_links(out: bytes, mark: str) -> list[ChainLink]:
    """The output of squeue, with this mark between the columns. Raises CannotTell."""
    fields = out.split(mark.encode())
    size = len(COLUMNS)
    rows = [fields[i : i + size] for i in range(0, len(fields) - 1, size)]
    try:
        return [_read_link([decode_text(field).strip("\n") for field in row]) for row in rows]
    except (ValueError, IndexError) as error:
        raise CannotTell(f"the output of squeue cannot be read: {error}") from error


def _read_link(row: Sequence[str]) -> ChainLink:
    job, name, state, ends, comment, reason, partition, submitted = row
    words = comment.split(" ")
    slot = (
        int(words[1]) if words[0] == COMMENT_MARK and len(words) > 1 and words[1].isdigit() else 0
    )
    return ChainLink(
        job=str(int(job)),
        name=name,
        state=state,
        reason=reason,
        partition=partition,
        slot=slot,
        revision=words[2] if slot and len(words) > 2 else "",
        submitted=parse_epoch(submitted.encode()),
        ends=parse_epoch(ends.encode()) if state == "RUNNING" else None,
    )


def _describe_step(said: str, code: int, err: bytes) -> str:
    return (
        f"not {said}: {word_complaint(describe_stderr(err)) or f'exit code {code}'}"
        if code
        else said
    )


def _clock_text(slot: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(slot))
