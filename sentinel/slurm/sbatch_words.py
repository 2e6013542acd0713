"""Finds the script and a few options in the words of an sbatch command line, as sbatch(1) reads
them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile

from msgspec import Struct

from sentinel.core.wishes import script_head

SHORT_WITH_VALUE = frozenset("AaBbcCdDeFGiJLmMnNopqStwx")
"""Short options that take a value: in the same word, or the next one."""

LONG_WITHOUT_VALUE = frozenset(
    [
        "consolidate-segments",
        "contiguous",
        "exclusive",
        "get-user-env",
        "help",
        "hold",
        "ignore-pbs",
        "no-kill",
        "oom-kill-step",
        "nice",
        "no-requeue",
        "overcommit",
        "oversubscribe",
        "parsable",
        "propagate",
        "quiet",
        "reboot",
        "requeue",
        "resv-ports",
        "share",
        "spread-job",
        "spread-segments",
        "stepmgr",
        "test-only",
        "usage",
        "use-min-nodes",
        "verbose",
        "version",
        "wait",
    ]
)
"""Long options whose next word is not theirs. A value can only follow with `=`."""

_SHORT_NAMES = {"J": "job-name"}
_READ_NAMES = ("job-name", "comment", "wrap", "signal")
_MIN_ABBREVIATION = 3
_SCRIPT_MARK = "#SBATCH"
_NEXT_COMPONENT = ("hetjob", "packjob")
"""Alone in an `#SBATCH` line: the options of another component follow (packjob before 20.02)."""


class SbatchCall(Struct, frozen=True):
    """What a command line says, None where it does not."""

    script: str | None = None  # Path of the batch script; None: standard input, or --wrap.
    job_name: str | None = None
    comment: str | None = None
    wrap: str | None = None  # The command of --wrap.
    signal: str | None = None  # The signal before the time limit, as `B:USR1@120`.


def read_sbatch_call(words: Sequence[str]) -> SbatchCall:
    """The script and the options before it. The words behind the script are its own. Of a heterogeneous
    job (`-n1 : -n8 train.sh`) the first component's options count, since it has the script."""
    found: dict[str, str] = {}
    script, first = None, True
    rest = iter(words)
    for word in rest:
        if word == "--":
            script = next(rest, None)
            break
        if word == ":":
            first = False
        elif not word.startswith("-") or word == "-":
            script = word
            break
        elif option := _read_option(word, rest):
            found |= option if first else {}
    return SbatchCall(script, *(found.get(name) for name in _READ_NAMES))


def read_script_options(script: bytes) -> SbatchCall:
    """The options in the `#SBATCH` lines of a batch script, of a heterogeneous job those of its first
    component. A comment begins at a word with `#`."""
    found: dict[str, str] = {}
    for line in script_head(script):
        if not line.startswith((f"{_SCRIPT_MARK} ", f"{_SCRIPT_MARK}\t")):
            continue
        lexer = shlex.shlex(line[len(_SCRIPT_MARK) :], posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        rest = takewhile(lambda word: not word.startswith("#"), lexer)
        with suppress(ValueError):  # sbatch itself will report a quote that is not closed
            for word in rest:
                if word in _NEXT_COMPONENT:
                    return SbatchCall(None, *(found.get(name) for name in _READ_NAMES))
                found |= _read_option(word, rest)
    return SbatchCall(None, *(found.get(name) for name in _READ_NAMES))


def _read_option(word: str, rest: Iterator[str]) -> dict[str, str]:
    """The option's value by its long name, if it is one that is read. Takes the value from `rest` if
    it is a word of its own."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if not equals and name not in LONG_WITHOUT_VALUE:
            value = next(rest, "")
        full = next((n for n in _READ_NAMES if _is_abbreviation(name, n)), "")
        return {full: value} if full else {}
    letters = word[1:]
    for at, letter in enumerate(letters):
        if letter in SHORT_WITH_VALUE:
            value = letters[at + 1 :] or next(rest, "")
            return {_SHORT_NAMES[letter]: value} if letter in _SHORT_NAMES else {}
        if letter in "ks":  # an optional value stands in the same word
            break
    return {}


def _is_abbreviation(name: str, full: str) -> bool:
    """Whether getopt_long(3) takes `name` for this option."""
    return len(name) >= _MIN_ABBREVIATION and full.startswith(name)
