"""The commands of an alert for a terminal, with where and as whom they are run."""

from collections.abc import Callable

from sentinel.alerting.owners import OWNER_LABEL
from sentinel.core.command_places import comment_places, group_by_place
from sentinel.core.model import Alert
from sentinel.core.text import visible
from sentinel.homes import describe_setup_place


def place_commands(
    alert: Alert,
    mark: str = "",
    limit: int | None = None,
    *,
    acts: bool = False,
    named: Callable[[str], str] = str,
) -> tuple[str, ...]:
    """The commands that look, or those that act, at most `limit`, each after `mark`, and where and as
    whom they are run. Whoever reads this is where those of sentinel are run. `named` adds the
    configuration to a command."""
    host, owner = str(alert.values.get("host") or ""), alert.labels.get(OWNER_LABEL, "")
    kept = (alert.acts if acts else alert.commands)[:limit]
    commands = (named(visible(command)) for command in kept)
    places = group_by_place(commands, host, owner, describe_setup_place())
    return tuple(comment_places(places, mark))
