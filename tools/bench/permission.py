"""How fast permissions are checked and compiled, against what else one could do.

python tools/bench/permission.py [--json FILE]
"""

import sys

sys.path.append(sys.path.pop(0))  # socket.py beside this file must not stand for the library's

import subprocess
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import cycle, islice
from typing import TypeVar

from report import INSTALL, ROOT, Report, arguments, shortest, use_checkout

use_checkout()

from fleet import definitions, event_specs  # noqa: E402 - after the checkout can be imported
from naive import NaiveResolver, by_prefix  # noqa: E402
from peers import Check, casbin_check, cedar_check  # noqa: E402

from remit.model.event import GRANTED, make_universe  # noqa: E402
from remit.model.grant import Grant  # noqa: E402
from remit.policy.catalogue import Catalogue  # noqa: E402
from remit.policy.compile import compile_definitions  # noqa: E402
from remit.policy.decide import decide  # noqa: E402

Holder = TypeVar("Holder")

EVENTS, CAPABILITIES, PROFILES = 1_000, 100, 200
QUESTIONS = 20_000
PEER_QUESTIONS = 300
MEGABYTE_BUDGET = 45
SECONDS_BUDGET = 0.25


def bare(events: frozenset[str], event: str) -> bool:
    """The least that a check can be."""
    return event in events


def holds(grant: Grant, event: str) -> bool:
    """The same through a grant."""
    return event in grant.events


def seconds_per_call(
    check: Callable[[Holder, str], object], holder: Holder, events: list[str]
) -> float:
    """Seconds of one call, without the loop around it."""

    def loop() -> None:
        for event in events:
            check(holder, event)

    def empty() -> None:
        for _ in events:
            pass

    return (shortest(loop, repeats=15) - shortest(empty, repeats=15)) / len(events)


def check_rows(report: Report, catalogue: Catalogue) -> None:
    """Checks in process, for an event that is granted and for one that is not."""
    grant = catalogue.grants["profile_7"]
    missing = sorted(set(catalogue.universe.names) - grant.events - set(grant.denied_events))
    for label, names in (("granted", sorted(grant.events)), ("refused", missing)):
        events = list(islice(cycle(names), QUESTIONS))
        floor = seconds_per_call(bare, grant.events, events)
        in_grant = seconds_per_call(holds, grant, events)
        decided = seconds_per_call(decide, grant, events)
        against = "bare frozenset call"
        report.slower(f"event in grant.events, {label}", against, in_grant / floor, at_most=2)
        asked = 2 if label == "granted" else None
        note = "" if asked else "names the reason too"
        report.slower(f"decide(), {label}", against, decided / floor, at_most=asked, note=note)
        peer_rows(report, catalogue, label, names, decided)


def peer_rows(
    report: Report, catalogue: Catalogue, label: str, names: list[str], decided: float
) -> None:
    """The same questions to engines that others wrote, over all grants and over this one alone."""
    grant = catalogue.grants["profile_7"]
    peers: list[tuple[str, Callable[..., Check], list[Grant]]] = [
        ("cedarpy, this profile only", cedar_check, [grant]),
        ("casbin FastEnforcer, all profiles", casbin_check, list(catalogue.grants.values())),
    ]
    events = list(islice(cycle(names), PEER_QUESTIONS))
    for name, make, grants in peers:
        what = f"decide(), {label}"
        try:
            check = make(grants)
        except ImportError as error:
            report.skip(what, name, f"{error}: {INSTALL}")
            continue
        for event in events:
            if check(grant.profile, event) != (decide(grant, event) == GRANTED):
                message = f"{name} disagrees about {event}"
                raise RuntimeError(message)
        ratio = seconds_per_call(check, grant.profile, events) / decided
        report.faster(what, name, ratio, at_least=100)


def assert_same(answers: dict[str, tuple[set[str], set[str]]], catalogue: Catalogue) -> None:
    """A yardstick that answers something else would measure nothing."""
    for name, grant in catalogue.grants.items():
        if answers[name] != (grant.events, grant.claude_tools):
            message = f"the naive resolver disagrees about {name}"
            raise RuntimeError(message)


def compile_rows(report: Report) -> Catalogue:
    """Compile a fleet, against the resolver that one writes first."""
    specs = event_specs(EVENTS)
    made = definitions(specs, CAPABILITIES, PROFILES)
    catalogue = compile_definitions(made, make_universe(specs))
    fast = shortest(lambda: compile_definitions(made, make_universe(specs)), repeats=15)
    what = f"compile {EVENTS:,} events, {CAPABILITIES} capabilities, {PROFILES} profiles"
    for label, matches, budget in (
        ("naive recursive resolver", fnmatchcase, 100),
        ("the same with prefix tests for fnmatch", by_prefix, None),
    ):
        naive = NaiveResolver(made, specs, matches)
        slow = shortest(lambda: assert_same(naive.resolve_all(), catalogue), repeats=3)  # noqa: B023
        report.faster(what, label, slow / fast, at_least=budget)
    return catalogue


_MEMORY = "print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1])"


def run_python(code: str) -> str:
    """Run a line of Python in a process of its own, which sees this checkout."""
    path = f"import sys; sys.path[:0] = [{str(ROOT / 'daemon')!r}, {str(ROOT / 'socket_client')!r}]"
    command = [sys.executable, "-c", f"{path}; {code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def start_rows(report: Report) -> None:
    """Time and memory of importing, against a Python that does nothing."""
    floor = shortest(lambda: run_python("pass"), repeats=15)
    floor_memory = int(run_python(_MEMORY))
    for module in ("remit.policy.compile", "remit.app.daemon"):
        try:
            memory = int(run_python(f"import {module}; {_MEMORY}"))
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip().rsplit("\n", 1)[-1]
            report.skip(f"import {module}", "python -c pass", reason)
            continue
        seconds = shortest(lambda: run_python(f"import {module}"), repeats=15)  # noqa: B023
        report.judged(
            f"start with {module}",
            "python -c pass",
            seconds / floor,
            budget="<= 250 ms beside it",
            met=seconds - floor <= SECONDS_BUDGET,
        )
        report.judged(
            f"memory with {module}",
            "python -c pass",
            memory / floor_memory,
            budget=f"<= {MEGABYTE_BUDGET} MB",
            met=memory <= MEGABYTE_BUDGET * 1024,
        )


def main() -> int:
    """Measure everything."""
    options = arguments("Checking and compiling permissions")
    report = Report("Permissions: ratios in one run, the fastest of several repeats")
    catalogue = compile_rows(report)
    check_rows(report, catalogue)
    start_rows(report)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
