"""Finds the script and a few options in the words of an sbatch command line, as sbatch(1) reads
them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, takewhile

from msgspec import Struct

from sentinel.core.wishes import script_head

SHORT_WITH_VALUE = frozenset("AaBbcCdDeFGiJLmMnNopqStwx")
"""Short options that take a value: in the same word, or the next one."""

LONG_WITHOUT_VALUE = frozenset(
    [
        "consolidate-segments",
        "contiguous",
        "exclusive",
        "external",
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

_READ_NAMES = ("job-name", "comment", "wrap", "signal", "clusters")
_SHORT_NAMES = {
    "J": "job-name",
    "H": "hold",
    "W": "wait",
    "b": "begin",
    "d": "dependency",
    "w": "nodelist",
    "F": "nodefile",
    "x": "exclude",
    "a": "array",
    "D": "chdir",
    "M": "clusters",
}
# a whole name stands before those of which it is the beginning
_LONG_NAMES = (
    *(*_READ_NAMES, *_SHORT_NAMES.values(), "deadline", "test-only"),
    *("export", "export-file", "bb", "bbf"),
)
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
    clusters: str | None = None  # Where it is to run, as `east,west`.


class SbatchOption(Struct, frozen=True):
    """One option of a command line: its long name (empty if nobody here asks for it), its value, and
    its words, of flags that share a word (`-QW`) a word of its own. Between two components stands `:`."""

    name: str
    value: str
    words: tuple[str, ...]


def split_sbatch_words(words: Sequence[str]) -> tuple[list[SbatchOption], Sequence[str]]:
    """The options, and the script with its own words, as getopt_long(3) reads them."""
    rest, found = iter(words), list[SbatchOption]()
    for word in rest:
        if word == "--":
            return found, [*rest]
        if word == ":":
            found.append(SbatchOption(":", "", (word,)))
        elif not word.startswith("-") or word == "-":
            return found, [word, *rest]
        else:
            found += _read_options(word, rest)
    return found, ()


def read_sbatch_call(words: Sequence[str]) -> SbatchCall:
    """The script and the options before it. The words behind the script are its own. Of a heterogeneous
    job (`-n1 : -n8 train.sh`) the first component's options count, since it has the script."""
    options, command = split_sbatch_words(words)
    mine = takewhile(lambda option: option.name != ":", options)
    found = {option.name: option.value for option in mine if option.value}
    return SbatchCall(next(iter(command), None), *(found.get(name) for name in _READ_NAMES))


def read_script_options(script: bytes) -> SbatchCall:
    """The options in the `#SBATCH` lines of a batch script, of a heterogeneous job those of its first
    component. A comment begins at a word with `#`."""
    found: dict[str, str] = {}
    for line in script_head(script):
        if not line.startswith(_SCRIPT_MARK):
            continue
        lexer = shlex.shlex(line[len(_SCRIPT_MARK) :], posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        rest = takewhile(lambda word: not word.startswith("#"), lexer)
        with suppress(ValueError):  # sbatch itself will report a quote that is not closed
            for word in rest:
                if word.lower() in _NEXT_COMPONENT:
                    return SbatchCall(None, *(found.get(name) for name in _READ_NAMES))
                found |= {one.name: one.value for one in _read_options(word, rest) if one.value}
    return SbatchCall(None, *(found.get(name) for name in _READ_NAMES))


def _read_options(word: str, rest: Iterator[str]) -> Iterator[SbatchOption]:
    """The options in a word. Takes the value from `rest` if it is a word of its own."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        # Of an abbreviation that sbatch takes only one option is possible.
        flag = equals or any(each.startswith(name) for each in LONG_WITHOUT_VALUE)
        more = () if flag else tuple(islice(rest, 1))
        full = next((n for n in _LONG_NAMES if name and n.startswith(name)), "")
        yield SbatchOption(full, value or "".join(more), (word, *more))
        return
    for at, letter in enumerate(word[1:], 1):
        takes = letter in SHORT_WITH_VALUE
        # an optional value (-k, -s) stands in the same word
        value = word[at + 1 :] if takes or letter in "ks" else ""
        more = tuple(islice(rest, 1)) if takes and not value else ()
        yield SbatchOption(
            _SHORT_NAMES.get(letter, ""), value or "".join(more), (f"-{letter}{value}", *more)
        )
        if takes or value:
            break
