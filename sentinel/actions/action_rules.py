"""The actions that the configuration allows, and the requester of an action."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sentinel.core.action_limits import ActionSettings, GuardSettings, Limits
from sentinel.core.errors import SentinelError
from sentinel.core.kinds import Action


class UnknownActionError(SentinelError):
    """A check asks for a kind of action that is not installed."""


class ActionRules(Struct, frozen=True, kw_only=True):
    """The actions that the configuration allows. `kinds` are the loaded actions by name."""

    kinds: Mapping[str, Action]
    actions: Mapping[str, ActionSettings] = {}  # Settings of each kind of action.
    guard: GuardSettings = GuardSettings()  # Settings for all actions.

    def get_kind(self, name: str) -> Action:
        """The loaded action with this name. Raises UnknownActionError."""
        kind = self.kinds.get(name)
        if kind is None:
            known = ", ".join(sorted(self.kinds))
            raise UnknownActionError(f"there is no action {name!r}; known: {known}")
        return kind

    def get_limits(self, name: str) -> Limits:
        """The configured limits of a loaded action. If none are configured, its own limits."""
        return self.actions.get(name, ActionSettings()).limits or self.kinds[name].limits


class ActionRequester(Struct, frozen=True, kw_only=True):
    """The check or person that requests an action.

    `consent`: no `enabled` is needed, because a person's command or the check's own settings switch
    the action on. `limits` are the check's own. `forced`: the caps do not apply.
    """

    name: str  # Name of the check or person.
    consent: bool = False
    limits: Limits | None = None
    forced: bool = False
    by_hand: bool = False  # Whether it is a person's command.
