"""What the daemon decided, does and has sent: audit, tail, top, bill."""

import re
import shutil
import sys
import time
from datetime import datetime
from typing import Any

import click
import msgspec

from remit.app.audit_files import accept_files, prove_files
from remit.cli.commands import invoked_as
from remit.cli.connection import connected
from remit.cli.options import SECONDS, SharedOptions, completing, with_options
from remit.cli.outcome import NO, counted, next_step, print_json, say, say_hint
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.errors import InvalidDataError, InvalidPatternError
from remit.model.names import EventPattern

_AGO = re.compile(r"(?P<count>\d+)(?P<unit>[smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_COLOURS = {"denied": "red", "failed": "yellow", "waiting": "cyan", "lapsed": "yellow"}
_ENTRY = "audit:entry"
_GLANCE = 1.0
_ROWS = 20
_WIDTH = 24


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
@click.option("--agent", help="Only what this agent asked for.", shell_complete=completing("agent"))
@click.option(
    "--event", help="Only this event, or all under 'prefix*'.", shell_complete=completing("event")
)
@click.option("--reason", help="Only decisions with this reason.")
@click.option("--outcome", help="Only allowed, denied, waiting, lapsed or failed.")
@click.option("--decision", help="Only the decision with this id.")
@click.option("--since", type=Moment(), help="Nothing earlier: '10m', '2h', or an ISO time.")
@click.option("--until", type=Moment(), help="Nothing later.")
@click.option("--limit", type=click.IntRange(1), default=50, help="How many rows; 50.")
@with_options
def audit(shared: SharedOptions, *, limit: int, **filters: Any) -> None:
    """Look up what was decided, newest last."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    if click.get_current_context().invoked_subcommand is not None:
        if wanted or shared.as_json or shared.home:
            message = f"options come after the command: {invoked_as()} audit verify --json"
            raise click.UsageError(message)
        return
    with connected(shared.settings()) as remit:
        answer = _rows(remit, wanted, limit)
    if shared.as_json:
        print_json(answer)
        return
    for item in reversed(answer["items"]):
        say(_row_line(item))
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


def _row_line(item: dict[str, Any]) -> str:
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
@with_options
def verify(shared: SharedOptions, *, head: str | None, files: bool) -> None:
    """Prove that nobody changed the audit; exit code 1 says what is wrong.

    A running daemon is asked; without one the files of the home are read.
    """
    settings = shared.settings()
    home = Home(settings.home)
    is_served = home.database.is_file() or home.audit_head.is_file()
    if files or (running_pid(home) is None and is_served):
        answer = {"source": "files"} | prove_files(home, head)
    else:
        with connected(settings) as remit:
            found = remit.call("audit:verify", {"head": head} if head else {}, timeout=600)
        answer = {"source": "daemon"} | found
    _tell(answer, shared)


@audit.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_options
def accept(shared: SharedOptions, *, yes: bool) -> None:
    """Take the audit as it ends now, after you looked at what 'audit verify' found.

    Also after archives were moved away. The daemon must not run; what was wrong becomes a row.
    """
    home = Home(shared.settings().home)
    before = prove_files(home)
    if not yes and not shared.as_json:
        say(before["problem"] or "nothing is wrong with the audit")
        if not click.confirm("accept the audit as it is?"):
            raise InvalidDataError("nothing was done", hint="--yes does not ask")
    _tell({"source": "files"} | accept_files(home), shared)


def _tell(answer: dict[str, Any], shared: SharedOptions) -> None:
    """Show a proof, and end with what it found."""
    if shared.as_json:
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


@click.command()
@click.argument("patterns", nargs=-1, shell_complete=completing("event"))
@click.option("--denied", is_flag=True, help="Only denials.")
@click.option("--ignore", multiple=True, help="A pattern of events to leave out.")
@click.option("--count", type=click.IntRange(1), help="Stop after so many lines.")
@with_options
def tail(
    shared: SharedOptions,
    patterns: tuple[str, ...],
    *,
    denied: bool,
    ignore: tuple[str, ...],
    count: int | None,
) -> None:
    """Follow decisions as they are made; PATTERNS choose events, all of them when absent."""
    wanted = [_pattern(text) for text in patterns]
    unwanted = [_pattern(text) for text in ignore]
    shown = 0
    with connected(shared.settings()) as remit, remit.subscribe(_ENTRY) as entries:
        for push in entries:
            entry = push.data
            if denied and entry["outcome"] != "denied":
                continue
            if not _chosen(entry["event"], wanted, unwanted):
                continue
            click.echo(msgspec.json.encode(entry).decode() if shared.as_json else _line(entry))
            shown += 1
            if count is not None and shown >= count:
                return


def _pattern(text: str) -> EventPattern:
    try:
        return EventPattern.parse(text)
    except InvalidPatternError as error:
        raise click.BadParameter(f"{error.message}: {error.hint}") from error


def _chosen(event: str, wanted: list[EventPattern], unwanted: list[EventPattern]) -> bool:
    if any(pattern.covers(event) for pattern in unwanted):
        return False
    return not wanted or any(pattern.covers(event) for pattern in wanted)


def _line(entry: dict[str, Any]) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(entry["at"]))
    word = entry["outcome"]
    colour = {"denied": "red", "failed": "yellow"}.get(word, "green")
    mark = click.style("DENY " if word == "denied" else f"{word:5}", fg=colour)
    reason = "" if word == "allowed" else f" {entry['reason']}{times(entry)}"
    return f"{at} {mark} {entry['principal']:16} {entry['event']:28}{reason}  {entry['decision']}"


@click.command()
@click.option("--once", is_flag=True, help="Show one picture and end.")
@click.option("--interval", type=SECONDS, default=2.0, help="Seconds between pictures.")
@with_options
def top(shared: SharedOptions, *, once: bool, interval: float) -> None:
    """Show who and what is busy, again and again until Ctrl-C."""
    with connected(shared.settings()) as remit:
        before = _sample(remit, None)
        if not once and not shared.as_json:
            _follow(remit, before, interval)
            return
        # A rate needs two looks.
        time.sleep(min(interval, _GLANCE))
        now = _sample(remit, before)
    if shared.as_json:
        print_json(now)
    else:
        say(_screen(now))


def _sample(remit: Any, before: dict[str, Any] | None) -> dict[str, Any]:
    """What is shown: each agent with its counts, and its calls a second since the last look."""
    health, stats = remit.call("system:health"), remit.call("system:stats")
    seconds = health["uptime"] - before["health"]["uptime"] if before else 0.0

    def rated(counts: dict[str, int], old: dict[str, int] | None) -> float:
        calls = counts["calls"] - (old["calls"] if old else 0)
        return round(max(calls, 0) / seconds, 1) if seconds > 0 else 0.0

    past = before["stats"]["by_agent"] if before else {}
    agents = [
        {"agent": name, **counts, "rate": rated(counts, past.get(name))}
        for name, counts in stats["by_agent"].items()
    ]
    events = before["stats"]["by_event"] if before else {}
    rates = {
        name: rated({"calls": count}, {"calls": events.get(name, 0)})
        for name, count in stats["by_event"].items()
    }
    agents.sort(key=lambda row: (-row["rate"], -row["calls"], row["agent"]))
    return {"health": health, "stats": stats, "agents": agents, "rates": rates}


def _follow(remit: Any, before: dict[str, Any], interval: float) -> None:
    """Draw over the last picture; where no terminal shows it, only the last one is printed."""
    moves = sys.stdout.isatty()
    drawn = _draw(_screen(before), 0) if moves else 0
    try:
        while True:
            time.sleep(max(interval, 0.2))
            before = _sample(remit, before)
            drawn = _draw(_screen(before), drawn) if moves else 0
    except KeyboardInterrupt:
        if not moves:
            say(_screen(before))


def _draw(picture: str, drawn: int) -> int:
    """Draw what fits on the terminal over the lines drawn before; tell how many there are."""
    width, height = shutil.get_terminal_size()
    lines = [line[:width] for line in picture.splitlines()][: max(height - 1, 1)]
    up = f"\x1b[{drawn}A" if drawn else ""
    sys.stdout.write("\n".join([f"{up}\r\x1b[J{lines[0]}", *lines[1:], ""]))
    sys.stdout.flush()
    return len(lines)


def _screen(now: dict[str, Any]) -> str:
    health, stats = now["health"], now["stats"]
    lines = [
        f"remit {health['version']}  {health['status']}  revision {health['revision']}  "
        f"{health['agents']} agents  up {health['uptime']:.0f} s",
        f"{stats.get('requests', 0)} requests, {stats.get('denied', 0)} denied "
        f"({stats.get('denied_repeats', 0)} repeats), {stats.get('failed', 0)} failed",
        f"{stats.get('clients', 0)} connections, {stats.get('dropped', 0)} messages dropped, "
        f"{stats.get('evicted', 0)} cut off",
        "",
    ]
    lines.append(
        f"{'agent':32} {'calls':>10} {'denied':>8} {'queue':>6} {'dropped':>8} {'rate':>9}"
    )
    lines += [
        f"{row['agent']:32} {row['calls']:10} {row['denied']:8} {row['queue']:6} "
        f"{row['dropped']:8} {row['rate']:7.1f}/s"
        for row in now["agents"][:_ROWS]
    ]
    lines += ["", f"{'event':32} {'calls':>10} {'rate':>36}"]
    rows = sorted(stats["by_event"].items(), key=lambda row: (-row[1], row[0]))
    lines += [
        f"{event:32} {total:10} {now['rates'][event]:34.1f}/s" for event, total in rows[:_ROWS]
    ]
    return "\n".join(lines)


@click.command()
@click.argument("agent", required=False)
@click.option("--since", type=Moment(), help="Nothing before that day: '7d', '2w', or an ISO time.")
@with_options
def bill(shared: SharedOptions, agent: str | None, *, since: float | None) -> None:
    """Tell what was put before the models of all agents, or of AGENT, in tokens."""
    asked_for = {"agent": agent, "since": since}
    data = {name: value for name, value in asked_for.items() if value is not None}
    with connected(shared.settings()) as remit:
        answer = remit.call("bill:query", data)
        while answer["next"] is not None:
            more = remit.call("bill:query", data | {"after": answer["next"]})
            answer |= {"items": answer["items"] + more["items"], "next": more["next"]}
    if shared.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        _say_item(item)
    if not answer["items"]:
        say("nothing was put before a model")
    is_list = agent is None and answer["items"]
    next_step(f"bill {answer['items'][0]['agent']} --since 7d" if is_list else "agents")


def _say_item(item: dict[str, Any]) -> None:
    turns = counted(item["turns"], "turn")
    full = f", {item['full_dump']:,} for everything" if item["full_dump"] else ""
    say(
        click.style(f"{item['agent']:{_WIDTH}}", bold=True)
        + f" {item['sent']:>10,} tokens in {turns}{full}"
    )
    if "days" not in item:
        return
    for kind, found in item["kinds"].items():
        say(f"  {kind:{_WIDTH - 2}} {found['sent']:>10,} in {found['count']:,}")
    for day in item["days"]:
        say(f"  {day['day']:{_WIDTH - 2}} {day['sent']:>10,} in {counted(day['turns'], 'turn')}")
    for turn in item["latest"]:
        kinds = ", ".join(f"{kind} {sent:,}" for kind, sent in turn["kinds"].items())
        say(f"  a turn of {turn['sent']:,}: {kinds}")
