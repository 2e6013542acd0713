"""The program: `list ROOT RULES` or `remove ROOT RULES NAMES`; prints one JSON object."""

from __future__ import annotations

import json
import re
import sys
import time

from sentinel.clean.rules import Entry, Rules, removable, still_removable
from sentinel.clean.tree import Refused, Root

WITHIN = 90.0
"""Seconds for removing; what is left then goes with the next request."""


def listed(root: Root, rules: Rules) -> dict[str, object]:
    """What fits, and which of it may go."""
    entries = root.entries(rules)
    going = removable(entries, rules, time.time())
    return {"entries": len(entries), "bytes": _size(entries), "going": [_plain(e) for e in going]}


def removed(root: Root, rules: Rules, names: list[str]) -> dict[str, object]:
    """Remove those names, and only while the rules still let them go."""
    deadline = time.monotonic() + WITHIN
    going, refused = still_removable(set(names), root.entries(rules), rules, time.time())
    done, errors = list[Entry](), [f"{name!r} may not go any more" for name in refused]
    try:
        for entry in going:
            try:
                root.remove(entry, deadline)
                done.append(entry)
            except (Refused, OSError) as error:
                errors.append(f"{entry.name!r}: {getattr(error, 'strerror', None) or error}")
            if time.monotonic() > deadline:
                break
        root.leftovers(deadline)
    except (Refused, OSError) as error:
        errors.append(str(error))
    return {"removed": len(done), "freed": _size(done), "errors": errors}


def main() -> int:
    """0; 1 with one line on stderr where nothing could be seen or something stayed."""
    mode, path, rules = sys.argv[1], sys.argv[2], sys.argv[3]
    try:
        root = Root(path)
        said = (
            listed(root, Rules.parse(rules))
            if mode == "list"
            else removed(root, Rules.parse(rules), json.loads(sys.argv[4]))
        )
    except (Refused, OSError, ValueError, TypeError, re.error) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    print(json.dumps(said), flush=True)  # noqa: T201
    if errors := said.get("errors"):
        print("; ".join(errors) if isinstance(errors, list) else errors, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _plain(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "bytes": entry.size,
        "entries": entry.entries,
        "at": entry.at,
        "identity": list(entry.identity),
        "complete": entry.complete,
    }


def _size(entries: list[Entry]) -> int:
    return sum(e.size for e in entries)
