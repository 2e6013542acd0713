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
from sentinel.chain.folder import BadPlace, Place
from sentinel.chain.journal import Entry, What, was_run
from sentinel.chain.model import Chain
from sentinel.chain.queue import Queue
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.settings import SlurmSettings
from sentinel.core.text import shortened, visible
from sentinel.proc import threads
from sentinel.slurm.client import Client

SUBMISSIONS = 300.0
"""Seconds for the scripts of cron directories."""

TEST_MESSAGE_S = 90.0
"""Seconds for one test message."""

LOOK = 60.0
"""Seconds for one look at the folder of the chain, or at the configuration: they may lie on a mount
that hangs."""


def link(folder: str, settings_of: Callable[[str | None], Settings]) -> bool:
    """The life of a link; whether the chain goes on after it. Raises NotInstalled or BadPlace.

    A relay's service makes the passes: left are its successor, and the scripts that are due.
    """
    place = Place(folder, LOOK)
    chain = place.chain()
    job = os.environ.get("SLURM_JOB_ID", "")
    slurm, directories, channels = _looked(chain, settings_of)
    queue = Queue(chain, place, Client(limit=slurm.timeout)) if chain.in_slurm else None

    def pass_(seconds: float) -> Work:
        work = _pass(chain, seconds, directories)
        if chain.delivers:
            _prove(chain, place, channels)
        return work

    runner = Runner(chain, place, queue, pass_, _say, job=job)
    if chain.mode != "relay":
        return runner.run()
    secured = runner.secure()
    if chain.delivers:
        _prove(chain, place, channels)
    if directories:
        _submit(chain, SUBMISSIONS)
    return secured


def _looked(
    chain: Chain, settings_of: Callable[[str | None], Settings]
) -> tuple[SlurmSettings, bool, dict[str, str]]:
    """How to ask Slurm, whether there are cron directories, and the channels; a file with errors ends
    no chain (the pass tells of it)."""
    try:
        settings = threads.within(LOOK, "file", lambda: settings_of(chain.config or None))
    except (SentinelError, OSError):
        return SlurmSettings(), False, {}
    directories = any(c.common.kind == "cron" for c in settings.checks)
    return settings.slurm, directories, proofs.channels_to_prove(settings)


def _prove(chain: Chain, place: Place, channels: Mapping[str, str]) -> None:
    """A test message through each channel that was not tried on this kind of host."""

    def send(name: str) -> tuple[bool, str]:
        try:
            done = proc.run(_call(chain, "notify", "test", name), limit=TEST_MESSAGE_S)
        except CannotTell as error:
            return False, str(error)
        said = (done.out or done.err).decode("utf-8", "backslashreplace").strip()
        return done.code == 0, said.removeprefix(f"{name}: ")

    for one in proofs.prove(place, channels, send, where=proofs.kind_of_host(os.environ)):
        _say(f"test message through {visible(one.channel)}: {one.text}")


def _pass(chain: Chain, seconds: float, directories: bool) -> Work:
    if directories:
        _submit(chain, min(seconds, SUBMISSIONS))
    try:
        words = ["--json"] if chain.delivers else ["--json", "--no-deliver"]
        words += [f"--spacing={chain.every}"] if chain.in_slurm else []
        done = proc.run(_call(chain, "tick", *words), limit=seconds)
    except CannotTell as error:
        return Work(ran=False, failed=True, text=str(error))
    said = shortened(visible(done.err.decode("utf-8", "backslashreplace").strip()), 500)
    if done.code:
        return Work(ran=False, failed=True, text=said or f"sentinel tick: exit code {done.code}")
    return Work(ran=_ran(done.out), text=said)


def _call(chain: Chain, *words: str) -> list[str]:
    return [*chain.command, *words, *(["-c", chain.config] if chain.config else [])]


def _submit(chain: Chain, seconds: float) -> None:
    """What it complains of it also keeps for the check of that directory."""
    try:
        done = proc.run(_call(chain, "cron", "run"), limit=seconds)
    except CannotTell as error:
        _say(str(error))
        return
    for stream in (done.out, done.err):
        if stream.strip():
            _say(stream.decode("utf-8", "backslashreplace").strip())


