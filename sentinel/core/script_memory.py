"""What is remembered of batch scripts that were read for wishes, and how it is told. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shorten_to_line, visible

SCRIPTS_KEY = "sentinel/scripts"
"""Under this name the state remembers which batch scripts were read."""

_MAX_JOBS_NAMED = 5
_MAX_TROUBLE_CHARS = 200


class KnownScript(Struct, frozen=True, array_like=True):
    """What was read of the batch script of a job."""

    digest: str  # Of its owner and command: an id may be given again.
    wish: str = ""  # Its wish, in the form of a comment; empty for none.
    trouble: str = ""  # Why its wish is not known.


class ScriptMemory(Struct, frozen=True):
    """What is remembered from pass to pass about the batch scripts of one cluster."""

    jobs: dict[str, KnownScript] = {}  # By the id of the job, or of its array.
    turns: dict[str, int] = {}  # The last pass in which a script of each user was read.
    passes: int = 0  # How many passes have read a script.
    waiting: int = 0  # Jobs whose script has not had its turn yet.
    forbidden: int = 0  # Jobs whose script this user may not read.
    trouble: str = ""  # Why the last pass could not go on.


class StoredScripts(Struct, frozen=True):
    """What is stored under SCRIPTS_KEY: by the name of the cluster, empty for that of this host."""

    clusters: dict[str, ScriptMemory] = {}


class ScriptCounts(Struct, frozen=True, kw_only=True):
    """Counts of batch scripts. `trouble`: why none is read just now."""

    read: int = 0
    waiting: int = 0
    unreadable: int = 0
    forbidden: int = 0
    trouble: str = ""


def count_scripts(stored: Mapping[str, Any]) -> ScriptCounts:
    """The counts of all clusters together."""
    memories = _decode_memories(stored)
    known = [one for memory in memories for one in memory.jobs.values()]
    return ScriptCounts(
        read=sum(not one.trouble for one in known),
        waiting=sum(memory.waiting for memory in memories),
        unreadable=sum(bool(one.trouble) for one in known),
        forbidden=sum(memory.forbidden for memory in memories),
        trouble=next((visible(m.trouble) for m in memories if m.trouble), ""),
    )


def describe_scripts(stored: Mapping[str, Any]) -> Iterator[str]:
    """What an operator has to know about wishes in scripts, in lines; none if all were read."""
    counts = count_scripts(stored)
    if counts.waiting:
        why = f": {counts.trouble}" if counts.trouble else ""
        words = "job is not watched yet" if counts.waiting == 1 else "jobs are not watched yet"
        yield shorten_to_line(
            f"{counts.waiting} {words} by the #SENTINEL line of the script, which waits to be read{why}",
            _MAX_TROUBLE_CHARS,
        )
    if counts.forbidden:
        yield (
            f"NOT watched: cannot read the scripts of {counts.forbidden} jobs of others: sentinel"
            " runs as no Slurm operator (docs/wishes.md)"
        )
    for trouble, names in _group_by_trouble(stored).items():
        more = f" and {len(names) - _MAX_JOBS_NAMED} more" if len(names) > _MAX_JOBS_NAMED else ""
        yield f"{visible(trouble)} (job {', '.join(names[:_MAX_JOBS_NAMED])}{more})"


def _group_by_trouble(stored: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for memory in _decode_memories(stored):
        for name, one in memory.jobs.items():
            if one.trouble:
                found.setdefault(_name_trouble(one), []).append(visible(name))
    return found


def _name_trouble(one: KnownScript) -> str:
    return shorten_to_line(one.trouble, _MAX_TROUBLE_CHARS)


def _decode_memories(stored: Mapping[str, Any]) -> list[ScriptMemory]:
    found = decode_memory(stored, StoredScripts) or StoredScripts()
    return list(found.clusters.values())
