"""From what lies in the folder, and what lay there before, to a finding. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.checkpoint.files import Entry, Inside
from sentinel.core.checkpoints import Rule
from sentinel.core.clock import SECOND, Instant, elapsed, shifted
from sentinel.core.model import Status, Value
from sentinel.core.text import visible
from sentinel.core.values import duration_text, size_text


class Found(Struct, frozen=True, kw_only=True):
    """A complete checkpoint: its bytes, and since when it is complete.

    `changed`: of its own name, `written`: of the last of its files, by the file server's clock.
    """

    step: float
    size: int
    since: Instant
    changed: float = 0.0
    written: float = 0.0


class Begun(Struct, frozen=True, kw_only=True):
    """One that was not complete when it was last looked into; `since` when it last changed."""

    size: int
    changed: float
    since: Instant


class Sight(Struct, frozen=True, kw_only=True):
    """The folder now: complete ones by name, and the newest that is not complete, if it is the
    newest of all. `ran`: seconds the job runs, None without a job."""

    at: Instant
    complete: Mapping[str, Found]
    begun: str = ""
    why: str = ""
    ran: float | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    status: Status
    summary: str
    values: Mapping[str, Value]


def quiet_since(inside: Inside, before: Begun | None, now: Instant, *, first: bool) -> Instant:
    """When it was last seen to change.

    From one look to the next by this host's clock; at the `first` look the file server's clock
    is all there is, and what was changed in its future was changed just now.
    """
    if first:
        return shifted(now, -max(0.0, now.wall / SECOND - inside.changed))
    if before and (before.size, before.changed) == (inside.size, inside.changed):
        return before.since
    return now


def incomplete(
    entry: Entry, inside: Inside, rule: Rule, named: str, highest: float | None, quiet: float
) -> str:
    """Why it is not complete; empty when it is. `named` and `highest`: what the file `latest`
    holds, and the step that it names; `quiet`: seconds for which nothing in it has changed."""
    if not inside.marker:
        return f"it has no {visible(rule.marker)}"
    if rule.latest and (highest is None or entry.step > highest):
        return f"{visible(rule.latest)} names {visible(named) or 'none'}"
    if inside.size < max(1, rule.min_size):
        return f"it has {size_text(inside.size)}"
    if not (rule.marker or rule.latest) and quiet < rule.settled:
        return f"it changed {duration_text(quiet)} ago"
    return ""


def highest_named(named: str, entries: Sequence[Entry]) -> float | None:
    """The step that `latest` means: the number itself, or that of the entry of that name."""
    by_name = {e.name: e.step for e in entries}
    if named in by_name:
        return by_name[named]
    return float(named) if named.isdigit() else None


def newest(complete: Mapping[str, Found], now: Instant) -> tuple[str, Found] | None:
    """The last that became complete: after a fall back to an earlier step, higher ones are old."""
    if not complete:
        return None
    return min(complete.items(), key=lambda pair: (elapsed(pair[1].since, now), -pair[1].step))


def at_risk(complete: Mapping[str, Found], now: Instant, ran: float | None) -> float | None:
    """Seconds of work that would be lost now; None where neither is known.

    What a job has not done it cannot lose: after a start it is at most as long as it runs.
    """
    last = newest(complete, now)
    ages = [] if last is None else [elapsed(last[1].since, now)]
    ages += [] if ran is None else [ran]
    return min(ages, default=None)


def risk_text(complete: Mapping[str, Found], now: Instant, ran: float | None) -> str:
    """`2h 14m of work since checkpoint global_step1200 are at risk`, for any message."""
    seconds, last = at_risk(complete, now, ran), newest(complete, now)
    if seconds is None:
        return "no complete checkpoint is known"
    work = f"{duration_text(seconds)} of work"
    if last is None:
        return f"{work} at risk: there is no complete checkpoint"
    return f"{work} since checkpoint {visible(last[0])} at risk"


def judge(sight: Sight, late_after: float, fewest: int) -> Verdict:
    """Late while work is at risk for longer than that; few is a warning."""
    risk = at_risk(sight.complete, sight.at, sight.ran)
    late = risk is not None and risk > late_after
    none = not sight.complete
    few = len(sight.complete) < fewest
    status = Status.OK
    if few or (none and sight.ran is None):
        status = Status.WARNING
    if late:
        status = Status.CRITICAL
    return Verdict(
        status=status, summary=_summary(sight, late_after, fewest, late), values=_values(sight)
    )


def _summary(sight: Sight, late_after: float, fewest: int, late: bool) -> str:
    last = newest(sight.complete, sight.at)
    parts = [_newest(last, sight.at) if last else "no complete checkpoint"]
    if late:
        parts.append(
            f"{risk_text(sight.complete, sight.at, sight.ran)}, late after {duration_text(late_after)}"
        )
    elif sight.ran is not None and last is None:
        parts.append(f"the job has run for {duration_text(sight.ran)}")
    if len(sight.complete) < fewest:
        parts.append(f"{len(sight.complete)} complete, at least {fewest} expected")
    if sight.begun:
        parts.append(f"{visible(sight.begun)} is not complete: {sight.why}")
    return "; ".join(parts)


def _newest(last: tuple[str, Found], now: Instant) -> str:
    name, one = last
    age = duration_text(elapsed(one.since, now))
    return f"newest {visible(name)}, {size_text(one.size)}, complete {age} ago"


def _values(sight: Sight) -> dict[str, Value]:
    last = newest(sight.complete, sight.at)
    risk = at_risk(sight.complete, sight.at, sight.ran)
    return {
        "age_seconds": round(elapsed(last[1].since, sight.at), 1) if last else None,
        "at_risk_seconds": None if risk is None else round(risk, 1),
        "size_bytes": last[1].size if last else None,
        "complete": len(sight.complete),
        "step": last[1].step if last else None,
    }
