"""The program: `list ROOT RULES [NAMES]` or `remove ROOT RULES NAMES`. It prints one JSON object."""

from __future__ import annotations

import codecs
import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from sentinel.clean.root_path import RemovalRefused
from sentinel.clean.rules import RetentionRules
from sentinel.clean.steps import CheckpointStep, describe_doubts, removable_steps, still_removable
from sentinel.clean.trackers import UnclearPointer
from sentinel.clean.tree import CheckpointRoot, error_line
from sentinel.user_files.identity import (
    EVERYBODY,
    OpenDenied,
    UserIdentity,
    acting_as,
    changer_of,
    find_uid,
)

REMOVAL_LIMIT_S = 90.0
"""How many seconds one removal may take. The entries that are left are removed at the next
request."""

MAX_LISTED = 1000
"""How many entries are listed, the oldest first. All of them are counted."""


MEMORY_BYTES = 2**32
"""All the memory that it may have. A small file can name so many steps that there is none left."""

PATIENCE, ENDLESS = 2.0, 3
"""Seconds for the regular expression and one name, and the exit code if that is not enough."""


class BoundedPattern:
    """The pattern of the rules, with a time limit for each search. `re` lets signals in while it
    searches (Modules/_sre/sre_lib.h), and this program has one thread only."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern, self.groups = pattern, pattern.groups
        signal.signal(signal.SIGALRM, _raise_endless)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Like re.Pattern.fullmatch, but raises PatternTimedOut."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            return self._pattern.fullmatch(text)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class PatternTimedOut(Exception):
    """The search of the regular expression took too long."""


def _raise_endless(*_: object) -> None:
    raise PatternTimedOut(f"the regular expression of `match` found no end within {PATIENCE:g} s")


def list_root(
    root: CheckpointRoot, rules: RetentionRules, names: Sequence[str] | None = None
) -> dict[str, object]:
    """The steps that fit the rules, and those that may be removed. With `names`, only these may be
    removed."""
    steps, now = root.find_steps(rules), time.time()
    may = [*root.find_leftovers(rules, now), *removable_steps(steps, rules, now)]
    going = [s for s in may if not s.held and (names is None or s.first_name in names)]
    held = [s for s in may if s.held]
    return {
        "entries": len(steps),
        "bytes": _total_size(steps),
        "removable": len(going),
        "removable_bytes": _total_size(going),
        "going": [_step_fields(s) for s in going[:MAX_LISTED]],
        "held": [_step_complaint(s, s.held) for s in held[:MAX_LISTED]],
        "doubts": describe_doubts(steps, rules),
    }


def remove_names(
    root: CheckpointRoot,
    rules: RetentionRules,
    names: Sequence[str],
    within: float = REMOVAL_LIMIT_S,
) -> dict[str, object]:
    """Remove the steps of these names that the rules still allow to be removed."""
    deadline, now = time.monotonic() + within, time.time()
    free, refused = still_removable(names, root.find_steps(rules), rules, now)
    leftovers = [s for s in root.find_leftovers(rules, now) if s.first_name in names]
    going = [*(s for s in leftovers if not s.held), *free]
    done, late = list[CheckpointStep](), list[str]()
    errors = [_step_complaint(s, s.held or "may not be removed any more") for s in refused]
    for step in going:
        try:
            if time.monotonic() > deadline:
                raise TimeoutError
            root.remove_step(step, rules, deadline)
            done.append(step)
        except TimeoutError:
            late.append(step.first_name)
        except (RemovalRefused, UnclearPointer, PatternTimedOut, OSError) as error:
            errors.append(_step_complaint(step, error_line(error)))
    return {"removed": len(done), "freed": _total_size(done), "late": late, "errors": errors}


def find_root_owner(path: str) -> UserIdentity | None:
    """The user whose rights are enough, if root runs this: the only one who could change where the
    path leads. So links and pointers of that user cannot lead to places that this user may not see.
    None means the rights of this process. Raises OpenDenied or OSError."""
    if os.geteuid() != 0:
        return None
    try:
        changer = changer_of(path, {0})
    # part of the path is missing; the call that opens it reports this better
    except FileNotFoundError:
        return None
    # Load the module before this process changes its user: the new user may not be able to read it.
    codecs.lookup("ascii")
    return None if changer is None or changer == EVERYBODY else find_uid(changer)


def run_mode(
    mode: str, root: CheckpointRoot, rules: RetentionRules, names: Sequence[str] | None
) -> dict[str, object]:
    """List or remove."""
    if mode == "remove":
        return remove_names(root, rules, names or ())
    return list_root(root, rules, names)


def main() -> int:
    """Run the program. Returns 0. Returns 1 after one line on standard error if nothing could be
    seen or something was not removed. Returns 3 if the regular expression took too long."""
    mode, path, rules, *names = sys.argv[1:]
    with suppress(ValueError):  # the limit of who runs this is lower already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        asked = RetentionRules.parse_rules(rules)
        asked.pattern = cast("re.Pattern[str]", BoundedPattern(asked.pattern))
        with acting_as(find_root_owner(path)):
            told = run_mode(
                mode, CheckpointRoot(path), asked, json.loads(names[0]) if names else None
            )
    except PatternTimedOut as error:
        print(error, file=sys.stderr)  # noqa: T201
        return ENDLESS
    except UnclearPointer as error:
        print(  # noqa: T201
            f"{error}; nothing is removed until it can be followed{error.remedy}", file=sys.stderr
        )
        return 1
    except (
        RemovalRefused, OpenDenied, OSError, ValueError, TypeError, re.error, MemoryError,
    ) as error:  # fmt: skip
        print(error_line(error) or "it takes more memory than is allowed", file=sys.stderr)  # noqa: T201
        return 1
    print(json.dumps(told), flush=True)  # noqa: T201
    if errors := told.get("errors"):
        print("; ".join(errors) if isinstance(errors, list) else errors, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _step_fields(step: CheckpointStep) -> dict[str, object]:
    return {
        "name": step.first_name,
        "parts": len(step.parts),
        "bytes": step.freed_bytes,
        "entries": step.entry_count,
        "at": step.at,
        "identity": list(step.parts[0].identity),
    }


def _step_complaint(step: CheckpointStep, why: str) -> str:
    """A step and what is wrong with it. Bytes of its name that are not UTF-8 are shown escaped."""
    return f"{step.first_name.encode('utf-8', 'backslashreplace').decode()!r}: {why}"


def _total_size(steps: Sequence[CheckpointStep]) -> int:
    return sum(s.freed_bytes for s in steps)
