"""From files to definitions: every file is read to its end, every mistake is kept."""

from remit.config.definitions.capabilities import read_capability_file
from remit.config.definitions.compositions import read_composition_file
from remit.config.definitions.files import Files, read_source
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import Node, Scalar, parse_yaml, read_text
from remit.model.capability import Capability
from remit.model.composition import Definitions
from remit.model.place import Place


def parse_definitions(files: Files) -> Definitions:
    """Parse a set of files. The problems are in the result; nothing is raised."""
    report = Report()
    report.extend(files.problems)
    capabilities: tuple[Capability, ...] = ()
    node, usable = _parse(files, files.catalogue, report)
    if usable:
        capabilities = read_capability_file(node, files.catalogue, report)
    compositions = []
    for name in files.compositions:
        node, usable = _parse(files, name, report)
        if usable:
            compositions.append(read_composition_file(node, name, report, _Opener(files)))
    found = tuple(composition for composition in compositions if composition is not None)
    return Definitions(capabilities, found, report.shown())


def _parse(files: Files, name: str, report: Report) -> tuple[Node | None, bool]:
    """The document of a file, and whether it was read; an empty file reads as nothing."""
    if name not in files.contents:
        return None, False
    node, problems = parse_yaml(files.contents[name], name)
    report.extend(problems)
    return node, node is not None or not problems


class _Opener:
    """Opens `source:` files of components for one set of files."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __call__(self, component: str, source: Scalar, report: Report) -> Node | None:
        shown, found = read_source(self._files, source.text)
        if isinstance(found, str):
            hint = "a source is a path inside the compositions folder"
            report.add(source.place, "bad_source", found, hint)
            return None
        if component == "prompt":
            text, problems = read_text(found, shown)
            if not text.strip() and not problems:
                report.add(source.place, "bad_source", f"{shown} is empty")
            report.extend(problems)
            return None if problems else Scalar(text, text, Place(shown))
        node, problems = parse_yaml(found, shown)
        report.extend(problems)
        if node is None and not problems:
            report.add(source.place, "bad_source", f"{shown} is empty")
        return node
