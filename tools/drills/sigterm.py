"""The daemon must end under load: `python tools/drills/sigterm.py [--rounds N] [--seconds S]`.

Clients write, read and are refused without a pause, one of them waits for an approval that nobody
gives, and SIGTERM comes at a random moment; in every third round twice. The daemon must
answer every call that it has begun and end with exit code 0, no call may hang, and the next daemon
must know everything that was acknowledged. Prints one line of figures; exit code 1 when something
was wrong.
"""

import random
import signal
import sys
import time

import anyio
from promises import GONE, HANG_SECONDS, Promises
from stage import Daemon, Stage, arguments, new_folder, report

import remit_client
from remit_client.errors import RemitError
from remit_client.keys import new_key

WORKERS = 4
LATEST = 0.4
"""Seconds of load before the signal, at the most."""
DRAIN_SECONDS = 0.5
TWICE = 3
GATED = "additional_tools: [state:delete]\napproval_required: [state:delete]\n"


class Round:
    """What the daemons of all rounds did at their end."""

    def __init__(self, promises: Promises) -> None:
        self.promises = promises
        self.gated = new_key("gated")
        self.exits: list[int] = []
        self.slowest = 0.0
        self.read = self.cancelled = 0

    async def prepare(self) -> None:
        """Register who takes part."""
        await self.promises.prepare()
        key = self.gated
        data = {"name": key.name, "public_key": key.public_key, "profile": "gated"}
        async with remit_client.connect(home=self.promises.stage.home) as operator:
            await operator.call("key:add", data)

    async def play(self, daemon: Daemon, delay: float, signals: int) -> None:
        """Let everybody loose, and ask the daemon to end; nobody may be left hanging."""
        with anyio.move_on_after(2 * HANG_SECONDS) as scope:
            started = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.promises.load, WORKERS, started)
                tasks.start_soon(self._look)
                tasks.start_soon(self._wait_for_approval)
                await started.wait()
                await anyio.sleep(delay)
                began = time.monotonic()
                for _ in range(signals):
                    daemon.process.send_signal(signal.SIGTERM)
                self.exits.append(await anyio.to_thread.run_sync(daemon.wait))
                self.slowest = max(self.slowest, time.monotonic() - began)
        if scope.cancelled_caught:
            self.promises.problems.append("clients hang after the end of the daemon")

    async def _look(self) -> None:
        try:
            async with remit_client.connect(home=self.promises.stage.home) as client:
                while True:
                    await client.call("system:health", timeout=HANG_SECONDS)
                    self.read += 1
        except GONE:
            return
        except RemitError as error:
            self.promises.problems.append(f"system:health: {error}")

    async def _wait_for_approval(self) -> None:
        """A call that would wait longer than the daemon drains."""
        home = self.promises.stage.home
        try:
            async with remit_client.connect(home=home, key=self.gated) as client:
                await client.call("state:delete", {"key": "gated"}, timeout=HANG_SECONDS)
            self.promises.problems.append("a call ran without its approval")
        except GONE:
            return
        except RemitError as error:
            if error.code != "cancelled":
                self.promises.problems.append(f"a call that waited for approval: {error}")
            self.cancelled += 1


def play(match: Round, rounds: int, deadline: float) -> None:
    """End and look, round after round."""
    dice = random.Random(13)  # noqa: S311 - a drill, to be repeated as it was
    promises = match.promises
    stage = promises.stage
    daemon = stage.start()
    try:
        anyio.run(match.prepare)
        for number in range(rounds):
            if time.monotonic() > deadline:
                return
            signals = 2 if number % TWICE == TWICE - 1 else 1
            anyio.run(match.play, daemon, dice.uniform(0.0, LATEST), signals)
            promises.write_again(broken=False)
            daemon = stage.start()
            if problem := stage.audit_problem():
                promises.problems.append(problem)
            anyio.run(promises.check, False)  # noqa: FBT003 - anyio.run takes no keywords
    finally:
        daemon.kill()


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments("End the daemon under load.", rounds=50, seconds=600.0)
    began = time.monotonic()
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure(drain_timeout=DRAIN_SECONDS)
        promises = Promises(stage)
        promises.write("A")
        stage.profile(
            "gated", "additional_tools: [state:delete]\napproval_required: [state:delete]\n"
        )
        match = Round(promises)
        play(match, given.rounds, began + given.seconds)
    promises.problems += [f"exit code {code}" for code in match.exits if code]
    if promises.begun:
        promises.problems.append(f"{promises.begun} calls were begun and never answered")
    seconds = round(time.monotonic() - began, 1)
    figures = {"drill": "sigterm", "rounds": len(match.exits), "seconds": seconds}
    figures |= promises.figures() | {"read": match.read, "cancelled": match.cancelled}
    figures |= {"exits_0": match.exits.count(0), "slowest_exit_s": round(match.slowest, 2)}
    return report(figures, promises.problems, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
