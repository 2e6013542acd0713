"""Every regular expression that the package holds, found in its source; and texts that are hard on one.

A pattern that is written as a constant is found by itself, and so is one whose names the module
knows. What is put together at run time stands in MADE_AT_RUN_TIME with an example of it; a place
that is in neither fails the test, so that no pattern is overlooked.
"""

from __future__ import annotations

import ast
import importlib
import math
import re
import signal
import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import sentinel
from sentinel.core.lazy_pattern import _LazyPattern, lazy_pattern

try:
    from re import _compiler, _parser  # type: ignore[attr-defined]
except ImportError:  # before Python 3.11
    import sre_compile as _compiler
    import sre_parse as _parser

FUNCTIONS = (
    "compile",
    "search",
    "match",
    "fullmatch",
    "sub",
    "subn",
    "findall",
    "finditer",
    "split",
)
METHODS = frozenset(FUNCTIONS) - {"compile"}
ROOT = Path(sentinel.__file__).parent


class OurPattern(NamedTuple):
    """One regular expression. `uses`: the methods that it is called by; empty: not known."""

    place: str
    text: Any
    flags: int
    uses: frozenset[str]


class Unknown(NamedTuple):
    """A place whose pattern is made at run time."""

    place: str
    source: str


@cache
def found() -> tuple[tuple[OurPattern, ...], tuple[Unknown, ...]]:
    """All patterns of the package, and the places where none could be read."""
    known, unknown = list[OurPattern](), list[Unknown]()
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        if name.endswith("__main__"):
            continue
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        for call in filter(_is_of_re, nodes):
            place = f"{name}:{call.lineno}"
            try:
                known.append(_read(call, place, vars(importlib.import_module(name)), nodes))
            except Exception:  # names of a function, which only run time knows
                unknown.append(Unknown(name, ast.unparse(call.args[0])))
    return tuple(known), tuple(unknown)


@cache
def compiled_in_modules() -> tuple[OurPattern, ...]:
    """What stands compiled in the modules' own tables."""
    known = list[OurPattern]()
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        module = sys.modules.get(name.removesuffix(".__init__"))
        for held in vars(module).values() if module else ():
            if isinstance(held, tuple | list | dict):
                known += [
                    OurPattern(f"{name}:table", one.pattern, one.flags, frozenset())
                    for one in _held(held)
                ]
    return tuple(known)


def _held(value: Any, deep: int = 0) -> Iterator[Any]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, _LazyPattern):
        yield re.compile(*value._given)
    elif isinstance(value, dict):
        yield from _held(tuple(value.values()), deep)
    elif isinstance(value, tuple | list) and deep < 4:
        for one in value:
            yield from _held(one, deep + 1)


def _is_of_re(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == lazy_pattern.__name__
    return (
        isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in FUNCTIONS
    )


def _read(call: ast.Call, place: str, names: dict[str, Any], nodes: list[ast.AST]) -> OurPattern:
    text = _value(call.args[0], names)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else "compile"
    at = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(method, 2)
    given = [*call.args[at : at + 1], *(k.value for k in call.keywords if k.arg == "flags")]
    flags = int(_value(given[0], names)) if given else 0
    uses = frozenset({method}) if method != "compile" else _uses(call, nodes)
    if isinstance(text, re.Pattern):
        text, flags = text.pattern, text.flags
    return OurPattern(place, text, flags, uses)


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "pattern", "eval"), names)


def _uses(call: ast.Call, nodes: list[ast.AST]) -> frozenset[str]:
    """How a compiled pattern with a name of its own is used, where only its module can know it."""
    for node in nodes:
        if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id.startswith("_"):
                return _methods_of(target.id, nodes)
    return frozenset()


def _methods_of(name: str, nodes: list[ast.AST]) -> frozenset[str]:
    loads = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    methods = [
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name
    ]
    methods += ["fullmatch"] * sum(_is_matched(n, name) for n in nodes)
    return frozenset(methods) if len(methods) == len(loads) - 1 else frozenset()


