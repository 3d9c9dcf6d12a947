"""Small edits of a YAML text that leave every other character as it was.

The text is parsed only to learn where things stand. An edit replaces a span, so comments, quotes,
blank lines and odd indentation elsewhere cannot change: they are never written again.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_END_COMMENT = re.compile(r"[ \t]*,?[ \t]+(#[^\n]*)")

Pair = tuple[yaml.ScalarNode, yaml.Node]


class ListEntry(msgspec.Struct, frozen=True):
    """An entry of a list as it was written, with the comments that stand on it."""

    text: str
    source: str
    above: tuple[str, ...] = ()
    after: str = ""

    @property
    def has_comments(self) -> bool:
        """Tell whether it needs a line of its own."""
        return bool(self.above or self.after)


def plain(texts: tuple[str, ...]) -> list[ListEntry]:
    """New entries; a wildcard needs quotes."""
    return [ListEntry(t, f'"{t}"' if "*" in t else t) for t in texts]


def is_flow(node: yaml.Node) -> bool:
    """Tell whether a collection is written in brackets; a single value counts as such."""
    return not isinstance(node, yaml.CollectionNode) or bool(node.flow_style)


def find_pair(mapping: yaml.Node, key: str) -> Pair | None:
    """A key of a mapping with its value."""
    pairs: list[Pair] = mapping.value if isinstance(mapping, yaml.MappingNode) else []
    return next((pair for pair in pairs if pair[0].value == key), None)


class Editor:
    """A text, where its parts stand, and the edits that wait to be made."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root = yaml.compose(text, Loader=_LOADER)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        """The text with all edits made."""
        pieces = []
        at = 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            pieces += [self.text[at:start], new]
            at = max(at, end)
        return "".join([*pieces, self.text[at:]])

    def replace(self, node: yaml.Node, new: str) -> None:
        """Put something else in the place of a single value or of brackets."""
        self._edits.append((node.start_mark.index, node.end_mark.index, new))

    def replace_lines(self, first: int, last: int, lines: list[str]) -> None:
        """Put other lines in the place of whole lines, counted from 0; both ends included."""
        start, end = self._lines[first], min(self._lines[last + 1], len(self.text))
        new = "".join(f"{line}\n" for line in lines)
        if end == len(self.text) and not self.text.endswith("\n"):
            new = new.removesuffix("\n")
        self._edits.append((start, end, new))

    def insert_after(self, line: int, lines: list[str]) -> None:
        """Put lines below a line."""
        if not lines:
            return
        at = min(self._lines[line + 1], len(self.text))
        new = "".join(f"{text}\n" for text in lines)
        if at == len(self.text) and not self.text.endswith("\n"):
            new = "\n" + new.removesuffix("\n")
        self._edits.append((at, at, new))

    def insert_before(self, line: int, lines: list[str]) -> None:
        """Put lines above a line."""
        self._edits.append((self._lines[line], self._lines[line], "".join(f"{t}\n" for t in lines)))

    def line(self, number: int) -> str:
        """A line without its end."""
        return self.text[self._lines[number] : self._lines[number + 1]].rstrip("\n")

    def last_line(self, node: yaml.Node) -> int:
        """The last line on which a node has text; the marks of blocks run past their comments."""
        while not is_flow(node) and node.value:
            child = node.value[-1]
            node = child[1] if isinstance(child, tuple) else child
        end = node.end_mark
        return int(
            end.line - 1 if end.column == 0 and end.line > node.start_mark.line else end.line
        )

    def first_comment_line(self, line: int, bound: int) -> int:
        """The first of the comment lines that stand directly above a line, below `bound`."""
        while line - 1 > bound and self.line(line - 1).lstrip().startswith("#"):
            line -= 1
        return line

    def entries(self, node: yaml.Node, key: yaml.Node) -> list[ListEntry]:
        """The entries of a list, or the single value that stands for one."""
        if isinstance(node, yaml.ScalarNode):
            return [ListEntry(node.value, self.source(node))]
        found = []
        bound = key.start_mark.line
        for item in node.value:
            own = item.start_mark.line
            alone = not self.line(own)[: item.start_mark.column].strip(" \t-")
            first = self.first_comment_line(own, bound) if alone else own
            above = tuple(self.line(number).strip() for number in range(first, own))
            after = _END_COMMENT.match(self.text, item.end_mark.index)
            comment = after.group(1).rstrip() if after else ""
            found.append(ListEntry(item.value, self.source(item), above, comment))
            bound = item.end_mark.line
        return found

    def source(self, node: yaml.Node) -> str:
        """What stands in the text for a single value or for brackets."""
        return self.text[node.start_mark.index : node.end_mark.index]

    def remove_items(self, node: yaml.Node, kept: list[bool], key: yaml.Node) -> None:
        """Take items out of a block list, each with the comments that stand on it."""
        bound = key.start_mark.line
        for item, keep in zip(node.value, kept, strict=True):
            last = self.last_line(item)
            if not keep:
                first = self.first_comment_line(item.start_mark.line, bound)
                self.replace_lines(first, last, [])
            bound = last

    def append_entries(self, node: yaml.Node, entries: list[ListEntry]) -> None:
        """Add lines to the end of a block list."""
        self.insert_after(self.last_line(node), entry_lines(entries, node.start_mark.column))

    def append_pairs(self, node: yaml.Node, sources: list[str]) -> None:
        """Add to the end of a mapping or list, in its own style."""
        if is_flow(node):
            end = node.end_mark.index - 1
            comma = ", " if node.value else ""
            self._edits.append((end, end, comma + ", ".join(sources)))
        else:
            dash = "- " if isinstance(node, yaml.SequenceNode) else ""
            indent = " " * node.start_mark.column
            self.insert_after(self.last_line(node), [f"{indent}{dash}{s}" for s in sources])


def entry_lines(entries: list[ListEntry], indent: int) -> list[str]:
    """The lines of a block list."""
    lines = []
    for entry in entries:
        lines += [f"{' ' * indent}{comment}" for comment in entry.above]
        comment = f"  {entry.after}" if entry.after else ""
        lines.append(f"{' ' * indent}- {entry.source}{comment}")
    return lines


def list_lines(
    key: str, entries: list[ListEntry], indent: int, dash: int, *, flow: bool
) -> list[str]:
    """A key with a list, in brackets unless a comment needs a line of its own."""
    edge = " " * indent
    if flow and not any(entry.has_comments for entry in entries):
        return [f"{edge}{key}: {flow_list(entries)}"]
    return [f"{edge}{key}:", *entry_lines(entries, indent + dash)]


def flow_list(entries: list[ListEntry]) -> str:
    """Entries in brackets."""
    return f"[{', '.join(entry.source for entry in entries)}]"


WIDTH = 100
_PLAIN = re.compile(
    r"[A-Za-z_./~][A-Za-z0-9_./~+=-]*(?: [A-Za-z0-9_./~+=-]+)*|https?://[A-Za-z0-9_.:-]+/[\w./~-]*",
    re.ASCII,
)
_WORDS = frozenset({"true", "false", "null", "~", "yes", "no", "on", "off", "y", "n"})


def scalar(value: str | float) -> str:
    """A single value; text that could be taken for anything else is quoted."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) else repr(float(value))
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    width = next(size for size in (2, 4, 8) if code < 16**size)
    return f"\\{ {2: 'x', 4: 'u', 8: 'U'}[width] }{code:0{width}x}"


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{scalar(k)}: {flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(flow, value))}]"
    return scalar(value)


def pair_lines(key: str, value: Any, indent: int) -> list[str]:
    """A key with its value: on one line where that is short, else below it."""
    edge = " " * indent
    line = f"{edge}{scalar(key)}: {flow(value)}"
    if not value or isinstance(value, str | int | float):
        return [line]
    nested = isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values())
    if len(line) <= WIDTH and not (nested and len(value) > 1):
        return [line]
    if isinstance(value, Mapping):
        inside = [f"{edge}  {scalar(k)}: {flow(v)}" for k, v in value.items()]
    else:
        inside = [f"{edge}  - {flow(item)}" for item in value]
    return [f"{edge}{scalar(key)}:", *inside]
