"""What runs sentinel in place of cron, if something does."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sentinel.chain import status
from sentinel.chain.folder import NotInstalled
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.doctor import Item, bad, ok, unknown, warn
from sentinel.proc.mounts import holding
from sentinel.store.mounts import is_local

NAME = "chain"


def examine(folder: str, client: Any, spare: str = "") -> Iterator[Item]:
    """None where no chain, timer or entry was installed. `spare`: the directory of `spare_state:`."""
    try:
        facts = status.facts(folder, client)
    except NotInstalled:
        return
    except SentinelError as error:
        yield unknown(NAME, str(error), "sentinel cron status")
        return
    text = f"{facts['mode']} {facts['name']}, {facts['slots']['ran']} slots run"
    if facts["well"] and not facts["problems"]:
        yield ok(NAME, text)
    else:
        why = "; ".join(facts["problems"]) or "nothing will run by itself"
        yield bad(NAME, f"{text}; {why}", "sentinel cron ensure")
    if facts["mode"] in ("chain", "relay"):
        yield _second_place(spare, folder)


def _second_place(spare: str, folder: str) -> Item:
    """Whether all hosts on which a pass may run share one: what one keeps for itself, the next one
    does not know."""
    name, remedy = "second place", "set `spare_state:` to a directory that all hosts share, on "
    remedy += "another file system than the state"
    text = (
        "passes may run on several hosts; while the state cannot be written, an alert may come an "
        "hour late and be told every hour, under the same id"
    )
    if not spare:
        return warn(name, text, remedy)
    if is_local(spare):
        return warn(name, f"{text}: {visible(spare)} is on this host alone", remedy)
    if _same_mount(spare, folder):
        return warn(name, f"{text}: {visible(spare)} fails with the state", remedy)
    return ok(name, f"{visible(spare)}, which hosts may share")


def _same_mount(one: str, other: str) -> bool:
    """False too where it cannot be told."""
    with suppress(OSError, ValueError):
        return holding(one) == holding(other)
    return False
