"""The reasons to hold back a notification, and the groups of outbox rows that are sent as one
message."""

from enum import Enum

from msgspec import Struct

from sentinel.core.clock import Instant


class HeldKind(Enum):
    """Kinds of reasons why nobody is notified of an alert now."""

    SILENCED = "silenced"
    MUTED = "muted"  # by an `inhibit` rule in the configuration
    EXPLAINED = "explained"  # the notification about its cause names it
    CHECKS_AT_WORK = "checks_at_work"  # a check that still runs may find its cause
    # all alerts of the first pass with a new state are sent as one message
    FIRST_LOOK = "first_look"
    SETTLING = "settling"  # its cause is over, and no check has run since then


class Held(Struct, frozen=True):
    """Why nobody is notified of an alert now. The words for people are made from this."""

    kind: HeldKind
    cause: str = ""
    """Who silenced it and why, the alert that mutes or explains it, or the checks that it waits
    for."""
    until: Instant | None = None
    """The end of a silence."""


class MessageGroup(Struct, frozen=True):
    """The common properties of outbox rows that are sent as one message."""

    route: str = ""
    """The values of the route's `group_by`, if rows are grouped by it."""
    incident: str = ""
    """The id of the incident, if it has several alerts."""
    first_look: bool = False
    owner: str | None = None
    """The only user who gets it. None on a channel that sends everything to the same people."""

    @property
    def is_alone(self) -> bool:
        """Whether the row is a separate message."""
        return self == _ALONE


_ALONE = MessageGroup()
