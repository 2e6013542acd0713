"""Settings that limit how much sentinel may change."""

from typing import Annotated

from msgspec import Meta, Struct

from sentinel.core.values import Duration, Rate, Share


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Caps of one kind of action.

    per_hour: So many within an hour, over all targets.
    share: So much of one partition within an hour, one node at least.
    per_node: So often on one node.
    cooldown: So long a node is left alone after any action.
    """

    per_hour: Annotated[int, Meta(ge=0, le=1000)] = 10
    share: Share = Share(10)
    per_node: Rate = Rate("3 in 7d")
    cooldown: Duration = Duration(1800)


class CleanLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Caps of removing old files: a directory is no node, and has to be cleaned again and again."""

    per_hour: Annotated[int, Meta(ge=0, le=1000)] = 20
    share: Share = Share(100)
    per_node: Rate = Rate("500 in 7d")
    cooldown: Duration = Duration(0)


class BreakerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When to stop acting at all: more than `nodes`, or more than `share` of all nodes (at least
    one), left service `within` this time. It closes when nothing opened it for `cooldown`."""

    nodes: Annotated[int, Meta(ge=1, le=1000)] = 50
    share: Share = Share(20)
    within: Duration = Duration(600)
    cooldown: Duration = Duration(1800)


class ActionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of action: whether sentinel may do it without a person, and how often."""

    enabled: bool = False  # Whether sentinel may do it without a request from a person.
    limits: Limits | None = None  # How often it may be done. None: the action's own limits.


class GuardSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that hold for all actions.

    maintenance: True stops every action until it is false again.
    mark: True writes a mark into the Comment of a node before it is returned to service, if the
        Comment is empty. Sentinels that share no state then count together.
    """

    maintenance: bool = False
    mark: bool = False
    breaker: BreakerSettings = BreakerSettings()
    """When this many nodes have left service, every action stops."""
