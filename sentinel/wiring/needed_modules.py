"""Which modules the code of a module may need, read from its import statements.

A statement in a function counts, because the function may be called. One that the code can do
without does not: below `try` with a handler of ImportError, in `with suppress(...)`, or below `if
TYPE_CHECKING`."""

import ast
from collections.abc import Collection, Iterator
from importlib.util import find_spec

_SPARED = ("ImportError", "ModuleNotFoundError", "Exception")


def find_needed(begin: str, wanted: Collection[str], own: str = "sentinel.") -> str:
    """The first of the `wanted` modules that the module `begin` may import, itself or by other modules
    whose names begin with `own`. Empty if it needs none of them."""
    seen, queue = {begin}, [begin]
    for name in queue:
        if name in wanted:
            return name
        fresh = [n for n in _list_imports(name) if n not in seen] if name.startswith(own) else []
        seen.update(fresh)
        queue += fresh
    return ""


def _list_imports(name: str) -> list[str]:
    try:
        spec = find_spec(name)
        if spec is None or not spec.origin:
            return []
        with open(spec.origin, "rb") as file:
            tree = ast.parse(file.read())
    except (ImportError, OSError, SyntaxError, ValueError):
        return []
    return list(dict.fromkeys(_walk_imports(tree)))


def _walk_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for child in _list_needed_children(node):
        yield from _walk_imports(child)


def _list_needed_children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in _list_names(node.test):
        return [*node.orelse]
    if isinstance(node, ast.Try) and any(_is_sparing(h.type) for h in node.handlers):
        return [*node.handlers, *node.orelse, *node.finalbody]
    if isinstance(node, ast.With) and any(_is_suppressing(i.context_expr) for i in node.items):
        return []
    return [*ast.iter_child_nodes(node)]


def _is_suppressing(node: ast.AST) -> bool:
    return "suppress" in _list_names(node) and _is_sparing(node)


def _is_sparing(caught: ast.AST | None) -> bool:
    return caught is None or any(name in _SPARED for name in _list_names(caught))


def _list_names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }
