"""The commands in messages that change something, made in one place. Whoever reads a message may paste
them: root runs nothing of a user's by one, and writes to no file that a user has named. Pure."""

from __future__ import annotations

from shlex import quote

from msgspec import Struct

from sentinel.core.command_places import OWNER_TEST

ADMINISTRATOR = ""
"""The owner of a command that acts on the cluster. It names no file of a user."""


class ActingCommand(Struct, frozen=True, kw_only=True):
    """A command that acts in the name of `owner`. If anybody else pastes it, it does nothing.

    A command as text is refused (TypeError): its words are given one by one, and quoted here.
    """

    owner: str  # A user name, or ADMINISTRATOR.
    argv: tuple[str, ...]
    folder: str = ""  # Where it is run. Empty: anywhere.
    script_of: str = ""  # The job whose script Slurm gives back. It goes into a new private file.
    note: str = ""  # A remark behind it.

    def __post_init__(self) -> None:
        if not isinstance(self.argv, tuple) or not all(isinstance(one, str) for one in self.argv):
            raise TypeError("the words of a command are a tuple of strings")

    def render(self) -> str:
        """The line for a shell."""
        steps = [f"{OWNER_TEST}{quote(self.owner)} ]"] if self.owner else []
        steps += [f"cd {quote(self.folder)}"] if self.folder else []
        words = " ".join(map(quote, self.argv))
        if self.script_of:
            # Not a name in a user's folder, where a link may wait. `-` is standard output.
            steps += [
                "script=$(mktemp)",
                f'scontrol write batch_script {quote(self.script_of)} - >"$script"',
            ]
            words += ' "$script"'
        return " && ".join([*steps, words]) + (f"  # {self.note}" if self.note else "")
