"""How long a partition lets a job run. Slurm itself takes a job that asks for more and lets it
wait for ever (slurm.conf(5), EnforcePartLimits)."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.core.errors import CannotTell
from sentinel.slurm.client import Client
from sentinel.slurm.words import nonce, seconds, text


def longest(client: Client, options: Sequence[str]) -> tuple[str, int] | None:
    """The partition that sbatch would take with these options, and its limit in seconds; None
    where it has none or it cannot be told. Raises CannotTell."""
    mark = nonce()
    out = client.ask("sinfo", "-h", "-a", "-o", f"%P{mark}%l{mark}")
    words = [text(word).strip("\n") for word in out.split(mark.encode())]
    limits = dict(zip(words[::2], words[1::2], strict=False))
    named = [word.partition("=")[2] for word in options if word.startswith("--partition=")]
    wanted = named[-1] if named else next((p[:-1] for p in limits if p.endswith("*")), "")
    limit = limits.get(wanted, limits.get(f"{wanted}*", ""))
    try:
        known = seconds(limit.replace("infinite", "UNLIMITED").encode())
    except ValueError as error:
        raise CannotTell(f"sinfo: {error}") from error
    return (wanted, known) if known else None
