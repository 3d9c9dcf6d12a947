"""The bill command: what was put before models, in tokens."""

from typing import Any

import click

from remit.cli.audit import Moment
from remit.cli.connection import connected
from remit.cli.options import Asked, asked
from remit.cli.outcome import counted, next_step, print_json, say

_NAME = 24


@click.command()
@click.argument("agent", required=False)
@click.option("--since", type=Moment(), help="Nothing before that day: '7d', '2w', or an ISO time.")
@asked
def bill(ask: Asked, agent: str | None, *, since: float | None) -> None:
    """Tell what was put before the models of all agents, or of AGENT, in tokens."""
    asked_for = {"agent": agent, "since": since}
    data = {name: value for name, value in asked_for.items() if value is not None}
    with connected(ask.settings()) as remit:
        answer = remit.call("bill:query", data)
        while answer["next"] is not None:
            more = remit.call("bill:query", data | {"after": answer["next"]})
            answer |= {"items": answer["items"] + more["items"], "next": more["next"]}
    if ask.as_json:
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
        click.style(f"{item['agent']:{_NAME}}", bold=True)
        + f" {item['sent']:>10,} tokens in {turns}{full}"
    )
    if "days" not in item:
        return
    for kind, found in item["kinds"].items():
        say(f"  {kind:{_NAME - 2}} {found['sent']:>10,} in {found['count']:,}")
    for day in item["days"]:
        say(f"  {day['day']:{_NAME - 2}} {day['sent']:>10,} in {counted(day['turns'], 'turn')}")
    for turn in item["latest"]:
        kinds = ", ".join(f"{kind} {sent:,}" for kind, sent in turn["kinds"].items())
        say(f"  a turn of {turn['sent']:,}: {kinds}")
