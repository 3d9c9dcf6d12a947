"""Talking to the running daemon from a command."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remit.config.home import Home
from remit.config.lock import running_pid
from remit.config.settings import Settings
from remit.errors import NotFoundError, with_code

if TYPE_CHECKING:
    from remit_client.sync import Client


@contextmanager
def connected(settings: Settings, key: str | None = None) -> Iterator["Client"]:
    """A connection to the daemon of this home; its failures are ours.

    The key is the one given, else REMIT_KEY's, else the operator's in the home.

    Raises:
        RemitError: the daemon is not there, refuses us, or answered with a failure.
    """
    import remit_client.sync  # noqa: PLC0415 - zmq costs 26 ms
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415

    key = key or os.environ.get("REMIT_KEY") or None
    # A key knows where its daemon is; only a home that somebody named knows better.
    named = key is None or settings.origins["home"].kind != "default"
    try:
        with remit_client.sync.connect(
            home=str(settings.home) if named else None,
            endpoint=settings.endpoint or None,
            key=key,
        ) as remit:
            yield remit
    except ClientError as error:
        raise with_code(error.code, error.message, error.hint, error.details) from error


class DaemonQuestions:
    """The questions that commands ask a running daemon."""

    def __init__(self, remit: "Client") -> None:
        self._remit = remit

    def explain(self, subject: str, event: str) -> Any:
        """Explain a decision about an agent, or else a profile."""
        which = "agent" if subject in self._profiles() else "profile"
        return self._remit.call("permission:explain", {"event": event, which: subject})

    def profile_of(self, subject: str) -> str:
        """The profile of an agent; a profile is its own."""
        return self._profiles().get(subject, subject)

    def holders(self, event: str) -> list[str]:
        """The agents that may use an event."""
        answers = (
            self._remit.call("permission:check", {"event": event, "agent": name})
            for name in self._profiles()
        )
        return sorted(answer["agent"] for answer in answers if answer["allowed"])

    def _profiles(self) -> dict[str, str]:
        """The profile of every agent the caller may see; at least it knows itself, by name."""
        from remit_client.errors import Denied  # noqa: PLC0415 - loaded with the connection

        try:
            items = self._remit.call("key:list")["items"]
        except Denied:
            me = self._remit.call("permission:check", {"event": "key:list"})["agent"]
            return {me: me}
        return {item["name"]: item["profile"] for item in items}


@contextmanager
def daemon_answers(settings: Settings) -> Iterator[DaemonQuestions | None]:
    """The running daemon, or None when no daemon holds this home."""
    if running_pid(Home(settings.home)) is None:
        yield None
        return
    with connected(settings) as remit:
        yield DaemonQuestions(remit)


def plan_by_daemon(settings: Settings, folder: Path | None) -> Any:
    """Compare what the daemon runs on with edited files.

    Raises:
        NotFoundError: no daemon runs, so there is nothing to compare with.
    """
    from remit.app.workbench import definition_files, settings_with  # noqa: PLC0415

    if running_pid(Home(settings.home)) is None:
        raise NotFoundError(
            "no daemon runs here, so there is nothing to compare with",
            hint="name the old definitions: remit plan --from OLD --to NEW",
        )
    if folder is not None:
        compositions = folder / "compositions"
        settings = settings_with(
            settings, catalogue=folder / "capabilities.yaml", compositions=compositions
        )
    files = definition_files(settings)
    with connected(settings) as remit:
        listed = {item["name"] for item in remit.call("composition:list", {"limit": 1000})["items"]}
        data = {
            "catalogue": files.contents[files.catalogue].decode("utf-8-sig"),
            "compositions": {
                Path(name).name: files.contents[name].decode("utf-8-sig")
                for name in files.compositions
            },
        }
        present = {Path(name).stem for name in files.compositions}
        data["remove"] = [f"{name}.yaml" for name in sorted(listed - present)]
        return remit.call("composition:plan", data)
