"""The MCP Inspector's command line as a host: it lists, checks and calls what a profile may use."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import Daemon
from tests.outside.conformance_site import mcp_url
from tests.outside.hosts import token_of
from tests.outside.parts import Outside

ERAS = ["legacy", "modern"]
QUIET = {"MCP_INSPECTOR_SECRET_STORE": "memory"}


class Inspector:
    """The Inspector, with one server in its configuration."""

    def __init__(self, outside: Outside, folder: Path, entry: dict[str, Any]) -> None:
        self._outside = outside
        self._folder = folder
        self._config = folder / "mcp.json"
        self._config.write_text(json.dumps({"mcpServers": {"remit": entry}}), encoding="utf-8")

    def run(self, method: str, *options: str, era: str = "legacy") -> str:
        """What it prints; its exit code must be that of success."""
        done = self._outside.run(
            *self._outside.package("inspector"),
            *("--cli", "--config", str(self._config), "--server", "remit"),
            *("--protocol-era", era, "--format", "json", "--method", method),
            *options,
            cwd=self._folder,
            env=QUIET,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, method: str, *options: str, era: str = "legacy") -> Any:
        return json.loads(self.run(method, *options, era=era))["result"]

    def verify(self) -> list[dict[str, Any]]:
        """A report on each skill."""
        told = self.run("skills/list", "--verify", era="modern")
        return [json.loads(line) for line in told.splitlines()]

    def load(self, *options: str, era: str = "legacy") -> Any:
        return self.ask(
            "tools/call",
            *("--tool-name", "test_simple_text", "--load", "--load-requests", "200"),
            *("--load-concurrency", "10", *options),
            era=era,
        )


@pytest.fixture
def over_stdio(conformance: Daemon, outside: Outside, tmp_path: Path) -> Inspector:
    printed = conformance.site.run("mcp-config", "conformance", "--host", "claude-code")
    entry = json.loads(printed.stdout)["mcpServers"]["remit"]  # what a user would paste
    return Inspector(outside, tmp_path, entry)


@pytest.fixture
def over_http(conformance: Daemon, outside: Outside, tmp_path: Path) -> Inspector:
    return Inspector(outside, tmp_path, web_entry(conformance, "conformance"))


def web_entry(daemon: Daemon, name: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token_of(daemon, name)}"}
    return {"type": "streamable-http", "url": mcp_url(daemon), "headers": headers}


@pytest.fixture(params=["over_stdio", "over_http"])
def inspector(request: pytest.FixtureRequest) -> Inspector:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Inspector)
    return found


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_listed_and_their_schemas_have_no_faults(
    inspector: Inspector, era: str
) -> None:
    names = [tool["name"] for tool in inspector.ask("tools/list", "--strict", era=era)["tools"]]
    assert {"test_simple_text", "test_add", "json_schema_2020_12_tool"} <= set(names)
    assert "config_reload" not in names  # granted, but kept out of tool lists


def test_every_tool_that_ships_has_a_schema_without_faults(
    conformance: Daemon, outside: Outside, tmp_path: Path
) -> None:
    conformance.new_key("ada", "administrator")
    inspector = Inspector(outside, tmp_path, web_entry(conformance, "ada"))
    assert len(inspector.ask("tools/list", "--strict")["tools"]) > 30


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_is_called_with_arguments_and_answers_data(inspector: Inspector, era: str) -> None:
    call = ("--tool-name", "test_add", "--tool-arg", "a=2", "b=3")
    answer = inspector.ask("tools/call", *call, era=era)
    assert answer["structuredContent"] == {"sum": 5}
    assert not answer.get("isError")


def test_every_file_of_a_skill_has_the_digest_that_is_told(inspector: Inspector) -> None:
    files = {one["name"]: one["files"] for one in inspector.verify()}
    assert [one["status"] for one in files["read-tides"]] == ["verified", "verified"]


@pytest.mark.parametrize("era", ERAS)
def test_200_calls_at_once_over_http_have_no_error(over_http: Inspector, era: str) -> None:
    told = over_http.load(era=era)
    assert (told["requests"], told["ok"], told["toolErrors"], told["errors"]) == (200, 200, 0, 0)


def test_200_calls_at_once_over_stdio_have_no_error(over_stdio: Inspector) -> None:
    told = over_stdio.load()
    assert (told["requests"], told["ok"], told["toolErrors"], told["errors"]) == (200, 200, 0, 0)
