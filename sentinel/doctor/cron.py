"""What runs sentinel in place of cron, if something does."""

from collections.abc import Iterator
from typing import Any

from sentinel.chain import status
from sentinel.chain.folder import NotInstalled
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.doctor import Item, bad, ok, unknown, warn
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
        yield _second_place(spare)


def _second_place(spare: str) -> Item:
    """Whether all hosts on which a pass may run share one: what one keeps for itself, the next one
    does not know."""
    name, remedy = "second place", "set `spare_state:` to a directory that all hosts share, on "
    remedy += "another file system than the state"
    text = (
        "passes may run on several hosts; while the state cannot be written, each may tell an alert"
    )
    if not spare:
        return warn(name, f"{text} once more, under the same id", remedy)
    if is_local(spare):
        return warn(name, f"{text} once more: {visible(spare)} is on this host alone", remedy)
    return ok(name, f"{visible(spare)}, which hosts may share")
