"""The small faults that can be planted in a module: each is one piece of text put for another."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

FLIPS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
SUMS: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
}


class Change(NamedTuple):
    """`old`, at that place, becomes `new`; `start` and `end` are offsets in UTF-8."""

    line: int
    start: int
    end: int
    old: str
    new: str

    def applied(self, source: str) -> str:
        """The module with this fault."""
        raw = source.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()


def changes(source: str) -> list[Change]:
    """All of them, in the order of the text."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = set()
    for node, new in _alternatives(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[operator]
        old = source.encode()[start:end].decode()
        if isinstance(node, ast.stmt):
            text = new if isinstance(new, str) else ast.unparse(new)
        else:
            text = f"({new if isinstance(new, str) else ast.unparse(new)})"
        found.add(Change(node.lineno, start, end, old, text))
    return sorted(found, key=lambda one: (one.start, one.end, one.new))


def find_lines(source: str, change: Change) -> range | None:
    """The lines of the statement that has the fault, or of a compound one's head; None where an import
    executes it: outside of functions, or a default."""
    inside, first = False, change.line
    for node in ast.walk(ast.parse(source)):  # the outer ones come first
        if isinstance(node, ast.stmt) and node.lineno <= change.line <= (node.end_lineno or 0):
            first = node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= node.body[0].lineno <= change.line <= (node.end_lineno or 0)
    last = change.line + change.old.count("\n")
    return range(first, last + 1) if inside else None


def _alternatives(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST | str]]:
    """What could stand in place of a node; annotations, decorators and texts are left alone."""
    for node in _code(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test, f"not ({ast.unparse(node.test)})"
        elif isinstance(node, ast.comprehension):
            yield from ((test, "True") for test in node.ifs)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in CALLS:
            yield node.func, CALLS[ast.unparse(node.func)]
        elif isinstance(node, ast.stmt):
            yield from ((node, other) for other in _statements(node))
        elif isinstance(node, ast.expr):
            yield from ((node, other) for other in _expressions(node))


def _statements(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Return) and node.value is not None:
        falsy = isinstance(node.value, ast.Constant) and not node.value.value
        yield "return 'planted'" if falsy else "return None"
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    if call or isinstance(node, ast.Continue | ast.Break | ast.AugAssign):
        yield "pass"


def _expressions(node: ast.expr) -> Iterator[ast.AST | str]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in FLIPS[type(operator)]:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in SUMS:
        yield ast.BinOp(node.left, SUMS[type(node.op)], node.right)
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)


def _constants(value: object) -> list[str]:
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int | float):
        return [repr(value + 1), *([repr(value * 10)] if value else [])]
    return []


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases", "format_spec"):
            continue
        if name == "keywords" and isinstance(tree, ast.ClassDef):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from _code(node) if not isinstance(node, ast.JoinedStr) else ()
