"""The tool lists of one mapping of a composition file: what stays of them, what is added."""

import yaml

from remit.config.migrate.kin import is_open
from remit.config.strict.edit import Editor, Entry, Pair, find_pair, flow_list, is_flow, list_lines
from remit.model.composition import Template
from remit.model.place import Place

GRANTING = ("allowed_tools", "additional_tools")
DENYING = "disallowed_tools"
NEW_KEYS = {
    "allowed_tools": "additional_tools",
    "additional_tools": "additional_tools",
    DENYING: DENYING,
}
"""The key under which the rest of a list stands after a migration."""
_NOWHERE = Place("")

Additions = dict[str, list[Entry]]


class ToolLists:
    """Shrinks and extends tool lists, in lines or in brackets as they were written."""

    def __init__(self, editor: Editor, keep: set[str]) -> None:
        self._editor = editor
        self._keep = keep

    def _entries(self, mapping: yaml.Node, key: str) -> list[Entry]:
        pair = find_pair(mapping, key)
        return self._editor.entries(pair[1], pair[0]) if pair else []

    def _stays(self, entries: list[Entry], key: str) -> list[bool]:
        seen: set[str] = set()
        stays = []
        for entry in entries:
            wanted = (
                key == DENYING
                or is_open(Template(entry.text, _NOWHERE))
                or entry.text in self._keep
            )
            stays.append(wanted and entry.text not in seen)
            seen.add(entry.text)
        return stays

    def left(self, mapping: yaml.Node, key: str) -> list[Entry]:
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

    def _update_list(self, mapping: yaml.Node, pair: Pair, new: list[Entry]) -> None:
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


def distinct(entries: list[Entry]) -> list[Entry]:
    """Each text once, the first time it stands."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(entry.text, entry)
    return list(found.values())


def _take(new: Additions, mapping: yaml.Node, key: str) -> list[Entry]:
    """The additions for a list, also those for the key that it will have."""
    return new.pop(_key_for(mapping, key), [])


def _key_for(mapping: yaml.Node, key: str) -> str:
    """What is left of an explicit list is an addition, unless there is such a list already."""
    return key if key == DENYING or find_pair(mapping, NEW_KEYS[key]) else NEW_KEYS[key]
