"""The links of a chain in Slurm's queue: looked at, submitted, released, cancelled."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence

from sentinel.chain.folder import ChainFolder
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
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.complaints import describe_stderr, word_complaint
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import decode_text, make_nonce, parse_epoch

MAX_MEND_ROUNDS = 4
"""Looks at the queue in one mending: two that submit at once see each other in the next one."""

COMMENT_MARK = "sentinel"

SQUEUE_COLUMNS = ("squeue", "-h", "-a")
"""Jobs in hidden partitions too (squeue(1), --all): one's own links may wait in such a one."""


class SubmissionRefused(SentinelError):
    """Slurm does not take the job; its own words."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""


class ChainQueue:
    """A chain's jobs. Every method raises CannotTell when Slurm does not answer."""

    def __init__(
        self,
        chain: Chain,
        place: ChainFolder,
        client: SlurmClient,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._chain, self._place, self._client, self._now = chain, place, client, now
        self._submitted: dict[str, str] = {}  # names by job, since the last look

    def list_links(self) -> list[ChainLink]:
        """All that are in the queue, also of older installations of this chain."""
        mark = make_nonce()
        names = [f"{self._chain.name}-{letter}" for letter in STRAND_LETTERS]
        columns = mark.join(("%A", "%j", "%T", "%e", "%k", "%r")) + mark
        mine = ("-u", str(os.getuid()), "-n", ",".join(names))
        return read_links(self._client.ask_slurm(*SQUEUE_COLUMNS, *mine, "-o", columns), mark)

    def mend_chain(self, me: str = "") -> tuple[bool, list[str]]:
        """Do what is missing; whether every strand goes on, and what was done, in words.

        Raises SubmissionRefused with Slurm's words when a link is not taken.
        """
        done: list[str] = []
        tried: set[str] = set()
        for _ in range(MAX_MEND_ROUNDS):
            links = self.list_links()
            self._require_seen(links)
            wanted = plan_mending(self._chain, links, self._now(), me=me, tried=tried)
            if not wanted:
                return has_successors(self._chain, links, me), done
            done += [self._do_step(step) for step in wanted]
            tried |= {step.job for step in wanted if isinstance(step, ReleaseLink | MoveLink)}
        return has_successors(self._chain, self.list_links(), me), done

    def cancel_all(self) -> list[str]:
        """Every waiting and running link; their job ids."""
        jobs = [link.job for link in self.list_links()]
        for job in jobs:
            self._client.run_command("scancel", job)
        return jobs

    def requeue_link(self, job: str) -> None:
        """The last way on of a link that may not submit: it becomes its own successor."""
        self._client.run_command("scontrol", "requeue", job)

    def submission_argv(self, step: SubmitLink) -> list[str]:
        """The command; the slot travels in the comment, the time relative to this very moment
        (a local time of the day would come twice when summer time ends)."""
        return [
            "sbatch",
            "--parsable",
            f"--job-name={step.name}",
            f"--comment={self._link_comment(step)}",
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
        """A queue that does not show what was just submitted (a squeue that filters) would be
        filled without end: what it hides is cancelled. Raises SubmissionRefused."""
        shown = {link.job for link in links}
        lost = [job for job in self._submitted if job not in shown and not self._is_known_job(job)]
        names, self._submitted = self._submitted, {}
        for job in lost:
            self._client.run_command("scancel", f"--name={names[job]}", job)
        if lost:
            raise SubmissionRefused(
                f"sbatch took {', '.join(lost)}, but squeue does not show it: no chain can be kept "
                "like this, and it was cancelled"
            )

    def _is_known_job(self, job: str) -> bool:
        """Whether slurmctld has it, be it over already."""
        done = self._client.run_command(*SQUEUE_COLUMNS, "-t", "all", "-j", job, "-o", "%A")
        if b"Invalid job id" in done.err:
            return False
        return job in decode_text(self._client.believe_output("squeue", done)).split()

    def _do_step(self, step: MendStep) -> str:
        if isinstance(step, SubmitLink):
            job = self._submit_link(step)
            self._submitted[job] = step.name
            return f"submitted {job} for {_clock_text(step.slot)}"
        if isinstance(step, ReleaseLink):
            done = self._client.run_command("scontrol", "release", step.job)
            return _describe_step(f"released {step.job}, which was held", done.code, done.err)
        if isinstance(step, MoveLink):
            return self._move_link(step)
        self._client.run_command("scancel", step.job)
        return f"cancelled {step.job}: {step.why}"

    def _move_link(self, step: MoveLink) -> str:
        done = self._client.run_command(
            "scontrol", "update", f"jobid={step.job}", f"starttime=now+{self._seconds_to_slot(step)}",
            f"comment={self._link_comment(step)}",
        )  # fmt: skip
        said = f"moved {step.job}, which was requeued, to {_clock_text(step.slot)}"
        return _describe_step(said, done.code, done.err)

    def _link_comment(self, step: SubmitLink | MoveLink) -> str:
        return f"{COMMENT_MARK} {step.slot} {self._chain.revision}"

    def _seconds_to_slot(self, step: SubmitLink | MoveLink) -> int:
        return max(0, math.ceil(step.slot - self._now()))

    def _submit_link(self, step: SubmitLink) -> str:
        done = self._client.run_command(*self.submission_argv(step))
        said = describe_stderr(done.err)
        job = submitted_job(done.out)
        if done.code or not job:
            raise submission_refusal(said, done.code)
        return job


def submission_refusal(said: str, code: int) -> SubmissionRefused:
    """Why sbatch took nothing, in its own words, which mostly open with its name."""
    return SubmissionRefused(
        f"sbatch: {said.removeprefix('sbatch: ') or f'exit code {code} without a word'}"
    )


def read_links(out: bytes, mark: str) -> list[ChainLink]:
    """What squeue prints with that mark behind each column; raises CannotTell."""
    fields = out.split(mark.encode())
    rows = [fields[i : i + 6] for i in range(0, len(fields) - 1, 6)]
    try:
        return [_read_link([decode_text(field).strip("\n") for field in row]) for row in rows]
    except (ValueError, IndexError) as error:
        raise CannotTell(f"squeue prints what cannot be read: {error}") from error


def _read_link(row: Sequence[str]) -> ChainLink:
    job, name, state, ends, comment, reason = row
    words = comment.split(" ")
    slot = (
        int(words[1]) if words[0] == COMMENT_MARK and len(words) > 1 and words[1].isdigit() else 0
    )
    return ChainLink(
        job=str(int(job)),
        name=name,
        state=state,
        reason=reason,
        slot=slot,
        revision=words[2] if slot and len(words) > 2 else "",
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
