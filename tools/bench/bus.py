"""The bus against other ways to tell many of one event.

`python tools/bench/bus.py [--json FILE]`. In process: one emit among 200 subscriptions. Over real
sockets (`fanout.py`): the CPU time of the sending side for each delivery.
"""

# ruff: noqa: E402, I001 - `sys.path` is put right before anything else is imported
import sys

sys.path.append(sys.path.pop(0))  # a neighbour's name must not stand for the library's `socket`

import importlib.metadata
import os
import time
from collections.abc import Callable
from typing import Any

from report import INSTALL, Report, arguments, use_checkout

use_checkout()

from fanout import EVENT, BODY, fan_rows, make_authority
from remit.model.event import Notice
from remit.model.names import EventPattern
from remit.kernel.bus.delivery import Delivery

SUBSCRIPTIONS = 200
NAMESPACES = 20
EMITS = 2_000
ROUNDS = 100
EMIT = f"bus emit, {SUBSCRIPTIONS} subscriptions, {SUBSCRIPTIONS // NAMESPACES} hear"
PUBLISH = "delivery.publish, the same with the live grants checked"

Emit = Callable[[], Any]


class Hearer:
    """A subscriber that does as little as one can; hashed by identity, as a connection is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def hear(self, _notice: Notice) -> None:
        """Take a notice."""
        self.count += 1


class Post:
    """A face without a socket: one call for each delivery, as the others make one to `hear`."""

    def deliver(self, connection: Hearer, _notice: Notice) -> bool:
        """Hand it over."""
        connection.count += 1
        return True

    def tell(self, name: str, notice: Notice) -> int:
        """Nobody is told alone here."""
        raise NotImplementedError(name, notice)


def emit_rows(report: Report) -> None:
    """One event that ten of 200 subscriptions cover, told to all ten."""
    delivery, told = crowd()
    notice = Notice(EVENT, BODY, "ann", 0.0)
    runs = own_runs(delivery, told, notice)
    for name, make in PEERS.items():
        try:
            runs[name] = make(told, notice)
        except ImportError:
            report.skip(PUBLISH, name, f"{name} is not installed: {INSTALL}")
    times = fastest(runs, told)
    for what, run in ((EMIT, "ours"), (PUBLISH, "checked")):
        report.slower(what, "bare match cache", times[run] / times["bare"], at_most=2)
        for name in (peer for peer in PEERS if peer in times):
            against = f"{name} {importlib.metadata.version(name)}"
            asked = 2.5 if name == "pyee" else None
            report.faster(what, against, times[name] / times[run], at_least=asked)


def own_runs(delivery: Delivery, told: list[Hearer], notice: Notice) -> dict[str, Emit]:
    """The yardstick, the bus alone, and the bus with the grants looked at."""
    bus, cache = delivery.bus, {EVENT: tuple(told)}

    def bare() -> None:
        for hearer in cache[EVENT]:
            hearer.hear(notice)

    def ours() -> None:
        for hearer in bus.hearers(EVENT):
            hearer.hear(notice)

    def checked() -> None:
        delivery.publish(EVENT, BODY, "ann")

    return {"bare": bare, "ours": ours, "checked": checked}


def crowd() -> tuple[Delivery, list[Hearer]]:
    """A delivery with its subscribers, and those among them that the event is for."""
    hearers = [Hearer(f"agent{at}") for at in range(SUBSCRIPTIONS)]
    texts = ["message:*", *(f"area{at}:*" for at in range(1, NAMESPACES))]
    delivery = Delivery(make_authority([hearer.name for hearer in hearers]), time.time)
    delivery.post = Post()
    for at, hearer in enumerate(hearers):
        delivery.bus.subscribe(hearer, patterns=[EventPattern.parse(texts[at % NAMESPACES])])
    return delivery, hearers[::NAMESPACES]


def fastest(runs: dict[str, Emit], told: list[Hearer]) -> dict[str, float]:
    """The seconds of an emit, the fastest round of each; in turns, so that noise is shared."""
    for emit in runs.values():
        before = [hearer.count for hearer in told]
        emit()
        if [hearer.count for hearer in told] != [count + 1 for count in before]:
            message = f"{emit} does not reach everybody"
            raise RuntimeError(message)
    times = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, emit in runs.items():
            start = time.perf_counter()
            for _ in range(EMITS):
                emit()
            times[name] = min(times[name], (time.perf_counter() - start) / EMITS)
    return times


def pyee_emit(told: list[Hearer], notice: Notice) -> Callable[[], Any]:
    """The same with pyee; it has no patterns, so each listener stands under the event itself."""
    from pyee import EventEmitter  # noqa: PLC0415 - may not be installed

    emitter = EventEmitter()
    for hearer in told:
        emitter.add_listener(EVENT, hearer.hear)
    return lambda: emitter.emit(EVENT, notice)


def blinker_emit(told: list[Hearer], notice: Notice) -> Callable[[], Any]:
    """The same with blinker, one signal for the event."""
    from blinker import Signal  # noqa: PLC0415 - may not be installed

    signal = Signal(EVENT)
    for hearer in told:
        signal.connect(hearer.hear)
    return lambda: signal.send(notice)


PEERS = {"pyee": pyee_emit, "blinker": blinker_emit}


def main() -> int:
    """Measure and report."""
    options = arguments("Benchmark of the bus.")
    report = Report(f"bus, {os.cpu_count()} CPUs")
    emit_rows(report)
    fan_rows(report)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
