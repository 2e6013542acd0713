"""What runs sentinel in place of cron, if something does."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sentinel.chain import status
from sentinel.chain.folder import ChainNotInstalled
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.doctor import (
    DoctorItem,
    make_failure_item,
    make_ok_item,
    make_unknown_item,
    make_warning_item,
)
from sentinel.proc.mounts import find_mount
from sentinel.store.mounts import is_on_local_disk

CHAIN_ITEM_NAME = "chain"


def check_chain(folder: str, client: Any, spare: str = "") -> Iterator[DoctorItem]:
    """None where no chain, timer or entry was installed. `spare`: the directory of `spare_state:`."""
    try:
        facts = status.chain_facts(folder, client)
    except ChainNotInstalled:
        return
    except SentinelError as error:
        yield make_unknown_item(CHAIN_ITEM_NAME, str(error), "sentinel cron status")
        return
    text = f"{facts['mode']} {facts['name']}, {facts['slots']['ran']} slots run"
    if facts["well"] and not facts["problems"]:
        yield make_ok_item(CHAIN_ITEM_NAME, text)
    else:
        why = "; ".join(facts["problems"]) or "nothing will run by itself"
        yield make_failure_item(CHAIN_ITEM_NAME, f"{text}; {why}", "sentinel cron ensure")
    if facts["mode"] in ("chain", "relay"):
        yield _check_spare_state(spare, folder)


def _check_spare_state(spare: str, folder: str) -> DoctorItem:
    """Whether all hosts on which a pass may run share one: what one keeps for itself, the next one
    does not know."""
    name, remedy = "second place", "set `spare_state:` to a directory that all hosts share, on "
    remedy += "another file system than the state"
    text = (
        "passes may run on several hosts; while the state cannot be written, an alert may come an "
        "hour late and be told every hour, under the same id"
    )
    if not spare:
        return make_warning_item(name, text, remedy)
    if is_on_local_disk(spare):
        return make_warning_item(name, f"{text}: {visible(spare)} is on this host alone", remedy)
    if _is_same_mount(spare, folder):
        return make_warning_item(name, f"{text}: {visible(spare)} fails with the state", remedy)
    return make_ok_item(name, f"{visible(spare)}, which hosts may share")


def _is_same_mount(one: str, other: str) -> bool:
    """False too where it cannot be told."""
    with suppress(OSError, ValueError):
        return find_mount(one) == find_mount(other)
    return False
