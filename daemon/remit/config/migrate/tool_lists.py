"""The tool lists of a composition file: what stays of them, what is added, and their comments."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import yaml

from remit.config.strict.edit import (
    Editor,
    ListEntry,
    Pair,
    find_pair,
    flow_list,
    is_flow,
    list_lines,
)
from remit.errors import Place
from remit.model.launch import Template

GRANTING = ("allowed_tools", "additional_tools")
DENYING = "disallowed_tools"
NEW_KEYS = {
    "allowed_tools": "additional_tools",
    "additional_tools": "additional_tools",
    DENYING: DENYING,
}
"""The key under which the rest of a list stands after a migration."""
_NOWHERE = Place("")
Additions = dict[str, list[ListEntry]]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HASH = re.compile(r"(?m)(?:^|(?<=[ \t]))#[^\n]*")
_LISTS = ("ksi_tools", "tool_overrides")


class Comment(msgspec.Struct, frozen=True):
    """A comment with the place where it begins."""

    index: int
    line: int
    text: str
    is_alone: bool
    """Whether nothing else stands on its line."""


class ToolLists:
    """Shrinks and extends tool lists, in lines or in brackets as they were written."""

    def __init__(self, editor: Editor, keep: set[str]) -> None:
        self._editor = editor
        self._keep = keep

    def _entries(self, mapping: yaml.Node, key: str) -> list[ListEntry]:
        pair = find_pair(mapping, key)
        return self._editor.entries(pair[1], pair[0]) if pair else []

    def _stays(self, entries: list[ListEntry], key: str) -> list[bool]:
        seen: set[str] = set()
        stays = []
        for entry in entries:
            wanted = (
                key == DENYING or Template(entry.text, _NOWHERE).is_open or entry.text in self._keep
            )
            stays.append(wanted and entry.text not in seen)
            seen.add(entry.text)
        return stays

    def left(self, mapping: yaml.Node, key: str) -> list[ListEntry]:
        """The entries of a list that stay."""
        entries = self._entries(mapping, key)
        return [e for e, stays in zip(entries, self._stays(entries, key), strict=True) if stays]

    def changes(self, mapping: yaml.Node, key: str) -> bool:
        """Tell whether an entry of a list goes."""
        return not all(self._stays(self._entries(mapping, key), key))

    def update_flow(self, mapping: yaml.Node, new: Additions, extra: list[str]) -> None:
        """Write a mapping in brackets again, from the sources of its parts."""
        new = dict(new)
        texts = []
        for key, value in mapping.value:
            name = key.value
            if name in NEW_KEYS:
                left = distinct([*self.left(mapping, name), *_take(new, mapping, name)])
                texts += [f"{_key_for(mapping, name)}: {flow_list(left)}"] if left else []
            else:
                texts.append(f"{self._editor.source(key)}: {self._editor.source(value)}")
        texts += [*extra, *(f"{key}: {flow_list(entries)}" for key, entries in new.items())]
        self._editor.replace(mapping, f"{{{', '.join(texts)}}}")

    def update_block(self, mapping: yaml.Node, new: Additions, like: yaml.Node) -> None:
        """Shrink and extend lists that are written in lines; new ones stand after `like`."""
        new = dict(new)
        for key in NEW_KEYS:
            pair = find_pair(mapping, key)
            if pair is not None:
                self._update_list(mapping, pair, _take(new, mapping, key))
        indent = mapping.start_mark.column
        dash = max(like.start_mark.column - indent, 0) if not is_flow(like) else 2
        lines = [
            line
            for key, entries in new.items()
            for line in list_lines(key, entries, indent, dash, flow=is_flow(like))
        ]
        self._editor.insert_after(self._editor.last_line(like), lines)

    def _update_list(self, mapping: yaml.Node, pair: Pair, new: list[ListEntry]) -> None:
        key, node = pair
        entries = self._editor.entries(node, key)
        stays = self._stays(entries, key.value)
        old = [entry for entry, stay in zip(entries, stays, strict=True) if stay]
        left = distinct([*old, *new])
        new = left[len(old) :]
        first, last = key.start_mark.line, self._editor.last_line(node)
        name = _key_for(mapping, key.value)
        if not left and entries:
            self._editor.replace_lines(first, last, [])
            return
        if is_flow(node) and (new or not all(stays)):
            flow = list_lines(name, left, key.start_mark.column, 2, flow=True)
            if len(flow) > 1:
                self._editor.replace_lines(first, last, flow)
                return
            self._editor.replace(node, flow_list(left))
        elif not is_flow(node):
            self._editor.remove_items(node, stays, key)
            self._editor.append_entries(node, new)
        if name != key.value:
            self._editor.replace(key, name)


def distinct(entries: list[ListEntry]) -> list[ListEntry]:
    """Each text once, the first time it stands."""
    found: dict[str, ListEntry] = {}
    for entry in entries:
        found.setdefault(entry.text, entry)
    return list(found.values())


def comments_in(text: str) -> list[Comment]:
    """Every comment of a text; a `#` inside of a value is none."""
    tokens = yaml.scan(text, Loader=_LOADER)
    scalars = [token for token in tokens if isinstance(token, yaml.ScalarToken)]
    starts = [token.start_mark.index for token in scalars]
    found = []
    for match in _HASH.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before >= 0 and match.start() < scalars[before].end_mark.index:
            continue
        line = text.count("\n", 0, match.start())
        alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        found.append(Comment(match.start(), line, match.group().rstrip(), alone))
    return found


def with_comments_of(old: str, new: str, homes: Mapping[str, str]) -> str:
    """The new text, with every comment of the old one that it has lost.

    Args:
        old: the text before the edit.
        new: the text after it.
        homes: for each entry that became a capability, that capability.
    """
    kept = Counter(comment.text for comment in comments_in(new))
    root = Editor(old).root
    entries = [] if root is None else list(_entries(root))
    lines: dict[str, list[str]] = {}
    for comment in comments_in(old):
        if kept[comment.text]:
            kept[comment.text] -= 1
            continue
        entry = _entry_of(comment, entries, old)
        text = comment.text
        if entry and not comment.is_alone:
            text = f"# {entry}: {text.lstrip('# ')}"
        lines.setdefault(homes.get(entry, ""), []).append(text)
    return _inserted(new, lines) if lines else new


def _take(new: Additions, mapping: yaml.Node, key: str) -> list[ListEntry]:
    """The additions for a list, also those for the key that it will have."""
    return new.pop(_key_for(mapping, key), [])


def _key_for(mapping: yaml.Node, key: str) -> str:
    """What is left of an explicit list is an addition, unless there is such a list already."""
    return key if key == DENYING or find_pair(mapping, NEW_KEYS[key]) else NEW_KEYS[key]


def _entries(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every entry of a tool list of a composition, in the order of the text."""
    for mapping in (root, *_components(root, *_LISTS)):
        for key in NEW_KEYS:
            pair = find_pair(mapping, key)
            if pair is not None:
                yield from pair[1].value if isinstance(pair[1], yaml.SequenceNode) else [pair[1]]


