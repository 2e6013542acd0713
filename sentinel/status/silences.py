"""Silences as they are shown: those in force, in words. Pure."""

from __future__ import annotations

from msgspec import to_builtins

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Orders, Silence
from sentinel.core.clock import SECOND, Instant
from sentinel.core.text import visible
from sentinel.status.types import SilenceFact


def select_manual_silences(orders: Orders, now: Instant) -> tuple[Silence, ...]:
    """Active silences that people have made. Those of the configuration are left out
    (core.windows)."""
    return tuple(s for s in orders.silences if s.starts <= now.wall < s.ends)


def make_silence_fact(silence: Silence) -> SilenceFact:
    """Its text inert."""
    return SilenceFact(
        id=silence.id,
        match=visible(describe_silence(silence)),
        ends=silence.ends / SECOND,
        who=visible(silence.who),
        reason=visible(silence.reason),
    )


def describe_silence(silence: Silence) -> str:
    """A description of the alerts that it silences."""
    nodes = "" if silence.nodes is None else f"{len(silence.nodes)} nodes"
    alerts = "" if silence.alerts is None else f"{len(silence.alerts)} alerts of then"
    return " ".join(filter(None, (describe_match(silence.match), nodes, alerts))) or "everything"


def describe_match(match: Match) -> str:
    """`check=scratch node=n1,n2`, similar to the command line. Empty if it matches everything."""
    given = to_builtins(match)
    labels, whole = given.pop("labels"), given.pop("matchers")
    words = {k: ",".join(v) if isinstance(v, list) else v for k, v in (given | labels).items()}
    return " ".join([*(_format_matcher(k, v) for k, v in words.items() if v), *whole])


def _format_matcher(name: str, word: str) -> str:
    return f"{name}{word}" if word.startswith(("=", "!=", "!~")) else f"{name}={word}"


def explain_unheard(*, held: str, pending: bool, fired: bool, muted: bool) -> str:
    """Why nobody was told of an alert. `held`: why no message is sent now. `muted`: by its owner's
    wish."""
    if held:
        return f"held back: {held}"
    if pending:
        return "because it has not fired yet"
    if not fired:
        return "because it never fired"
    if muted:
        return "because a wish of its owner says so, and nobody else is told of it"
    return "because no channel is routed to it"
