"""Counters of the source, beside their limits: `make house`. A row over its limit ends with `<-`.

How names are counted: a class shares its name if another class of `sentinel/` has it; a function's name
without its leading underscore is looked for in all modules; a name without an underscore inside is one word.
Size is counted in statements and nodes of the syntax tree, without docstrings: lines punish good names."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import grimp

ROOT = Path(__file__).resolve().parent.parent
STATEMENTS_LIMIT = 47_000
NODES_LIMIT = 540_000
TEST_STATEMENTS_LIMIT = 58_000
OTHER_LANGUAGES = (".sh", ".awk", ".js", ".sql", ".css", ".html")
"""Counted beside them, so that nothing moves there unseen. What is minified by others counts too."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    """Print one row for each counter."""
    sources = {path: path.read_text() for path in sorted((ROOT / "sentinel").rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    functions = [(path, node) for path, tree in trees.items() for node in _functions(tree)]
    named = [(path, node.name.strip("_")) for path, node in functions if not _is_dunder(node.name)]
    _row("classes that share their name, %", _shared_classes(trees.values()), 5)
    _row("functions whose name stands in 3 or more modules, %", _common_functions(named), 22)
    one_word = sum("_" not in name for _, name in named)
    _row("functions named by one word, %", 100 * one_word / len(named), 50)
    _row("modules in circles of imports", len(_modules_in_circles()), 0)
    _row("imports inside functions", sum(map(_inner_imports, trees.values())), 80)
    _row("files with a second subject", sum(map(_has_seam, sources.values())), 0)
    _row("lines of the largest file", max(text.count("\n") for text in sources.values()), 400)
    lengths = [_count_statements(node) - 1 for _, node in functions]
    _row("statements of the longest function", max(lengths), 30)
    _row("statements of a function, median", median(lengths), 8)
    _row("statements of sentinel/", sum(map(_count_statements, trees.values())), STATEMENTS_LIMIT)
    _row("nodes of sentinel/", sum(map(_count_nodes, trees.values())), NODES_LIMIT)
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "world" not in path.parts]
    parsed = (ast.parse(path.read_text()) for path in tests)
    counted = sum(map(_count_statements, parsed))
    _row("statements of tests/ without tests/world/", counted, TEST_STATEMENTS_LIMIT)
    for suffix in OTHER_LANGUAGES:
        found = [p for p in ROOT.rglob(f"*{suffix}") if _is_ours(p)]
        lines = sum(path.read_text(errors="replace").count("\n") for path in found)
        print(f"{'lines of *' + suffix:<55} {lines:>9,}")


def _is_ours(path: Path) -> bool:
    return path.relative_to(ROOT).parts[0] in ("sentinel", "slurm", "config", "packaging")


def _count_statements(tree: ast.AST) -> int:
    """Without docstrings."""
    return sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in ast.walk(tree))


def _count_nodes(tree: ast.AST) -> int:
    """Without docstrings, which are two nodes each."""
    nodes = list(ast.walk(tree))
    return len(nodes) - 2 * sum(map(_is_docstring, nodes))


def _is_docstring(node: ast.AST) -> bool:
    """Of a module, class, function or constant: a text that stands alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _row(what: str, value: float, limit: float) -> None:
    print(f"{what:<55} {value:>9,.4g}   at most {limit:,}{'  <-' if value > limit else ''}")


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _shared_classes(trees: Iterable[ast.Module]) -> float:
    nodes = (node for tree in trees for node in ast.walk(tree))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return 100 * sum(count for count in names.values() if count > 1) / names.total()


def _common_functions(named: list[tuple[Path, str]]) -> float:
    modules = defaultdict(set)
    for path, name in named:
        modules[name].add(path)
    return 100 * sum(len(modules[name]) > 2 for _, name in named) / len(named)


def _modules_in_circles() -> set[str]:
    """Modules that import themselves through others at the top of a file, type checking included."""
    graph = grimp.build_graph("sentinel", cache_dir=None)
    return {
        module
        for module in graph.modules
        if any(
            module == imported or graph.chain_exists(importer=imported, imported=module)
            for imported in graph.find_modules_directly_imported_by(module)
        )
    }


def _inner_imports(tree: ast.Module) -> int:
    inside = {
        node
        for function in _functions(tree)
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _calls_import_module(node)
    }
    return len(inside)


def _calls_import_module(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return getattr(called, "attr", getattr(called, "id", "")) in ("import_module", "__import__")


def _has_seam(text: str) -> bool:
    """Whether a comment between two blank lines, or one of dashes, begins a second subject."""
    body = text.partition("\ndef ")[2] + text.partition("\nclass ")[2]
    lines = body.split("\n")
    alone = any(line.startswith("# ") and not after.strip() for line, after in pairwise(lines))
    return alone or re.search(r"^# --", body, re.MULTILINE) is not None


if __name__ == "__main__":
    main()
