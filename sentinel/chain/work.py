"""What a link, a timer or an entry of a crontab does when it is called."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

import msgspec
from msgspec import Struct

from sentinel import proc
from sentinel.chain import proofs
from sentinel.chain.folder import BadChainFolder, ChainFolder
from sentinel.chain.journal import JournalEntry, What, find_run_job
from sentinel.chain.model import Chain
from sentinel.chain.queue import ChainQueue
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.settings import SlurmSettings
from sentinel.core.text import shortened, visible
from sentinel.proc import threads
from sentinel.slurm.client import SlurmClient

SUBMISSION_ATTEMPTS = 300.0
"""Seconds for the scripts of cron directories."""

TEST_MESSAGE_S = 90.0
"""Seconds for one test message."""

LOOK_LIMIT_S = 60.0
"""Seconds for one look at the folder of the chain, or at the configuration: they may lie on a mount
that hangs."""


def run_link(folder: str, settings_of: Callable[[str | None], Settings]) -> bool:
    """The life of a link; whether the chain goes on after it. Raises ChainNotInstalled or BadChainFolder.

    A relay's service makes the passes: left are its successor, and the scripts that are due.
    """
    place = ChainFolder(folder, LOOK_LIMIT_S)
    chain = place.read_chain()
    job = os.environ.get("SLURM_JOB_ID", "")
    slurm, directories, channels = _read_settings(chain, settings_of)
    queue = (
        ChainQueue(chain, place, SlurmClient(limit=slurm.timeout)) if chain.is_in_slurm else None
    )

    def pass_(seconds: float) -> PassResult:
        work = _make_pass(chain, seconds, directories)
        if chain.delivers:
            _prove_delivery(chain, place, channels)
        return work

    runner = LinkRunner(chain, place, queue, pass_, _write_stderr, job=job)
    if chain.mode != "relay":
        return runner.run_link()
    secured = runner.secure_successors()
    if chain.delivers:
        _prove_delivery(chain, place, channels)
    if directories:
        _submit_scripts(chain, SUBMISSION_ATTEMPTS)
    return secured


def _read_settings(
    chain: Chain, settings_of: Callable[[str | None], Settings]
) -> tuple[SlurmSettings, bool, dict[str, str]]:
    """How to ask Slurm, whether there are cron directories, and the channels; a file with errors ends
    no chain (the pass tells of it)."""
    try:
        settings = threads.run_within(
            LOOK_LIMIT_S, "file", lambda: settings_of(chain.config or None)
        )
    except (SentinelError, OSError):
        return SlurmSettings(), False, {}
    directories = any(c.common.kind == "cron" for c in settings.checks)
    return settings.slurm, directories, proofs.channels_to_prove(settings)


def _prove_delivery(chain: Chain, place: ChainFolder, channels: Mapping[str, str]) -> None:
    """A test message through each channel that was not tried on this kind of host."""

    def send(name: str) -> tuple[bool, str]:
        try:
            done = proc.run(_pass_argv(chain, "notify", "test", name), limit=TEST_MESSAGE_S)
        except CannotTell as error:
            return False, str(error)
        said = (done.out or done.err).decode("utf-8", "backslashreplace").strip()
        return done.code == 0, said.removeprefix(f"{name}: ")

    for one in proofs.prove_channels(place, channels, send, where=proofs.kind_of_host(os.environ)):
        _write_stderr(f"test message through {visible(one.channel)}: {one.text}")


def _make_pass(chain: Chain, seconds: float, directories: bool) -> PassResult:
    if directories:
        _submit_scripts(chain, min(seconds, SUBMISSION_ATTEMPTS))
    try:
        words = ["--json"] if chain.delivers else ["--json", "--no-deliver"]
        words += [f"--spacing={chain.every}"] if chain.is_in_slurm else []
        done = proc.run(_pass_argv(chain, "tick", *words), limit=seconds)
    except CannotTell as error:
        return PassResult(ran=False, failed=True, text=str(error))
    said = shortened(visible(done.err.decode("utf-8", "backslashreplace").strip()), 500)
    if done.code:
        return PassResult(
            ran=False, failed=True, text=said or f"sentinel tick: exit code {done.code}"
        )
    return PassResult(ran=_did_run(done.out), text=said)


def _pass_argv(chain: Chain, *words: str) -> list[str]:
    return [*chain.command, *words, *(["-c", chain.config] if chain.config else [])]


def _submit_scripts(chain: Chain, seconds: float) -> None:
    """What it complains of it also keeps for the check of that directory."""
    try:
        done = proc.run(_pass_argv(chain, "cron", "run"), limit=seconds)
    except CannotTell as error:
        _write_stderr(str(error))
        return
    for stream in (done.out, done.err):
        if stream.strip():
            _write_stderr(stream.decode("utf-8", "backslashreplace").strip())


def _did_run(out: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(out, type=dict[str, object]).get("ran"))
    except msgspec.DecodeError:
        return False


def _write_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


# One link at work: successors first, then the slot; and on its own where nothing is taken.


SUCCESSOR_PATIENCE_S = (0.0, 2.0, 5.0)
"""Seconds before the first attempts to submit: the slot must not wait long for an ill slurmctld."""

ATTEMPT_PAUSE_S = (15.0, 30.0, 60.0, 120.0)
"""Seconds between later attempts; the last counts for all further ones."""

RESERVE_S = 120.0
"""Seconds before its time limit at which a link without a successor requeues itself."""


class PassResult(Struct, frozen=True):
    """What became of a pass: `ran` False when another sentinel was at work on the state."""

    ran: bool
    text: str = ""
    failed: bool = False


class LinkMending(Protocol):
    """cron.queue.Queue, as a link needs it."""

    def mend_chain(self, me: str = "") -> tuple[bool, list[str]]: ...
    def requeue_link(self, job: str) -> None: ...


class LinkRunner:
    """A link: `job` is its id, empty outside Slurm. `pass_` makes one pass within so many seconds."""

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
        """The whole life of a link; whether nothing is left to do for the chain after it."""
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
        """Whoever removed the folder wants no successor, nor that a pass makes it anew."""
        return self._place.was_removed(self._chain.mount)

    def secure_successors(self) -> bool:
        """Make sure of the successors, with some patience; whether they are there."""
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
        """Until the next attempt, or the next slot where that comes first: it is nobody else's."""
        now = self._now()
        until_slot = self._chain.slot_at(now) + self._chain.every - now
        self._sleep(max(0.1, min(seconds, until_slot, self._end - self._clock())))

    def _run_slot(self) -> None:
        """Run the slot of this moment unless somebody has."""
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
        """None where they cannot be read: a slot run twice is better than one that nobody runs."""
        with suppress(BadChainFolder):
            return self._place.read_journal()
        return []

    def _do_pass(self, slot: int) -> None:
        self._note_slot(slot, "begin")
        work = self._pass(max(1.0, self._end - self._clock()))
        what: What = "failed" if work.failed else "ran" if work.ran else "busy"
        self._note_slot(slot, what, work.text)
        if work.text:
            self._say(work.text)

    def _note_slot(self, slot: int, what: What, text: str = "") -> None:
        self._place.append_entry(
            JournalEntry(slot=slot, what=what, at=self._now(), job=self._job, text=text)
        )
