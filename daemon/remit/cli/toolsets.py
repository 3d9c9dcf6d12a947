"""What a profile looks like to a model: tools."""

from collections.abc import Mapping
from typing import Any

import click
import msgspec

from remit.app.workbench import open_workbench
from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import next_step, print_json, say
from remit.errors import InvalidDataError
from remit.model.exposure import SEARCH
from remit.policy.compiler import resolve as resolve_profile
from remit.runtime.tool_formats import TOOL_FORMATS, ToolFormat, formatted
from remit.runtime.tool_list import host_tools, thinned, tool_list, weigh


@click.command()
@click.argument("subject")
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
            f"{turns['turns']} turns of discovery so far: {turns['sent']:,} tokens "
            f"instead of {turns['full_dump']:,} for full dumps"
        )
    next_step(f'discover "what you want to do" --as {subject}')


class _Subject(msgspec.Struct, frozen=True):
    """Whose tools are asked for."""

    profile: str
    names: Mapping[str, str] | None = None
    """What the tools of an agent are called now; it may hold less than its profile, or more."""
    bill: dict[str, Any] | None = None


def tools_of(ask: Asked, subject: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """All tools of a subject, and what the turns of an agent cost."""
    whose = _subject(ask, subject)
    bench = open_workbench(ask.settings(), ask.events)
    grant = resolve_profile(bench.catalogue, whose.profile)
    if (names := whose.names) is not None:
        events = frozenset(names)
        grant = msgspec.structs.replace(grant, exposed=events, pinned=grant.pinned & events)
    listed = tool_list(bench.handlers, bench.catalogue, grant, names=names)
    # The tool to search with is sent as well, wherever there is one.
    listed["tokens"]["full_dump"] = weigh(host_tools(listed | {"exposure": "all"}))
    return listed, whose.bill


def _subject(ask: Asked, name: str) -> _Subject:
    """An agent that the running daemon knows, else a profile."""
    if not ask.about_files:
        with daemon_answers(ask.settings()) as daemon:
            if daemon is not None:
                profile = daemon.profile_of(name)
                return _Subject(profile, daemon.tools_of(name), daemon.bill_of(name))
    return _Subject(name)
