"""Finds the known word that was probably meant."""

from collections.abc import Iterable

from sentinel.core.lazy_pattern import lazy_pattern

_WORD = lazy_pattern(r"[\w-]+")
_SHORTEST_HIDDEN = 4
"""Blotting out shorter secrets would blot out half of every sentence and tell them by that."""


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The known word nearest to this one, or an empty string.

    difflib's own 0.6 takes `remote` for `routes`; 0.7 would leave `evn` without its `env`.
    """
    from difflib import get_close_matches

    lower = {k.lower(): k for k in sorted(known, reverse=True)}
    cutoff = 0.6 if len(word) < 5 else 0.7
    close = get_close_matches(word.lower()[:100], lower, n=1, cutoff=cutoff)
    return lower[close[0]] if close else ""


def did_you_mean(word: str, known: Iterable[str], label: str = "known") -> str:
    """` (did you mean 'fs'?)`, or the list of what there is where nothing is near."""
    names = sorted(known)
    close = nearest_word(word, names)
    if close:
        return f" (did you mean '{close}'?)"
    return f"; {label}: {', '.join(names)}" if names else ""
