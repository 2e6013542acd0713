"""`clean`: named entries of one directory are removed, as far as retention lets them go."""

from __future__ import annotations

import json
from typing import ClassVar

from msgspec import Struct

from sentinel import proc
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.errors import CannotTell
from sentinel.core.limits import Limits
from sentinel.core.model import ActionRequest
from sentinel.core.ports import Hands, View
from sentinel.core.values import Duration, Rate, Share, size_text
from sentinel.proc.cleaning import REMOVING, Going, argv, complaint, listing

LOOKING = 30.0


class Clean(Struct, frozen=True):
    """Removes files and directories in the target, a directory, by the params `rules` and `names`.

    Every name has to be allowed by the rules when it is looked at and again when it goes; nothing
    outside the directory is touched and no link followed.
    """

    limits: ClassVar[Limits] = Limits(
        per_hour=20, share=Share(100), per_node=Rate("500 in 7d"), cooldown=Duration(0)
    )
    asks_anew: ClassVar[bool] = True
    apart: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: View) -> Look:
        """Done when none of the names is there as something that may go. Raises CannotTell."""
        names = set(_names(request))
        if not names:
            return Look(text="no names", not_ready="the param `names` names nothing to remove")
        found = listing(request.target, request.params.get("rules", ""), LOOKING)
        going = [entry for entry in found.going if entry.name in names]
        return Look(
            text=_described(going),
            done=not going,
            unneeded="" if going else "none of it may go, or is there, any more",
            mark=" ".join(sorted(f"{e.name}:{e.identity[0]}:{e.identity[1]}" for e in going)),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        rules = request.params.get("rules", "")
        return (argv("remove", request.target, rules, _names(request)),)

    def perform(self, request: ActionRequest, hands: Hands) -> Reply:
        """Remove; what was removed and freed is in the answer."""
        (command,) = self.commands(request)
        try:
            done = proc.run(command, limit=REMOVING)
        except CannotTell as error:
            return Reply(Answer.UNSURE, str(error))
        if done.code:
            said = complaint(done.err) or f"exit code {done.code}"
            return Reply(Answer.UNSURE if done.out else Answer.REFUSED, said)
        told = json.loads(done.out)
        return Reply(
            Answer.ACCEPTED, f"{told['removed']} removed, {size_text(told['freed'])} freed"
        )


def _names(request: ActionRequest) -> list[str]:
    try:
        found = json.loads(request.params.get("names", "[]"))
    except ValueError:
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _described(going: list[Going]) -> str:
    if not going:
        return "nothing of it left to remove"
    size = size_text(sum(e.bytes for e in going))
    return f"{len(going)} to remove, {size}: {going[0].name} … {going[-1].name}"
