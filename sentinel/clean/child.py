"""Asking the program of `sentinel.clean`, and letting it remove."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sentinel.clean.program import ENDLESS
from sentinel.clean.trackers import FOLLOWING
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.proc import TimedOut, run

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from sentinel.clean.program import main; sys.exit(main())"
)
LOOKING, REMOVING = 90.0, 100.0
"""Seconds that a look before a removal has, and a removal; it stops by itself a little before."""


class SearchGivenUp(CannotTell):
    """The regular expression of the rules was given up."""


class RemovableStep(Struct, frozen=True):
    """A step that may go."""

    name: str  # of its first entry; stands for all of them
    bytes: int  # that its end frees
    entries: int  # files and directories
    at: float  # when anything in it was last changed (s UTC)
    identity: tuple[int, int]  # device and inode of the first entry
    parts: int = 1  # entries of the folder

    @property
    def step_label(self) -> str:
        """Its name, and how many others go with it."""
        return f"{self.name} and {self.parts - 1} more of it" if self.parts > 1 else self.name


class RootListing(Struct, frozen=True):
    """What of a root fits the rules, and what of that may go."""

    entries: int  # steps: what has one number counts once
    bytes: int
    removable: int
    removable_bytes: int
    going: tuple[RemovableStep, ...]  # the oldest, one by one
    held: tuple[str, ...]  # what may go and cannot be removed, with why
    doubts: tuple[str, ...] = ()  # why complete ones are not known as such, with the remedy


class RemovalResult(Struct, frozen=True):
    """What became of a request. `late`: begun or not begun, and left for the next one."""

    removed: int
    freed: int
    late: tuple[str, ...]
    errors: tuple[str, ...]


def list_removable(
    root: str, rules: str, limit: float, names: Sequence[str] | None = None
) -> RootListing:
    """What may go from there, of `names` alone where some are given; raises CannotTell. Removes
    nothing."""
    try:
        done = run(program_argv("list", root, rules, names), limit=limit)
    except TimedOut as late:
        text = f"{visible(root)}: not all of it was looked at within {duration_text(limit)}"
        raise TimedOut(text + _followed_pointer(late.err), late.stuck) from late
    if done.code:
        why = last_complaint(done.err) or f"exit code {done.code}"
        if done.code == ENDLESS:
            raise SearchGivenUp(f"{visible(root)}: {why}")
        raise CannotTell(why if why.startswith("/") else f"{visible(root)}: {why}")
    return msgspec.json.decode(done.out, type=RootListing)


def run_removal(command: Sequence[str]) -> RemovalResult | str:
    """Run what `argv("remove", …)` gave; a text where it did nothing. Raises CannotTell where that
    is not known."""
    done = run(command, limit=REMOVING)
    if not done.out:
        return last_complaint(done.err) or f"exit code {done.code}"
    return msgspec.json.decode(done.out, type=RemovalResult)


def program_argv(
    mode: str, root: str, rules: str, names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The command; its arguments say all that it does."""
    listed = () if names is None else (msgspec.json.encode(list(names)).decode(),)
    start = (sys.executable, "-I", "-S", "-c", _START, _ROOT)
    return (*start, mode, root, rules, *listed)


def _followed_pointer(err: bytes) -> str:
    """Which pointer it was following when it was ended, if it was."""
    last = os.fsdecode(err).rstrip("\n").rpartition("\n")[2]
    pointer = last.removeprefix(FOLLOWING)
    return f": {shortened(visible(pointer), 500)} does not answer" if pointer != last else ""


def last_complaint(err: bytes) -> str:
    """The last line of what it said, to be shown."""
    return shortened(visible(os.fsdecode(err).strip().rpartition("\n")[2]), 500)
