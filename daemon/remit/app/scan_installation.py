"""`remit scan` without a path: everything that this installation puts before models."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from remit.app.features import load_all_handlers
from remit.app.scan import ScanResult, judge_subjects, shown, unread_alarm, walk
from remit.app.workbench import definition_files
from remit.config.definitions.files import Files
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.config.strict.yaml import Mapping as YamlMapping
from remit.config.strict.yaml import Node, Scalar, Sequence, parse_yaml
from remit.errors import DefinitionError, Place
from remit.features.cards.library import configured_roots
from remit.features.scan.subjects import Kind, SourceFile, Subject, SubjectText, role_of
from remit.features.skills.directories import directories
from remit.kernel.dispatch.handler import Handler
from remit.model.descriptor import tool_id
from remit.model.event import make_universe
from remit.policy.tool_names import tool_names


def scan_installation(settings: Settings) -> ScanResult:
    """Scan what this installation shows to models.

    Raises:
        DefinitionError: the definitions cannot be read.
    """
    loaded = load_all_handlers(settings)
    subjects = [
        *_event_subjects(loaded.handlers),
        *_definition_subjects(settings),
    ]
    alarms = [unread_alarm(one.place, one.message) for one in loaded.failures]
    return judge_subjects(subjects, _installed_files(settings), alarms)


def _installed_files(settings: Settings) -> Iterator[tuple[Path, Kind | None]]:
    """Every file of skills, cards and upstream tools that the settings lead to."""
    for directory in directories(os.environ, Path.cwd(), settings.capability_dirs):
        yield from ((path, None) for path in walk(directory.path))
    for root in configured_roots(settings):
        for path in walk(root.path):
            if path.suffix == ".md" and path.parent == root.path:
                yield path, "card"
    folder = Home(settings.home).upstreams
    yield from ((path, None) for path in sorted(folder.glob("*.json")))


def _event_subjects(handlers: Mapping[str, Handler]) -> Iterator[Subject]:
    """Every registered event: what a model is told of it, and of its parameters."""
    names = tool_names(make_universe([handler.spec for handler in handlers.values()]))
    sources: dict[str, SourceFile] = {}
    for event in sorted(handlers):
        handler = handlers[event]
        yield Subject(
            tool_id(event),
            "tool",
            tuple(_event_texts(handler, names.get(event, event), sources)),
            name=names.get(event, ""),
        )


def _event_texts(
    handler: Handler, tool: str, sources: dict[str, SourceFile]
) -> Iterator[SubjectText]:
    spec = handler.spec
    place = spec.place or Place(handler.module)
    source = sources.setdefault(place.file, _source(place.file))
    start = source.offset(place)
    yield SubjectText(tool, source, start, "name", is_exact=False)
    for value in dict.fromkeys((spec.title, spec.summary, handler.description, spec.deprecated)):
        if value:
            yield SubjectText(value, source, start, is_exact=False)
    strings = dict.fromkeys((*_strings(handler.input_schema), *_strings(handler.answer_schema)))
    for value in strings:
        yield SubjectText(value, source, start, role_of(value), is_exact=False)


def _source(file: str) -> SourceFile:
    path = Path(file)
    try:
        return SourceFile(shown(path), path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return SourceFile(file, "")


def _strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys too."""
    waiting = [value]
    while waiting:
        present = waiting.pop()
        if isinstance(present, str):
            yield present
        elif isinstance(present, Mapping):
            waiting += [*present.values(), *present][::-1]
        elif isinstance(present, list | tuple):
            waiting += reversed(present)


def _definition_subjects(settings: Settings) -> Iterator[Subject]:
    """Every capability and composition: descriptions, prompts, and whatever else they say.

    Raises:
        DefinitionError: the files cannot be read.
    """
    files = definition_files(settings)
    if files.problems:
        raise DefinitionError(files.problems)
    for file in sorted(files.contents):
        source = SourceFile(shown(Path(file)), files.contents[file].decode("utf-8-sig", "replace"))
        node, _ = parse_yaml(files.contents[file], file)
        if not isinstance(node, YamlMapping):  # remit check says what is wrong with it
            yield Subject(f"file:{source.file}", "file", (SubjectText(source.text, source),))
            continue
        yield from _entries(node, file, files, source)


def _entries(node: YamlMapping, file: str, files: Files, source: SourceFile) -> Iterator[Subject]:
    top = {key.text: value for key, value in node.pairs}
    capabilities = top.get("capabilities")
    if file == files.catalogue and isinstance(capabilities, YamlMapping):
        for key, value in capabilities.pairs:
            texts = tuple(_texts(value, source))
            yield Subject(f"capability:{key.text}", "capability", texts)
        return
    name = top.get("name")
    identity = name.text if isinstance(name, Scalar) else Path(file).stem
    yield Subject(f"composition:{identity}", "composition", tuple(_texts(node, source)))


def _texts(node: Node, source: SourceFile) -> Iterator[SubjectText]:
    """The texts below a node; names and numbers say nothing to a model."""
    waiting: list[Node] = [node]
    while waiting:
        present = waiting.pop()
        if isinstance(present, Scalar):
            if isinstance(present.value, str):
                start = source.offset(present.place)
                yield SubjectText(
                    present.text, source, start, role_of(present.text), is_exact=False
                )
        elif isinstance(present, Sequence):
            waiting += reversed(present.items)
        else:
            waiting += [part for pair in reversed(present.pairs) for part in reversed(pair)]
