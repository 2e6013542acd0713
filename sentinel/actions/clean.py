"""`clean`: removes named entries of one directory, as far as the rules of retention allow."""

from __future__ import annotations

import json
from typing import ClassVar

from msgspec import MsgspecError

from sentinel.clean.child import (
    LOOKING,
    RemovableStep,
    RemovalResult,
    list_removable,
    program_argv,
    run_removal,
)
from sentinel.core.action_limits import CleanLimits, Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.ports import Hands, View
from sentinel.core.text import shortened, visible
from sentinel.core.values import size_text
from sentinel.plugin import Action


class CleanAction(Action, frozen=True):
    """Removes files and directories in the target, a directory, by the params `rules` and `names`.

    Every name has to be allowed by the rules when it is looked at and again when it goes; nothing
    outside the directory is touched and no link followed.
    """

    limits: ClassVar[Limits] = CleanLimits()
    asks_anew: ClassVar[bool] = True
    apart: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: View) -> Look:
        """Whether entries of those names may be removed now. If none may, the action is done.
        Raises CannotTell."""
        names = _get_entry_names(request)
        if not names:
            return Look(text="no names", not_ready="the param `names` names nothing to remove")
        going = list_removable(
            request.target, request.params.get("rules", ""), LOOKING, names
        ).going
        return Look(
            text=_describe_candidates(going),
            done=not going,
            unneeded="" if going else "nothing of it is left that may be removed",
            mark=" ".join(sorted(f"{e.name}:{e.identity[0]}:{e.identity[1]}" for e in going)),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        rules = request.params.get("rules", "")
        return (program_argv("remove", request.target, rules, _get_entry_names(request)),)

    def perform(self, request: ActionRequest, hands: Hands) -> Reply:
        """Remove the entries. The answer says what was removed and freed, and what was not."""
        (command,) = self.commands(request)
        try:
            told = run_removal(command)
        except CannotAsk:
            raise
        except (CannotTell, MsgspecError) as error:
            return Reply(Answer.UNSURE, str(error))
        if isinstance(told, str):
            return Reply(Answer.REFUSED, told)
        return Reply(Answer.REFUSED if told.errors else Answer.ACCEPTED, _describe_removal(told))


def _describe_removal(done: RemovalResult) -> str:
    parts = [f"{done.removed} removed, {size_text(done.freed)} freed"]
    if done.late:
        parts.append(f"no time was left for {len(done.late)}; the next run goes on")
    return shortened(visible("; ".join([*parts, *done.errors])), 1000)


def _get_entry_names(request: ActionRequest) -> list[str]:
    try:
        found = json.loads(request.params.get("names", "[]"))
    except ValueError:
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _describe_candidates(going: tuple[RemovableStep, ...]) -> str:
    if not going:
        return "nothing is left of it"
    size = size_text(sum(e.bytes for e in going))
    first, last = visible(going[0].name), visible(going[-1].name)
    return f"{len(going)} to remove, {size}: {first}{f' … {last}' if first != last else ''}"
