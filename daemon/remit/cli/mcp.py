"""Serving the tools of an agent to an MCP host: mcp."""

import gc
from functools import partial

import click

from remit.cli import completion
from remit.cli.options import Asked, asked
from remit.cli.outcome import fail
from remit.errors import InvalidDataError, RemitError


@click.command()
@click.option(
    "--agent",
    default="",
    help="Serve this agent; its key lies in the home.",
    shell_complete=completion.agents,
)
@click.option(
    "--profile",
    default="",
    help="Serve a new agent with this profile, while we run.",
    shell_complete=completion.profiles,
)
@click.option("--key", default="", help="Key file of the agent, or of whoever makes one.")
@click.option("--session", help="The session that narrows every call.")
@click.option("--embedded", is_flag=True, help="Run a daemon in here when none runs.")
@asked
def mcp(
    ask: Asked, agent: str, profile: str, key: str, *, session: str | None, embedded: bool
) -> None:
    """Serve MCP over standard input and output, for a host that starts this command."""
    import os  # noqa: PLC0415

    import anyio  # noqa: PLC0415 - 60 ms that no other command should pay

    from remit.app.daemon import leave  # noqa: PLC0415
    from remit.app.logs import configure_logs  # noqa: PLC0415
    from remit.app.mcp_stdio import Who, serve_mcp  # noqa: PLC0415

    if agent and profile:
        raise InvalidDataError("name --agent or --profile, not both")
    if not (agent or profile or key or os.environ.get("REMIT_KEY")):
        hint = "remit mcp --profile PROFILE, or --agent AGENT"
        raise InvalidDataError("whose tools are to be served?", hint=hint)
    gc.enable()  # see __main__
    settings = ask.settings()
    configure_logs(settings)
    try:
        anyio.run(
            partial(serve_mcp, settings, Who(agent, profile, key, session), embedded=embedded)
        )
    except RemitError as error:
        try:
            fail(error, as_json=ask.as_json)
        except SystemExit as end:
            # A thread may wait for the host's next word for ever.
            leave(end.code if isinstance(end.code, int) else 1)
            raise
    leave()
