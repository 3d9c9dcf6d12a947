"""A subscriber that stops reading: `sleeper.py HOME KEY_FILE`, a process of its own.

It subscribes, says so and stops itself, so that not even libzmq's thread reads. Woken by SIGCONT it
is told on its input how many messages there were, reads until each is accounted for or time is up,
and prints what it heard and what it was told to have missed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from remit_client.keys import Key, save_key
from remit_client.sync import Subscription, connect

PATIENCE = 15.0


class Sleeper:
    """The same seen from the drill."""

    def __init__(self, folder: Path, home: Path, key: Key) -> None:
        file = folder / f"{key.name}.key"
        save_key(file, key)
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, __file__, str(home), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        # Waits until it has stopped itself, or has ended because it could not subscribe.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wake(self, published: int) -> dict[str, Any]:
        """Let it read; answers what it heard and missed."""
        self._process.send_signal(signal.SIGCONT)
        said, _ = self._process.communicate(f"{published}\n", timeout=2 * PATIENCE)
        return dict(json.loads(said))

    def kill(self) -> None:
        """End it if it still lives; a stopped process hears nothing else."""
        self._process.kill()
        self._process.communicate()


def listen(events: Subscription, published: int) -> dict[str, Any]:
    """Read until every message was heard or told to be missed."""
    deadline = time.monotonic() + PATIENCE
    heard: list[tuple[int, str, int]] = []
    while len(heard) + events.missed < published and time.monotonic() < deadline:
        if (push := events.wait(0.2)) is not None:
            said = push.data["data"]
            heard.append((push.seq, said["from"], said["number"]))
    return {
        "heard": len(heard),
        "missed": events.missed,
        "interruptions": events.interruptions,
        "in_order": in_order(heard),
    }


def in_order(heard: list[tuple[int, str, int]]) -> bool:
    """Tell whether sequence numbers rise, and so do the numbers of each publisher."""
    last: dict[str, int] = {}
    before = 0
    for seq, publisher, number in heard:
        if seq <= before or number <= last.get(publisher, -1):
            return False
        before, last[publisher] = seq, number
    return True


def main() -> None:
    """Subscribe, stop, and read."""
    with (
        connect(home=sys.argv[1], key=sys.argv[2]) as remit,
        remit.subscribe("message:publish") as events,
    ):
        os.kill(os.getpid(), signal.SIGSTOP)
        print(json.dumps(listen(events, int(sys.stdin.readline()))), flush=True)


if __name__ == "__main__":
    main()
