"""The links of a chain in Slurm's queue: looked at, submitted, released, cancelled."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence

from sentinel.chain.folder import Place
from sentinel.chain.mend import Move, Release, Step, Submit, steps, whole
from sentinel.chain.model import LETTERS, Chain, Link
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.slurm.client import Client
from sentinel.slurm.complaints import complaint, worded
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import epoch, nonce, text

ROUNDS = 4
"""Looks at the queue in one mending: two that submit at once see each other in the next one."""

MARK = "sentinel"

SQUEUE = ("squeue", "-h", "-a")
"""Jobs in hidden partitions too (squeue(1), --all): one's own links may wait in such a one."""


class Refused(SentinelError):
    """Slurm does not take the job; its own words."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""


class Queue:
    """A chain's jobs. Every method raises CannotTell when Slurm does not answer."""

    def __init__(
        self, chain: Chain, place: Place, client: Client, now: Callable[[], float] = time.time
    ) -> None:
        self._chain, self._place, self._client, self._now = chain, place, client, now
        self._submitted: dict[str, str] = {}  # names by job, since the last look

    def links(self) -> list[Link]:
        """All that are in the queue, also of older installations of this chain."""
        mark = nonce()
        names = [f"{self._chain.name}-{letter}" for letter in LETTERS]
        columns = mark.join(("%A", "%j", "%T", "%e", "%k", "%r")) + mark
        mine = ("-u", str(os.getuid()), "-n", ",".join(names))
        return read_links(self._client.ask(*SQUEUE, *mine, "-o", columns), mark)

    def mend(self, me: str = "") -> tuple[bool, list[str]]:
        """Do what is missing; whether every strand goes on, and what was done, in words.

        Raises Refused with Slurm's words when a link is not taken.
        """
        done: list[str] = []
        tried: set[str] = set()
        for _ in range(ROUNDS):
            links = self.links()
            self._require_seen(links)
            wanted = steps(self._chain, links, self._now(), me=me, tried=tried)
            if not wanted:
                return whole(self._chain, links, me), done
            done += [self._do(step) for step in wanted]
            tried |= {step.job for step in wanted if isinstance(step, Release | Move)}
        return whole(self._chain, self.links(), me), done

    def cancel_all(self) -> list[str]:
        """Every waiting and running link; their job ids."""
        jobs = [link.job for link in self.links()]
        for job in jobs:
            self._client.run("scancel", job)
        return jobs

    def requeue(self, job: str) -> None:
        """The last way on of a link that may not submit: it becomes its own successor."""
        self._client.run("scontrol", "requeue", job)

    def submission(self, step: Submit) -> list[str]:
        """The command; the slot travels in the comment, the time relative to this very moment
        (a local time of the day would come twice when summer time ends)."""
        return [
            "sbatch",
            "--parsable",
            f"--job-name={step.name}",
            f"--comment={self._comment(step)}",
            f"--begin=now+{self._wait(step)}",
            *(["--dependency=singleton"] if self._chain.mode == "chain" else []),
            "--requeue",
            "--output=/dev/null",
            f"--time={math.ceil(self._chain.time_limit / 60)}",
            "--ntasks=1",
            "--cpus-per-task=1",
            *(["--signal=B:TERM@90"] if self._chain.mode == "relay" else []),
            *self._chain.options,
            self._place.script,
        ]

    def _require_seen(self, links: Sequence[Link]) -> None:
        """A queue that does not show what was just submitted (a squeue that filters) would be
        filled without end: what it hides is cancelled. Raises Refused."""
        shown = {link.job for link in links}
        lost = [job for job in self._submitted if job not in shown and not self._known(job)]
        names, self._submitted = self._submitted, {}
        for job in lost:
            self._client.run("scancel", f"--name={names[job]}", job)
        if lost:
            raise Refused(
                f"sbatch took {', '.join(lost)}, but squeue does not show it: no chain can be kept "
                "like this, and it was cancelled"
            )

    def _known(self, job: str) -> bool:
        """Whether slurmctld has it, be it over already."""
        done = self._client.run(*SQUEUE, "-t", "all", "-j", job, "-o", "%A")
        if b"Invalid job id" in done.err:
            return False
        return job in text(self._client.believe("squeue", done)).split()

    def _do(self, step: Step) -> str:
        if isinstance(step, Submit):
            job = self._submit(step)
            self._submitted[job] = step.name
            return f"submitted {job} for {_clock(step.slot)}"
        if isinstance(step, Release):
            done = self._client.run("scontrol", "release", step.job)
            return _told(f"released {step.job}, which was held", done.code, done.err)
        if isinstance(step, Move):
            return self._move(step)
        self._client.run("scancel", step.job)
        return f"cancelled {step.job}: {step.why}"

    def _move(self, step: Move) -> str:
        done = self._client.run(
            "scontrol", "update", f"jobid={step.job}", f"starttime=now+{self._wait(step)}",
            f"comment={self._comment(step)}",
        )  # fmt: skip
        said = f"moved {step.job}, which was requeued, to {_clock(step.slot)}"
        return _told(said, done.code, done.err)

    def _comment(self, step: Submit | Move) -> str:
        return f"{MARK} {step.slot} {self._chain.revision}"

    def _wait(self, step: Submit | Move) -> int:
        return max(0, math.ceil(step.slot - self._now()))

    def _submit(self, step: Submit) -> str:
        done = self._client.run(*self.submission(step))
        said = complaint(done.err)
        job = submitted_job(done.out)
        if done.code or not job:
            raise refusal(said, done.code)
        return job


def refusal(said: str, code: int) -> Refused:
    """Why sbatch took nothing, in its own words, which mostly open with its name."""
    return Refused(f"sbatch: {said.removeprefix('sbatch: ') or f'exit code {code} without a word'}")


def read_links(out: bytes, mark: str) -> list[Link]:
    """What squeue prints with that mark behind each column; raises CannotTell."""
    fields = out.split(mark.encode())
    rows = [fields[i : i + 6] for i in range(0, len(fields) - 1, 6)]
    try:
        return [_link([text(field).strip("\n") for field in row]) for row in rows]
    except (ValueError, IndexError) as error:
        raise CannotTell(f"squeue prints what cannot be read: {error}") from error


def _link(row: Sequence[str]) -> Link:
    job, name, state, ends, comment, reason = row
    words = comment.split(" ")
    slot = int(words[1]) if words[0] == MARK and len(words) > 1 and words[1].isdigit() else 0
    return Link(
        job=str(int(job)),
        name=name,
        state=state,
        reason=reason,
        slot=slot,
        revision=words[2] if slot and len(words) > 2 else "",
        ends=epoch(ends.encode()) if state == "RUNNING" else None,
    )


def _told(said: str, code: int, err: bytes) -> str:
    return f"not {said}: {worded(complaint(err)) or f'exit code {code}'}" if code else said


def _clock(slot: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(slot))
