"""What a profile looks like to a model and its host: tools, discover, mcp-config, claude-args."""

import re
import shlex
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click

from remit.app.workbench import grant_of_subject, open_workbench, source_of_daemon
from remit.cli.connection import daemon_answers
from remit.cli.options import CLIENT_NAME, SharedOptions, completing, with_definition_options
from remit.cli.outcome import next_step, print_json, say, say_source
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import InvalidDataError, NotFoundError
from remit.features.tools.formats import (
    FILES,
    HOSTS,
    SEARCH_FORMATS,
    SERVER_NAME,
    TOKEN_VARIABLE,
    TOOL_FORMATS,
    Host,
    SearchFormat,
    ToolFormat,
    ToolServer,
    claude_arguments,
    formatted,
    http_config,
    search_answer,
    servers_key,
    stdio_config,
)
from remit.kernel.dispatch.tool_list import host_tools, shown_tools, thinned, tool_list, weigh
from remit.kernel.processes.guard import own_command
from remit.model.descriptor import DESCRIPTOR_KINDS
from remit.model.event import SEARCH
from remit.policy.compile import resolve as resolve_profile
from remit.policy.tool_names import names_for

_NAME, _KIND = 34, 10
_MCP_PATH = "/mcp"


@click.command()
@click.argument("subject", shell_complete=completing("subject"))
@click.option("--thin", is_flag=True, help="Names and one line each; schemas on demand.")
@click.option("--full", is_flag=True, help="All tools, however few of them a host is shown.")
@click.option("--format", "form", type=click.Choice(TOOL_FORMATS), help="Ready for an interface.")
@click.option("--defer", is_flag=True, help="Let the model search for all but the pinned tools.")
@with_definition_options
def tools(
    shared: SharedOptions,
    subject: str,
    *,
    thin: bool,
    full: bool,
    form: ToolFormat | None,
    defer: bool,
) -> None:
    """List the tools that a host of SUBJECT, a profile or an agent, is shown, with their bill."""
    if form is not None and thin:
        raise click.UsageError("--thin leaves schemas out, and --format needs them")
    if defer and form in (None, "mcp"):
        raise click.UsageError("--defer needs --format anthropic or --format openai")
    report, turns = tools_of(shared, subject)
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
    if shared.as_json:
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


