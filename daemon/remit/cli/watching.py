"""Looking on while the daemon works: tail, top."""

import time
from typing import Any

import click
import msgspec

from remit.cli import completion
from remit.cli.audit import times
from remit.cli.connection import connected
from remit.cli.options import SECONDS, Asked, asked
from remit.cli.outcome import print_json, say
from remit.errors import InvalidPatternError
from remit.model.patterns import EventPattern

_ENTRY = "audit:entry"
_GLANCE = 1.0
_ROWS = 20


@click.command()
@click.argument("patterns", nargs=-1, shell_complete=completion.events)
@click.option("--denied", is_flag=True, help="Only denials.")
@click.option("--ignore", multiple=True, help="A pattern of events to leave out.")
@click.option("--count", type=click.IntRange(1), help="Stop after so many lines.")
@asked
def tail(
    ask: Asked,
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
    with connected(ask.settings()) as remit, remit.subscribe(_ENTRY) as entries:
        for push in entries:
            entry = push.data
            if denied and entry["outcome"] != "denied":
                continue
            if not _chosen(entry["event"], wanted, unwanted):
                continue
            click.echo(msgspec.json.encode(entry).decode() if ask.as_json else _line(entry))
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
@asked
def top(ask: Asked, *, once: bool, interval: float) -> None:
    """Show who and what is busy, again and again until Ctrl-C."""
    with connected(ask.settings()) as remit:
        before = _sample(remit, None)
        if not once and not ask.as_json:
            _follow(remit, before, interval)
            return
        # A rate needs two looks.
        time.sleep(min(interval, _GLANCE))
        now = _sample(remit, before)
    if ask.as_json:
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
    from rich.live import Live  # noqa: PLC0415 - rich only where a picture moves
    from rich.text import Text  # noqa: PLC0415

    with Live(Text(_screen(before)), refresh_per_second=4) as live:
        try:
            while True:
                time.sleep(max(interval, 0.2))
                now = _sample(remit, before)
                live.update(Text(_screen(now)))
                before = now
        except KeyboardInterrupt:
            return


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
