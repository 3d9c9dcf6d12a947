"""Keys and tokens of clients: key new, key list, key revoke, key token …."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import click

from remit.cli import completion
from remit.cli.connection import connected
from remit.cli.options import Asked, asked
from remit.cli.outcome import counted, next_step, print_json, say
from remit.config.settings.home import Home
from remit.errors import ConflictError, HomeError, InvalidDataError

NAME = r"[a-z][a-z0-9_-]{0,63}"


@click.group()
def key() -> None:
    """Give keys to clients, list them, take them away."""


@key.command()
@click.argument("name")
@click.option(
    "--profile",
    required=True,
    help="What the client may do.",
    shell_complete=completion.profiles,
)
@click.option("--out", type=click.Path(path_type=Path), help="Key file; default: in the home.")
@asked
def new(ask: Asked, name: str, *, profile: str, out: Path | None) -> None:
    """Make a key pair for NAME, register its public half, and write the key file (mode 0600)."""
    from remit_client.keys import new_key, save_key  # noqa: PLC0415 - zmq

    if not re.fullmatch(NAME, name):
        hint = "a lowercase letter, then lowercase letters, digits, _ and -, 64 at the most"
        raise InvalidDataError(f"{name!r} cannot be the name of a client", hint=hint)
    settings = ask.settings()
    home = Home(settings.home)
    path = out or home.keys / f"{name}.key"
    if path.exists():
        raise ConflictError(f"{path} exists already", hint="choose another name or --out")
    with connected(settings) as remit:
        pair = new_key(name, **_address(home))
        # Written first: a key that is registered but not kept would be nobody's.
        _save(lambda: save_key(path, pair), path)
        try:
            answer = remit.call(
                "key:add", {"name": name, "public_key": pair.public_key, "profile": profile}
            )
        except BaseException:
            path.unlink()
            raise
    if ask.as_json:
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


def _address(home: Home) -> dict[str, str]:
    """What the holder of a key must know of the daemon."""
    return {
        "server_key": home.server_public_key.read_text(encoding="ascii").strip(),
        "endpoint": home.endpoint.read_text(encoding="utf-8").strip(),
    }


@key.command("list")
@asked
def list_(ask: Asked) -> None:
    """List the clients that may connect."""
    with connected(ask.settings()) as remit:
        answer = remit.call("key:list")
    if ask.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        say(f"{item['name']:24} {item['profile']}")
    say(f"{counted(answer['total'], 'key')} besides the operator's")
    clients = answer["items"]
    next_step(f"tools {clients[0]['name']}" if clients else "key new NAME --profile PROFILE")


@key.command()
@click.argument("name", shell_complete=completion.agents)
@asked
def revoke(ask: Asked, name: str) -> None:
    """Take the key of NAME away; its connections are cut at once."""
    settings = ask.settings()
    with connected(settings) as remit:
        answer = remit.call("key:revoke", {"name": name})
    # Useless now, and in the way of a new key of that name.
    (Home(settings.home).keys / f"{Path(name).name}.key").unlink(missing_ok=True)
    if ask.as_json:
        print_json(answer)
        return
    say(f"{name} is cut off")
    next_step("key list")


@key.command()
@click.argument("name", required=False, shell_complete=completion.agents)
@click.option("--expires-in", type=int, help="Seconds until it counts no longer; default: 30 days.")
@click.option("--audience", help="The face where it counts; default: http.")
@asked
def token(ask: Asked, name: str | None, *, expires_in: int | None, audience: str | None) -> None:
    """Make a bearer token for NAME, or for yourself, and print it: it is shown once."""
    given = {"name": name, "expires_in": expires_in, "audience": audience}
    data = {field: value for field, value in given.items() if value is not None}
    with connected(ask.settings()) as remit:
        answer = remit.call("key:token", data)
    if ask.as_json:
        print_json(answer)
        return
    say(answer["token"])
    next_step("key tokens")


@key.command()
@asked
def tokens(ask: Asked) -> None:
    """List the bearer tokens that were made; the tokens themselves are kept nowhere."""
    with connected(ask.settings()) as remit:
        answer = remit.call("key:tokens")
    if ask.as_json:
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
@asked
def revoke_token(ask: Asked, id_: str) -> None:
    """Take the bearer token ID back; it counts no longer at once."""
    with connected(ask.settings()) as remit:
        answer = remit.call("key:revoke_token", {"id": id_})
    if ask.as_json:
        print_json(answer)
        return
    say(f"the token {answer['id']} of {answer['name']} counts no longer")
    next_step("key tokens")
