"""The shape of the tree: `python tools/lib/shape.py [--json]`; tests/test_repository.py holds it.

A module counts when it has more than three lines of its own: an `__init__.py` that only says what
a folder is does not.
"""

import ast
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "daemon" / "remit"
_EMPTY = 3
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One file of the package."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.count("\n")
        self.tree = ast.parse(self.text)
        self.is_package = path.name == "__init__.py"
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        self.name = ".".join(parts[:-1] if self.is_package else parts)

    @cached_property
    def functions(self) -> list[int]:
        """How long its functions are, in lines."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, _FUNCTIONS)]
        return [(node.end_lineno or 0) - node.lineno + 1 for node in found]

    @cached_property
    def public_types(self) -> list[str]:
        """Its classes that other modules may use."""
        found = [node.name for node in self.tree.body if isinstance(node, ast.ClassDef)]
        return [name for name in found if not name.startswith("_")]

    def imports(self) -> Iterator[tuple[str, str, int]]:
        """What it imports of ours: when (`top` or `lazy`), the module or name, and the line."""
        yield from _imports(self.tree.body, "top")


def _imports(body: list[Any], when: str) -> Iterator[tuple[str, str, int]]:
    for node in body:
        yield from ((when, name, node.lineno) for name in _own_names(node))
        if isinstance(node, _FUNCTIONS):
            yield from _imports(node.body, "lazy")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from _imports(node.orelse, when)
        else:
            for block in _blocks(node):
                yield from _imports(block, when)


def _own_names(node: ast.AST) -> list[str]:
    found: list[str] = []
    if isinstance(node, ast.ImportFrom):
        found = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        found = [alias.name for alias in node.names]
    return [name for name in found if name.split(".")[0] == "remit"]


def _blocks(node: ast.AST) -> Iterator[list[Any]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block
    for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        yield part.body


class Shape:
    """The whole package."""

    def __init__(self) -> None:
        files = [path for path in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in path.parts]
        self.all = [Module(path) for path in files]
        self.by_name = {module.name: module for module in self.all}
        self.modules = [one for one in self.all if not one.is_package or one.lines > _EMPTY]

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """Who imports whom at the top of the file."""
        return {
            one.name: {name for when, name, _ in self.edges(one) if when == "top"}
            for one in self.all
        }

    def edges(self, module: Module) -> Iterator[tuple[str, str, int]]:
        """The imports of a module, each with the module that it reaches."""
        for when, what, line in module.imports():
            name = what if what in self.by_name else what.rpartition(".")[0]
            if name in self.by_name and name != module.name:
                yield when, name, line

    @cached_property
    def lazy(self) -> list[str]:
        """Own imports inside of functions, each statement once."""
        found = {
            (one.name, line): name
            for one in self.all
            for when, name, line in self.edges(one)
            if when == "lazy"
        }
        return [f"{at}:{line} -> {name}" for (at, line), name in sorted(found.items())]

    @cached_property
    def chain(self) -> list[str]:
        """The longest chain of imports, each module importing the next."""
        longest: dict[str, list[str]] = {}

        def walk(name: str, around: frozenset[str]) -> list[str]:
            if name in longest:
                return longest[name]
            inner = [n for n in sorted(self.graph[name]) if n not in around]
            tails = [walk(n, around | {name}) for n in inner]
            longest[name] = [name, *max(tails, key=len, default=[])]
            return longest[name]

        return max((walk(name, frozenset()) for name in self.graph), key=len)

    @cached_property
    def cycles(self) -> list[str]:
        """Modules in a circle of imports at the top of files, or on the way to one."""
        left = dict(self.graph)
        while free := [name for name, inner in left.items() if not inner & left.keys()]:
            for name in free:
                del left[name]
        return sorted(left)

    @cached_property
    def same_names(self) -> dict[str, list[str]]:
        """Public type names that stand in more than one module."""
        where: dict[str, list[str]] = defaultdict(list)
        for module in self.all:
            for name in module.public_types:
                where[name].append(module.name)
        return {name: places for name, places in sorted(where.items()) if len(places) > 1}

    @cached_property
    def folders(self) -> Counter[str]:
        """How many modules each folder holds."""
        rooms = [one for one in self.modules if not one.is_package]
        return Counter(str(one.path.parent.relative_to(PACKAGE)) for one in rooms)

    @cached_property
    def of_one_sibling(self) -> list[str]:
        """Modules that exactly one module imports, a sibling in the same folder."""
        importers: dict[str, set[str]] = defaultdict(set)
        for one in self.all:
            for _, name, _ in self.edges(one):
                importers[name].add(one.name)
        return [
            f"{name} <- {next(iter(who))}"
            for name, who in sorted(importers.items())
            if len(who) == 1 and name.rpartition(".")[0] == next(iter(who)).rpartition(".")[0]
        ]

    def figures(self) -> dict[str, Any]:
        """Everything that has a limit."""
        functions = sorted(length for one in self.modules for length in one.functions)
        code = sum(one.lines for one in self.all)
        tests = [p for p in (ROOT / "tests").rglob("*.py") if "__pycache__" not in p.parts]
        return {
            "modules": len(self.modules),
            "files": len(self.all),
            "lines": code,
            "median_lines": statistics.median(one.lines for one in self.modules),
            "over_400_lines": [f"{m.name} {m.lines}" for m in self.modules if m.lines > 400],  # noqa: PLR2004
            "under_30_lines": [
                f"{m.name} {m.lines}"
                for m in self.modules
                if not m.is_package and m.lines < 30  # noqa: PLR2004
            ],
            "folders_over_20": {name: n for name, n in self.folders.items() if n > 20},  # noqa: PLR2004
            "lazy_own_imports": len(self.lazy),
            "longest_chain": len(self.chain),
            "of_one_sibling": len(self.of_one_sibling),
            "same_type_names": len(self.same_names),
            "functions_per_file": round(len(functions) / len(self.modules), 1),
            "function_median": statistics.median(functions),
            "function_p90": functions[int(len(functions) * 0.9)],
            "tests_to_code": round(
                sum(p.read_text(encoding="utf-8").count("\n") for p in tests) / code, 2
            ),
        }


def main() -> None:
    """Print the figures, and with a word what stands behind one of them."""
    shape = Shape()
    if "--json" in sys.argv:
        print(json.dumps(shape.figures(), indent=1))
        return
    for name, value in shape.figures().items():
        print(f"{name:20} {value}")
    details = {
        "lazy": shape.lazy,
        "chain": shape.chain,
        "same": shape.same_names,
        "sibling": shape.of_one_sibling,
        "folders": sorted(shape.folders.items()),
    }
    for word in sys.argv[1:]:
        print(f"\n{word}:")
        rows = details[word]
        for row in rows.items() if isinstance(rows, dict) else rows:
            print(" ", row)


if __name__ == "__main__":
    main()
