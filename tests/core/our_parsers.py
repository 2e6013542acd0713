"""Every function of the package that reads a text which somebody else wrote, found in its source, and
what the dearest text costs it."""

from __future__ import annotations

import ast
import importlib
import math
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import sentinel
from benchmarks.bench_redos import FILLINGS, LINES, PLAIN, list_words, log_parsers
from sentinel.core.logtext import decode_log

ROOT = Path(sentinel.__file__).parent
ROOMS = ("chain", "checks", "clean", "core", "gpu", "nodes", "slurm", "stacks", "status")
"""Those that turn text into types; commands, channels and the configuration read what is the operator's."""

FIRST = frozenset(
    [
        "text",
        "lines",
        "line",
        "raw",
        "out",
        "err",
        "output",
        "data",
        "said",
        "word",
        "reason",
        "log",
        "table",
        "told",
        "page",
        "answer",
        "title",
    ]
)
"""How the first argument of such a function is called; `tests/core/test_parser_costs.py` counts them."""

_FILLED: dict[str, Any] = {"str": "x", "bytes": b"x", "int": 1, "float": 1.0, "bool": False}
_EMPTY = ("Sequence", "list", "tuple", "Iterable", "Mapping", "dict", "Collection", "frozenset")
MAX_WORDS = 3
OF_THE_OPERATOR = frozenset(
    f"sentinel.core.{name}" for name in ("pattern_rules", "patterns", "cron")
)
"""Modules that read the configuration: a pattern is proven once, and is of at most 10,000 characters."""

SCRIPTS = ("node_test.py", "node_measure.py")
"""What runs on nodes as it is read."""


class OurParser(NamedTuple):
    """One function, ready for a text. `words`: what its module looks for."""

    name: str
    parse: Callable[[str], object]
    words: Sequence[str]


def find_parsers() -> tuple[list[OurParser], set[str]]:
    """All public ones, and the names of those whose further arguments are no plain values."""
    known, unfilled = list[OurParser](), set[str]()
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        tree = ast.parse(path.read_text())
        for node in [] if module in OF_THE_OPERATOR or path.name in SCRIPTS else tree.body:
            if isinstance(node, ast.FunctionDef) and (kind := _kind_of_text(node)):
                name = f"{module.removesuffix('.__init__')}.{node.name}"
                given = _fill(node)
                if given is None:
                    unfilled.add(name)
                    continue
                function = getattr(importlib.import_module(module), node.name)
                parse = partial(_call, function, kind, given)
                known.append(OurParser(name, parse, _words_of(tree)))
    words = list_words()
    known += [OurParser(name, parse, words) for name, parse in log_parsers().items()]
    return known, unfilled


def _kind_of_text(node: ast.FunctionDef) -> str:
    """`str`, `bytes` or `lines`; empty where its first argument is no text of somebody else's."""
    if node.name.startswith("_") or not node.args.args or node.args.args[0].arg not in FIRST:
        return ""
    written = _annotation(node.args.args[0])
    kinds = {"str": "str", "bytes": "bytes"}
    return kinds.get(written, "lines" if written.endswith("[str]") else "")


def _annotation(one: ast.arg) -> str:
    return ast.unparse(one.annotation).strip("'\"") if one.annotation else ""


def _fill(node: ast.FunctionDef) -> dict[str, Any] | None:
    """What its further arguments may be; None where they are of types of the package's own."""
    args = node.args
    needed = args.args[1 : len(args.args) - len(args.defaults)]
    needed += [one for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
               if default is None]  # fmt: skip
    given = dict[str, Any]()
    for one in needed:
        written = _annotation(one)
        if written in _FILLED:
            given[one.arg] = _FILLED[written]
        elif written.startswith(_EMPTY):
            given[one.arg] = ()
        elif written.endswith("None"):
            given[one.arg] = None
        else:
            return None
    return given


