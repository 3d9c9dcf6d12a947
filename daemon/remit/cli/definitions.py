"""Looking after definitions and settings: lint, migrate, schema, graph, config."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from remit.app.workbench import open_workbench
from remit.cli.options import SharedOptions, with_definition_options, with_options
from remit.cli.outcome import (
    NO,
    counted,
    first_look,
    limit_text,
    next_step,
    print_json,
    say,
    say_hint,
    say_source,
)
from remit.config.definitions.capabilities import CAPABILITY_FILE
from remit.config.definitions.compositions import composition_kind
from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.config.migrate.migrate import migrate as migrate_profile
from remit.config.migrate.rewrite import rewrite_composition
from remit.config.settings.home import Home
from remit.config.settings.lock import mismatches, other_settings, plain, served_here
from remit.config.settings.table import SETTINGS
from remit.config.strict.yaml import Mapping, parse_yaml
from remit.errors import InvalidDataError, NotFoundError
from remit.features.cards.card import CARD
from remit.features.registry.file import REGISTRY_FILE
from remit.features.skills.manifest_file import MANIFEST
from remit.features.upstreams.kinds import UPSTREAM_FILE
from remit.model.names import did_you_mean
from remit.policy.graph.graph import picture, to_dot, to_mermaid
from remit.policy.graph.svg import to_svg
from remit.policy.lint import lint as find_drift

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


# ---- the files that people write, for editors ----


def capability_schema() -> dict[str, Any]:
    """The schema of capabilities.yaml."""
    return {"$schema": _DIALECT, "title": "capabilities.yaml"} | CAPABILITY_FILE.schema()


def composition_schema() -> dict[str, Any]:
    """The schema of a composition."""
    kind = composition_kind(lambda _component, _source, _report: None)
    return {"$schema": _DIALECT, "title": "a remit composition"} | kind.schema()


def manifest_schema() -> dict[str, Any]:
    """The schema of CAPABILITY.yaml."""
    return {"$schema": _DIALECT, "title": "CAPABILITY.yaml"} | MANIFEST.schema()


def card_schema() -> dict[str, Any]:
    """The schema of a card's frontmatter."""
    return {"$schema": _DIALECT, "title": "the frontmatter of a card"} | CARD.schema()


def upstream_schema() -> dict[str, Any]:
    """The schema of upstreams.yaml."""
    return {"$schema": _DIALECT, "title": "upstreams.yaml"} | UPSTREAM_FILE.schema()


def registry_schema() -> dict[str, Any]:
    """The schema of registry.yaml."""
    return {"$schema": _DIALECT, "title": "registry.yaml"} | REGISTRY_FILE.schema()


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "capability": capability_schema,
    "composition": composition_schema,
    "manifest": manifest_schema,
    "card": card_schema,
    "upstreams": upstream_schema,
    "registry": registry_schema,
}


@click.command()
@with_definition_options
def lint(shared: SharedOptions) -> None:
    """Find drift: patterns without events, events without capability, old names, and more."""
    settings = shared.definitions()
    bench = open_workbench(settings, shared.events, with_handlers=True)
    commands = Commands(settings.launch_commands)
    launchers = launcher_warnings(bench.catalogue, commands)
    report = find_drift(bench.catalogue, launchers, bench.module_problems())
    found = sum(map(len, report.values()))
    if shared.as_json:
        print_json(report)
    else:
        for category, findings in report.items():
            for finding in findings:
                place = (
                    f"{finding['file']}:{finding['line']}:{finding['column']}: "
                    if ("file" in finding)
                    else ""
                )
                more = finding.get("message") or ", ".join(finding.get("events", ()))
                say(f"{place}{finding['name']} [{category}]{' ' + more if more else ''}")
                for event, name in finding.get("names", {}).items():
                    say(f"    {event} is shown as {name}")
                say_hint(finding.get("hint", ""))
        say(counted(found, "finding") if found else "no drift")
        say_source({"source": bench.source})
        next_step("check")
    sys.exit(NO if found else 0)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Put the new text into the file; the old is kept.")
@with_definition_options
def migrate(shared: SharedOptions, file: Path, *, write: bool) -> None:
    """Turn the explicit list of a composition FILE into capabilities that resolve to the same."""
    _refuse_catalogue(file)
    shared.definitions()
    folder = shared.compositions or str(file.parent)
    bench = open_workbench(shared.settings(compositions=folder), shared.events)
    composition = next(
        (c for c in bench.catalogue.compositions.values() if _is_file(c.place.file, file)), None
    )
    if composition is None:
        hint = did_you_mean(file.name, bench.files.compositions)
        raise NotFoundError(f"{file} is not one of the compositions in {folder}", hint=hint)
    migration = migrate_profile(bench.catalogue, composition)
    raw = file.read_bytes()
    text = rewrite_composition(raw.decode("utf-8-sig"), migration)
    backup = _replace(file, text) if write else None
    if shared.as_json:
        print_json(migration.to_json() | {"backup": str(backup) if backup else None})
        return
    click.echo(text, nl=False)
    _say_migrated(migration.to_json(), file, backup)
    step = f"resolve {composition.name}" if write else f"migrate {shlex.quote(str(file))} --write"
    next_step(step, aside=True)


