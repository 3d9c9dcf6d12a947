"""Who may connect, and what they do: spawn, agents, revoke, key, call."""

import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from remit.cli.connection import all_agents, connected
from remit.cli.options import CLIENT_NAME, SECONDS, SharedOptions, completing, with_options
from remit.cli.outcome import (
    counted,
    next_step,
    print_json,
    say,
    say_hint,
)
from remit.config.settings.home import Home
from remit.config.strict.json import refuse_duplicates
from remit.errors import ConflictError, HomeError, InvalidDataError, RemitError, with_code
from remit.kernel.dispatch.call import check_value


@click.command()
@click.argument("profile", shell_complete=completing("profile"))
@click.option("--id", "agent_id", help="The agent's name; made up when absent.")
@click.option("--deny", multiple=True, help="An event, pattern or model tool to take away.")
@click.option("--add", multiple=True, help="An event, pattern or model tool to add.")
@click.option(
    "--narrow", is_flag=True, help="Cut what exceeds your own rights instead of refusing."
)
@click.option("--session", help="The session it works in; one that was opened binds it.")
@click.option("--no-launch", is_flag=True, help="Do not start the process of the profile.")
@with_options
def spawn(  # noqa: PLR0913 - one for each option
    shared: SharedOptions,
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
    with connected(shared.settings()) as remit:
        answer = remit.call("agent:spawn", request)
    if shared.as_json:
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
@with_options
def agents(shared: SharedOptions) -> None:
    """Show the living agents as a tree."""
    with connected(shared.settings()) as remit:
        items = all_agents(remit)
    if shared.as_json:
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
@click.argument("agent", shell_complete=completing("agent"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_options
def revoke(shared: SharedOptions, agent: str, *, yes: bool) -> None:
    """End AGENT and all its descendants; their connections are cut at once."""
    with connected(shared.settings()) as remit:
        if not yes and not shared.as_json:
            if remit.allowed("agent:status"):
                remit.call("agent:status", {"agent_id": agent})  # nobody is asked about nobody
            if not click.confirm(f"end {agent} and all its descendants?"):
                raise InvalidDataError("nothing was done", hint="--yes does not ask")
        answer = remit.call("agent:terminate", {"agent_id": agent})
    if shared.as_json:
        print_json(answer)
        return
    say(f"ended: {', '.join(answer.get('terminated', [agent]))}")
    next_step("agents")


@click.group()
def key() -> None:
    """Give keys to clients, list them, take them away."""


@key.command()
@click.argument("name")
@click.option(
    "--profile",
    required=True,
    help="What the client may do.",
    shell_complete=completing("profile"),
)
@click.option("--out", type=click.Path(path_type=Path), help="Key file; default: in the home.")
@with_options
def new(shared: SharedOptions, name: str, *, profile: str, out: Path | None) -> None:
    """Make a key pair for NAME, register its public half, and write the key file (mode 0600)."""
    from remit_client.keys import new_key, save_key  # noqa: PLC0415 - zmq

    if not re.fullmatch(CLIENT_NAME, name):
        hint = "a lowercase letter, then lowercase letters, digits, _ and -, 64 at the most"
        raise InvalidDataError(f"{name!r} cannot be the name of a client", hint=hint)
    settings = shared.settings()
    home = Home(settings.home)
    path = out or home.keys / f"{name}.key"
    if path.exists():
        raise ConflictError(f"{path} exists already", hint="choose another name or --out")
    with connected(settings) as remit:
        pair = new_key(name, **_address_of(home))
        # Written first: a key that is registered but not kept would be nobody's.
        _save(lambda: save_key(path, pair), path)
        try:
            answer = remit.call(
                "key:add", {"name": name, "public_key": pair.public_key, "profile": profile}
            )
        except BaseException:
            path.unlink()
            raise
    if shared.as_json:
        print_json(answer | {"file": str(path)})
        return
    name = answer["name"]  # another one, when it was taken where the caller does not see it
    say(f"{name} may connect as {profile} with the key in {path}")
    say(f"  REMIT_KEY={path} makes any client use it")
    next_step(f"can {name} state:get")


def _save(save: Callable[[], None], path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        save()
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise HomeError(message, hint="name another file with --out") from error


def _address_of(home: Home) -> dict[str, str]:
    """What the holder of a key must know of the daemon."""
    return {
        "server_key": home.server_public_key.read_text(encoding="ascii").strip(),
        "endpoint": home.endpoint.read_text(encoding="utf-8").strip(),
    }


@key.command("list")
@with_options
def list_keys(shared: SharedOptions) -> None:
    """List the clients that may connect."""
    with connected(shared.settings()) as remit:
        answer = remit.call("key:list")
    if shared.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        say(f"{item['name']:24} {item['profile']}")
    say(f"{counted(answer['total'], 'key')} besides the operator's")
    clients = answer["items"]
    next_step(f"tools {clients[0]['name']}" if clients else "key new NAME --profile PROFILE")


@key.command("revoke")
@click.argument("name", shell_complete=completing("agent"))
@with_options
def revoke_key(shared: SharedOptions, name: str) -> None:
    """Take the key of NAME away; its connections are cut at once."""
    settings = shared.settings()
    with connected(settings) as remit:
        answer = remit.call("key:revoke", {"name": name})
    # Useless now, and in the way of a new key of that name.
    (Home(settings.home).keys / f"{Path(name).name}.key").unlink(missing_ok=True)
    if shared.as_json:
        print_json(answer)
        return
    say(f"{name} is cut off")
    next_step("key list")


@key.command()
@click.argument("name", required=False, shell_complete=completing("agent"))
@click.option("--expires-in", type=int, help="Seconds until it counts no longer; default: 30 days.")
@click.option("--audience", help="The face where it counts; default: http.")
@with_options
def token(
    shared: SharedOptions, name: str | None, *, expires_in: int | None, audience: str | None
) -> None:
    """Make a bearer token for NAME, or for yourself, and print it: it is shown once."""
    given = {"name": name, "expires_in": expires_in, "audience": audience}
    data = {field: value for field, value in given.items() if value is not None}
    with connected(shared.settings()) as remit:
        answer = remit.call("key:token", data)
    if shared.as_json:
        print_json(answer)
        return
    say(answer["token"])
    next_step("key tokens")


@key.command()
@with_options
def tokens(shared: SharedOptions) -> None:
    """List the bearer tokens that were made; the tokens themselves are kept nowhere."""
    with connected(shared.settings()) as remit:
        answer = remit.call("key:tokens")
    if shared.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(item["expires_at"]))
        say(f"{item['id']}  {item['name']:24} {item['audience']:12} until {until}")
    say(counted(answer["total"], "token"))
    found = answer["items"]
    next_step(f"key revoke-token {found[0]['id']}" if found else "key token NAME")


@key.command()
@click.argument("id_", metavar="ID")
@with_options
def revoke_token(shared: SharedOptions, id_: str) -> None:
    """Take the bearer token ID back; it counts no longer at once."""
    with connected(shared.settings()) as remit:
        answer = remit.call("key:revoke_token", {"id": id_})
    if shared.as_json:
        print_json(answer)
        return
    say(f"the token {answer['id']} of {answer['name']} counts no longer")
    next_step("key tokens")


@click.command()
@click.argument("event", shell_complete=completing("event"))
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--data", help="The whole request as JSON; '-' reads it from standard input.")
@click.option("--timeout", type=SECONDS, default=30.0, help="Seconds to wait for the answer.")
@click.option("--key", help="Key file to call with; REMIT_KEY, else the operator's.")
@click.option("--session", help="The session to call in.")
@with_options
def call(  # noqa: PLR0913 - one argument an option
    shared: SharedOptions,
    event: str,
    pairs: tuple[str, ...],
    *,
    data: str | None,
    timeout: float,
    key: str | None,
    session: str | None,
) -> None:
    """Call EVENT of the running daemon; a value that is JSON is taken as JSON, else as text."""
    request = _request_data(pairs, data)
    check_value(request)
    try:
        with connected(shared.settings(), key) as remit:
            answer = remit.ask(event, request, timeout=timeout, session=session)
    except RemitError as error:
        raise _with_quotes(error, pairs) from error
    for told in answer.warnings:
        click.echo(f"warning: {told['message']}\n    hint: {told['hint']}", err=True)
    print_json(answer.data)


def _with_quotes(error: RemitError, pairs: tuple[str, ...]) -> RemitError:
    """Where a text was wanted, and the text given is JSON as well: say how to write it."""
    field = str(error.details.get("path", "")).removeprefix("$.")
    given = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    is_text = field in given and isinstance(_value(given[field]), str)
    wants_text = re.match(r"Expected `(?:[^`]*\W)?str\b", error.message)
    if error.code != InvalidDataError.code or field not in given or is_text or not wants_text:
        return error
    text = msgspec.json.encode(given[field]).decode()
    hint = f"{given[field]} is read as JSON; as text it is written {field}={shlex.quote(text)}"
    return with_code(error.code, error.message, hint, error.details)


def _request_data(pairs: tuple[str, ...], text: str | None) -> dict[str, Any]:
    if text is not None:
        if pairs:
            raise InvalidDataError("give KEY=VALUE pairs or --data, not both")
        try:
            raw = sys.stdin.buffer.read() if text == "-" else text
            data = msgspec.json.decode(raw)
            refuse_duplicates(raw, "--data")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InvalidDataError(f"--data is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise InvalidDataError("--data must be a JSON object", hint='as in \'{"key": "a"}\'')
        return data
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidDataError(f"{pair!r} is not of the form key=value")
        if key in found:
            raise InvalidDataError(f"{key!r} is given twice", hint="keep one of them")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidDataError("an argument is not UTF-8 text") from error
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text
    if isinstance(found, dict | list):
        refuse_duplicates(text, text)
    return found
