"""Configuration for the hosts of models: mcp-config, claude-args."""

import re
import shlex
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click

from remit.app.workbench import open_workbench
from remit.cli import completion
from remit.cli.keys import NAME
from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import next_step, print_json, say_source
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import InvalidDataError, NotFoundError
from remit.features.tools.formats import (
    FILES,
    HOSTS,
    SERVER_NAME,
    TOKEN_VARIABLE,
    Host,
    Server,
    claude_arguments,
    http_config,
    servers_key,
    stdio_config,
)
from remit.kernel.processes.own_command import own_command
from remit.policy.compile import resolve as resolve_profile

_MCP_PATH = "/mcp"


@click.command("mcp-config")
@click.argument("profile", required=False, shell_complete=completion.profiles)
@click.option(
    "--agent",
    help="An agent whose key lies in the home, instead of a profile.",
    shell_complete=completion.agents,
)
@click.option("--host", type=click.Choice(HOSTS), default="claude-code", help="Whose file.")
@click.option("--http", "url", help="Ask the daemon at this address instead of starting a process.")
@asked_about_definitions
def mcp_config(
    ask: Asked, profile: str | None, *, agent: str | None, host: Host, url: str | None
) -> None:
    """Print the file that gives a host the tools of PROFILE; nothing secret is in it."""
    if (profile is None) == (agent is None):
        raise click.UsageError("name a profile, or an agent with --agent")
    settings = ask.definitions()
    who = ("--profile", profile) if profile is not None else ("--agent", str(agent))
    source: dict[str, Any] = {}
    if profile is not None:
        bench = open_workbench(settings, ask.events, in_force=not ask.about_files)
        resolve_profile(bench.catalogue, profile)
        source = {"source": bench.source}
    elif url is None:
        _check_key(settings, str(agent))
    config = (
        stdio_config(host, own_server(settings, *who))
        if url is None
        else _over_http(host, _address(url))
    )
    if ask.as_json:
        print_json({"host": host, "file": FILES[host], "config": config} | source)
        return
    print_json(config)
    if source:
        say_source(source, aside=True)
    _say_where(host, str(profile or agent), url)


@click.command("claude-args")
@click.argument("profile", shell_complete=completion.profiles)
@asked_about_definitions
def claude_args(ask: Asked, profile: str) -> None:
    """Print arguments for the Claude command line that match PROFILE."""
    settings = ask.definitions()
    bench = open_workbench(settings, ask.events, in_force=not ask.about_files)
    grant = resolve_profile(bench.catalogue, profile)
    grant = bench.fleet.with_made(grant, bench.catalogue)
    server = own_server(settings, "--profile", profile)
    arguments = claude_arguments(bench.catalogue.universe, grant, server)
    if ask.as_json:
        print_json({"profile": profile, "arguments": arguments, "source": bench.source})
    else:
        click.echo(shlex.join(arguments))
        say_source({"source": bench.source}, aside=True)
        next_step(f"tools {profile}", aside=True)


def own_server(settings: Settings, *who: str) -> Server:
    """How a host starts `remit mcp`, from any folder and with any environment."""
    command, *before = own_command()
    # Hosts pass few variables on, so a home that is not the usual one has to be said.
    usual = settings.origins["home"].kind == "default"
    home = () if usual else ("--home", str(settings.home))
    return Server(command, (*before, "mcp", *who, *home))


def _check_key(settings: Settings, agent: str) -> None:
    """Make sure that `remit mcp --agent` will find the key of an agent.

    Raises:
        NotFoundError: it will not.
    """
    home = Home(settings.home)
    named = re.fullmatch(NAME, agent) is not None
    if named and any((folder / f"{agent}.key").is_file() for folder in (home.keys, home.agents)):
        return
    raise NotFoundError(
        f"there is no key of {agent!r} in {settings.home}",
        hint="make one: remit key new NAME --profile PROFILE; or name a profile",
    )


def _address(text: str) -> str:
    """Check an address and complete it.

    Raises:
        InvalidDataError: it is none, or it holds a secret.
    """
    try:
        found = urlsplit(text)
        port = found.port
    except ValueError:
        found, port = urlsplit(""), None
    if found.scheme not in ("http", "https") or not found.hostname or port == 0:
        hint = f"as in http://127.0.0.1:7421{_MCP_PATH}"
        raise InvalidDataError(f"{text!r} is not the address of a daemon", hint=hint)
    if "@" in found.netloc or found.query or found.fragment:
        hint = "the token goes into a header, by the name of a variable"
        raise InvalidDataError("an address must hold no secret, so no '@', '?' or '#'", hint=hint)
    return urlunsplit(found._replace(path=_MCP_PATH if found.path in ("", "/") else found.path))


def _over_http(host: Host, url: str) -> dict[str, Any]:
    config = http_config(host, url)
    if config is None:
        raise InvalidDataError(
            f"{host} reads no address from its file, and a token would have to stand in it",
            hint="leave --http out: it then starts `remit mcp`, which finds the daemon",
        )
    return config


def _say_where(host: Host, who: str, url: str | None) -> None:
    """Tell on stderr where it goes, so that stdout can be the file."""
    desktop = host == "claude-desktop"
    folder = "its own folder (Settings, Developer, Edit Config)" if desktop else "the project"
    lines = [
        f"# {host} reads {FILES[host]} in {folder}",
        f"# is there one already, then add {SERVER_NAME!r} to its {servers_key(host)!r}",
    ]
    if url is not None:
        way = "asks for the token" if host == "vscode" else f"takes the token from {TOKEN_VARIABLE}"
        lines.append(f"# {host} {way}; the token says who asks, whatever stands here")
    for line in lines:
        click.echo(line, err=True)
    next_step(f"tools {who}" if url is None else "key token NAME", aside=True)
