"""Is a known lemon in this machine? Asked at its boot and before jobs; never the wrong way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from sentinel import proc
from sentinel.cli.gpu_lists import key_in
from sentinel.clock import SystemClock
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.gpu_ledger import Gpus
from sentinel.core.text import shortened, visible
from sentinel.gpu import shared_list, smi

LIMIT = 30.0
"""Seconds for nvidia-smi: a prolog holds up a job."""


class Said(Struct, frozen=True, kw_only=True):
    """One line. `known`: the question could be answered."""

    text: str
    lemons: tuple[str, ...] = ()
    known: bool = True


def look(path: str | None, key_file: str | None, ledger: Callable[[], Gpus | None]) -> Said:
    """By an exported list where one is given, else by the state."""
    try:
        known = _listed(path, key_in(key_file)) if path else _held(ledger())
        here = _uuids()
    except (SentinelError, OSError) as error:
        return Said(text=visible(f"cannot tell, and holds up nothing: {error}"), known=False)
    found = [(uuid, known[uuid]) for uuid in here if uuid in known]
    if not found:
        return Said(text=f"{len(here)} GPUs, no known lemon")
    first, why = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    text = f"lemon GPU {first}{more}: {why}; report it, and hold this machine until it is replaced"
    return Said(text=visible(shortened(text, 300)), lemons=tuple(uuid for uuid, _ in found))


def _uuids() -> list[str]:
    try:
        done = proc.run(["nvidia-smi", "-q", "-x"], limit=LIMIT)
    except (proc.NotFound, proc.TimedOut, proc.TooMuch) as error:
        raise CannotTell(f"nvidia-smi: {error}") from error
    page = smi.page(done.out.decode("utf-8", "replace"), done.code)
    if done.code and not page:
        raise CannotTell(f"nvidia-smi ended with exit code {done.code}")
    return [gpu.uuid for gpu in smi.parse(page).gpus]


def _listed(path: str, key: bytes) -> Mapping[str, str]:
    with open(path, "rb") as file:
        found = shared_list.read(file.read(), key)
    return {g.uuid: g.why or "listed" for g in found.gpus if g.judged == "lemon"}


def _held(gpus: Gpus | None) -> Mapping[str, str]:
    if gpus is None:
        raise CannotTell("there is no state here; give an exported list with --list")
    try:
        standings = gpus.standings(SystemClock().now())
        return {
            subject: _why(gpus, subject) or f"score {standing.score:.1f}"
            for subject, standing in standings.items()
            if standing.judged == "lemon"
        }
    finally:
        gpus.close()


def _why(gpus: Gpus, subject: str) -> str:
    entry = gpus.entry(subject)
    return entry.reason if entry else ""
