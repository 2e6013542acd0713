"""The program: `list ROOT RULES [NAMES]` or `remove ROOT RULES NAMES`; prints one JSON object."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Sequence
from typing import cast

from sentinel.clean.rules import RetentionRules
from sentinel.clean.steps import CheckpointStep, describe_doubts, removable_steps, still_removable
from sentinel.clean.trackers import UnclearPointer
from sentinel.clean.tree import CheckpointRoot, RemovalRefused, error_line

REMOVAL_LIMIT_S = 90.0
"""Seconds for removing; what is left then goes with the next request."""

MAX_LISTED = 1000
"""Entries that are told one by one, the oldest; all of them are counted."""


PATIENCE, ENDLESS = 2.0, 3
"""Seconds for one name and the regular expression, and the exit code where that is not enough."""


class BoundedPattern:
    """The pattern of the rules, whose search is given up: it has the meaning of `re`, which lets
    signals in while it searches (Modules/_sre/sre_lib.h), and here is one thread only."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern, self.groups = pattern, pattern.groups
        signal.signal(signal.SIGALRM, _raise_endless)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As re.Pattern.fullmatch; raises PatternTimedOut."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            return self._pattern.fullmatch(text)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class PatternTimedOut(Exception):
    """The regular expression found no end."""


def _raise_endless(*_: object) -> None:
    raise PatternTimedOut(f"the regular expression of `match` found no end within {PATIENCE:g} s")


def list_root(
    root: CheckpointRoot, rules: RetentionRules, names: Sequence[str] | None = None
) -> dict[str, object]:
    """What fits, and which of it may go; with names only those of them."""
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
    """Remove those names, and only while the rules still let them go."""
    deadline, now = time.monotonic() + within, time.time()
    free, refused = still_removable(names, root.find_steps(rules), rules, now)
    going = [*(s for s in root.find_leftovers(rules, now) if s.first_name in names), *free]
    done, late = list[CheckpointStep](), list[str]()
    errors = [_step_complaint(s, s.held or "may not go any more") for s in refused]
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


def main() -> int:
    """0; 1 with one line on stderr where nothing could be seen or something stayed, 3 where the
    regular expression is why."""
    mode, path, rules, *names = sys.argv[1:]
    try:
        root, asked = CheckpointRoot(path), RetentionRules.parse_rules(rules)
        asked.pattern = cast("re.Pattern[str]", BoundedPattern(asked.pattern))
        named = json.loads(names[0]) if names else None
        told = (
            remove_names(root, asked, named or ())
            if mode == "remove"
            else list_root(root, asked, named)
        )
    except PatternTimedOut as error:
        print(error, file=sys.stderr)  # noqa: T201
        return ENDLESS
    except UnclearPointer as error:
        print(f"{error}; nothing goes until it can be followed{error.remedy}", file=sys.stderr)  # noqa: T201
        return 1
    except (RemovalRefused, OSError, ValueError, TypeError, re.error) as error:
        print(error_line(error), file=sys.stderr)  # noqa: T201
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
    """A name that is in no encoding is shown, never taken for one."""
    return f"{step.first_name.encode('utf-8', 'backslashreplace').decode()!r}: {why}"


def _total_size(steps: Sequence[CheckpointStep]) -> int:
    return sum(s.freed_bytes for s in steps)
