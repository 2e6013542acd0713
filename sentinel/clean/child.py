"""Runs the program of `sentinel.clean`, to list entries or to remove them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sentinel.clean.program import ENDLESS
from sentinel.clean.trackers import FOLLOWING
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.struct_types import decode_json
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.core.work import drop_progress_lines, list_child_variables, track_work
from sentinel.proc import TimedOut, bare_environment, run

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from sentinel.clean.program import main; sys.exit(main())"
)
LOOKING, REMOVING = 90.0, 100.0
"""Time limits in seconds for a list before a removal, and for a removal, which stops by itself a
little earlier."""


class SearchGivenUp(CannotTell):
    """The regular expression of the rules took too long."""


class RemovableStep(Struct, frozen=True):
    """A step that may be removed."""

    name: str  # name of its first entry, which stands for all of them
    bytes: int  # bytes that its removal frees
    entries: int  # files and directories
    at: float  # when anything in it was last changed (seconds UTC)
    identity: tuple[int, int]  # device and inode of the first entry
    parts: int = 1  # entries of the folder

    @property
    def step_label(self) -> str:
        """The name of the step's first entry, and how many more entries are deleted with it."""
        return f"{self.name} and {self.parts - 1} more of it" if self.parts > 1 else self.name


class RootListing(Struct, frozen=True):
    """The steps of a root that fit the rules, and those of them that may be removed."""

    entries: int  # number of steps; entries with the same number count once
    bytes: int
    removable: int
    removable_bytes: int
    going: tuple[RemovableStep, ...]  # the steps to remove, oldest first
    held: tuple[str, ...]  # steps that may be removed by the rules but cannot be, with the reasons
    # why complete steps are not recognised as complete, and what to do
    doubts: tuple[str, ...] = ()


class RemovalResult(Struct, frozen=True):
    """The result of a removal. `late`: steps that are left for the next removal, begun or not."""

    removed: int
    freed: int
    late: tuple[str, ...]
    errors: tuple[str, ...]


def list_removable(
    root: str, rules: str, limit: float, names: Sequence[str] | None = None
) -> RootListing:
    """List what may be removed from this root. If `names` are given, only these. It removes
    nothing. Raises CannotTell."""
    try:
        argv = program_argv("list", root, rules, names)
        with track_work("looking through", "entries", place=root) as tracked:
            env = {**bare_environment(), **list_child_variables()}
            done = run(argv, limit=limit, env=env, hear=tracked.hear_child)
    except TimedOut as late:
        text = f"{visible(root)}: not all of it was looked at within {duration_text(limit)}"
        raise TimedOut(text + _followed_pointer(late.err), late.stuck) from late
    if done.code:
        why = last_complaint(done.err) or f"exit code {done.code}"
        if done.code == ENDLESS:
            raise SearchGivenUp(f"{visible(root)}: {why}")
        raise CannotTell(why if why.startswith("/") else f"{visible(root)}: {why}")
    return decode_json(done.out, RootListing)


def run_removal(command: Sequence[str]) -> RemovalResult | str:
    """Run the command of `program_argv("remove", …)`. Returns a text if it did nothing. Raises
    CannotTell if that is not known."""
    done = run(command, limit=REMOVING, env=bare_environment())
    if not done.out:
        return last_complaint(done.err) or f"exit code {done.code}"
    return decode_json(done.out, RemovalResult)


def program_argv(
    mode: str, root: str, rules: str, names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The command. Its arguments contain everything that it needs."""
    listed = () if names is None else (msgspec.json.encode(list(names)).decode(),)
    start = (sys.executable, "-I", "-S", "-c", _START, _ROOT)
    return (*start, mode, root, rules, *listed)


def _followed_pointer(err: bytes) -> str:
    """The pointer that the program was following when it was ended, as part of a sentence. Empty if
    it followed none."""
    last = drop_progress_lines(decode_lines(err)).rpartition("\n")[2]
    pointer = last.removeprefix(FOLLOWING)
    return f": {shortened(visible(pointer), 500)} does not answer" if pointer != last else ""


def last_complaint(err: bytes) -> str:
    """The last line of standard error, for people."""
    return shortened(
        visible(drop_progress_lines(decode_lines(err)).strip().rpartition("\n")[2]), 500
    )
