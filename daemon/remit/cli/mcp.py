"""The tools of an agent for an MCP host: mcp."""

import gc
import os
from functools import partial

import anyio
import click

from remit.app.daemon import leave
from remit.app.logs import configure_logs
from remit.app.mcp_stdio import Who, serve_mcp
from remit.cli.options import SharedOptions, completing, with_options
from remit.cli.outcome import fail
from remit.errors import InvalidDataError, RemitError


@click.command()
@click.option(
    "--agent",
    default="",
    help="Serve this agent; its key lies in the home.",
    shell_complete=completing("agent"),
)
@click.option(
    "--profile",
    default="",
    help="Serve a new agent with this profile, while we run.",
    shell_complete=completing("profile"),
)
@click.option("--key", default="", help="Key file of the agent, or of whoever makes one.")
@click.option("--session", help="The session that narrows every call.")
@click.option("--embedded", is_flag=True, help="Run a daemon in here when none runs.")
@with_options
def mcp(
    shared: SharedOptions,
    agent: str,
    profile: str,
    key: str,
    *,
    session: str | None,
    embedded: bool,
) -> None:
    """Serve MCP over standard input and output, for a host that starts this command."""
    if agent and profile:
        raise InvalidDataError("name --agent or --profile, not both")
    if not (agent or profile or key or os.environ.get("REMIT_KEY")):
        hint = "remit mcp --profile PROFILE, or --agent AGENT"
        raise InvalidDataError("whose tools are to be served?", hint=hint)
    gc.enable()  # see __main__
    settings = shared.settings()
    configure_logs(settings)
    try:
        anyio.run(
            partial(serve_mcp, settings, Who(agent, profile, key, session), embedded=embedded)
        )
    except RemitError as error:
        try:
            fail(error, as_json=shared.as_json)
        except SystemExit as end:
            # A thread may wait for the host's next word for ever.
            leave(end.code if isinstance(end.code, int) else 1)
            raise
    leave()
