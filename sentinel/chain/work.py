"""What a link, a timer or an entry of a crontab does when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec

from sentinel import proc
from sentinel.chain.folder import Place
from sentinel.chain.link import Runner, Work
from sentinel.chain.model import Chain
from sentinel.chain.queue import Queue
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.settings import SlurmSettings
from sentinel.core.text import shortened, visible
from sentinel.slurm.client import Client

SUBMISSIONS = 300.0
"""Seconds for the scripts of cron directories."""


def link(folder: str, settings_of: Callable[[str | None], Settings]) -> bool:
    """The life of a link; whether the chain goes on after it. Raises NotInstalled or BadPlace.

    A relay's service makes the passes: left are its successor, and the scripts that are due.
    """
    place = Place(folder)
    chain = place.chain()
    job = os.environ.get("SLURM_JOB_ID", "")
    slurm, directories = _looked(chain, settings_of)
    queue = Queue(chain, place, Client(limit=slurm.timeout)) if chain.in_slurm else None
    runner = Runner(chain, place, queue, lambda s: _pass(chain, s, directories), _say, job=job)
    if chain.mode != "relay":
        return runner.run()
    secured = runner.secure()
    if directories:
        _submit(chain, SUBMISSIONS)
    return secured


def _looked(
    chain: Chain, settings_of: Callable[[str | None], Settings]
) -> tuple[SlurmSettings, bool]:
    """How to ask Slurm, and whether there are cron directories; a file with errors ends no chain
    (the pass tells of it)."""
    try:
        settings = settings_of(chain.config or None)
    except SentinelError:
        return SlurmSettings(), False
    return settings.slurm, any(c.common.kind == "cron" for c in settings.checks)


def _pass(chain: Chain, seconds: float, directories: bool) -> Work:
    if directories:
        _submit(chain, min(seconds, SUBMISSIONS))
    try:
        elsewhere = [] if chain.delivers else ["--no-deliver"]
        done = proc.run(_call(chain, "tick", "--json", *elsewhere), limit=seconds)
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
