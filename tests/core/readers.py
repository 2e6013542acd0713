"""Every function that takes apart what a user or a tool wrote, found in its source; and what the
hardest text costs it.

A reader is a public function of a module whose first argument is a text (or its lines) by that name. It
is called with plain values for its other arguments. Where nothing but a whole page gets further than its
first line, PAGES says how a text becomes a part of one.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from tests.core.our_patterns import FILLINGS, ROOT, HardText
from tests.slurm.answers import NONCE

ROOMS = ("actions", "chain", "checks", "clean", "core", "gpu", "nodes", "slurm", "stacks")
TEXTS = frozenset(
    {"answer", "body", "comment", "data", "err", "gres", "hosts", "line", "lines", "listing", "log",
     "out", "performance", "printed", "raw", "reason", "said", "space", "stdout", "task", "text",
     "told", "xml"}
)  # fmt: skip
KINDS = ("str", "bytes", "str | bytes", "str | None", "list[str]", "Sequence[str]", "Iterable[str]")


class Reader(NamedTuple):
    """`call` takes the text; `words`: what its module knows of the texts that it reads."""

    name: str
    call: Callable[[str], object]
    words: tuple[str, ...]


def find_readers(pages: Mapping[str, Callable[[str], str]]) -> Iterator[Reader]:
    """All of them, in order."""
    for path in sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        if _is_program(tree):
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and (kind := _kind_of_text(node)):
                name = f"{module.removeprefix('sentinel.')}.{node.name}"
                page = pages.get(name, str)
                yield Reader(name, _caller(module, node.name, kind, page), _words(tree))


def _is_program(tree: ast.Module) -> bool:
    """Whether it runs when it is imported."""
    last = tree.body[-1] if tree.body else None
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)


def _kind_of_text(node: ast.FunctionDef) -> str:
    arguments = node.args.posonlyargs + node.args.args
    if node.name.startswith("_") or not arguments or arguments[0].arg not in TEXTS:
        return ""
    kind = ast.unparse(arguments[0].annotation) if arguments[0].annotation else ""
    return kind if kind in KINDS else ""


def _words(tree: ast.Module) -> tuple[str, ...]:
    """Constants of the module that may stand in a text: the shortest ones, which begin most."""
    found = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    fit = sorted(
        (w for w in found if 2 <= len(w) <= 24 and w.isprintable()), key=lambda w: (len(w), w)
    )
    return tuple(fit[:: max(1, len(fit) // MAX_WORDS)][:MAX_WORDS])


def _caller(
    module: str, name: str, kind: str, page: Callable[[str], str]
) -> Callable[[str], object]:
    function = getattr(importlib.import_module(module), name)
    _first, *others = inspect.signature(function).parameters.values()
    needed = [p for p in others if p.default is p.empty]
    args = [_plain_value(p) for p in needed if p.kind is not p.KEYWORD_ONLY]
    named = {p.name: _plain_value(p) for p in needed if p.kind is p.KEYWORD_ONLY}

    def call(text: str) -> object:
        whole = page(text)
        given: Any = (
            whole.split("\n") if "[" in kind else whole.encode() if kind == "bytes" else whole
        )
        answer = function(given, *args, **named)
        return [*answer] if inspect.isgenerator(answer) else answer

    return call


def _plain_value(parameter: inspect.Parameter) -> Any:
    kind = str(parameter.annotation)
    if parameter.name in ("nonce", "mark"):
        return NONCE
    for word, value in _PLAIN_VALUES.items():
        if word in kind:
            return value
    return None


_PLAIN_VALUES: dict[str, Any] = {
    "Pattern": re.compile(r"(?P<name>[a-z]{1,20}) (?P<used>\d{1,9})"),
    "Collection": ("node1",), "Iterable": ("node1",), "Sequence": ("node1",), "tuple": ("node1",),
    "Mapping": {}, "dict": {}, "bytes": b"node1", "int": 1, "float": 1.0, "bool": False, "str": "node1",
}  # fmt: skip

MAX_WORDS = 8
SHORT, MIDDLE, LONG = 256, 1024, 8192
_HARDER, _HARDEST, _ROUNDS = 16, 2, 5
_DEAR = 200
"""Times what a plain reader costs, for a short text: nothing longer is tried then."""


class Cost(NamedTuple):
    """As of `our_patterns.Cost`; a plain reader splits a text of short lines and matches each."""

    times_plain: float
    growth: float
    text: str


def cost_of(reader: Reader) -> Cost:
    """What the hardest text costs this thread on the processor.

    All texts are tried short, the hardest of them longer, and of these the hardest at full length,
    beside a plain reader in the same moment. Of the rounds the quickest counts.
    """

    def measure(hard: HardText, size: int, tries: int = 1) -> float:
        text = hard.of(size)
        return min(_seconds(reader.call, text) for _ in range(tries)) / size

    texts = _hard_texts(reader.words)
    dear = _DEAR * _seconds(read_plainly, PLAIN) / len(PLAIN)
    for size, most in ((SHORT, _HARDER), (MIDDLE, _HARDEST)):
        timed = sorted(((measure(t, size), t) for t in texts), reverse=True)
        if timed[0][0] > dear and (seconds := measure(timed[0][1], size, 3)) > dear:
            return Cost(_DEAR * seconds / dear, math.inf, timed[0][1].of(60))
        texts = [t for _, t in timed[:most]]
    hard = max(texts, key=lambda one: measure(one, LONG, 2))
    rounds = [
        (measure(hard, LONG), measure(hard, MIDDLE), _seconds(read_plainly, PLAIN) / len(PLAIN))
        for _ in range(_ROUNDS)
    ]
    seconds, shorter, plain = map(min, zip(*rounds, strict=True))
    return Cost(seconds / plain, seconds / max(shorter, plain / 10), hard.of(60))


def _hard_texts(words: tuple[str, ...]) -> list[HardText]:
    made = dict[HardText, None]()
    for word in ("", *words):
        for filling in FILLINGS:
            if word or filling:
                made[HardText("", word + filling)] = None
            if word and filling:
                made[HardText(word, filling)] = None
    return list(made)


@cache
def _plain_pattern() -> re.Pattern[str]:
    return re.compile(r"(\w+) (\d+)")


PLAIN = "a 1\n" * 2048


def read_plainly(text: str) -> object:
    """What a reader cannot do without: each line by itself, matched, kept."""
    match = _plain_pattern().fullmatch
    return [found.groups() for line in text.splitlines() if (found := match(line.strip()))]


def _seconds(call: Callable[[str], object], text: str) -> float:
    enabled = gc.isenabled()
    gc.disable()  # what others have left to collect is no cost of this text
    began = time.thread_time()
    try:
        call(text)
    except Exception:
        pass
    finally:
        ended = time.thread_time()
        if enabled:
            gc.enable()
    return ended - began
