"""The discover command: what a subject would be shown for a request, and what that costs."""

from typing import Any

import click

from remit.app.workbench import open_workbench, source_of_daemon
from remit.cli import completion
from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked_about_definitions
from remit.cli.outcome import next_step, print_json, say, say_source
from remit.cli.toolsets import tools_of
from remit.model.descriptor import DESCRIPTOR_KINDS
from remit.runtime.tool_formats import SEARCH_FORMATS, SearchFormat, found

_NAME, _KIND = 34, 10


@click.command()
@click.argument("query")
@click.option(
    "--as",
    "subject",
    required=True,
    help="A profile, or an agent of the daemon.",
    shell_complete=completion.subjects,
)
@click.option("--kind", type=click.Choice(DESCRIPTOR_KINDS), help="Only this kind.")
@click.option("--category", help="Only this category.")
@click.option("--only-available", is_flag=True, help="Leave out what cannot be used now.")
@click.option("--top", type=click.IntRange(1, 50), help="How many summaries; 5 when absent.")
@click.option("--budget", type=click.IntRange(0), help="Tokens in all; 1850 when absent.")
@click.option("--full", is_flag=True, help="Print the texts that the subject would be given.")
@click.option(
    "--format",
    "form",
    type=click.Choice(SEARCH_FORMATS),
    help="What to answer a model that searched for deferred tools.",
)
@asked_about_definitions
def discover(  # noqa: PLR0913 - one for each option
    ask: Asked,
    query: str,
    *,
    subject: str,
    kind: str | None,
    category: str | None,
    only_available: bool,
    top: int | None,
    budget: int | None,
    full: bool,
    form: SearchFormat | None,
) -> None:
    """Find the tools and skills that fit QUERY, of those that a subject may use."""
    if form is not None and (full or kind not in (None, "tool")):
        raise click.UsageError("--format answers with tools, so no --full and no other --kind")
    config = {"top_k": top, "total_tokens": budget}
    question: dict[str, Any] = {"query": query, "only_available": only_available}
    question |= {"kind": kind or "tool"} if kind or form else {}
    question |= {"category": category} if category else {}
    question["config"] = {name: value for name, value in config.items() if value is not None}
    answer = _ask(ask, subject, question)
    if form is not None:
        tools = tools_of(ask, subject)[0]["tools"]
        print_json(found(tools, [item["id"] for item in answer["capabilities"]], form))
        return
    if ask.as_json:
        print_json(answer)
        return
    if full:
        say("\n\n".join(answer[tier] for tier in ("map", "summary", "detail") if answer[tier]))
    else:
        _say_table(answer)
    _say_bill(answer)
    say_source(answer)
    first = answer["capabilities"][0]["id"] if answer["capabilities"] else ""
    next_step(f"call discovery:describe id={first}" if first else f"tools {subject}")


def _ask(ask: Asked, subject: str, question: dict[str, Any]) -> Any:
    """Ask the daemon; without one, the same engine over the files that were named."""
    settings = ask.definitions()
    if not ask.about_files:
        with daemon_answers(settings) as daemon:
            if daemon is not None:
                answer = daemon.discover(subject, question)
                return answer | {"source": source_of_daemon(settings, answer["revision"])}
    from remit.app.offline_search import discover_offline  # noqa: PLC0415 - numpy and the vectors

    bench = open_workbench(settings, ask.events)
    answer = discover_offline(bench, settings, subject, question, files_first=ask.about_files)
    return answer | {"source": bench.source}


def _say_table(answer: dict[str, Any]) -> None:
    found = answer["capabilities"]
    if not found:
        say("nothing fits; the map of what there is:")
        say(answer["map"])
        return
    say(click.style(f"{'id':{_NAME}} {'kind':{_KIND}} relevance", bold=True))
    for item in found:
        note = f"   needed by or used with {item['pulled_in_by']}" if "pulled_in_by" in item else ""
        shown = " " * 9 if note else f"{item['relevance']:9.2f}"
        say(f"{item['id']:{_NAME}} {item['kind']:{_KIND}} {shown}{note}")
    for item in answer["skipped"]:
        say(f"left out of {item['tier']}: {item['id']} ({item['reason']})")


def _say_bill(answer: dict[str, Any]) -> None:
    tokens = answer["tokens"]
    dump = tokens["full_dump"]
    saved = f", {1 - tokens['total'] / dump:.0%} saved" if dump > tokens["total"] else ""
    say(
        f"{tokens['total']:,} tokens (map {tokens['map']}, summary {tokens['summary']}, "
        f"detail {tokens['detail']}) of {dump:,} for all {answer['total_indexed']}{saved}"
    )
