"""The program: `list ROOT RULES [NAMES]` or `remove ROOT RULES NAMES`; prints one JSON object."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Sequence
from typing import cast

from sentinel.clean.rules import Rules
from sentinel.clean.steps import Step, describe_doubts, removable, still_removable
from sentinel.clean.trackers import Unclear
from sentinel.clean.tree import Refused, Root, said

WITHIN = 90.0
"""Seconds for removing; what is left then goes with the next request."""

MOST = 1000
"""Entries that are told one by one, the oldest; all of them are counted."""


PATIENCE, ENDLESS = 2.0, 3
"""Seconds for one name and the regular expression, and the exit code where that is not enough."""


class Ended:
    """The pattern of the rules, whose search is given up: it has the meaning of `re`, which lets
    signals in while it searches (Modules/_sre/sre_lib.h), and here is one thread only."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern, self.groups = pattern, pattern.groups
        signal.signal(signal.SIGALRM, _late)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As re.Pattern.fullmatch; raises Endless."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            return self._pattern.fullmatch(text)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class Endless(Exception):
    """The regular expression found no end."""


def _late(*_: object) -> None:
    raise Endless(f"the regular expression of `match` found no end within {PATIENCE:g} s")


def listed(root: Root, rules: Rules, names: Sequence[str] | None = None) -> dict[str, object]:
    """What fits, and which of it may go; with names only those of them."""
    steps, now = root.steps(rules), time.time()
    may = [*root.leftovers(rules, now), *removable(steps, rules, now)]
    going = [s for s in may if not s.held and (names is None or s.name in names)]
    held = [s for s in may if s.held]
    return {
        "entries": len(steps),
        "bytes": _size(steps),
        "removable": len(going),
        "removable_bytes": _size(going),
        "going": [_plain(s) for s in going[:MOST]],
        "held": [_complaint(s, s.held) for s in held[:MOST]],
        "doubts": describe_doubts(steps, rules),
    }


def removed(
    root: Root, rules: Rules, names: Sequence[str], within: float = WITHIN
) -> dict[str, object]:
    """Remove those names, and only while the rules still let them go."""
    deadline, now = time.monotonic() + within, time.time()
    free, refused = still_removable(names, root.steps(rules), rules, now)
    going = [*(s for s in root.leftovers(rules, now) if s.name in names), *free]
    done, late = list[Step](), list[str]()
    errors = [_complaint(s, s.held or "may not go any more") for s in refused]
    for step in going:
        try:
            if time.monotonic() > deadline:
                raise TimeoutError
            root.remove(step, rules, deadline)
            done.append(step)
        except TimeoutError:
            late.append(step.name)
        except (Refused, Unclear, Endless, OSError) as error:
            errors.append(_complaint(step, said(error)))
    return {"removed": len(done), "freed": _size(done), "late": late, "errors": errors}


def main() -> int:
    """0; 1 with one line on stderr where nothing could be seen or something stayed, 3 where the
    regular expression is why."""
    mode, path, rules, *names = sys.argv[1:]
    try:
        root, asked = Root(path), Rules.parse(rules)
        asked.pattern = cast("re.Pattern[str]", Ended(asked.pattern))
        named = json.loads(names[0]) if names else None
        told = removed(root, asked, named or ()) if mode == "remove" else listed(root, asked, named)
    except Endless as error:
        print(error, file=sys.stderr)  # noqa: T201
        return ENDLESS
    except Unclear as error:
        print(f"{error}; nothing goes until it can be followed{error.remedy}", file=sys.stderr)  # noqa: T201
        return 1
    except (Refused, OSError, ValueError, TypeError, re.error) as error:
        print(said(error), file=sys.stderr)  # noqa: T201
        return 1
    print(json.dumps(told), flush=True)  # noqa: T201
    if errors := told.get("errors"):
        print("; ".join(errors) if isinstance(errors, list) else errors, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _plain(step: Step) -> dict[str, object]:
    return {
        "name": step.name,
        "parts": len(step.parts),
        "bytes": step.size,
        "entries": step.entries,
        "at": step.at,
        "identity": list(step.parts[0].identity),
    }


def _complaint(step: Step, why: str) -> str:
    """A name that is in no encoding is shown, never taken for one."""
    return f"{step.name.encode('utf-8', 'backslashreplace').decode()!r}: {why}"


def _size(steps: Sequence[Step]) -> int:
    return sum(s.size for s in steps)
