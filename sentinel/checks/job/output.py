"""Where the job that is gone wrote its output, and what of its end people are shown."""

import re
from collections.abc import Sequence
from typing import Any

from sentinel.checks.job.memory import Gone, Seen
from sentinel.slurm.filename_patterns import output_of
from sentinel.slurm.model import Job

MANY = 5
"""Lines of one kind, from which on they are followers: one rank fails, and thousands say so."""

_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+")
_TROUBLE = re.compile(
    r"(?i)error|exception|traceback|fatal|abort|killed|fail|signal|oom|out of memory"
)
_CAUSE = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Interrupt)\b|\bCUDA error|Segmentation fault|Bus error|"
    r"oom[-_ ]kill|Out of memory|^Killed|slurmstepd: error|\bXid\b|[Nn]o space left"
)
_STEP = re.compile(
    r"(?i)\b((?:global[_ ])?(?:step|iteration|iter|batch)s?)\b['\"]?[ =:#(\[]{1,8}(\d[\d,]*)"
)


def condensed(lines: Sequence[str]) -> list[str]:
    """Without followers. Of many lines that differ in nothing but numbers: of a trouble the first one
    and how many more there were, of anything else the last ones."""
    kinds: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        kinds.setdefault(_VARIES.sub("0", line), []).append(at)
    kept: dict[int, str] = {}
    for places in kinds.values():
        kept |= {at: lines[at] for at in places[-MANY:]}
        first = places[0]
        if len(places) > MANY and _TROUBLE.search(lines[first]):
            for at in places[-MANY:]:
                del kept[at]
            kept[first] = f"{lines[first]}   (and {len(places) - 1} more like it)"
    return [kept[at] for at in sorted(kept)]


def cause(text: str) -> str:
    """The first line that names an error, by which the others followed; empty where none does."""
    found = (line.strip() for line in text.splitlines() if _CAUSE.search(line))
    return next(found, "")


def last_step(text: str) -> str:
    """The last step that the lines tell, such as `iteration 79400`; empty where they tell none."""
    found = [*_STEP.finditer(text)]
    return f"{found[-1][1].lower()} {found[-1][2]}" if found else ""


def stdout(gone: Gone) -> str:
    """The absolute path of its standard output, or "" where it is not known."""
    how = gone.how or gone.seen.how
    told = (gone.end.stdout if gone.end else "") or (how.stdout if how else "")
    return output_of(told, _job(gone.seen)) if told else ""


def _job(seen: Seen) -> Job:
    """What a file name can depend on; the rest is not remembered, and no symbol stands for it."""
    known = {f: getattr(seen, f) for f in Job.__struct_fields__ if f in Seen.__struct_fields__}
    gone: dict[str, Any] = dict.fromkeys(("submitted", "ends", "time_limit"))
    return Job(**known, **gone, node_count=0, dependency="")
