"""The reference has a line for everything that the code has, and for nothing else."""

import ast
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from tests.docs.pages import ROOT, blocks, codes, rows, sections

import remit.errors
import remit_client.errors
from remit.app.features import event_modules
from remit.cli.definitions import capability_schema, composition_schema
from remit.cli.main import remit as command_line
from remit.config.definitions.capabilities import CAPABILITY_FIELDS, MOUNT
from remit.config.definitions.compositions import COMPONENTS
from remit.config.settings.home import Home
from remit.config.settings.table import SETTINGS
from remit.errors import DefinitionError
from remit.features.cards.card import CARD, CARD_ALIASES, TRIGGERS
from remit.features.cards.library import CardLibrary, CardRoot
from remit.features.cards.scorers import load_scorers
from remit.features.cards.select import SkipReason
from remit.features.skills.directories import CapabilityDirectory, DirectoryScanner
from remit.features.skills.extension_file import ALIASES, CATALOGUE, CHANNEL, EXTENSION
from remit.features.skills.manifest_file import MANIFEST
from remit.features.skills.skill_file import SKILL_KEYS
from remit.features.tools.formats import parameters
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.handler import INJECTED, Handler
from remit.kernel.dispatch.registry import REGISTRY, event_handler, load_handlers
from remit.model.capability import STATUSES
from remit.model.composition import VARIABLE_TYPES
from remit.model.event import MisplacedHandlerError, Reason, TakenEventError
from remit.model.limits import LIMIT_NAMES
from remit_client import wire
from remit_client.keys import Key

REFERENCE = ROOT / "docs" / "reference"
HELP_ITSELF = {"--help", "-h"}


def page(name: str) -> dict[str, str]:
    return sections(REFERENCE / f"{name}.md")


# ---- commands ----


