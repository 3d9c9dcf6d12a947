"""What can be told about outside servers without starting one: commands, secrets, the file."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from remit.config.secret_source import find_secret
from remit.config.settings_table import Settings
from remit.model.upstream import Upstream


def kept_ill(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The servers that the running daemon cannot keep, each with why and the repair.

    Its variables are not those of this shell, so it is asked.
    """
    import remit_client.sync  # noqa: PLC0415 - zmq, only when a daemon runs
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415

    try:
        with remit_client.sync.connect(home=str(settings.home)) as remit:
            items = remit.call("upstream:list", timeout=5)["items"]
    except ClientError:
        return  # the look at the socket tells it
    for item in items:
        why = item.get("problem") or (item["reason"] if item["state"] == "failing" else "")
        if why:
            yield item["name"], why, f"remit upstream check {item['name']}"


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
