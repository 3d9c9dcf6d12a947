"""Markdown that begins with YAML between two lines of three dashes.

The dashes, the keys and the text keep their places in the file, so that a mistake is shown where an
editor shows it. The keys are read by the same strict reader as every other YAML file. What a skill
says there is read by YAML's core schema as well: it is not ours, and hosts read it with libraries
of their own and refuse a skill about which they are told something else.
"""

import math
import re

import msgspec

from remit.config.strict.yaml import (
    LINE_BREAK,
    JsonScalar,
    Mapping,
    Node,
    Scalar,
    Sequence,
    parse_yaml,
    read_text,
)
from remit.errors import Place, Problem

MAX_MARKDOWN = 256 * 1024
"""Bytes of a whole file."""
MAX_FRONTMATTER = 50_000
"""Bytes between the dashes."""
_BREAK = LINE_BREAK.pattern
_FIRST = re.compile(rf"---[ \t]*(?:{_BREAK}|\Z)")
_LAST = re.compile(rf"(?<![^\r\n\x85\u2028\u2029])---[ \t]*(?={_BREAK}|\Z)(?:{_BREAK})?")
_TAB = re.compile(r"[ ]*\t")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST = 400
"""Digits of a number; longer ones are no JSON that anybody reads alike."""
_EXACT = 2**53


class Markdown(msgspec.Struct, frozen=True):
    """A text and the keys before it."""

    keys: Mapping | None
    """None: there is no frontmatter, or nothing stands in it."""
    body: str


def split_frontmatter(text: str) -> tuple[str | None, str]:
    """What stands between the dashes, without them, and the text below.

    None when the text does not begin with dashes, or when no second line of dashes follows: then
    the first may as well be a line that somebody drew.
    """
    first = _FIRST.match(text)
    last = _LAST.search(text, first.end()) if first else None
    if first is None or last is None:
        return None, text
    return text[first.end() : last.start()], text[last.end() :]


def read_markdown(raw: bytes, file: str, *, required: bool) -> tuple[Markdown, list[Problem]]:
    """Read a file; with `required`, one without frontmatter has a problem.

    A file that has a problem is not to be used; its keys are those that could be read all the same.
    """
    if len(raw) > MAX_MARKDOWN:
        message = f"the file has more than {MAX_MARKDOWN:,} bytes"
        hint = "move parts of the text to files of their own"
        return Markdown(None, ""), [Problem(Place(file), "too_large", message, hint)]
    text, problems = read_text(raw, file)
    if problems:
        return Markdown(None, ""), problems
    block, body = split_frontmatter(text)
    if block is None:
        return Markdown(None, text), _missing(text, file) if required else []
    keys, problems = _read_keys(block, file)
    return Markdown(keys, body), problems


def core_json(node: Node) -> object:
    """The plain value of a node. Depth is capped already."""
    if isinstance(node, Scalar):
        return _meaning(node.text) if node.plain else node.text
    if isinstance(node, Sequence):
        return [core_json(item) for item in node.items]
    return {key.text: core_json(value) for key, value in node.pairs}


def _missing(text: str, file: str) -> list[Problem]:
    if not text.strip():
        return [Problem(Place(file), "empty_file", "the file is empty", "start with '---'")]
    if _FIRST.match(text):
        message = "the frontmatter begins here and does not end"
        hint = "write a line '---' below its last key"
        return [Problem(Place(file), "no_frontmatter", message, hint)]
    message = "the file does not begin with frontmatter"
    hint = "the first line is '---', then keys follow, then '---' again"
    return [Problem(Place(file), "no_frontmatter", message, hint)]


def _read_keys(block: str, file: str) -> tuple[Mapping | None, list[Problem]]:
    # An empty line stands for the dashes, so that lines are counted as in the file.
    raw = b"\n" + block.encode()
    if len(raw) > MAX_FRONTMATTER:
        message = f"the frontmatter has more than {MAX_FRONTMATTER:,} bytes"
        return None, [Problem(Place(file), "too_large", message, "move the text below it")]
    node, problems = parse_yaml(raw, file)
    problems = [_with_hint(problem, ["", *LINE_BREAK.split(block)]) for problem in problems]
    if node is None or isinstance(node, Mapping):
        return node, problems
    message = "the frontmatter is not a list of keys with values"
    problems.append(Problem(node.place, "wrong_type", message, "write 'name: value'"))
    return None, problems


def _with_hint(problem: Problem, lines: list[str]) -> Problem:
    """Say what to do about the two mistakes that hands make most."""
    line = problem.place.line - 1
    if problem.code != "yaml_syntax" or problem.hint or line >= len(lines):
        return problem
    hint = ""
    if _TAB.match(lines[line]):
        hint = "indent with blanks: YAML knows no tabs"
    elif "mapping values are not allowed" in problem.message:
        hint = 'a text with ": " in it needs quotes'
    return msgspec.structs.replace(problem, hint=hint)


def _meaning(text: str) -> JsonScalar:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST:
        return text
    if _WHOLE.fullmatch(text):
        return _exact(int(text))
    if _BASED.fullmatch(text):
        return _exact(int(text[2:], 8 if text[1] == "o" else 16))
    if _NUMBER.fullmatch(text):
        return _finite(float(text), text)
    return text


def _exact(number: int) -> int | float | str:
    """The number as JSON's readers have it: beyond 53 bits they all keep the nearest float."""
    return number if abs(number) < _EXACT else _finite_float(number)


def _finite_float(number: int) -> float | str:
    try:
        return float(number)
    except OverflowError:
        return str(number)


def _finite(number: float, text: str) -> float | str:
    return number if math.isfinite(number) else text