def commands(
    group: click.Group = command_line, prefix: str = ""
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"{prefix}{name}", command
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = [pytest.param(name, command, id=name) for name, command in commands()]


def options(command: click.Command) -> set[str]:
    found = (p.opts for p in command.params if isinstance(p, click.Option))
    return {name for names in found for name in names} - HELP_ITSELF


def preface(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8").partition("\n## ")[0]


def _option_table(title: str) -> set[str]:
    table = preface("commands").partition(f"| {title} | meaning |")[2].partition("\n\n")[0]
    return set(rows(table))


def test_every_command_is_documented_and_no_other() -> None:
    assert set(page("commands")) == {name for name, _ in commands()}


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_every_option_of_a_command_is_documented_and_no_other(
    name: str, command: click.Command
) -> None:
    text = page("commands")[name]
    documented = set(rows(text))
    if "the shared options" in text:
        documented |= _option_table("shared option")
    if "the definition options" in text:
        documented |= _option_table("definition option")
    assert documented == options(command)


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_the_usage_of_a_command_names_its_arguments(name: str, command: click.Command) -> None:
    usage = codes(page("commands")[name])[0]
    assert usage.startswith(f"remit {name}")
    for argument in command.params:
        if isinstance(argument, click.Argument):
            shown = argument.make_metavar(click.Context(command)).strip("[].{}")
            assert shown in usage


def test_the_global_options_are_documented() -> None:
    assert _option_table("global option") == {*options(command_line), "-h"}


# ---- events ----

load_handlers(event_modules(), trusted=True)


def built_in() -> dict[str, Handler]:
    handlers = REGISTRY.handlers()
    return {n: h for n, h in sorted(handlers.items()) if h.function.__module__ in event_modules()}


def test_every_event_is_documented_and_no_other() -> None:
    assert list(page("events")) == list(built_in())


@pytest.mark.parametrize("name", built_in())
def test_the_fields_of_an_event_are_documented_as_they_are(name: str) -> None:
    documented = {field: cells[:2] for field, cells in rows(page("events")[name]).items()}
    assert documented == {p["name"]: [p["type"], _default(p)] for p in parameters(built_in()[name])}


def _default(parameter: Mapping[str, Any]) -> str:
    if parameter["required"]:
        return "required"
    value = parameter.get("default")
    return "" if value in (None, "") else f"`{value}`"


@pytest.mark.parametrize("name", built_in())
def test_the_holder_and_the_effect_of_an_event_are_documented_as_they_are(name: str) -> None:
    text, spec = page("events")[name], built_in()[name].spec
    assert spec.summary in text
    assert f"Held by `{spec.capability}`, effect `{spec.effect}`." in text
    assert ("No wildcard grants it." in text) == (not spec.wildcard)


# ---- errors ----


def _family(kind: type[Exception]) -> Iterator[type[Any]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _family(one)


def test_every_error_code_is_documented_and_no_other() -> None:
    ours = {kind.code for kind in _family(remit.errors.RemitError)}
    assert DefinitionError.code in ours
    clients = {kind.default_code for kind in _family(remit_client.errors.RemitError)}
    assert set(rows(page("errors")["Codes"])) == ours | clients


def test_every_code_is_documented_with_its_class_in_the_client() -> None:
    classes = {kind.default_code: kind.__name__ for kind in remit_client.errors._BY_CODE.values()}
    documented = rows(page("errors")["Codes"])
    for code, (shown, _) in documented.items():
        assert codes(shown) == [classes.get(code, "RemitError")], code


def test_every_reason_is_documented_and_no_other() -> None:
    assert set(rows(page("errors")["Reasons"])) == set(typing.get_args(Reason))


def test_every_problem_in_definitions_is_documented_and_no_other() -> None:
    not_grantable = {"coming_soon", "retired"}
    assert not_grantable < set(STATUSES)
    patterns = {remit.errors.InvalidNameError.code, remit.errors.InvalidPatternError.code}
    modules = {MisplacedHandlerError.problem, TakenEventError.problem}
    known = _problem_codes() | not_grantable | patterns | modules
    assert set(rows(page("errors")["Problems in definitions"])) == known


def _problem_codes() -> set[str]:
    """The codes that stand as text where the source makes a problem."""
    found: set[str] = set()
    for path in (ROOT / "daemon" / "remit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _makes_problem(node.func):
                found.update(_code_in(argument) for argument in node.args[1:2])
    return found - {""}


def _makes_problem(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in {"Problem", "add", "_warning"}


def _code_in(argument: ast.expr) -> str:
    is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return str(argument.value) if is_text and isinstance(argument, ast.Constant) else ""


# ---- settings ----


def test_every_setting_is_documented_as_it_is_and_no_other() -> None:
    documented = {
        name: [codes(cell) for cell in cells[:3]]
        for name, cells in rows(page("settings")["Settings of the daemon"]).items()
    }
    expected = {row.name: [[row.flag], [row.variable], _shown(row.default)] for row in SETTINGS}
    assert documented == expected


def _shown(default: object) -> list[str]:
    if default in (None, ""):
        return []
    if isinstance(default, bool):
        return [str(default).lower()]
    return ["[]"] if default == () else [str(default)]


def test_every_variable_that_is_read_is_documented_and_no_other() -> None:
    pattern = re.compile(r"environ(?:\.get\(|\[)\s*\"(REMIT_[A-Z_]+)\"")
    sources = [*(ROOT / "daemon").rglob("*.py"), *(ROOT / "socket_client").rglob("*.py")]
    used = {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}
    assert set(rows(page("settings")["Variables of clients"])) == used


def test_every_file_of_the_home_is_documented_and_no_other() -> None:
    home = Home(Path("/h"))
    names = (name for name, value in vars(Home).items() if isinstance(value, property))
    files = {getattr(home, name).name for name in names}
    assert set(rows(page("settings")["The state directory"])) == files


# ---- YAML ----


def test_every_key_of_capabilities_yaml_is_documented_and_no_other() -> None:
    found = page("capability-yaml")
    assert set(rows(found["Keys of the file"])) == set(capability_schema()["properties"])
    assert set(rows(found["Keys of a capability"])) == set(CAPABILITY_FIELDS)
    assert set(rows(found["Keys of a mount"])) == set(MOUNT.fields)
    assert set(rows(found["Keys of limits"])) == set(LIMIT_NAMES)


def test_every_key_of_a_composition_is_documented_and_no_other() -> None:
    found, schema = page("composition-yaml"), composition_schema()["properties"]
    assert set(rows(found["Keys of a composition"])) == set(schema)
    assert set(rows(found["Components"])) == set(COMPONENTS)
    for title, key in (
        ("Keys of a component", "components"),
        ("Keys of a capability entry", "capabilities"),
        ("Keys of a mixin", "mixins"),
        ("Keys of a variable", "variables"),
        ("Keys of a launcher", "launcher"),
    ):
        assert set(rows(found[title])) == _keys_inside(schema[key]), title


def test_every_key_of_files_in_capability_directories_is_documented_and_no_other() -> None:
    found = page("capability-dirs")
    for title, kind in (
        ("Keys of a manifest", MANIFEST),
        ("Keys of an extension", EXTENSION),
        ("Keys of a channel", CHANNEL),
        ("Keys of extensions.yaml", CATALOGUE),
    ):
        documented = rows(found[title])
        assert set(documented) == set(kind.fields), title
        required = {name for name, field in kind.fields.items() if field.required}
        assert {n for n, cells in documented.items() if ", required" in cells[0]} == required, title
    spelled = rows(found["Other spellings"])
    assert {name: codes(cells[0])[0] for name, cells in spelled.items()} == ALIASES


def test_every_key_of_a_skill_is_documented_and_no_other() -> None:
    documented = rows(page("capability-dirs")["Keys of a skill"])
    assert set(documented) == set(SKILL_KEYS)
    for name, others in SKILL_KEYS.items():
        assert set(others) <= set(codes(documented[name][0])), name


def test_the_files_that_the_page_on_capability_directories_shows_load(tmp_path: Path) -> None:
    for block in blocks(REFERENCE / "capability-dirs.md"):
        if block.directive == "file":
            (tmp_path / block.argument).write_text(block.text, encoding="utf-8")
    found = DirectoryScanner().scan([CapabilityDirectory(tmp_path, "configured")])
    assert found.problems == ()
    assert [one.id for one in found.descriptors] == [
        "channel:telegram",
        "extension:giphy",
        "tool:find-documents",
    ]


def test_every_key_of_a_card_is_documented_and_no_other() -> None:
    found = page("cards")
    for title, kind in (("Keys of a card", CARD), ("Keys of triggers", TRIGGERS)):
        documented = rows(found[title])
        assert set(documented) == set(kind.fields), title
        required = {name for name, field in kind.fields.items() if field.required}
        assert {n for n, cells in documented.items() if ", required" in cells[0]} == required, title
    spelled = rows(found["Other spellings of card keys"])
    assert {name: codes(cells[0])[0] for name, cells in spelled.items()} == CARD_ALIASES


def test_every_reason_and_scorer_of_cards_is_documented_and_no_other() -> None:
    found = page("cards")
    assert set(rows(found["Reasons"])) == set(typing.get_args(SkipReason))
    ours = load_scorers(lambda _messages, _texts: [], offered=()).by_name
    assert set(rows(found["Scorers"])) == set(ours)


def test_the_card_that_the_page_on_cards_shows_loads(tmp_path: Path) -> None:
    for block in blocks(REFERENCE / "cards.md"):
        if block.directive == "file":
            (tmp_path / block.argument).write_text(block.text, encoding="utf-8")
    found = CardLibrary([CardRoot(tmp_path, "operator")]).load()
    assert (found.problems, found.quarantined) == ((), ())
    assert [one.card.id for one in found.cards] == ["token-economy"]


def _keys_inside(schema: Any) -> set[str]:
    """All keys that objects somewhere inside a schema may have, but not those of their values."""
    if isinstance(schema, list):
        return set().union(*map(_keys_inside, schema))
    if not isinstance(schema, dict):
        return set()
    if "properties" in schema:
        return set(schema["properties"])
    return set().union(*map(_keys_inside, schema.values()))


def test_required_keys_are_marked() -> None:
    documented = {**rows(page("capability-yaml")["Keys of a capability"])}
    required = {name for name, field in CAPABILITY_FIELDS.items() if field.required}
    assert {name for name, cells in documented.items() if "required" in cells[0]} == required


def test_the_types_of_variables_are_documented() -> None:
    (cell,) = rows(page("composition-yaml")["Keys of a variable"])["type"]
    assert codes(cell) == list(VARIABLE_TYPES)


# ---- handlers and wire ----


def test_every_argument_of_the_decorator_is_documented_and_no_other() -> None:
    found = inspect.signature(event_handler).parameters.values()
    expected = {p.name: [] if p.default is p.empty else [repr(p.default)] for p in found}
    documented = rows(page("handlers")["Arguments of event_handler"])
    assert {name: codes(cells[0]) for name, cells in documented.items()} == expected


def test_every_type_that_is_filled_in_is_documented_with_its_module_and_no_other() -> None:
    documented = rows(page("handlers")["Types that are filled in"])
    found = {name: codes(cells[0])[0] for name, cells in documented.items()}
    assert found == {kind.__name__: kind.__module__ for kind in INJECTED}


def test_every_member_of_the_context_is_documented_and_no_other() -> None:
    own = {name for name in vars(Context) if not name.startswith("_")}
    documented = rows(page("handlers")["Members of Context"])
    assert set(documented) == own | set(Context.__struct_fields__)


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Fields of a request", wire.Request),
        ("Fields of an answer", wire.Answer),
        ("Fields of an error", wire.Failure),
        ("Fields of progress", wire.Progress),
        ("Fields of a cancel", wire.Cancel),
        ("Fields of a pushed event", wire.Push),
        ("Fields of a gap", wire.Gap),
        ("Fields of a key file", Key),
    ],
)
def test_every_field_on_the_wire_is_documented_and_no_other(
    title: str, kind: type[msgspec.Struct]
) -> None:
    assert list(rows(page("wire")[title])) == list(kind.__struct_fields__)


def test_every_version_and_kind_of_frame_is_documented_and_no_other() -> None:
    constants = (v.decode() for n, v in vars(wire).items() if n.isupper() and isinstance(v, bytes))
    assert set(rows(page("wire")["Frames"])) == set(constants)