def _ran(out: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(out, type=dict[str, object]).get("ran"))
    except msgspec.DecodeError:
        return False


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


# One link at work: successors first, then the slot; and on its own where nothing is taken.


PATIENCE = (0.0, 2.0, 5.0)
"""Seconds before the first attempts to submit: the slot must not wait long for an ill slurmctld."""

PAUSE = (15.0, 30.0, 60.0, 120.0)
"""Seconds between later attempts; the last counts for all further ones."""

RESERVE = 120.0
"""Seconds before its time limit at which a link without a successor requeues itself."""


class Work(Struct, frozen=True):
    """What became of a pass: `ran` False when another sentinel was at work on the state."""

    ran: bool
    text: str = ""
    failed: bool = False


class Mending(Protocol):
    """cron.queue.Queue, as a link needs it."""

    def mend(self, me: str = "") -> tuple[bool, list[str]]: ...
    def requeue(self, job: str) -> None: ...


class Runner:
    """A link: `job` is its id, empty outside Slurm. `pass_` makes one pass within so many seconds."""

    def __init__(
        self,
        chain: Chain,
        place: Place,
        queue: Mending | None,
        pass_: Callable[[float], Work],
        say: Callable[[str], None],
        *,
        job: str = "",
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._chain, self._place, self._queue, self._pass = chain, place, queue, pass_
        self._say, self._job, self._now, self._clock, self._sleep = say, job, now, clock, sleep
        self._end = clock() + chain.time_limit - min(RESERVE, chain.time_limit / 4)

    def run(self) -> bool:
        """The whole life of a link; whether nothing is left to do for the chain after it."""
        secured = self.secure()
        self._slot()
        attempt = 0
        while not secured and self._clock() < self._end and not self._taken_away():
            self._rest(PAUSE[min(attempt, len(PAUSE) - 1)])
            attempt += 1
            secured = self._secure()
            self._slot()
        if self._taken_away():
            return True
        if not secured and self._queue and self._job:
            self._say(f"no successor could be submitted: {self._job} requeues itself")
            self._queue.requeue(self._job)
        self._place.trim()
        return secured

    def _taken_away(self) -> bool:
        """Whoever removed the folder wants no successor, nor that a pass makes it anew."""
        return self._place.taken_away(self._chain.mount)

    def secure(self) -> bool:
        """Make sure of the successors, with some patience; whether they are there."""
        for wait in PATIENCE:
            self._sleep(wait)
            if self._taken_away():
                return False
            if self._secure():
                return True
        return False

    def _secure(self) -> bool:
        if self._queue is None:
            return True
        try:
            whole, done = self._queue.mend(self._job)
        except SentinelError as error:
            self._say(f"the chain is not mended yet: {error}")
            return False
        for line in done:
            self._say(line)
        return whole

    def _rest(self, seconds: float) -> None:
        """Until the next attempt, or the next slot where that comes first: it is nobody else's."""
        now = self._now()
        until_slot = self._chain.slot(now) + self._chain.every - now
        self._sleep(max(0.1, min(seconds, until_slot, self._end - self._clock())))

    def _slot(self) -> None:
        """Run the slot of this moment unless somebody has."""
        if self._taken_away():
            return
        with self._place.working() as alone:
            slot = self._chain.slot(self._now())
            if not alone:
                self._note(slot, "busy", "another link is at work")
                return
            other = was_run(self._entries(), slot)
            if not other:
                self._work(slot)
            elif other != (self._job or "?"):
                self._note(slot, "repeat", f"run by {other} already")

    def _entries(self) -> list[Entry]:
        """None where they cannot be read: a slot run twice is better than one that nobody runs."""
        with suppress(BadPlace):
            return self._place.entries()
        return []

    def _work(self, slot: int) -> None:
        self._note(slot, "begin")
        work = self._pass(max(1.0, self._end - self._clock()))
        what: What = "failed" if work.failed else "ran" if work.ran else "busy"
        self._note(slot, what, work.text)
        if work.text:
            self._say(work.text)

    def _note(self, slot: int, what: What, text: str = "") -> None:
        self._place.note(Entry(slot=slot, what=what, at=self._now(), job=self._job, text=text))