def tools_of(shared: SharedOptions, subject: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """All tools of a subject, and what the turns of an agent cost."""
    bench = open_workbench(
        shared.definitions(), shared.events, in_force=not shared.about_files, with_handlers=True
    )
    grant = grant_of_subject(bench, subject, files_first=shared.about_files)
    events = shown_tools(bench.handlers, bench.catalogue, grant)
    names = names_for(bench.catalogue.universe, events, bench.tool_names.get(subject, {}))
    listed = tool_list(bench.handlers, bench.catalogue, grant, names=names)
    # The tool to search with is sent as well, wherever there is one.
    listed["tokens"]["full_dump"] = weigh(host_tools(listed | {"exposure": "all"}))
    return listed | {"source": bench.source}, _bill(shared, subject)


def _bill(shared: SharedOptions, name: str) -> dict[str, Any] | None:
    """What the turns of an agent cost that the running daemon knows."""
    if not shared.about_files:
        with daemon_answers(shared.settings()) as daemon:
            if daemon is not None:
                found: dict[str, Any] | None = daemon.bill_of(name)
                return found
    return None


@click.command()
@click.argument("query")
@click.option(
    "--as",
    "subject",
    required=True,
    help="A profile, or an agent of the daemon.",
    shell_complete=completing("subject"),
)
@click.option("--kind", type=click.Choice(DESCRIPTOR_KINDS), help="Only this kind.")
@click.option("--category", help="Only this category.")
@click.option("--only-available", is_flag=True, help="Leave out what cannot be used now.")
@click.option("--top", type=click.IntRange(1, 50), help="How many summaries; 5 when absent.")
@click.option("--budget", type=click.IntRange(0), help="Tokens in all; 1850 when absent.")
@click.option("--full", is_flag=True, help="Print the texts that the subject would be given.")
@click.option(
    "--format",
    "form",
    type=click.Choice(SEARCH_FORMATS),
    help="What to answer a model that searched for deferred tools.",
)
@with_definition_options
def discover(  # noqa: PLR0913 - one for each option
    shared: SharedOptions,
    query: str,
    *,
    subject: str,
    kind: str | None,
    category: str | None,
    only_available: bool,
    top: int | None,
    budget: int | None,
    full: bool,
    form: SearchFormat | None,
) -> None:
    """Find the tools and skills that fit QUERY, of those that a subject may use."""
    if form is not None and (full or kind not in (None, "tool")):
        raise click.UsageError("--format answers with tools, so no --full and no other --kind")
    config = {"top_k": top, "total_tokens": budget}
    question: dict[str, Any] = {"query": query, "only_available": only_available}
    question |= {"kind": kind or "tool"} if kind or form else {}
    question |= {"category": category} if category else {}
    question["config"] = {name: value for name, value in config.items() if value is not None}
    answer = _ask(shared, subject, question)
    if form is not None:
        tools = tools_of(shared, subject)[0]["tools"]
        print_json(search_answer(tools, [item["id"] for item in answer["capabilities"]], form))
        return
    if shared.as_json:
        print_json(answer)
        return
    if full:
        say("\n\n".join(answer[tier] for tier in ("map", "summary", "detail") if answer[tier]))
    else:
        _say_table(answer)
    _say_bill(answer)
    say_source(answer)
    first = answer["capabilities"][0]["id"] if answer["capabilities"] else ""
    next_step(f"call discovery:describe id={first}" if first else f"tools {subject}")


def _ask(shared: SharedOptions, subject: str, question: dict[str, Any]) -> Any:
    """Ask the daemon; without one, the same engine over the files that were named."""
    settings = shared.definitions()
    if not shared.about_files:
        with daemon_answers(settings) as daemon:
            if daemon is not None:
                answer = daemon.discover(subject, question)
                return answer | {"source": source_of_daemon(settings, answer["revision"])}
    from remit.app.offline_search import discover_offline  # noqa: PLC0415 - numpy and the vectors

    bench = open_workbench(settings, shared.events, with_handlers=True)
    answer = discover_offline(bench, settings, subject, question, files_first=shared.about_files)
    return answer | {"source": bench.source}


def _say_table(answer: dict[str, Any]) -> None:
    found = answer["capabilities"]
    if not found:
        say("nothing fits; the map of what there is:")
        say(answer["map"])
        return
    say(click.style(f"{'id':{_NAME}} {'kind':{_KIND}} relevance", bold=True))
    for item in found:
        note = f"   needed by or used with {item['pulled_in_by']}" if "pulled_in_by" in item else ""
        shown = " " * 9 if note else f"{item['relevance']:9.2f}"
        say(f"{item['id']:{_NAME}} {item['kind']:{_KIND}} {shown}{note}")
    for item in answer["skipped"]:
        say(f"left out of {item['tier']}: {item['id']} ({item['reason']})")


def _say_bill(answer: dict[str, Any]) -> None:
    tokens = answer["tokens"]
    dump = tokens["full_dump"]
    saved = f", {1 - tokens['total'] / dump:.0%} saved" if dump > tokens["total"] else ""
    say(
        f"{tokens['total']:,} tokens (map {tokens['map']}, summary {tokens['summary']}, "
        f"detail {tokens['detail']}) of {dump:,} for all {answer['total_indexed']}{saved}"
    )


@click.command("mcp-config")
@click.argument("profile", required=False, shell_complete=completing("profile"))
@click.option(
    "--agent",
    help="An agent whose key lies in the home, instead of a profile.",
    shell_complete=completing("agent"),
)
@click.option("--host", type=click.Choice(HOSTS), default="claude-code", help="Whose file.")
@click.option("--http", "url", help="Ask the daemon at this address instead of starting a process.")
@with_definition_options
def mcp_config(
    shared: SharedOptions, profile: str | None, *, agent: str | None, host: Host, url: str | None
) -> None:
    """Print the file that gives a host the tools of PROFILE; nothing secret is in it."""
    if (profile is None) == (agent is None):
        raise click.UsageError("name a profile, or an agent with --agent")
    settings = shared.definitions()
    who = ("--profile", profile) if profile is not None else ("--agent", str(agent))
    source: dict[str, Any] = {}
    if profile is not None:
        bench = open_workbench(settings, shared.events, in_force=not shared.about_files)
        resolve_profile(bench.catalogue, profile)
        source = {"source": bench.source}
    elif url is None:
        _check_key(settings, str(agent))
    config = (
        stdio_config(host, own_server(settings, *who))
        if url is None
        else _over_http(host, _address(url))
    )
    if shared.as_json:
        print_json({"host": host, "file": FILES[host], "config": config} | source)
        return
    print_json(config)
    if source:
        say_source(source, aside=True)
    _say_where(host, str(profile or agent), url)


@click.command("claude-args")
@click.argument("profile", shell_complete=completing("profile"))
@with_definition_options
def claude_args(shared: SharedOptions, profile: str) -> None:
    """Print arguments for the Claude command line that match PROFILE."""
    settings = shared.definitions()
    bench = open_workbench(settings, shared.events, in_force=not shared.about_files)
    grant = resolve_profile(bench.catalogue, profile)
    grant = bench.fleet.with_made(grant, bench.catalogue)
    server = own_server(settings, "--profile", profile)
    arguments = claude_arguments(bench.catalogue.universe, grant, server)
    if shared.as_json:
        print_json({"profile": profile, "arguments": arguments, "source": bench.source})
    else:
        click.echo(shlex.join(arguments))
        say_source({"source": bench.source}, aside=True)
        next_step(f"tools {profile}", aside=True)


def own_server(settings: Settings, *who: str) -> ToolServer:
    """How a host starts `remit mcp`, from any folder and with any environment."""
    command, *before = own_command()
    # Hosts pass few variables on, so a home that is not the usual one has to be said.
    usual = settings.origins["home"].kind == "default"
    home = () if usual else ("--home", str(settings.home))
    return ToolServer(command, (*before, "mcp", *who, *home))


def _check_key(settings: Settings, agent: str) -> None:
    """Make sure that `remit mcp --agent` will find the key of an agent.

    Raises:
        NotFoundError: it will not.
    """
    home = Home(settings.home)
    named = re.fullmatch(CLIENT_NAME, agent) is not None
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
