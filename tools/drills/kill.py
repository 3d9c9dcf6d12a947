"""The daemon is killed while it writes: `python tools/drills/kill.py [--rounds N] [--seconds S]`.

Clients spawn, write state, are refused (which is written to the audit) and reload, all at once, and
the daemon gets SIGKILL at a random moment. The next one must know everything that was acknowledged,
prove its audit, hold no agent by half, and serve the last good definitions: after every second kill
the files on disk are broken. Prints one line of figures; exit code 1 when something was wrong.

This is the death of a process. To pull the plug of a machine is beyond a drill.
"""

import random
import sys
import time

import anyio
from promises import Promises
from stage import Daemon, Stage, arguments, new_folder, report

WORKERS = 4
LATEST = 0.4
"""Seconds of writing before the kill, at the most."""


async def write_and_kill(promises: Promises, daemon: Daemon, delay: float) -> None:
    """Let everybody write, and kill the daemon after a while."""
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(promises.load, WORKERS, started)
        await started.wait()
        await anyio.sleep(delay)
        daemon.process.kill()


def play(promises: Promises, rounds: int, deadline: float) -> int:
    """Kill and look, round after round; answers how many."""
    dice = random.Random(11)  # noqa: S311 - a drill, to be repeated as it was
    stage = promises.stage
    daemon = stage.start()
    try:
        anyio.run(promises.prepare)
        for number in range(rounds):
            if time.monotonic() > deadline:
                return number
            anyio.run(write_and_kill, promises, daemon, dice.uniform(0.0, LATEST))
            daemon.wait()
            promises.prove_files()
            is_broken = number % 2 == 1
            promises.write_again(broken=is_broken)
            daemon = stage.start()
            if problem := stage.audit_problem():
                promises.problems.append(problem)
            anyio.run(promises.check, is_broken)
        return rounds
    finally:
        daemon.kill()


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments("Kill the daemon while it writes.", rounds=100, seconds=900.0)
    began = time.monotonic()
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure()
        promises = Promises(stage)
        promises.write("A")
        rounds = play(promises, given.rounds, began + given.seconds)
    seconds = round(time.monotonic() - began, 1)
    figures = {"drill": "kill", "rounds": rounds, "seconds": seconds} | promises.figures()
    if not promises.open:
        promises.problems.append("nothing was under way at any kill")
    return report(figures, promises.problems, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