def _entry_of(comment: Comment, entries: list[yaml.Node], text: str) -> str:
    """The entry that a comment stands behind or directly above; empty when there is none."""
    if not comment.is_alone:
        ends = [e for e in entries if e.end_mark.index <= comment.index]
        last = max(ends, key=lambda e: e.end_mark.index, default=None)
        is_same = last is not None and last.end_mark.line == comment.line
        return str(last.value) if last is not None and is_same else ""
    below = [e for e in entries if e.start_mark.index > comment.index]
    first = min(below, key=lambda e: e.start_mark.index, default=None)
    if first is None:
        return ""
    between = text[comment.index : first.start_mark.index].splitlines()
    is_directly = all(line.lstrip().startswith(("#", "-")) or not line.strip() for line in between)
    return str(first.value) if is_directly else ""


def _inserted(text: str, lines: Mapping[str, list[str]]) -> str:
    """The text with lines above its capabilities; what has no home stands above the first one."""
    editor = Editor(text)
    places = dict(_capability_lines(editor.root)) if editor.root else {}
    top = editor.root.start_mark.line if editor.root else 0
    first = min(places.values(), default=top)
    for name, comments in lines.items():
        line = places.get(name, first)
        indent = re.match(r"[ \t]*", editor.line(line))
        edge = indent.group() if indent else ""
        editor.insert_before(line, [f"{edge}{comment}" for comment in comments])
    return editor.result()


def _capability_lines(root: yaml.Node) -> Iterator[tuple[str, int]]:
    """The line of each capability that the file itself switches on."""
    own = find_pair(root, "capabilities")
    for node in ([own[1]] if own else []) + list(_components(root, "capabilities")):
        if isinstance(node, yaml.MappingNode):
            yield from ((key.value, key.start_mark.line) for key, _ in node.value)
        elif isinstance(node, yaml.SequenceNode):
            yield from ((one.value, one.start_mark.line) for one in node.value if _is_name(one))


def _is_name(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode)


def _components(root: yaml.Node, *wanted: str) -> Iterator[yaml.Node]:
    """What stands in the components of these names."""
    pair = find_pair(root, "components")
    for node in pair[1].value if pair and isinstance(pair[1], yaml.SequenceNode) else ():
        name, inline = find_pair(node, "name"), find_pair(node, "inline")
        if name and inline and name[1].value in wanted:
            yield inline[1]
