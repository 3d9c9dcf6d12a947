"""Upstream servers by the names of their events."""

from remit.model.upstream import server_of


def test_only_events_of_upstream_servers_name_one() -> None:
    assert server_of("mcp:time:now") == "time"
    assert server_of("state:get") == ""
    assert server_of("mcp:time") == ""
