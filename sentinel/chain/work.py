"""What a link, a timer or a crontab entry does when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

import msgspec

from sentinel import proc
from sentinel.chain import proofs
from sentinel.chain.folder import ChainFolder
from sentinel.chain.link import SUBMISSION_ATTEMPTS, LinkRunner, PassResult
from sentinel.chain.model import Chain
from sentinel.chain.queue import ChainQueue
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_lines
from sentinel.core.settings import SlurmSettings
from sentinel.core.text import shortened, visible
from sentinel.proc import threads
from sentinel.slurm.client import SlurmClient

TEST_MESSAGE_S = 90.0
"""Seconds for one test message."""

LOOK_LIMIT_S = 60.0
"""Seconds for one access to the folder of the chain, or to the configuration. They may be on a
mount that hangs."""


def run_link(
    folder: str, settings_of: Callable[[str | None], Settings], config: str | None = None
) -> bool:
    """Run a link. Returns whether the chain goes on after it. `config`: a configuration that says,
    before the chain is read, who may write its folder.

    Raises ChainNotInstalled or BadChainFolder. In a relay the service makes the passes. So the link
    only submits its successor and the scripts that are due.
    """
    place = ChainFolder(folder, LOOK_LIMIT_S)
    known = _read_settings(config, settings_of) if config else None
    chain = place.read_chain()
    job = os.environ.get("SLURM_JOB_ID", "")
    slurm, directories, channels = known or _read_settings(chain.config or None, settings_of)
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
    config: str | None, settings_of: Callable[[str | None], Settings]
) -> tuple[SlurmSettings, bool, dict[str, str]]:
    """How to ask Slurm, whether there are cron directories, and the channels.

    A faulty configuration does not end the chain: the pass reports it.
    """
    try:
        settings = threads.run_within(LOOK_LIMIT_S, "file", lambda: settings_of(config))
    except (SentinelError, OSError):
        return SlurmSettings(), False, {}
    directories = any(c.common.kind == "cron" for c in settings.checks)
    return settings.slurm, directories, proofs.channels_to_prove(settings)


def _prove_delivery(chain: Chain, place: ChainFolder, channels: Mapping[str, str]) -> None:
    """Send a test message through each channel that was not tested on this kind of host."""

    def send(name: str) -> tuple[bool, str]:
        try:
            done = proc.run(_pass_argv(chain, "notify", "test", name), limit=TEST_MESSAGE_S)
        except CannotTell as error:
            return False, str(error)
        said = decode_lines(done.out or done.err).strip()
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
        return PassResult("failed", str(error))
    said = shortened(visible(decode_lines(done.err).strip()), 500)
    if done.code:
        return PassResult("failed", said or f"sentinel tick: exit code {done.code}")
    return PassResult("ran" if _did_run(done.out) else "busy", said)


def _pass_argv(chain: Chain, *words: str) -> list[str]:
    return [*chain.command, *words, *(["-c", chain.config] if chain.config else [])]


def _submit_scripts(chain: Chain, seconds: float) -> None:
    """Submit the scripts that are due. Problems are also recorded for the check of that directory."""
    try:
        done = proc.run(_pass_argv(chain, "cron", "run"), limit=seconds)
    except CannotTell as error:
        _write_stderr(str(error))
        return
    for stream in (done.out, done.err):
        if stream.strip():
            _write_stderr(decode_lines(stream).strip())


def _did_run(out: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(out, type=dict[str, object]).get("ran"))
    except msgspec.DecodeError:
        return False


def _write_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
