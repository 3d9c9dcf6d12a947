"""A strict reading of YAML: every node keeps its place, and nothing surprising is understood.

PyYAML's own constructors keep the last of two equal keys, read `no` as False and hang on a 400-byte
merge bomb. So only libyaml's event stream is used, and the tree is built here, without recursion,
under caps. Aliases, anchors, tags, merge keys, duplicate keys and second documents are refused.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator

import msgspec
import yaml

from remit.errors import Place, Problem

MAX_BYTES = 1 << 20
MAX_DEPTH = 40
MAX_NODES = 50_000
_TOO_LARGE = "make it smaller; every profile has a file of its own"

LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""What ends a line in YAML; Python's own splitlines knows more."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]+)?")
_PLAIN_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None}

JsonScalar = str | int | float | bool | None


class Scalar(msgspec.Struct, frozen=True):
    """A single value as written; `value` is what it means."""

    text: str
    value: JsonScalar
    place: Place
    plain: bool = False
    """Whether it stands without quotes, so that other readers may take it for more than text."""


class Sequence(msgspec.Struct, frozen=True):
    """A list."""

    items: list["Node"]
    place: Place


class Mapping(msgspec.Struct, frozen=True):
    """A mapping; keys are always scalars and never repeat."""

    pairs: list[tuple[Scalar, "Node"]]
    place: Place


Node = Scalar | Sequence | Mapping


class _Refusal(Exception):  # noqa: N818 - control flow inside this module, not an error of the family
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def parse_yaml(raw: bytes, file: str) -> tuple[Node | None, list[Problem]]:
    """Read one document; an unreadable one gives no node and says why.

    Duplicate keys are reported all at once; what breaks the structure ends the reading.
    """
    problems: list[Problem] = []
    text = ""
    try:
        text = decode_text(raw, file)
        return _build(text, file, problems), problems
    except _Refusal as refusal:
        return None, [*problems, refusal.problem]
    except yaml.YAMLError as error:
        return None, [*problems, _syntax_problem(error, file, text)]


def decode_text(raw: bytes, file: str) -> str:
    """Accept UTF-8 text of a sane size, with or without a byte order mark."""
    if len(raw) > MAX_BYTES:
        message = f"the file has more than {MAX_BYTES:,} bytes"
        raise _Refusal(Problem(Place(file), "too_large", message, _TOO_LARGE))
    try:
        text = raw.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        # After a byte order mark the error counts from behind it, and so does `error.object`.
        place = _place_at(error.object[: error.start].decode(), file)
        message = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise _Refusal(Problem(place, "not_utf8", message, "save the file as UTF-8")) from error
    control = _CONTROL.search(text)
    if control:
        place = _place_at(text[: control.start()], file)
        message = f"the character {control.group()!r} cannot stand here"
        raise _Refusal(Problem(place, "control_character", message, "remove it"))
    return text


def read_text(raw: bytes, file: str) -> tuple[str, list[Problem]]:
    """Decode a plain text file under the same rules as YAML files."""
    try:
        return decode_text(raw, file), []
    except _Refusal as refusal:
        return "", [refusal.problem]


def _place_at(before: str, file: str) -> Place:
    lines = LINE_BREAK.split(before)
    return Place(file, len(lines), len(lines[-1]) + 1)


def _syntax_problem(error: yaml.YAMLError, file: str, text: str) -> Problem:
    message = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    told = f"{message} {context}" if context else message
    return Problem(_trouble_at(error, file, text), "yaml_syntax", f"this is not YAML: {told}")


def _trouble_at(error: yaml.YAMLError, file: str, text: str) -> Place:
    """Where the trouble is; when it was only noticed at the end, where it began."""
    marks = (getattr(error, "problem_mark", None), getattr(error, "context_mark", None))
    for mark in marks:
        if mark is not None and mark.index < len(text.rstrip()):
            return Place(file, mark.line + 1, mark.column + 1)
    return _place_at(text.rstrip()[:-1], file)


class _Open(msgspec.Struct):
    """A collection that is being filled; `key` waits for its value."""

    node: Sequence | Mapping
    key: Scalar | None = None
    seen: dict[str, Place] = {}


def _build(text: str, file: str, problems: list[Problem]) -> Node | None:
    stack: list[_Open] = []
    root: Node | None = None
    for count, event in enumerate(_checked_events(text, file)):
        if count > MAX_NODES:
            place = _place_of(event, file)
            message = f"more than {MAX_NODES:,} nodes"
            raise _Refusal(Problem(place, "too_large", message, _TOO_LARGE))
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            continue
        node = _node_of(event, file)
        if root is None:
            root = node
        if stack:
            _attach(stack[-1], node, problems)
        if not isinstance(node, Scalar):
            stack.append(_Open(node, seen={}))
        if len(stack) > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels"
            raise _Refusal(Problem(node.place, "too_deep", message, "flatten it"))
    return root


def _checked_events(text: str, file: str) -> Iterator[yaml.Event]:
    documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.NodeEvent):
            _refuse_magic(event, file)
            yield event
        elif isinstance(event, yaml.CollectionEndEvent):
            yield event
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                message = "a second document starts here; one file holds one"
                raise _Refusal(Problem(_place_of(event, file), "several_documents", message))


def _refuse_magic(event: yaml.NodeEvent, file: str) -> None:
    tag = getattr(event, "tag", None)
    if event.anchor is None and tag is None:
        return
    place = _place_of(event, file)
    if isinstance(event, yaml.AliasEvent):
        message = f"the alias *{event.anchor} is not understood here"
        raise _Refusal(Problem(place, "alias", message, "write the value out"))
    if event.anchor is not None:
        message = f"the anchor &{event.anchor} is not understood here"
        raise _Refusal(Problem(place, "alias", message, "remove it"))
    message = f"the tag {tag!r} is not understood here"
    raise _Refusal(Problem(place, "tag", message, "remove it"))


def _node_of(event: yaml.Event, file: str) -> Node:
    place = _place_of(event, file)
    if isinstance(event, yaml.ScalarEvent):
        plain = event.style in (None, "")
        meaning = _meaning(event.value) if plain else event.value
        return Scalar(event.value, meaning, place, plain)
    if isinstance(event, yaml.SequenceStartEvent):
        return Sequence([], place)
    return Mapping([], place)


def _meaning(text: str) -> JsonScalar:
    """Only true, false, null and plain decimal numbers are more than text."""
    if text in _PLAIN_WORDS:
        return _PLAIN_WORDS[text]
    if not text:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _attach(parent: _Open, node: Node, problems: list[Problem]) -> None:
    if isinstance(parent.node, Sequence):
        parent.node.items.append(node)
    elif parent.key is None:
        parent.key = _checked_key(node, parent.seen, problems)
    else:
        parent.node.pairs.append((parent.key, node))
        parent.key = None


def _checked_key(node: Node, seen: dict[str, Place], problems: list[Problem]) -> Scalar:
    if not isinstance(node, Scalar):
        raise _Refusal(Problem(node.place, "complex_key", "a key must be a single word"))
    if node.text == "<<":
        hint = "use 'extends' or 'mixins' to share keys"
        raise _Refusal(Problem(node.place, "merge_key", "merge keys are not understood", hint))
    if node.text in seen:
        message = f"the key {node.text!r} stands twice; first at line {seen[node.text].line}"
        problems.append(Problem(node.place, "duplicate_key", message, "keep one of them"))
    seen[node.text] = node.place
    return node


def _place_of(event: yaml.Event, file: str) -> Place:
    mark = event.start_mark
    return Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)


def to_json(node: Node) -> object:
    """The plain value of a node, for keys whose content is free JSON. Depth is capped already."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [to_json(item) for item in node.items]
    return {key.text: to_json(value) for key, value in node.pairs}
