"""The text that Prometheus reads. Counting is plain integers elsewhere; this only writes them."""

from collections.abc import Iterable, Mapping

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from remit.faces.http.limits import Stats

_GAUGES = frozenset(
    {"agents", "clients", "disk_full", "revision", "stale", "streams", "uptime_seconds"}
)


class _Snapshot(Collector):
    def __init__(
        self, numbers: Mapping[str, float], stats: Stats, by_event: Mapping[str, int]
    ) -> None:
        self._numbers = {
            **numbers,
            **{f"http_{name}": value for name, value in msgspec.structs.asdict(stats).items()},
        }
        self._by_event = by_event

    def collect(self) -> Iterable[Metric]:
        """Every number, by name."""
        for name, value in sorted(self._numbers.items()):
            is_gauge = name.removeprefix("http_") in _GAUGES
            kind = GaugeMetricFamily if is_gauge else CounterMetricFamily
            yield kind(f"remit_{name}", name.replace("_", " "), value=value)
        if self._by_event:
            events = CounterMetricFamily("remit_event_calls", "calls of an event", labels=["event"])
            for event, count in sorted(self._by_event.items()):
                events.add_metric([event], count)
            yield events


def exposition(numbers: Mapping[str, float], stats: Stats, by_event: Mapping[str, int]) -> bytes:
    """All of it as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(numbers, stats, by_event))
    return generate_latest(registry)
