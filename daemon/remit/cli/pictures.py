"""Pictures and schemas of definitions: graph, schema."""

import sys
from pathlib import Path

import click

from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import first_look, next_step, print_json, say_source
from remit.errors import InvalidDataError, NotFoundError
from remit.model.suggest import did_you_mean


@click.command()
@click.argument(
    "kind", type=click.Choice(["capability", "composition", "manifest", "card", "upstreams"])
)
@click.option("--json", is_flag=True, expose_value=False, help="A schema is always JSON.")
def schema(kind: str) -> None:
    """Print the JSON Schema of a kind of file, for editors that complete and check."""
    from remit.app.schemas import SCHEMAS  # noqa: PLC0415 - only this command needs it

    print_json(SCHEMAS[kind]())


@click.command()
@click.option("--svg", is_flag=True, help="A picture (the default).")
@click.option("--dot", is_flag=True, help="For Graphviz.")
@click.option("--mermaid", is_flag=True, help="For Markdown.")
@click.option("--profile", help="Only this profile and what it holds.")
@click.option("--out", type=click.Path(path_type=Path), help="Write to a file.")
@asked_about_definitions
def graph(ask: Asked, *, profile: str | None, out: Path | None, **forms: bool) -> None:
    """Draw profiles, capabilities, requires and denials."""
    chosen = [form for form, on in forms.items() if on]
    if len(chosen) > 1:
        raise click.UsageError(f"one picture at a time: choose one of --{', --'.join(chosen)}")
    from remit.app.workbench import open_workbench  # noqa: PLC0415
    from remit.policy.graph.graph import picture  # noqa: PLC0415
    from remit.policy.graph.svg import to_svg  # noqa: PLC0415
    from remit.policy.graph.text import to_dot, to_mermaid  # noqa: PLC0415

    bench = open_workbench(ask.definitions(), ask.events)
    catalogue = bench.catalogue
    if profile is not None and profile not in catalogue.compositions:
        hint = did_you_mean(profile, catalogue.compositions)
        raise NotFoundError(f"there is no profile {profile!r}", hint=hint)
    form = chosen[0] if chosen else "svg"
    draw = {"svg": to_svg, "dot": to_dot, "mermaid": to_mermaid}[form]
    text = draw(picture(catalogue, profile))
    if out is not None:
        _write(out, text)
    elif ask.as_json:
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
