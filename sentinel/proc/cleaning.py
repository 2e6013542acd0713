"""Asking the program of `sentinel.clean`, and letting it remove."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.proc import run

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from sentinel.clean.program import main; sys.exit(main())"
)
REMOVING = 100.0
"""Seconds that a removal has; the program stops by itself a little before."""


class Going(Struct, frozen=True):
    """An entry that may go: bytes that its end frees, and which very one it is."""

    name: str
    bytes: int
    entries: int
    at: float
    identity: tuple[int, int]
    complete: bool


class Listing(Struct, frozen=True):
    """What of a root fits the rules, and what of that may go, the oldest first."""

    entries: int
    bytes: int
    going: tuple[Going, ...]


def listing(root: str, rules: str, limit: float) -> Listing:
    """What may go from there; raises CannotTell. Removes nothing."""
    done = run(argv("list", root, rules), limit=limit)
    if done.code:
        raise CannotTell(f"{visible(root)}: {complaint(done.err) or f'exit code {done.code}'}")
    return msgspec.json.decode(done.out.decode("utf-8", "surrogateescape"), type=Listing)


def argv(mode: str, root: str, rules: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The command; its arguments say all that it does."""
    listed = (msgspec.json.encode(list(names)).decode(),) if mode == "remove" else ()
    start = (sys.executable, "-I", "-S", "-c", _START, _ROOT)
    return (*start, mode, root, rules, *listed)


def complaint(err: bytes) -> str:
    """The last line of what it said, to be shown."""
    return shortened(visible(os.fsdecode(err).strip().rpartition("\n")[2]), 500)
