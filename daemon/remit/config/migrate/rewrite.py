"""Put a migration into the operator's own file: the least that must change, and nothing else."""

from collections.abc import Iterator

import msgspec
import yaml

from remit.config.definitions.compositions import read_composition_file
from remit.config.migrate.migrate import ProfileMigration
from remit.config.migrate.tool_lists import (
    DENYING,
    GRANTING,
    NEW_KEYS,
    Additions,
    ToolLists,
    distinct,
    with_comments_of,
)
from remit.config.strict.edit import (
    Editor,
    ListEntry,
    find_pair,
    flow_list,
    is_flow,
    list_lines,
    plain,
)
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import Node, Scalar, parse_yaml
from remit.errors import ConflictError
from remit.model.composition import Composition


def rewrite_composition(text: str, migration: ProfileMigration) -> str:
    """The text of a composition with its explicit lists said in capabilities.

    Raises:
        ConflictError: the file is written in a way that cannot be edited safely.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    editor = Editor(text)
    if isinstance(editor.root, yaml.MappingNode):
        _Rewrite(editor, editor.root, migration).run()
    result = with_comments_of(text, editor.result(), migration.homes)
    _check(result, migration)
    return result.replace("\n", newline)


def _check(text: str, migration: ProfileMigration) -> None:
    """The new text must load by the strict rules and say what was proven."""
    report = Report()
    file = migration.composition.place.file
    node, problems = parse_yaml(text.encode(), file)
    found = read_composition_file(node, file, report, _not_opened) if node else None
    wanted = migration.composition
    if problems or report.problems or found is None or _said(found, file) != _said(wanted, file):
        raise ConflictError(
            f"{file} is written in a way that cannot be edited safely",
            hint="put the capabilities into the file by hand",
            details=migration.to_json(),
        )


def _not_opened(_component: str, _source: Scalar, _report: Report) -> Node | None:
    return None


def _said(composition: Composition, file: str) -> tuple[set[tuple[str, bool]], set[str], set[str]]:
    parts = [part for part in composition.parts if not part.when]
    return (
        {(f.capability, f.on) for part in parts for f in part.flags if f.place.file == file},
        {text.text for part in parts for text in part.allowed if text.place.file == file},
        {text.text for part in parts for text in part.disallowed if text.place.file == file},
    )


class _Component(msgspec.Struct, frozen=True):
    """An unconditional component whose content stands in the file itself."""

    node: yaml.MappingNode
    name: yaml.Node
    inline: yaml.Node


def _components(sequence: yaml.Node | None) -> Iterator[_Component]:
    for node in sequence.value if isinstance(sequence, yaml.SequenceNode) else ():
        name, inline = find_pair(node, "name"), find_pair(node, "inline")
        if name and inline and not find_pair(node, "when"):
            yield _Component(node, name[1], inline[1])


class _Rewrite:
    """The edits of one file. What still has to be placed is taken away as soon as it is."""

    def __init__(self, editor: Editor, root: yaml.MappingNode, migration: ProfileMigration) -> None:
        self._editor = editor
        self._root = root
        self._chosen = list(migration.chosen)
        self._denied = plain(migration.denied)
        self._lists = ToolLists(editor, set(migration.additional_tools))
        components = find_pair(root, "components")
        self._sequence = components[1] if components else None
        self._components = list(_components(self._sequence))

    def run(self) -> None:
        """Plan all edits."""
        explicit = self._named("ksi_tools")
        overrides = next(iter(self._named("tool_overrides")), None)
        self._fill_existing_capabilities()
        if any(self._lists.changes(self._root, key) for key in GRANTING):
            self._update_root()
        moved = self._moved(explicit)
        if overrides is not None:
            self._update_overrides(overrides, moved)
        elif self._denied and explicit:
            moved[DENYING] = [*moved.get(DENYING, []), *self._take_denied()]
        for at, component in enumerate(explicit):
            self._replace(component, {} if at or overrides else moved)

    def _named(self, name: str) -> list[_Component]:
        return [component for component in self._components if component.name.value == name]

    def _take_chosen(self) -> list[str]:
        chosen, self._chosen = self._chosen, []
        return chosen

    def _take_denied(self) -> list[ListEntry]:
        denied, self._denied = self._denied, []
        return denied

    def _fill_existing_capabilities(self) -> None:
        own = find_pair(self._root, "capabilities")
        found = [own[1]] if own else [c.inline for c in self._named("capabilities")]
        if found and self._chosen:
            in_list = isinstance(found[0], yaml.SequenceNode)
            names = self._take_chosen()
            sources = names if in_list else [f"{name}: true" for name in names]
            self._editor.append_pairs(found[0], sources)

    def _moved(self, explicit: list[_Component]) -> Additions:
        """What the explicit components leave behind, by the key under which it will stand."""
        moved: Additions = {}
        for component in explicit:
            for key in (*GRANTING, DENYING):
                left = self._lists.left(component.inline, key)
                if left:
                    moved[NEW_KEYS[key]] = distinct([*moved.get(NEW_KEYS[key], []), *left])
        return moved

    def _update_root(self) -> None:
        """The short form: capabilities stand where the first list stood."""
        denied = {DENYING: self._take_denied()} if self._denied else {}
        chosen = self._take_chosen()
        if is_flow(self._root):
            flags = ", ".join(f"{name}: true" for name in chosen)
            extra = [f"capabilities: {{{flags}}}"] if chosen else []
            self._lists.update_flow(self._root, denied, extra)
            return
        first = next(p for p in (find_pair(self._root, k) for k in GRANTING) if p is not None)
        if chosen and is_flow(first[1]):
            flags = ", ".join(f"{name}: true" for name in chosen)
            lines = [f"capabilities: {{{flags}}}"]
        else:
            lines = ["capabilities:", *(f"  {name}: true" for name in chosen)] if chosen else []
        # In this order: what ends the list above stands before what begins here.
        self._lists.update_block(self._root, denied, first[1])
        self._editor.insert_before(first[0].start_mark.line, lines)

    def _update_overrides(self, component: _Component, new: Additions) -> None:
        if self._denied:
            new = {**new, DENYING: [*new.get(DENYING, []), *self._take_denied()]}
        mapping = component.inline
        remains = {
            p[0].value for p in mapping.value if self._lists.left(mapping, p[0].value)
        } | set(new)
        explicit = self._named("ksi_tools")
        if self._chosen and not explicit:
            lines = self._component_lines(component, "capabilities", {})
            self._editor.insert_before(component.node.start_mark.line, lines)
            self._chosen = []
        if not remains:
            self._remove(component)
        elif is_flow(mapping):
            self._lists.update_flow(mapping, new, [])
        else:
            self._lists.update_block(mapping, new, mapping.value[0][1])

    def _replace(self, component: _Component, moved: Additions) -> None:
        """Let an explicit component become capabilities and, if need be, overrides."""
        names = (["capabilities"] if self._chosen else []) + (["tool_overrides"] if moved else [])
        if not names:
            self._remove(component)
            return
        first, *others = names
        self._editor.replace(component.name, first)
        if is_flow(component.inline):
            self._editor.replace(component.inline, self._flow_body(first, moved))
        else:
            indent = component.inline.start_mark.column
            lines = self._block_body(component, first, moved, indent)
            top, end = component.inline.start_mark.line, self._editor.last_line(component.inline)
            self._editor.replace_lines(top, end, lines)
        for name in others:
            lines = self._component_lines(component, name, moved)
            self._editor.insert_after(self._editor.last_line(component.node), lines)
        self._chosen = []

    def _flow_body(self, name: str, moved: Additions) -> str:
        if name == "capabilities":
            return "{" + ", ".join(f"{chosen}: true" for chosen in self._chosen) + "}"
        return "{" + ", ".join(f"{key}: {flow_list(list_)}" for key, list_ in moved.items()) + "}"

    def _block_body(
        self, component: _Component, name: str, moved: Additions, indent: int
    ) -> list[str]:
        if name == "capabilities":
            return [f"{' ' * indent}{chosen}: true" for chosen in self._chosen]
        like = component.inline.value[0][1]
        flow = is_flow(like)
        dash = 2 if flow else max(like.start_mark.column - component.inline.start_mark.column, 0)
        return [
            line
            for key, entries in moved.items()
            for line in list_lines(key, entries, indent, dash, flow=flow)
        ]

    def _component_lines(self, like: _Component, name: str, moved: Additions) -> list[str]:
        """A new component in the style of another."""
        dash = self._sequence.start_mark.column if self._sequence is not None else 0
        indent = like.node.start_mark.column
        head = f"{' ' * dash}-{' ' * (indent - dash - 1)}"
        if is_flow(like.node):
            return [f"{head}{{name: {name}, inline: {self._flow_body(name, moved)}}}"]
        lines = [f"{head}name: {name}"]
        comments = any(entry.has_comments for entries in moved.values() for entry in entries)
        if is_flow(like.inline) and not (comments and name == "tool_overrides"):
            return [*lines, f"{' ' * indent}inline: {self._flow_body(name, moved)}"]
        inner = indent + 2 if is_flow(like.inline) else like.inline.start_mark.column
        body = self._block_body(like, name, moved, inner)
        return [*lines, f"{' ' * indent}inline:", *body]

    def _remove(self, component: _Component) -> None:
        """Take a component out, and the whole list with the last one."""
        whole = self._sequence is not None and len(self._sequence.value) == 1
        pair = find_pair(self._root, "components") if whole and not self._kept_beside() else None
        first = pair[0].start_mark.line if pair else component.node.start_mark.line
        self._editor.replace_lines(first, self._editor.last_line(component.node), [])

    def _kept_beside(self) -> bool:
        """Tell whether a component has just been put beside the only one there was."""
        overrides = self._named("tool_overrides")
        return bool(overrides) and not self._chosen and not find_pair(self._root, "capabilities")
