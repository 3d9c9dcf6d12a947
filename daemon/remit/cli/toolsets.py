"""What a profile looks like to a model and its host: tools, claude-args."""

import shlex

import click
import msgspec

from remit.app.workbench import open_workbench
from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import next_step, print_json, say
from remit.policy.compiler import resolve as resolve_profile
from remit.policy.toolnames import tool_names
from remit.runtime.describe import tool_list

SERVER_NAME = "remit"


@click.command()
@click.argument("subject")
@click.option("--thin", is_flag=True, help="Names and one line each; schemas on demand.")
@asked_about_definitions
def tools(ask: Asked, subject: str, *, thin: bool) -> None:
    """List the tools of SUBJECT, a profile or an agent, with their token bill."""
    profile = _profile_of(ask, subject)
    bench = open_workbench(ask.settings(), ask.events)
    grant = resolve_profile(bench.catalogue, profile)
    report = tool_list(bench.handlers, bench.catalogue, grant, thin=thin)
    if ask.as_json:
        print_json(report)
        return
    for tool in report["tools"]:
        summary = tool["description"].splitlines()[0] if tool["description"] else ""
        say(f"{tool['name']:28} {summary}")
    bill = report["tokens"]
    say(f"about {bill['sent']} tokens of {bill['full_dump']} for the full schemas")
    next_step(f"claude-args {profile}")


def _profile_of(ask: Asked, subject: str) -> str:
    """The profile of an agent that the running daemon knows, else the subject itself."""
    if ask.about_files:
        return subject
    with daemon_answers(ask.settings()) as daemon:
        return daemon.profile_of(subject) if daemon is not None else subject


@click.command("claude-args")
@click.argument("profile")
@asked_about_definitions
def claude_args(ask: Asked, profile: str) -> None:
    """Print arguments for the Claude command line that match PROFILE."""
    bench = open_workbench(ask.settings(), ask.events)
    grant = resolve_profile(bench.catalogue, profile)
    names = tool_names(bench.catalogue.universe)
    served = [
        f"mcp__{SERVER_NAME}__{names[event]}" for event in sorted(grant.exposed & names.keys())
    ]
    server = {"command": "remit", "args": ["mcp", "--profile", profile]}
    config = msgspec.json.encode({"mcpServers": {SERVER_NAME: server}}).decode()
    arguments = ["--allowedTools", ",".join([*sorted(grant.claude_tools), *served])]
    if grant.denied_tools:
        arguments += ["--disallowedTools", ",".join(sorted(grant.denied_tools))]
    arguments += ["--mcp-config", config]
    if ask.as_json:
        print_json({"profile": profile, "arguments": arguments})
    else:
        click.echo(shlex.join(arguments))
