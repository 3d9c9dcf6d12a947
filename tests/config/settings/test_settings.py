"""Settings: the strongest source wins, each value knows where it came from, mistakes are told."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.config.settings.load import load_settings
from remit.config.settings.table import SETTINGS, Settings
from remit.errors import SettingsError


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config" / "remit").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def here(tmp_path: Path, env: dict[str, str]) -> Path:
    return tmp_path / "work" / "remit.toml"


@pytest.fixture
def user(tmp_path: Path, env: dict[str, str]) -> Path:
    return tmp_path / "config" / "remit" / "remit.toml"


def load(here: Path, env: dict[str, str], **flags: object) -> Settings:
    return load_settings(flags, env, str(here.parent))


def problems(here: Path, env: dict[str, str], **flags: object) -> list[dict[str, str]]:
    with pytest.raises(SettingsError) as caught:
        load(here, env, **flags)
    found: list[dict[str, str]] = caught.value.details["problems"]
    assert all(one["message"] in caught.value.message for one in found)
    return found


def test_without_any_source_the_defaults_hold(here: Path, env: dict[str, str]) -> None:
    settings = load(here, env)
    assert settings.home == Path(env["HOME"], ".local/state/remit")
    assert settings.catalogue is None
    assert (settings.endpoint, settings.request_timeout, settings.max_in_flight) == ("", 30, 256)
    assert {origin.where for origin in settings.origins.values()} == {"default"}


def test_the_table_and_the_struct_name_the_same_settings() -> None:
    fields = [field.name for field in msgspec.structs.fields(Settings)]
    assert fields == [*(row.name for row in SETTINGS), "origins"]


def test_each_source_beats_the_weaker_ones(here: Path, user: Path, env: dict[str, str]) -> None:
    seen = [(load(here, env).log_level, str(load(here, env).origins["log_level"]))]
    user.write_text('\nlog_level = "error"\n')
    seen.append((load(here, env).log_level, str(load(here, env).origins["log_level"])))
    here.write_text('log_level = "warning"\n')
    seen.append((load(here, env).log_level, str(load(here, env).origins["log_level"])))
    env["REMIT_LOG_LEVEL"] = "debug"
    seen.append((load(here, env).log_level, str(load(here, env).origins["log_level"])))
    settings = load(here, env, log_level="info")
    seen.append((settings.log_level, str(settings.origins["log_level"])))
    assert seen == [
        ("info", "default"),
        ("error", f"{user}:2"),
        ("warning", f"{here}:1"),
        ("debug", "REMIT_LOG_LEVEL"),
        ("info", "--log-level"),
    ]


def test_a_flag_that_was_not_given_and_an_empty_variable_set_nothing(
    here: Path, env: dict[str, str]
) -> None:
    settings = load(here, env | {"REMIT_MAX_IN_FLIGHT": ""}, max_in_flight=None)
    assert str(settings.origins["max_in_flight"]) == "default"


def test_an_empty_flag_takes_a_files_value_back(here: Path, env: dict[str, str]) -> None:
    here.write_text('catalogue = "mine.yaml"')
    assert load(here, env, catalogue="").catalogue is None


def test_relative_paths_start_where_they_were_written(
    here: Path, user: Path, env: dict[str, str]
) -> None:
    user.write_text('catalogue = "caps.yaml"\nhome = "/absolute"')
    env["REMIT_COMPOSITIONS"] = "profiles"
    settings = load(here, env)
    assert settings.catalogue == user.parent / "caps.yaml"
    assert settings.compositions == here.parent / "profiles"
    assert settings.home == Path("/absolute")
    assert load(here, env, home="state").home == here.parent / "state"


def test_every_setting_can_stand_in_a_file(here: Path, env: dict[str, str]) -> None:
    here.write_text("""
        home = "~/state"
        catalogue = "c.yaml"
        compositions = "p"
        handlers = ["a.b", "c"]
        handler_paths = ["tools"]
        capability_dirs = ["caps"]
        extension_modules = ["a.tides"]
        upstreams = "upstreams.yaml"
        endpoint = "tcp://127.0.0.1:7420"
        http = "127.0.0.1:7421"
        http_origins = ["https://app.example"]
        http_hosts = ["remit.example"]
        http_body_limit = 4096
        mcp_anonymous = "guest"
        log_format = "json"
        log_level = "debug"
        watch = false
        watch_debounce_ms = 50
        request_timeout = 1
        drain_timeout = 0.5
        max_in_flight = 8
        max_connections = 100
        max_connections_per_key = 10
        audit_sample = 0.5
        audit_keep = 0
        denials_per_minute = 60
        denial_window = 5
        disk_reserve = 0
        approval_timeout = 60
        approval_wait = 5
        launch_commands = ["claude", {name = "worker", command = "/srv/worker"}]
        launch_user = "agents"
        launch_dir = "/var/lib/launched"
        state_value_limit = 1024
        state_count_limit = 10
        state_total_limit = 4096
        file_size_limit = 1024
        file_count_limit = 10
        file_total_limit = 4096
        search = "words"
        embedder_url = "http://127.0.0.1:1/v1"
        embedder_model = "m"
        embedder_key_variable = "KEY"
        token_counter = "chars"
        learn = false
        tenant = "blue"
        discovery_map_tokens = 100
        discovery_summary_tokens = 100
        discovery_detail_tokens = 100
        discovery_total_tokens = 300
        discovery_top_k = 3
        discovery_top_n = 1
        discovery_min_relevance = 0.5
        discovery_graph_boost_factor = 0.25
        card_dirs = ["cards"]
        card_catalogues = ["https://cards.example/team.json"]
        card_refresh_seconds = 60
        workspace_cards = true
        awareness = "monitor"
        awareness_window = 3
        awareness_tokens = 500
        awareness_most_tokens = 900
        awareness_scorer = "keyword_density"
        awareness_second_scorer = "semantic"
        awareness_second_share = 0.1
        awareness_force = ["mail"]
        awareness_exclude = ["billing"]
        awareness_thresholds = ["mail=0.4"]
        awareness_rollout = ["main=0.25", "*=1"]
        awareness_kill_share = 1
        awareness_log_level = "detailed"
        awareness_position = "last"
        web_fetch_allow_hosts = ["example.com", "*.example.org"]
        web_fetch_deny_hosts = ["bad.example.org"]
        web_fetch_private = true
    """)
    settings = load(here, env)
    assert settings.handlers == ("a.b", "c")
    assert (settings.request_timeout, settings.drain_timeout) == (1.0, 0.5)
    assert settings.home == Path.home() / "state"
    assert [str(origin) for origin in settings.origins.values()] == [
        f"{here}:{line}" for line in range(2, 2 + len(SETTINGS))
    ]


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("REMIT_HANDLERS", "a.b, c", "handlers", ("a.b", "c")),
        ("REMIT_CAPABILITY_DIRS", "/a:/b,c", "capability_dirs", (Path("/a"), Path("/b,c"))),
        ("REMIT_CARD_DIRS", "/a:/b,c", "card_dirs", (Path("/a"), Path("/b,c"))),
        ("REMIT_REQUEST_TIMEOUT", "2.5", "request_timeout", 2.5),
        ("REMIT_MAX_IN_FLIGHT", "16", "max_in_flight", 16),
        ("REMIT_AWARENESS_ROLLOUT", "main=0.5, *=0", "awareness_rollout", ("main=0.5", "*=0")),
        ("REMIT_ENDPOINT", "ipc:///run/remit.sock", "endpoint", "ipc:///run/remit.sock"),
        ("REMIT_ENDPOINT", "tcp://[::1]:7420", "endpoint", "tcp://[::1]:7420"),
        ("REMIT_HTTP", "127.0.0.1:7421", "http", "127.0.0.1:7421"),
        ("REMIT_HTTP", "[::1]:0", "http", "[::1]:0"),
        ("REMIT_HTTP", "7421", "http", "7421"),
        (
            "REMIT_HTTP_ORIGINS",
            "https://a.example,http://b:8",
            "http_origins",
            ("https://a.example", "http://b:8"),
        ),
    ],
)
def test_variables_are_read_from_text(
    here: Path, env: dict[str, str], variable: str, text: str, name: str, value: object
) -> None:
    assert getattr(load(here, env | {variable: text}), name) == value


@pytest.mark.parametrize(
    "line",
    [
        "home = 1",
        'home = "a\\u0000b"',
        "catalogue = true",
        'handlers = "a"',
        "handlers = [1]",
        'handlers = ["no-module"]',
        'handlers = ["os; evil"]',
        'endpoint = "127.0.0.1:7420"',
        'endpoint = "tcp://127.0.0.1:70000"',
        'endpoint = "tcp://127.0.0.1"',
        'http = "http://127.0.0.1:7421"',
        'http = "127.0.0.1"',
        'http = "127.0.0.1:70000"',
        "http = 7421",
        'http_origins = ["*"]',
        'http_origins = "https://a.example"',
        "http_body_limit = 10",
        'endpoint = "ipc://relative"',
        "endpoint = 7420",
        'log_format = "xml"',
        "log_level = 3",
        "log_level = []",
        'request_timeout = "30"',
        "request_timeout = 0",
        "request_timeout = -1",
        "request_timeout = nan",
        "request_timeout = inf",
        "drain_timeout = true",
        "max_in_flight = 0",
        "max_in_flight = 1.5",
        "max_in_flight = true",
        "state_value_limit = 99999999999",
        "state_value_limit = 2024-01-01",
        'awareness = "sometimes"',
        'awareness_force = "mail"',
        'awareness_log_level = "loud"',
        'card_catalogues = "https://cards.example/a.json"',
        'card_catalogues = ["file:///etc/passwd"]',
        'card_catalogues = ["https://cards.example/a.json#sha256=abc"]',
        'card_catalogues = ["https://cards.example/a.json#part"]',
        "card_refresh_seconds = 0",
        'awareness_exclude = ["a b"]',
        'awareness_thresholds = ["mail"]',
        'awareness_thresholds = ["mail=1.5"]',
        'awareness_rollout = ["main=-1"]',
        "awareness_kill_share = 80",
        'web_fetch_allow_hosts = "example.com"',
        'web_fetch_deny_hosts = ["https://example.com"]',
        'web_fetch_deny_hosts = ["*"]',
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_line(
    here: Path, env: dict[str, str], line: str
) -> None:
    here.write_text(f"# a comment\n\n{line}\n")
    (problem,) = problems(here, env)
    assert problem["where"] == f"{here}:3"
    assert "must be" in problem["message"]


def test_all_problems_of_all_sources_are_told_at_once(
    here: Path, user: Path, env: dict[str, str]
) -> None:
    user.write_text("log_levle = 'info'")
    here.write_text("max_in_flight = -1\n[log]\nformat = 'json'\n")
    env |= {"REMIT_REQUEST_TIMEOUT": "soon", "REMIT_LOGLEVEL": "info"}
    found = problems(here, env, drain_timeot=1, log_format="jsn")
    assert [(one["where"], one["hint"]) for one in found] == [
        ("REMIT_LOGLEVEL", "did you mean REMIT_LOG_LEVEL?"),
        (f"{user}:1", "did you mean 'log_level'?"),
        (f"{here}:1", ""),
        (f"{here}:2", found[3]["hint"]),
        ("REMIT_REQUEST_TIMEOUT", ""),
        ("--drain-timeot", "did you mean 'drain_timeout'?"),
        ("--log-format", "did you mean 'json'?"),
    ]


def test_a_mistake_is_told_even_when_a_stronger_value_hides_it(
    here: Path, env: dict[str, str]
) -> None:
    here.write_text("max_in_flight = 0")
    assert problems(here, env, max_in_flight=5)[0]["where"] == f"{here}:1"


def test_variables_of_agents_and_strangers_are_not_ours(here: Path, env: dict[str, str]) -> None:
    load(here, env | {"REMIT_KEY": "k", "REMIT_AGENT_ID": "a", "REMIT_BANK_ACCOUNT": "b"})


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"log_level = ", id="cut-off"),
        pytest.param(b"a = 1\na = 2", id="twice"),
        pytest.param(b"log_level = '\xff'", id="latin-1"),
        pytest.param(b"a = " + b"[" * 100_000, id="deep"),
        pytest.param(b"#" * 1_100_000, id="huge"),
        pytest.param(b"\0", id="nul"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_by_name(
    here: Path, env: dict[str, str], content: bytes
) -> None:
    here.write_bytes(content)
    (problem,) = problems(here, env)
    assert problem["where"].startswith(str(here))


def test_a_toml_mistake_is_told_with_its_line(here: Path, env: dict[str, str]) -> None:
    here.write_text("\nlog_level = info\n")
    assert problems(here, env)[0]["where"] == f"{here}:2"


@pytest.mark.parametrize("line", ['"log_level" = 1', "  log_level=1", "log_level.x = 1"])
def test_the_line_is_found_however_the_key_is_written(
    here: Path, env: dict[str, str], line: str
) -> None:
    here.write_text(f"max_in_flight = 1\n{line}\n")
    assert problems(here, env)[0]["where"] == f"{here}:2"


def test_a_directory_named_like_the_file_is_no_file(here: Path, env: dict[str, str]) -> None:
    here.mkdir()
    load(here, env)


def test_loading_without_files_imports_nothing_heavy() -> None:
    script = """
import sys
before = set(sys.modules)
import remit.config.settings.home, remit.config.settings.lock
from remit.config.settings.load import load_settings
load_settings({}, {"HOME": "/nowhere"}, "/")
heavy = {"anyio", "asyncio", "click", "difflib", "rich", "shutil", "sqlite3", "structlog",
         "tempfile", "tomllib", "yaml", "zmq", "importlib.metadata"}
print(sorted(heavy & (set(sys.modules) - before)))
"""
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(  # noqa: S603 - our own child
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert answer.stdout == "[]\n"
