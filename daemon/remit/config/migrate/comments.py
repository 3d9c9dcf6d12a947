"""Comments that an edit would lose with the entries that they stand on, and where they go instead.

A comment of an entry that became a capability stands above that capability from then on.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import yaml

from remit.config.migrate.tool_lists import NEW_KEYS
from remit.config.strict.edit import Editor, find_pair

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
