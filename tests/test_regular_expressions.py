r"""A pattern that decides what a text is ends with `\Z`: `$` lets a newline at the end through.

RE2, which scans texts by strangers, knows no `\Z`, and its `$` is the end.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import remit
import remit_client

PACKAGES = (remit, remit_client)
FILES = [path for package in PACKAGES for path in sorted(Path(package.__path__[0]).rglob("*.py"))]
OF_RE = frozenset(
    {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
)
FIELDS = "model/schema.py"
"""Where the one way is to give a field of a request a pattern."""


def ends_loosely(pattern: str | bytes, flags: int = 0) -> bool:
    """Tell whether some `$` of a pattern stands for the end of the text."""
    return not flags & re.MULTILINE and any(
        one is _constants.AT_END for one in _parts(_parser.parse(pattern, flags))
    )


def _parts(parsed: Any) -> Iterator[Any]:
    if isinstance(parsed, list | tuple | _parser.SubPattern):
        for one in parsed:
            yield from _parts(one)
    else:
        yield parsed


@pytest.mark.parametrize("pattern", [r"a$", r"^(a|b$)", r"a(?=$)", r"(?:\s|$)x"])
def test_a_loose_end_is_seen(pattern: str) -> None:
    assert ends_loosely(pattern)


@pytest.mark.parametrize("pattern", [r"a\Z", r"[$]\Z", r"\$", r"\$\Z"])
def test_a_firm_end_is_no_loose_one(pattern: str) -> None:
    assert not ends_loosely(pattern)


def modules() -> Iterator[Any]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def test_no_compiled_pattern_ends_loosely() -> None:
    loose = {
        f"{module.__name__}.{name}"
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and ends_loosely(value.pattern, value.flags)
    }
    assert loose == set()


def texts(node: ast.AST) -> Iterator[str]:
    """The constant texts of an expression; what is put into it is a group of any text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
        )


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def is_of_re(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in OF_RE
    )


def test_no_pattern_in_a_call_ends_loosely() -> None:
    loose = [
        f"{path}:{call.lineno}"
        for path in FILES
        for call in calls(ast.parse(path.read_text(encoding="utf-8")))
        if is_of_re(call) and not _is_multiline(call)
        if any(map(ends_loosely, texts(call.args[0])))
    ]
    assert loose == []


def _is_multiline(call: ast.Call) -> bool:
    said = ast.dump(call)
    return "'MULTILINE'" in said or "attr='M'" in said


def test_a_field_of_a_request_gets_its_pattern_in_one_way() -> None:
    other = [
        f"{path}:{call.lineno}"
        for path in FILES
        for call in calls(ast.parse(path.read_text(encoding="utf-8")))
        if getattr(call.func, "attr", "") == "Meta" and not path.match(FIELDS)
        if any(keyword.arg == "pattern" for keyword in call.keywords)
    ]
    assert other == []


def test_no_constant_of_a_pattern_ends_loosely() -> None:
    """Constants that other modules match with, such as the names of definition files."""
    loose = []
    for module in modules():
        for name, value in vars(module).items():
            is_pattern = name.isupper() and isinstance(value, str) and value.endswith("$")
            if is_pattern and not value.endswith(r"\$"):
                loose.append(f"{module.__name__}.{name}")
    assert loose == []
