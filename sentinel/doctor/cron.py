"""What runs sentinel in place of cron, if something does."""

from collections.abc import Iterator
from typing import Any

from sentinel.chain import status
from sentinel.chain.folder import NotInstalled
from sentinel.core.errors import SentinelError
from sentinel.doctor import Item, bad, ok, unknown

NAME = "chain"


def examine(folder: str, client: Any) -> Iterator[Item]:
    """One item; none where no chain, timer or entry was installed."""
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
