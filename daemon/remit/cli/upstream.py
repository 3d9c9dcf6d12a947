"""Outside MCP servers: upstream list, check, add, remove, import."""

import click

from remit.cli.upstream_edits import add, remove
from remit.cli.upstream_import import import_
from remit.cli.upstream_looks import check, list_


@click.group()
def upstream() -> None:
    """Let in the tools of other MCP servers: list, check, add, remove, import."""


for _command in (list_, check, add, remove, import_):
    upstream.add_command(_command)
