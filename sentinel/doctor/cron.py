"""What runs sentinel in place of cron, if something does."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sentinel.chain import status
from sentinel.chain.folder import ChainFolder, ChainNotInstalled
from sentinel.chain.proofs import describe_problems, read_proofs
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
NO_WAY_OUT = "sentinel deliver, on a host from which messages leave; other ways: docs/cron.md"

NO_RUN_YET = "do what it says, then sentinel cron install: no pass was made yet"


def check_chain(folder: str, client: Any, spare: str = "") -> Iterator[DoctorItem]:
    """None where no chain, timer or entry was installed. `spare`: the directory of `spare_state:`."""
    try:
        facts = status.chain_facts(folder, client)
    except ChainNotInstalled:
        return
    except SentinelError as error:
        yield make_unknown_item(CHAIN_ITEM_NAME, str(error), "sentinel cron status")
        return
    text = f"{facts['mode']} {facts['name']}, passes: {facts['slots']['ran']} ran"
    if facts["well"] and not facts["problems"]:
        yield make_ok_item(CHAIN_ITEM_NAME, text)
    else:
        why = "; ".join(facts["problems"]) or "nothing will run by itself"
        undelivered = describe_problems(read_proofs(ChainFolder(folder)))
        goes_on = facts["well"] and facts["problems"] == undelivered
        remedy = NO_WAY_OUT if goes_on else "sentinel cron ensure"
        if facts["first_pass"]:  # `ensure` repairs none of it
            remedy = NO_RUN_YET
        yield make_failure_item(CHAIN_ITEM_NAME, f"{text}; {why}", remedy)
    if facts["mode"] in ("chain", "relay"):
        yield _check_spare_state(spare, folder)


def _check_spare_state(spare: str, folder: str) -> DoctorItem:
    """Whether all hosts on which a pass may run share one: what one keeps for itself, the next one
    does not know."""
    name, remedy = (
        "spare state",
        "optional: set `spare_state:` to a directory that all hosts share, on ",
    )
    remedy += "another file system than the state"
    text = "alerts may be up to an hour late, and repeated every hour, while the disk of the state fails"
    if not spare:
        return make_warning_item(name, text, remedy)
    if is_on_local_disk(spare):
        return make_warning_item(name, f"{text}: {visible(spare)} is on this host alone", remedy)
    if _is_same_mount(spare, folder):
        return make_warning_item(name, f"{text}: {visible(spare)} fails with the state", remedy)
    return make_ok_item(name, f"{visible(spare)}, which hosts may share")


def _is_same_mount(one: str, other: str) -> bool:
    """Whether both are on the same mount. False also if this cannot be determined."""
    with suppress(OSError, ValueError):
        return find_mount(one) == find_mount(other)
    return False
