"""Runs one link: it first submits its successors, then runs the slot. If Slurm accepts no
successor, the link goes on by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Protocol

from msgspec import Struct

from sentinel.chain.folder import BadChainFolder, ChainFolder
from sentinel.chain.journal import JournalEntry, What, find_run_job
from sentinel.chain.model import Chain
from sentinel.core.errors import SentinelError

SUBMISSION_ATTEMPTS = 300.0
"""Seconds in which the scripts of cron directories have to be submitted."""


SUCCESSOR_PATIENCE_S = (0.0, 2.0, 5.0)
"""Seconds before each of the first attempts to submit. They are short, so that a slow slurmctld
does not delay the slot."""

ATTEMPT_PAUSE_S = (15.0, 30.0, 60.0, 120.0)
"""Seconds between later attempts. The last value is used for all further ones."""

RESERVE_S = 120.0
"""A link without a successor requeues itself this many seconds before its time limit."""


class PassResult(Struct, frozen=True):
    """The result of a pass. It is `busy` if another sentinel was using the state."""

    what: Literal["ran", "busy", "failed"]
    text: str = ""


class LinkMending(Protocol):
    """The part of ChainQueue that a link needs."""

    def mend_chain(self, me: str = "") -> tuple[bool, list[str]]: ...
    def requeue_link(self, job: str) -> None: ...


class LinkRunner:
    """Runs one link. `job` is its job id, empty outside Slurm. `pass_` makes one pass within the
    given seconds."""

    def __init__(
        self,
        chain: Chain,
        place: ChainFolder,
        queue: LinkMending | None,
        pass_: Callable[[float], PassResult],
        say: Callable[[str], None],
        *,
        job: str = "",
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._chain, self._place, self._queue, self._pass = chain, place, queue, pass_
        self._say, self._job, self._now, self._clock, self._sleep = say, job, now, clock, sleep
        self._end = clock() + chain.time_limit - min(RESERVE_S, chain.time_limit / 4)

    def run_link(self) -> bool:
        """Run the link from start to end. Returns whether the chain can go on after it."""
        secured = self.secure_successors()
        self._run_slot()
        attempt = 0
        while not secured and self._clock() < self._end and not self._was_removed():
            self._pause_until_next(ATTEMPT_PAUSE_S[min(attempt, len(ATTEMPT_PAUSE_S) - 1)])
            attempt += 1
            secured = self._try_to_secure()
            self._run_slot()
        if self._was_removed():
            return True
        if not secured and self._queue and self._job:
            self._say(f"no successor could be submitted: {self._job} requeues itself")
            self._queue.requeue_link(self._job)
        self._place.trim_journal()
        return secured

    def _was_removed(self) -> bool:
        """Whether the folder was removed. Then the user wants no successor and no further pass."""
        return self._place.was_removed(self._chain.mount)

    def secure_successors(self) -> bool:
        """Submit successors, with a few attempts. Returns whether they are in the queue."""
        for wait in SUCCESSOR_PATIENCE_S:
            self._sleep(wait)
            if self._was_removed():
                return False
            if self._try_to_secure():
                return True
        return False

    def _try_to_secure(self) -> bool:
        if self._queue is None:
            return True
        try:
            whole, done = self._queue.mend_chain(self._job)
        except SentinelError as error:
            self._say(f"the chain is not mended yet: {error}")
            return False
        for line in done:
            self._say(line)
        return whole

    def _pause_until_next(self, seconds: float) -> None:
        """Wait for the next attempt, but not beyond the start of the next slot: only this link can
        run that slot."""
        now = self._now()
        until_slot = self._chain.slot_at(now) + self._chain.every - now
        self._sleep(max(0.1, min(seconds, until_slot, self._end - self._clock())))

    def _run_slot(self) -> None:
        """Run the current slot, unless another link has run it."""
        if self._was_removed():
            return
        with self._place.lock_slot() as alone:
            slot = self._chain.slot_at(self._now())
            if not alone:
                self._note_slot(slot, "busy", "another link is at work")
                return
            other = find_run_job(self._read_entries(), slot)
            if not other:
                self._do_pass(slot)
            elif other != (self._job or "?"):
                self._note_slot(slot, "repeat", f"run by {other} already")

    def _read_entries(self) -> list[JournalEntry]:
        """The journal, or an empty list if it cannot be read. A slot that runs twice is better than
        a slot that never runs."""
        with suppress(BadChainFolder):
            return self._place.read_journal()
        return []

    def _do_pass(self, slot: int) -> None:
        self._note_slot(slot, "begin")
        work = self._pass(max(1.0, self._end - self._clock()))
        self._note_slot(slot, work.what, work.text)
        if work.text:
            self._say(work.text)

    def _note_slot(self, slot: int, what: What, text: str = "") -> None:
        self._place.append_entry(
            JournalEntry(slot=slot, what=what, at=self._now(), job=self._job, text=text)
        )
