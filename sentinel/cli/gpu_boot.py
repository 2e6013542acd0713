"""Finds known lemons in this machine, at its boot and before jobs. If that is not known, the node
stays in service."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from sentinel import proc
from sentinel.cli.gpu_lists import read_key_file
from sentinel.clock import SystemClock
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.gpu_ledger import GpuLedger
from sentinel.core.long_lines import decode_document
from sentinel.core.text import shortened, visible
from sentinel.gpu import shared_list, smi

NVIDIA_SMI_TIMEOUT_S = 30.0
"""Seconds for nvidia-smi: a prolog holds up a job."""


class BootCheckResult(Struct, frozen=True, kw_only=True):
    """The result in one line. `known`: whether it could be found out."""

    text: str
    lemons: tuple[str, ...] = ()
    known: bool = True


def find_local_lemons(
    path: str | None, key_file: str | None, ledger: Callable[[], GpuLedger | None]
) -> BootCheckResult:
    """Lemons in this machine, by an exported list if one is given, else by the state."""
    try:
        known = (
            _read_listed_lemons(path, read_key_file(key_file))
            if path
            else _read_ledger_lemons(ledger())
        )
        here = _list_local_uuids()
    except (SentinelError, OSError) as error:
        return BootCheckResult(
            text=visible(f"cannot tell, so it stops nothing: {error}"), known=False
        )
    found = [(uuid, known[uuid]) for uuid in here if uuid in known]
    if not found:
        return BootCheckResult(text=f"{len(here)} GPUs, no known lemon")
    first, why = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    text = f"lemon GPU {first}{more}: {why}; report it, and hold this machine until it is replaced"
    return BootCheckResult(
        text=visible(shortened(text, 300)), lemons=tuple(uuid for uuid, _ in found)
    )


def _list_local_uuids() -> list[str]:
    try:
        done = proc.run(["nvidia-smi", "-q", "-x"], limit=NVIDIA_SMI_TIMEOUT_S)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        raise CannotTell(f"nvidia-smi: {error}") from error
    page = smi.page(decode_document(done.out), done.code)
    if done.code and not page:
        raise CannotTell(f"nvidia-smi ended with exit code {done.code}")
    return [gpu.uuid for gpu in smi.parse(page).gpus]


def _read_listed_lemons(path: str, key: bytes) -> Mapping[str, str]:
    with open(path, "rb") as file:
        found = shared_list.read(file.read(), key)
    return {g.uuid: g.why or "listed" for g in found.gpus if g.judged == "lemon"}


def _read_ledger_lemons(gpus: GpuLedger | None) -> Mapping[str, str]:
    if gpus is None:
        raise CannotTell("there is no state here; give an exported list with --list")
    try:
        standings = gpus.read_standings(SystemClock().now())
        return {
            subject: _get_entry_reason(gpus, subject) or f"score {standing.score:.1f}"
            for subject, standing in standings.items()
            if standing.judged == "lemon"
        }
    finally:
        gpus.close()


def _get_entry_reason(gpus: GpuLedger, subject: str) -> str:
    entry = gpus.read_entry(subject)
    return entry.reason if entry else ""