def _is_matched(node: ast.AST, name: str) -> bool:
    """Whether it is `match_line(NAME, line)` of core/node_probe.py, which asks for the whole line."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "match_line"
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == name
    )


# Texts that are hard on a pattern: what may stand before each run of it, and much of the run.

FILLINGS = ("", " ", "\n", "a", "0", ".", "\t", "(", "[", "{", "'", ":", "-", "/", ", ", "1.", "a.",
            "a-", '"', "=", "Error: ", '  File "a", line 1\n', "A", "_", "|", "é")  # fmt: skip
_OPEN = 40
"""Repetitions from which on a run counts as one."""
_MOST_PREFIXES = 16


class HardText(NamedTuple):
    """A text of any length: `head`, and `unit` again and again."""

    head: str
    unit: str

    def of(self, size: int) -> str:
        """So many characters of it."""
        return (self.head + self.unit * (size // len(self.unit) + 1))[:size]


def hard_texts(text: str, flags: int) -> list[HardText]:
    """What may stand before each run of the pattern, with much of the run behind it, or both again
    and again."""
    tree = _parser.parse(text, flags)
    prefixes = list(dict.fromkeys(["", *_prefixes(list(tree))]))
    runs = list(dict.fromkeys(_units(list(tree))))
    made = dict[HardText, None]()
    for prefix in prefixes[:: max(1, len(prefixes) // _MOST_PREFIXES)]:
        for unit in dict.fromkeys([*FILLINGS, *runs]):
            if unit:
                made[HardText(prefix, unit)] = None
            if prefix:
                made[HardText("", prefix + unit)] = None
        for unit in runs if prefix else ():
            made[HardText("", prefix + unit * 30)] = None
    return list(made)


def _prefixes(nodes: list[Any]) -> Iterator[str]:
    """A text that fits the beginning of the sequence, up to each of its places."""
    before = [""]
    for node in nodes:
        for start in before[:2]:
            yield from (start + inner for body in _bodies(node) for inner in _prefixes(body))
        before = [start + one for start in before for one in _samples(node)][:8]
        yield from before


def _bodies(node: Any) -> list[list[Any]]:
    op, value = str(node[0]), node[1]
    if op == "SUBPATTERN":
        return [list(value[3])]
    if op == "BRANCH":
        return [list(one) for one in value[1]]
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [list(value[2])]
    if op in ("ASSERT", "ASSERT_NOT"):
        return [list(value[1])]
    return [list(value)] if op == "ATOMIC_GROUP" else []


def _samples(node: Any) -> list[str]:
    """Texts that this part fits."""
    op, value = str(node[0]), node[1]
    if op == "LITERAL":
        return [chr(value)]
    if op == "IN":
        return _fitting(repr(node[1]), node)
    if op in ("ANY", "NOT_LITERAL"):
        return [next(c for c in "a0" if op == "ANY" or ord(c) != value)]
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least = max(int(value[0]), 1)
        return [one * least for one in _sequence(list(value[2]))]
    if op in ("ASSERT", "ASSERT_NOT", "AT", "GROUPREF"):
        return [""]
    return [one for body in _bodies(node) for one in _sequence(body)][:6]


def _sequence(nodes: list[Any]) -> list[str]:
    made = [""]
    for node in nodes:
        made = [start + one for start in made for one in _samples(node) or [""]][:4]
    return made


_CANDIDATES = [chr(c) for c in (*b"a0A.-_/: ,x9Z=\t\n", *range(32, 127))] + ["é"]


_fitting_of: dict[str, list[str]] = {}


def _fitting(key: str, node: Any) -> list[str]:
    """The first two candidates that are in a class of characters."""
    if key not in _fitting_of:
        state = _parser.State()
        state.flags = re.UNICODE.value
        tree = _parser.SubPattern(state, [(node[0], list(node[1]))])
        match = _compiler.compile(tree, state.flags).match
        _fitting_of[key] = [*islice((c for c in _CANDIDATES if match(c)), 2)]
    return _fitting_of[key]


def _units(nodes: list[Any]) -> Iterator[str]:
    """What each run of the pattern repeats."""
    for node in nodes:
        op, value = str(node[0]), node[1]
        if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and int(value[1]) >= _OPEN:
            yield from _sequence(list(value[2]))
        for body in _bodies(node):
            yield from _units(body)


SHORT, MIDDLE, LONG = 128, 512, 4096
"""Characters: all texts are tried short, the hardest of them longer, and of these the hardest as
long as a line can be."""
_HARDER, _HARDEST, _TRIES, _ROUNDS = 48, 8, 3, 10


_DEAR = 250
"""Times what a plain pattern costs, for a short text: nothing longer is tried then."""
LIMIT_S = 3.0
"""Processor seconds for all texts of one pattern, which usually take 0.01."""


class Cost(NamedTuple):
    """Of the hardest text of a pattern: what a character of it costs, in costs of a character of a
    plain line by a plain pattern, and in costs of a character of a text that is eight times shorter."""

    times_plain: float
    growth: float
    text: str


def cost_of(pattern: OurPattern) -> Cost:
    """What the hardest text costs this thread on the processor.

    A pattern that looks through a text once takes as long for each character of a long one as of a
    short one; one that begins anew at each place takes up to eight times as long. What is compared
    is measured in turn, so that a load of the machine meets all of it, and of the rounds the quickest
    counts: another process makes one slower and never quicker. A pattern that finds no end within
    LIMIT_S of processor time is given up: `re` lets signals in.
    """
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        return _cost_of(pattern)
    except EndlessError:
        return Cost(math.inf, math.inf, "a text that has no end")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class EndlessError(Exception):
    """The limit was reached."""


def _give_up(*_: object) -> None:
    raise EndlessError


def _cost_of(pattern: OurPattern) -> Cost:
    compiled = re.compile(pattern.text, pattern.flags)
    uses = pattern.uses & METHODS or frozenset({"finditer"})
    is_text = isinstance(pattern.text, str)
    written = pattern.text if is_text else pattern.text.decode("latin-1")

    def measure(hard: HardText, size: int, tries: int = 1) -> float:
        text = hard.of(size)
        data = text if is_text else text.encode("latin-1", "replace")
        return min(_seconds(compiled, data, uses) for _ in range(tries)) / size

    texts = hard_texts(written, pattern.flags) or [HardText("", " ")]
    dear = _DEAR * min(_plain_seconds() for _ in range(_TRIES))
    for size, most in ((SHORT, _HARDER), (MIDDLE, _HARDEST)):
        timed = sorted(((measure(hard, size), hard) for hard in texts), reverse=True)
        if timed[0][0] > dear and (seconds := measure(timed[0][1], size, _TRIES)) > dear:
            return Cost(_DEAR * seconds / dear, math.inf, timed[0][1].of(60))
        texts = [hard for _, hard in timed[:most]]
    hard = max(texts, key=lambda one: measure(one, LONG, _TRIES))
    rounds = [
        (measure(hard, LONG), measure(hard, MIDDLE), _plain_seconds()) for _ in range(_ROUNDS)
    ]
    seconds, shorter, plain = map(min, zip(*rounds, strict=True))
    return Cost(seconds / plain, seconds / shorter, hard.of(60))


_PLAIN = re.compile(r"\b\w+ \d")
_PLAIN_LINE = ("INFO worker 3 started fine on host node-3 in 3.2 s\n" * 100)[:LONG]


def _plain_seconds() -> float:
    """For a character of a plain line, by a plain pattern."""
    return _seconds(_PLAIN, _PLAIN_LINE, frozenset({"finditer"})) / LONG


def _seconds(compiled: Any, data: Any, uses: frozenset[str]) -> float:
    began = time.thread_time()
    if "fullmatch" in uses or "match" in uses:
        compiled.fullmatch(data) if "fullmatch" in uses else compiled.match(data)
    if not uses <= {"match", "fullmatch"}:
        for _ in compiled.finditer(data):
            pass
    return time.thread_time() - began
