"""`remit demo`: the first thing a newcomer types."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from remit.cli.options import Asked, asked
from remit.cli.outcome import next_step, print_json, say


@click.command()
@asked
def demo(ask: Asked) -> None:
    """Watch three scripted agents work on a real daemon; no network, nothing is kept."""
    import anyio  # noqa: PLC0415 - the daemon's parts, only here

    from remit.app.demo import run_demo  # noqa: PLC0415
    from remit.app.logs import configure_logs  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="remit-demo-"))
    settings = ask.settings(log_level="error")
    settings = _in(settings, folder)
    configure_logs(settings)
    steps: list[dict[str, Any]] = []

    def show(kind: str, facts: dict[str, Any]) -> None:
        if ask.as_json:
            steps.append({"kind": kind, **facts})
        else:
            say(_LINES[kind](facts))
            sys.stdout.flush()

    try:
        totals = anyio.run(run_demo, settings, show)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ask.as_json:
        print_json({"steps": steps, "totals": totals})
        return
    say(f"\n{totals['allowed']} allowed, {totals['denied']} denied, each with its reason")
    next_step("why base_multi_agent agent:terminate")


def _in(settings: Any, folder: Path) -> Any:
    """The shipped definitions in a home of their own, whatever is configured."""
    import msgspec  # noqa: PLC0415

    return msgspec.structs.replace(
        settings, home=folder, catalogue=None, compositions=None, handlers=(), endpoint=""
    )


def _daemon(facts: dict[str, Any]) -> str:
    return (
        f"a daemon with {facts['profiles']} profiles and {facts['events']} events; "
        "lead, scout and worker begin\n"
    )


def _step(facts: dict[str, Any]) -> str:
    mark = click.style("allow", fg="green") if facts["ok"] else click.style("DENY ", fg="red")
    line = f"{mark}  {facts['agent']:7} {facts['event']:20} {facts['why']}"
    if facts["ok"]:
        return line
    places = ", ".join(facts["rules"]) or "nothing grants it"
    return f"{line}\n         {facts['reason']}: {places}  (decision {facts['decision']})"


def _bill(facts: dict[str, Any]) -> str:
    saved = 100 - round(100 * facts["sent"] / max(1, facts["full_dump"]))
    return (
        f"bill   {facts['agent']:7} {facts['tools']} tools in about {facts['sent']} tokens, "
        f"{saved} % less than {facts['full_dump']} with all schemas"
    )


_LINES = {"daemon": _daemon, "step": _step, "bill": _bill}
