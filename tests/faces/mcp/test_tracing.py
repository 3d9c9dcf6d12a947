"""Spans are made where somebody collects them, and cost nothing where nobody does."""

import subprocess
import sys

import pytest

SET_UP = """
from opentelemetry.trace import NoOpTracerProvider, set_tracer_provider
set_tracer_provider(NoOpTracerProvider())
"""
TELL = """
from remit.faces.mcp.server import McpServer
served = McpServer(lambda ctx: ctx)
print(["OpenTelemetry" in type(one).__name__ for one in served.server.middleware].count(True))
"""


@pytest.mark.parametrize(("before", "makes_spans"), [("", False), (SET_UP, True)])
def test_requests_are_traced_when_a_module_has_set_that_up(
    before: str, *, makes_spans: bool
) -> None:
    done = subprocess.run(  # noqa: S603 - a provider is set once in a process
        [sys.executable, "-c", before + TELL], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip() == "1") is makes_spans
