"""What a profile looks like to a model and its host: tools, claude-args."""

import shlex
from typing import Any

import click

from remit.app.workbench import open_workbench
from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import next_step, print_json, say
from remit.policy.compiler import resolve as resolve_profile
from remit.policy.host_arguments import Server, claude_arguments
from remit.runtime.describe import tool_list


@click.command()
@click.argument("subject")
@click.option("--thin", is_flag=True, help="Names and one line each; schemas on demand.")
@asked_about_definitions
def tools(ask: Asked, subject: str, *, thin: bool) -> None:
    """List the tools of SUBJECT, a profile or an agent, with their token bill."""
    profile, turns = _subject(ask, subject)
    bench = open_workbench(ask.settings(), ask.events)
    grant = resolve_profile(bench.catalogue, profile)
    report = tool_list(bench.handlers, bench.catalogue, grant, thin=thin)
    report |= {"bill": turns} if turns is not None else {}
    if ask.as_json:
        print_json(report)
        return
    for tool in report["tools"]:
        summary = tool["description"].splitlines()[0] if tool["description"] else ""
        say(f"{tool['name']:28} {summary}")
    bill = report["tokens"]
    say(f"about {bill['sent']} tokens of {bill['full_dump']} for the full schemas")
    if turns is not None and turns["turns"]:
        say(
            f"{turns['turns']} turns of discovery so far: {turns['sent']:,} tokens "
            f"instead of {turns['full_dump']:,} for full dumps"
        )
    next_step(f'discover "what you want to do" --as {subject}')


def _subject(ask: Asked, subject: str) -> tuple[str, dict[str, Any] | None]:
    """The profile and the bill of an agent that the running daemon knows, else a profile."""
    if not ask.about_files:
        with daemon_answers(ask.settings()) as daemon:
            if daemon is not None:
                return daemon.profile_of(subject), daemon.bill_of(subject)
    return subject, None


@click.command("claude-args")
@click.argument("profile")
@asked_about_definitions
def claude_args(ask: Asked, profile: str) -> None:
    """Print arguments for the Claude command line that match PROFILE."""
    bench = open_workbench(ask.settings(), ask.events)
    grant = resolve_profile(bench.catalogue, profile)
    server = Server("remit", ("mcp", "--profile", profile))
    arguments = claude_arguments(bench.catalogue.universe, grant, server)
    if ask.as_json:
        print_json({"profile": profile, "arguments": arguments})
    else:
        click.echo(shlex.join(arguments))
