"""Agents of the running daemon: spawn, agents, revoke."""

from typing import Any

import click

from remit.cli import completion
from remit.cli.connection import all_agents, connected
from remit.cli.options import Asked, asked
from remit.cli.outcome import (
    counted,
    next_step,
    print_json,
    say,
    say_hint,
)
from remit.errors import InvalidDataError


@click.command()
@click.argument("profile", shell_complete=completion.profiles)
@click.option("--id", "agent_id", help="The agent's name; made up when absent.")
@click.option("--deny", multiple=True, help="An event, pattern or model tool to take away.")
@click.option("--add", multiple=True, help="An event, pattern or model tool to add.")
@click.option(
    "--narrow", is_flag=True, help="Cut what exceeds your own rights instead of refusing."
)
@click.option("--session", help="The session it works in; one that was opened binds it.")
@click.option("--no-launch", is_flag=True, help="Do not start the process of the profile.")
@asked
def spawn(  # noqa: PLR0913 - one for each option
    ask: Asked,
    profile: str,
    *,
    agent_id: str | None,
    deny: tuple[str, ...],
    add: tuple[str, ...],
    narrow: bool,
    session: str | None,
    no_launch: bool,
) -> None:
    """Create an agent under PROFILE; its secret key is shown once."""
    request: dict[str, Any] = {"profile": profile}
    request |= {"agent_id": agent_id} if agent_id else {}
    request |= {"disallowed_tools": list(deny)} if deny else {}
    request |= {"additional_tools": list(add)} if add else {}
    request |= {"on_excess": "narrow"} if narrow else {}
    request |= {"session": session} if session else {}
    request |= {"launch": {}} if no_launch else {}
    with connected(ask.settings()) as remit:
        answer = remit.call("agent:spawn", request)
    if ask.as_json:
        print_json(answer)
        return
    credentials = answer["credentials"]
    say(f"{answer['agent_id']} lives under {profile} with {len(answer['allowed_events'])} events")
    for warning in answer["warnings"]:
        click.echo(f"{click.style('warning: ', fg='yellow')}{warning['message']}", err=True)
        say_hint(warning.get("hint", ""), err=True)
    if answer["bound"]:
        say(f"  bound to the session {', '.join(answer['bound'])}")
    elif session:
        say(f"  nobody opened a session {session!r}: it is a label, and takes nothing away")
    say(f"  public key: {credentials['public_key']}")
    if credentials.get("secret_key"):
        say(f"  secret key: {credentials['secret_key']}   (shown once)")
    if answer["launched"]:
        say("  a process is started for it")
    next_step(f"why {answer['agent_id']} state:set")


@click.command()
@asked
def agents(ask: Asked) -> None:
    """Show the living agents as a tree."""
    with connected(ask.settings()) as remit:
        items = all_agents(remit)
    if ask.as_json:
        print_json({"items": items, "total": len(items), "next": None})
        return
    children: dict[str | None, list[dict[str, Any]]] = {}
    known = {item["agent_id"] for item in items}
    for item in items:
        parent = item["parent"] if item["parent"] in known else None
        children.setdefault(parent, []).append(item)
    for line in _tree(children, None, ""):
        say(line)
    say(counted(len(items), "agent"))
    next_step(f"tools {items[0]['agent_id']}" if items else "spawn PROFILE")


def _tree(
    children: dict[str | None, list[dict[str, Any]]], parent: str | None, indent: str
) -> list[str]:
    lines = []
    here = children.get(parent, [])
    for at, item in enumerate(here):
        last = at == len(here) - 1
        branch = ("└─ " if last else "├─ ") if parent is not None else ""
        bound = f"  in {', '.join(item['bound'])}" if item.get("bound") else ""
        lines.append(f"{indent}{branch}{item['agent_id']}  {item['profile'] or '(base)'}{bound}")
        below = indent + (("   " if last else "│  ") if parent is not None else "")
        lines += _tree(children, item["agent_id"], below)
    return lines


@click.command()
@click.argument("agent", shell_complete=completion.agents)
@click.option("--yes", is_flag=True, help="Do not ask.")
@asked
def revoke(ask: Asked, agent: str, *, yes: bool) -> None:
    """End AGENT and all its descendants; their connections are cut at once."""
    with connected(ask.settings()) as remit:
        if not yes and not ask.as_json:
            if remit.allowed("agent:status"):
                remit.call("agent:status", {"agent_id": agent})  # nobody is asked about nobody
            if not click.confirm(f"end {agent} and all its descendants?"):
                raise InvalidDataError("nothing was done", hint="--yes does not ask")
        answer = remit.call("agent:terminate", {"agent_id": agent})
    if ask.as_json:
        print_json(answer)
        return
    say(f"ended: {', '.join(answer.get('terminated', [agent]))}")
    next_step("agents")