def _refuse_catalogue(file: Path) -> None:
    """A catalogue has nothing to migrate, and its errors as a composition help nobody.

    Raises:
        InvalidDataError: the file defines capabilities.
    """
    node, _ = parse_yaml(file.read_bytes(), str(file))
    keys = {key.text for key, _ in node.pairs} if isinstance(node, Mapping) else set()
    if "capabilities" in keys and "name" not in keys:
        raise InvalidDataError(
            f"{file} defines capabilities; what is migrated is the explicit list of one profile",
            hint=f"name a composition: remit migrate {file.parent / 'compositions' / 'NAME.yaml'}",
        )


def _is_file(shown: str, file: Path) -> bool:
    return Path(shown).resolve() == file.resolve()


def _replace(file: Path, text: str) -> Path:
    """Keep the old text beside the file, then put the new one in its place; answers where.

    The new text is written beside the file and renamed, so that a cut-off run leaves the old one.
    """
    names = (file.with_name(f"{file.name}.bak{number or ''}") for number in range(1000))
    backup = next(path for path in names if not path.exists())
    shutil.copy2(file, backup)
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_bytes(text.encode())
    temporary.chmod(file.stat().st_mode & 0o777)
    temporary.replace(file)
    return backup


def _say_migrated(report: dict[str, Any], file: Path, backup: Path | None) -> None:
    for name, (old, new) in report.get("limits_changed", {}).items():
        click.echo(f"note: {name} becomes {limit_text(new)} (was {limit_text(old)})", err=True)
    proof = "the same events and tools before and after, proven by resolving both"
    written = f"written to {file}, and the old text is in {backup}; " if backup else ""
    click.echo(f"{written}{proof}", err=True)


@click.command()
@click.argument(
    "kind",
    type=click.Choice(["capability", "composition", "manifest", "card", "upstreams", "registry"]),
)
@click.option("--json", is_flag=True, expose_value=False, help="A schema is always JSON.")
def schema(kind: str) -> None:
    """Print the JSON Schema of a kind of file, for editors that complete and check."""
    print_json(SCHEMAS[kind]())


@click.command()
@click.option("--svg", is_flag=True, help="A picture (the default).")
@click.option("--dot", is_flag=True, help="For Graphviz.")
@click.option("--mermaid", is_flag=True, help="For Markdown.")
@click.option("--profile", help="Only this profile and what it holds.")
@click.option("--out", type=click.Path(path_type=Path), help="Write to a file.")
@with_definition_options
def graph(shared: SharedOptions, *, profile: str | None, out: Path | None, **forms: bool) -> None:
    """Draw profiles, capabilities, requires and denials."""
    chosen = [form for form, on in forms.items() if on]
    if len(chosen) > 1:
        raise click.UsageError(f"one picture at a time: choose one of --{', --'.join(chosen)}")

    bench = open_workbench(shared.definitions(), shared.events)
    catalogue = bench.catalogue
    if profile is not None and profile not in catalogue.compositions:
        hint = did_you_mean(profile, catalogue.compositions)
        raise NotFoundError(f"there is no profile {profile!r}", hint=hint)
    form = chosen[0] if chosen else "svg"
    draw = {"svg": to_svg, "dot": to_dot, "mermaid": to_mermaid}[form]
    text = draw(picture(catalogue, profile))
    if out is not None:
        _write(out, text)
    elif shared.as_json:
        print_json({"format": form, "text": text, "source": bench.source})
        return
    else:
        sys.stdout.write(text)
    say_source({"source": bench.source}, aside=True)
    next_step(first_look([profile] if profile else catalogue.compositions), aside=True)


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"{out} cannot be written: {error.strerror or error}"
        raise InvalidDataError(message, hint="name another file with --out") from error
    click.echo(f"written to {out}", err=True)


@click.command()
@with_options
def config(shared: SharedOptions) -> None:
    """Show every setting, its value, and where the value comes from."""
    settings = shared.settings()
    served = served_here(Home(settings.home))
    rows = []
    for row in SETTINGS:
        entry = {
            "name": row.name,
            "value": plain(getattr(settings, row.name)),
            "origin": str(settings.origins[row.name]),
            "doc": row.doc,
            "variable": row.variable,
        }
        if served is not None and row.name in served.settings:
            entry["daemon"] = served.settings[row.name]
        rows.append(entry)
    differs = [str(one) for one in (*mismatches(settings), *other_settings(settings))]
    if shared.as_json:
        print_json({"settings": rows, "differs": differs})
        sys.exit(NO if differs else 0)
    for entry in rows:
        shown = "-" if entry["value"] in (None, "", []) else str(entry["value"])
        say(f"{entry['name']:18} {shown:40} {click.style(entry['origin'], dim=True)}")
        if "daemon" in entry and entry["daemon"] != entry["value"]:
            runs_on = entry["daemon"] or "the default"
            say(click.style(f"{'':18} {runs_on!s:40} the running daemon", fg="yellow"))
    for one in differs:
        click.echo(f"{click.style('error: ', fg='red')}{one} [invalid_settings]", err=True)
    if differs:
        say_hint("leave this folder, or start the daemon again with these", err=True)
    next_step("doctor")
    sys.exit(NO if differs else 0)
