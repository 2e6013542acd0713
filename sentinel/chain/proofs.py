"""Whether messages leave from where passes run: each channel sends one test message from there.

What works on a login node need not work on a compute node: a relay lets in only some hosts, a firewall
lets out only some. So the first pass of a chain tries each channel, once for each kind of host.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder
from sentinel.core.text import shortened, visible

AGAIN_S = 86_400.0
"""Seconds after which a channel that failed is tried again."""

MAX_TEXT_CHARS = 300
"""Characters of an answer that are kept."""

SILENT_KINDS = ("console", "file")
"""Kinds that reach nobody elsewhere: there is nothing to prove."""


class DeliveryProof(Struct, frozen=True, kw_only=True):
    """What became of one test message."""

    channel: str
    digest: str
    """Of the channel's settings: a changed channel is tried anew."""
    place: str
    """The kind of host: `partition batch`, or the name of a host."""
    host: str
    at: float
    """Seconds since 1970."""
    ok: bool
    text: str
    """What the server answered, or why it could not be sent."""


def channels_to_prove(settings: Any) -> dict[str, str]:
    """The channels that reach somebody, each with the digest of its settings."""
    found = (c for c in settings.channels if c.kind not in SILENT_KINDS)
    return {c.name: sha256(f"{c.kind} {c.plugin!r}".encode()).hexdigest()[:16] for c in found}


def kind_of_host(env: Mapping[str, str]) -> str:
    """The nodes of a partition are alike; outside Slurm each host is its own kind."""
    partition = env.get("SLURM_JOB_PARTITION", "")
    return f"partition {partition}" if partition else os.uname().nodename


def read_proofs(place: ChainFolder) -> tuple[DeliveryProof, ...]:
    """What is known; nothing where the file is not there, or is no list of proofs."""
    with suppress(OSError, msgspec.MsgspecError, RecursionError):
        return msgspec.json.decode(place.read_proofs(), type=tuple[DeliveryProof, ...])
    return ()


def unproven_channels(
    proofs: Sequence[DeliveryProof], channels: Mapping[str, str], place: str, now: float
) -> list[str]:
    """The channels of which nobody knows whether they work on this kind of host."""
    settled = {
        (p.channel, p.digest)
        for p in proofs
        if p.place == place and (p.ok or 0 <= now - p.at < AGAIN_S)
    }
    return [name for name, digest in channels.items() if (name, digest) not in settled]


def prove_channels(
    place: ChainFolder,
    channels: Mapping[str, str],
    send: Callable[[str], tuple[bool, str]],
    *,
    where: str,
    now: Callable[[], float] = time.time,
) -> list[DeliveryProof]:
    """Send what has not been tried here, and keep what became of it. `send`: a channel's name to
    whether it was taken, and the answer.

    An attempt is written down before it is made. Where that fails nothing is sent: else each pass
    would send the same test message again.
    """
    known = [p for p in read_proofs(place) if p.channel in channels]
    made: list[DeliveryProof] = []
    for name in unproven_channels(known, channels, where, now()):
        attempt = DeliveryProof(
            channel=name, digest=channels[name], place=where, host=os.uname().nodename,
            at=now(), ok=False, text="the pass ended before the answer came",
        )  # fmt: skip
        others = [p for p in known if (p.channel, p.place) != (name, where)]
        try:
            place.write_proofs(msgspec.json.encode([*others, attempt]))
        except OSError:
            return made
        ok, text = send(name)
        proof = replace(attempt, ok=ok, text=shortened(visible(text), MAX_TEXT_CHARS))
        known = [*others, proof]
        made.append(proof)
        with suppress(OSError):
            place.write_proofs(msgspec.json.encode(known))
    return made


def describe_problems(proofs: Sequence[DeliveryProof]) -> list[str]:
    """The channels that do not work where passes run, each with what to do."""
    return [
        f"{visible(p.channel)}: no message leaves {visible(p.host)} ({visible(p.place)}): {p.text}; "
        "alerts wait until you run on a login node: sentinel deliver"
        for p in proofs
        if not p.ok
    ]
