"""What can be told about upstream servers without starting one: commands, secrets, the file."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from remit.app.doctor.look import told_by_daemon
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.features.upstreams.pins import read_pins
from remit.features.upstreams.secrets import find_secret
from remit.model.upstream import Upstream

_UNSEEN = "nobody has asked it for its tools yet, so nobody has one"


def kept_ill(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The servers that the running daemon cannot keep, each with why and the repair.

    Its variables are not those of this shell, so it is asked.
    """
    answer = told_by_daemon(settings, "upstream:list")
    items = [] if answer is None else answer["items"]
    for item in items:
        why = item.get("problem") or (item["reason"] if item["state"] == "failing" else "")
        if not why and item["listed_at"] is None:
            why = _UNSEEN
        if why:
            yield item["name"], why, f"remit upstream check {item['name']}"


def unseen(settings: Settings, upstreams: tuple[Upstream, ...]) -> Iterator[tuple[str, str, str]]:
    """The servers that nobody has ever asked for their tools, each with the repair."""
    known = read_pins(Home(settings.home).upstreams, [one.name for one in upstreams]).known
    for one in upstreams:
        pins = known.get(one.name)
        if pins is None or not (pins.listed_at or pins.tools):
            yield one.name, _UNSEEN, f"remit upstream check {one.name}"


def obstacles(upstream: Upstream) -> Iterator[tuple[str, str]]:
    """Why a server cannot start from here, each with the repair."""
    if upstream.command and not _is_found(upstream):
        repair = "install it, or write its full path into upstreams.yaml"
        yield f"there is no program {upstream.command}", repair
    if upstream.cwd and not Path(upstream.cwd).is_dir():
        yield f"there is no folder {upstream.cwd}", "make it, or repair cwd in upstreams.yaml"
    for name in sorted({*upstream.secret_env.values(), *upstream.secret_headers.values()}):
        secret = find_secret(name)
        if secret.value is None:
            repair = f"export {name}=…, or {name}_FILE=PATH, where the daemon is started"
            yield f"the secret {name} is missing: {secret.why}", repair


def _is_found(upstream: Upstream) -> bool:
    if "/" in upstream.command:
        named = Path(upstream.cwd or ".") / Path(upstream.command).expanduser()
        return shutil.which(str(named)) is not None
    path = upstream.env.get("PATH") or os.environ.get("PATH")
    return shutil.which(upstream.command, path=path) is not None
