"""What a profile looks like to a model: tools."""

from typing import Any

import click

from remit.app.subjects import grant_of_subject
from remit.app.workbench import open_workbench
from remit.cli import completion
from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import next_step, print_json, say, say_source
from remit.errors import InvalidDataError
from remit.model.exposure import SEARCH
from remit.policy.toolnames import names_for
from remit.runtime.tool_formats import TOOL_FORMATS, ToolFormat, formatted
from remit.runtime.tool_list import host_tools, shown_tools, thinned, tool_list, weigh


@click.command()
@click.argument("subject", shell_complete=completion.subjects)
@click.option("--thin", is_flag=True, help="Names and one line each; schemas on demand.")
@click.option("--full", is_flag=True, help="All tools, however few of them a host is shown.")
@click.option("--format", "form", type=click.Choice(TOOL_FORMATS), help="Ready for an interface.")
@click.option("--defer", is_flag=True, help="Let the model search for all but the pinned tools.")
@asked_about_definitions
def tools(
    ask: Asked, subject: str, *, thin: bool, full: bool, form: ToolFormat | None, defer: bool
) -> None:
    """List the tools that a host of SUBJECT, a profile or an agent, is shown, with their bill."""
    if form is not None and thin:
        raise click.UsageError("--thin leaves schemas out, and --format needs them")
    if defer and form in (None, "mcp"):
        raise click.UsageError("--defer needs --format anthropic or --format openai")
    report, turns = tools_of(ask, subject)
    shown = report["tools"] if full else host_tools(report)
    exposure, searchable = report.pop("exposure"), report.pop("searchable")
    if form is not None:
        if defer and not searchable:
            raise InvalidDataError(
                f"{subject!r} may not search, so it would never find a deferred tool",
                hint=f"grant {SEARCH}, or leave --defer out",
            )
        waits = searchable and (defer or exposure != "all")
        ready = shown if form == "mcp" else report["tools"]
        told = {"tools": formatted(ready, form, defer=waits), "revision": report["revision"]}
        print_json(told)
        return
    report |= {"tools": thinned(shown) if thin else shown}
    report["tokens"]["sent"] = weigh(report["tools"])
    report |= {"exposure": exposure} if exposure != "all" else {}
    report |= {"bill": turns} if turns is not None else {}
    if ask.as_json:
        print_json(report)
        return
    for tool in report["tools"]:
        summary = tool["description"].splitlines()[0] if tool["description"] else ""
        say(f"{tool['name']:28} {summary}")
    bill = report["tokens"]
    say(f"about {bill['sent']} tokens of {bill['full_dump']} for everything (--full)")
    if turns is not None and turns["turns"]:
        say(
            f"{turns['turns']} turns so far: {turns['sent']:,} tokens "
            f"instead of {turns['full_dump']:,} for full dumps"
        )
    say_source(report)
    next_step(f'discover "what you want to do" --as {subject}')


def tools_of(ask: Asked, subject: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """All tools of a subject, and what the turns of an agent cost."""
    bench = open_workbench(ask.definitions(), ask.events, in_force=not ask.about_files)
    grant = grant_of_subject(bench, subject, files_first=ask.about_files)
    events = shown_tools(bench.handlers, bench.catalogue, grant)
    names = names_for(bench.catalogue.universe, events, bench.tool_names.get(subject, {}))
    listed = tool_list(bench.handlers, bench.catalogue, grant, names=names)
    # The tool to search with is sent as well, wherever there is one.
    listed["tokens"]["full_dump"] = weigh(host_tools(listed | {"exposure": "all"}))
    return listed | {"source": bench.source}, _bill(ask, subject)


def _bill(ask: Asked, name: str) -> dict[str, Any] | None:
    """What the turns of an agent cost that the running daemon knows."""
    if not ask.about_files:
        with daemon_answers(ask.settings()) as daemon:
            if daemon is not None:
                found: dict[str, Any] | None = daemon.bill_of(name)
                return found
    return None
