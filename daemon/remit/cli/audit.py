"""What was decided, and the proof that nobody changed it: audit, audit verify, audit accept."""

import re
import time
from datetime import datetime
from typing import Any

import click

from remit.cli import completion
from remit.cli.connection import connected
from remit.cli.invocation import invoked_as
from remit.cli.options import Asked, asked
from remit.cli.outcome import NO, next_step, print_json, say, say_hint
from remit.config.home import Home
from remit.config.lock import running_pid
from remit.errors import InvalidDataError

_AGO = re.compile(r"(?P<count>\d+)(?P<unit>[smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_COLOURS = {"denied": "red", "failed": "yellow", "waiting": "cyan", "lapsed": "yellow"}


class Moment(click.ParamType[float]):
    """A time of day, or how long ago."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read '10m', '2h', '3d', or an ISO time; one without a zone is local."""
        text = str(value)
        ago = _AGO.fullmatch(text)
        if ago:
            return time.time() - int(ago["count"]) * _SECONDS[ago["unit"]]
        try:
            return datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is no time: write '10m', '2h' or '2026-01-31T12:00'", param, ctx)


@click.group(invoke_without_command=True)
@click.option("--agent", help="Only what this agent asked for.", shell_complete=completion.agents)
@click.option(
    "--event", help="Only this event, or all under 'prefix*'.", shell_complete=completion.events
)
@click.option("--reason", help="Only decisions with this reason.")
@click.option("--outcome", help="Only allowed, denied, waiting, lapsed or failed.")
@click.option("--decision", help="Only the decision with this id.")
@click.option("--since", type=Moment(), help="Nothing earlier: '10m', '2h', or an ISO time.")
@click.option("--until", type=Moment(), help="Nothing later.")
@click.option("--limit", type=click.IntRange(1), default=50, help="How many rows; 50.")
@asked
def audit(ask: Asked, *, limit: int, **filters: Any) -> None:
    """Look up what was decided, newest last."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    if click.get_current_context().invoked_subcommand is not None:
        if wanted or ask.as_json or ask.home:
            message = f"options come after the command: {invoked_as()} audit verify --json"
            raise click.UsageError(message)
        return
    with connected(ask.settings()) as remit:
        answer = _rows(remit, wanted, limit)
    if ask.as_json:
        print_json(answer)
        return
    for item in reversed(answer["items"]):
        say(_line(item))
    count = len(answer["items"])
    say(f"{count} rows" + ("; there are older ones: --limit shows more" if answer["next"] else ""))
    next_step("audit verify")


def _rows(remit: Any, wanted: dict[str, Any], limit: int) -> dict[str, Any]:
    items: list[Any] = []
    before = None
    while True:
        data = wanted | {"limit": min(limit - len(items), 500)}
        page = remit.call("audit:query", data | ({"before": before} if before else {}))
        items += page["items"]
        before = page["next"]
        if before is None or len(items) >= limit:
            return {"items": items, "next": before}


def _line(item: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(item["at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    outcome = click.style(f"{item['outcome']:8}", fg=_COLOURS.get(item["outcome"]))
    what = f"{at} {outcome} {item['principal']:16} {item['event']:24}"
    decision = f"  ({item['decision']})" if item["decision"] else ""
    return f"{what} {item['reason']}{times(item)}{decision}"


def times(item: dict[str, Any]) -> str:
    """How often the decision of a row was made, where that is not once."""
    count = item.get("count", 1)
    return f" x{count:,} more" if "count" in item["details"] and count else ""


@audit.command()
@click.option("--head", help="A hash that was noted earlier; it must still be one of the rows.")
@click.option("--files", is_flag=True, help="Read the files, also while a daemon runs.")
@asked
def verify(ask: Asked, *, head: str | None, files: bool) -> None:
    """Prove that nobody changed the audit; exit code 1 says what is wrong.

    A running daemon is asked; without one the files of the home are read.
    """
    settings = ask.settings()
    home = Home(settings.home)
    is_served = home.database.is_file() or home.audit_head.is_file()
    if files or (running_pid(home) is None and is_served):
        from remit.app.audit_files import prove_files  # noqa: PLC0415 - reads a database

        answer = {"source": "files"} | prove_files(home, head)
    else:
        with connected(settings) as remit:
            found = remit.call("audit:verify", {"head": head} if head else {}, timeout=600)
        answer = {"source": "daemon"} | found
    _tell(answer, ask)


@audit.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@asked
def accept(ask: Asked, *, yes: bool) -> None:
    """Take the audit as it ends now, after you looked at what 'audit verify' found.

    Also after archives were moved away. The daemon must not run; what was wrong becomes a row.
    """
    from remit.app.audit_files import accept_files, prove_files  # noqa: PLC0415 - reads a database

    home = Home(ask.settings().home)
    before = prove_files(home)
    if not yes and not ask.as_json:
        say(before["problem"] or "nothing is wrong with the audit")
        if not click.confirm("accept the audit as it is?"):
            raise InvalidDataError("nothing was done", hint="--yes does not ask")
    _tell({"source": "files"} | accept_files(home), ask)


def _tell(answer: dict[str, Any], ask: Asked) -> None:
    """Show a proof, and end with what it found."""
    if ask.as_json:
        print_json(answer)
    elif answer["ok"]:
        archived = answer.get("archived", {}).get("rows", 0)
        say(f"the audit is whole: {answer['rows']} rows, and {archived} in the archive")
        say(f"  head {answer['head']}")
        if since := answer.get("signed", {}).get("since"):
            say(f"  nobody vouches for what was cut off before row {since} was the newest")
        next_step("audit --outcome denied")
    else:
        row = f" at row {answer['first_bad']}" if answer["first_bad"] else ""
        say(f"the audit is broken{row}: {answer['problem']}")
        say_hint("keep a copy of the home; after you looked, without a daemon: remit audit accept")
    if not answer["ok"]:
        click.get_current_context().exit(NO)