def _call(function: Callable[..., Any], kind: str, given: dict[str, Any], text: str) -> None:
    """It reads the text to its end; that it refuses it is an answer too."""
    first = text if kind == "str" else text.encode() if kind == "bytes" else text.split("\n")
    try:
        answer = function(first, **given)
        if isinstance(answer, Iterator):
            for _ in answer:
                pass
    except EndlessError:
        raise
    except Exception:
        return


def _words_of(tree: ast.Module) -> list[str]:
    """Texts in the source of a module, with those that stand in its patterns."""
    found = dict[str, None]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            for part in re.split(r"[\\()\[\]{}|?*+^$]+", value):
                if 1 < len(part) < 40 and "\n\n" not in part:
                    found[part] = None
    words = [*found]
    return words[:: max(1, -(-len(words) // MAX_WORDS))]


def hard_texts(words: Sequence[str]) -> list[tuple[str, str]]:
    """Head and unit of each text: a word and a filling, again and again, or a word and much filling."""
    made = [pair for word in words for filling in FILLINGS
            for pair in (("", word + filling), (word, filling or word))]  # fmt: skip
    return [*made, *(("", line) for line in LINES), *(("", one) for one in FILLINGS if one)]


def make_text(head: str, unit: str, size: int) -> str:
    """As parsers get it: with its long lines cut."""
    return decode_log((head + unit * (size // len(unit) + 1))[:size].encode())


SIZES = (2 << 10, 64 << 10, 1 << 20)
_KEPT = (8, 3)
"""How many of the dearest texts are tried longer; and as many whose costs grow most."""

SURE_BELOW = 2.5
"""Times a plain line, from which on the dearest text is tried again."""

LIMIT_S = 5.0
"""Processor seconds, after which a text has no end."""


class EndlessError(BaseException):
    """The limit was reached. No Exception, which a parser may take for its own."""


class ParserCost(NamedTuple):
    """Of the dearest text: its cost in costs of a plain line of its length."""

    times_plain: float
    text: str
    tried: int


def cost_of_parser(one: OurParser, plain: float | None = None) -> ParserCost:
    """`plain`: seconds for 1 MiB of plain lines, where it is not by the parser itself. Seconds of this
    thread on the processor; of several tries the quickest."""
    texts = hard_texts(one.words)
    tried = len(texts)
    costs = dict.fromkeys(texts, 0.0)
    before = signal.signal(signal.SIGVTALRM, _give_up)
    try:
        for size, kept in zip(SIZES[:2], _KEPT, strict=True):
            last, costs = costs, {t: measure_seconds(one.parse, make_text(*t, size)) for t in costs}
            dearest = sorted(costs, key=costs.__getitem__, reverse=True)[:kept]
            growing = sorted(costs, key=lambda t: costs[t] / max(last[t], 1e-5), reverse=True)
            costs = {t: costs[t] for t in dict.fromkeys([*dearest, *growing[: kept // 3]])}
        own = plain or min(
            measure_seconds(one.parse, make_text("", PLAIN, SIZES[2])) for _ in range(3)
        )
        seconds, dearest_text = 0.0, ("", "")
        for t in costs:
            if seconds < math.inf:
                now = measure_seconds(one.parse, make_text(*t, SIZES[2]))
                seconds, dearest_text = max((seconds, dearest_text), (now, t))
        if (
            SURE_BELOW < seconds / own < math.inf
        ):  # another process makes one slower, and never quicker
            text = make_text(*dearest_text, SIZES[2])
            seconds = min(seconds, *(measure_seconds(one.parse, text) for _ in range(4)))
        return ParserCost(seconds / own, repr("".join(dearest_text))[:60], tried)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _give_up(*_: object) -> None:
    raise EndlessError


def measure_seconds(parse: Callable[[str], object], text: str) -> float:
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    began = time.thread_time()
    try:
        parse(text)
    except EndlessError:
        return math.inf
    return time.thread_time() - began
