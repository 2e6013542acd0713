"""Checks that messages can be sent from the hosts where passes run: each channel sends a test
message.

A channel that works on a login node may fail on a compute node: a mail relay or a firewall may
admit only some hosts. So the first pass of a chain tests each channel, once per kind of host.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder
from sentinel.core.digests import sha256
from sentinel.core.text import shortened, visible

AGAIN_S = 86_400.0
"""Seconds after which a channel that failed is tried again."""

MAX_TEXT_CHARS = 300
"""How many characters of an answer are stored."""

SILENT_KINDS = ("console", "file")
"""Kinds of channels that send nothing to another host, so they need no test."""


class DeliveryProof(Struct, frozen=True, kw_only=True):
    """The result of one test message."""

    channel: str
    digest: str
    """Digest of the channel's settings. A changed channel is tested again."""
    place: str
    """The kind of host: `partition batch`, or the name of a host."""
    host: str
    at: float
    """Seconds since 1970."""
    ok: bool
    text: str
    """The server's answer, or the reason why the message could not be sent."""


def channels_to_prove(settings: Any) -> dict[str, str]:
    """The channels that need a test, each with the digest of its settings."""
    found = (c for c in settings.channels if c.kind not in SILENT_KINDS)
    return {c.name: sha256(f"{c.kind} {c.plugin!r}".encode()).hexdigest()[:16] for c in found}


def kind_of_host(env: Mapping[str, str]) -> str:
    """The kind of this host. The nodes of a partition are alike. Outside Slurm each host is a kind
    of its own."""
    partition = env.get("SLURM_JOB_PARTITION", "")
    return f"partition {partition}" if partition else os.uname().nodename


def read_proofs(place: ChainFolder) -> tuple[DeliveryProof, ...]:
    """The stored results. Empty if the file does not exist, or is not a list of results."""
    with suppress(OSError, msgspec.MsgspecError, RecursionError):
        return msgspec.json.decode(place.read_proofs(), type=tuple[DeliveryProof, ...])
    return ()


def unproven_channels(
    proofs: Sequence[DeliveryProof], channels: Mapping[str, str], place: str, now: float
) -> list[str]:
    """The channels that have no result yet on this kind of host."""
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
    """Test the channels that have not been tested here, and store the results.

    `send` takes the name of a channel. It returns whether the message was accepted, and the answer.
    Each attempt is stored before it is made. If storing fails, nothing is sent. Otherwise each pass
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


def read_problems(place: ChainFolder, channels: Mapping[str, str]) -> list[str]:
    """Like `describe_problems`, for these channels with their current settings."""
    return describe_problems([p for p in read_proofs(place) if channels.get(p.channel) == p.digest])


def describe_problems(proofs: Sequence[DeliveryProof]) -> list[str]:
    """The channels that do not work where passes run, each with the advice what to do."""
    return [
        f"{visible(p.channel)}: no message leaves {visible(p.host)} ({visible(p.place)}): {p.text}; "
        "alerts wait until you run on a login node: sentinel deliver"
        for p in proofs
        if not p.ok
    ]
