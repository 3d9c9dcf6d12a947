"""Agents in a daemon: their tokens, and their processes, each of which comes back after a restart.

A launched agent finds its key in a file of the home that only its process can read.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import anyio
import structlog

from remit.config.definitions.launchers import Commands
from remit.config.settings.home import Home
from remit.config.settings.launch_user import launch_dir, launch_user, make_launch_dir
from remit.config.settings.table import Settings
from remit.errors import RemitError
from remit.features.agents.delegation import launch_of
from remit.features.agents.launcher import Launcher, LaunchFolders
from remit.features.agents.tokens import TokenIssuer, TokenRows
from remit.kernel.dispatch.context import Kernel
from remit.kernel.feature import Setup, Startup
from remit.kernel.processes.child import end_leftovers
from remit_client.errors import BadKey
from remit_client.keys import Key, load_key, save_key

log = structlog.get_logger()


def _build(kernel: Kernel, _startup: Startup) -> None:
    kernel.provide(TokenIssuer(TokenRows(kernel.database), kernel.keyring))


async def _load(kernel: Kernel) -> None:
    await kernel.service(TokenIssuer).load()


@asynccontextmanager
async def _run(kernel: Kernel, settings: Settings) -> AsyncGenerator[None]:
    """Start processes for agents while this is open; all of them end with it.

    Raises:
        SettingsError: processes cannot be started as the settings say.
    """
    home, commands, user = (
        Home(settings.home),
        Commands(settings.launch_commands),
        launch_user(settings),
    )
    for missing in commands.missing():
        log.warning("launch_command_not_installed", command=missing.starts)
    if settings.launch_commands:
        make_launch_dir(launch_dir(settings), user)
    owner = str(home.path.resolve())
    folders = LaunchFolders(launch_dir(settings), owner=owner, user=user)
    # The lock of the home is ours, so what carries its mark belongs to no living daemon.
    if left := end_leftovers(owner):
        log.warning("leftovers_ended", processes=left)
    async with anyio.create_task_group() as tasks:
        launcher = Launcher(
            tasks,
            commands=commands,
            folders=folders,
            identify=partial(identity, home, folders, kernel.endpoint),
            find=partial(launch_of, kernel.authority, commands),
        )
        kernel.provide(launcher)

        def ended(name: str) -> None:
            launcher.end(name)
            forget_identity(home, name)

        kernel.on_end.append(ended)
        _relaunch(home, kernel, launcher)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


def identity(
    home: Home,
    folders: LaunchFolders,
    endpoint: str,
    agent: str,
    public_key: str,
    secret_key: str,
) -> Mapping[str, str]:
    """Keep an agent's key in a file that only its owner reads; answers the way to it."""
    home.agents.mkdir(mode=0o700, exist_ok=True)
    server = home.server_public_key.read_text(encoding="ascii").strip()
    key = Key(agent, public_key, secret_key, server_key=server, endpoint=endpoint)
    path = home.agents / f"{agent}.key"
    save_key(path, key)
    return {
        "REMIT_AGENT_ID": agent,
        "REMIT_ENDPOINT": endpoint,
        "REMIT_KEY": str(folders.give_key(path, key)),
        "REMIT_SERVER_KEY": server,
    }


def forget_identity(home: Home, agent: str) -> None:
    """Remove the key of an agent that has ended."""
    (home.agents / f"{agent}.key").unlink(missing_ok=True)


def _relaunch(home: Home, kernel: Kernel, launcher: Launcher) -> None:
    """Start again what ran before; one that cannot be started is said and left out."""
    for agent in kernel.authority.fleet.all():
        if not agent.spec.launch and not agent.spec.launches_profile:
            continue
        try:
            key = load_key(home.agents / f"{agent.id}.key")
            launcher.launch(agent.id, key.public_key, key.secret_key)
        except (RemitError, BadKey, OSError) as error:
            log.warning("agent_not_launched", agent=agent.id, problem=str(error))


SETUP = Setup(build=_build, load=_load, run=_run)
