"""What people need beside the facts of an alert: how urgent it is, and the first step."""

from msgspec import Struct

from sentinel.core.text import hide_controls, shortened, visible


class Guidance(Struct, frozen=True, omit_defaults=True):
    """Three sentences about a trouble; one that is not known is empty.

    impact: What happens if nobody acts, and until when, as far as that is known from what was seen.
    todo: The first step of somebody who may do it.
    ask: What somebody without rights asks an administrator for. It goes on after "please", and
        names the node and the trouble: "reboot n1: a GPU has fallen off the bus (Xid 79)".
    """

    impact: str = ""
    todo: str = ""
    ask: str = ""

    def list_steps(self, place: str = "") -> tuple[str, ...]:
        """What to do, and the line that somebody without rights forwards; `place`: which cluster."""
        line = f"{place}: please {self.ask}" if place else f"Please {self.ask}"
        ask = f'No rights? Ask your administrator: "{line}"' if self.ask else ""
        return tuple(filter(None, (self.todo, ask)))

    def list_lines(self) -> tuple[str, ...]:
        """All of it, a line each."""
        impact = f"If nobody acts: {self.impact}" if self.impact else ""
        return tuple(filter(None, (impact, *self.list_steps())))


NO_GUIDANCE = Guidance()
UNSEEN_IMPACT = (
    "Whether something is wrong there is not known; trouble stays unnoticed until this check can see"
    " again."
)
"""The impact of what could not be seen."""


def avoid_node(node: str, *, hangs: bool = True) -> str:
    """The first step of users about a node that does harm to jobs; `hangs`: those there may hang."""
    if not hangs:
        return f"Submit jobs with `sbatch --exclude={node}`."
    return (
        f"If your job on {node} hangs: cancel it (`scancel JOB`), and submit it again with"
        f" `sbatch --exclude={node}`. Submit new jobs with it, too."
    )


DRAIN_STEP = (
    "drain the node (`sentinel nodes drain` below is a preview; it drains without --dry-run)"
)


def drain_node(then: str = "") -> str:
    """The step of administrators about a node that must take no new jobs; `list_drain_commands` has
    its commands. `then`: what to do once no job is left there."""
    after = f" When `squeue` shows no job there (cancel one that hangs), {then}." if then else ""
    return f"Administrators: {DRAIN_STEP}.{after}"


def list_drain_commands(node: str, reason: str) -> tuple[str, ...]:
    """What shows the jobs of a node, and the preview of a drain."""
    from shlex import quote  # few looks have a node to drain

    drain = (
        f"sentinel nodes drain {node} --reason {quote(shortened(visible(reason), 120))} --dry-run"
    )
    return hide_controls(f"squeue -w {node}"), drain
