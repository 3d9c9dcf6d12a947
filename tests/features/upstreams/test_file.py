"""upstreams.yaml: every mistake is told with its place, and no value of a secret with it."""

from pathlib import Path

import jsonschema
import pytest

from remit.cli.definitions import SCHEMAS
from remit.config.settings.home import Home
from remit.config.settings.load import load_settings
from remit.errors import DefinitionError
from remit.features.upstreams.file import (
    UpstreamFile,
    inspect_upstreams,
    parse_upstreams,
    read_upstreams,
    upstreams_path,
)
from remit.features.upstreams.kinds import MAX_UPSTREAMS
from remit.features.upstreams.secrets import looks_secret
from remit.model.upstream import Upstream

HOSTILE = "tr0ub4dor-and-3-more"


def read(text: str) -> UpstreamFile:
    return parse_upstreams(text.encode(), Path("/etc/remit/upstreams.yaml"))


def server(keys: str) -> UpstreamFile:
    """One server with these keys, one a line."""
    lines = "".join(f"    {line}\n" for line in keys.splitlines())
    return read(f"upstreams:\n  one:\n{lines}")


def codes(found: UpstreamFile) -> list[tuple[str, int, int]]:
    return [(p.code, p.place.line, p.place.column) for p in found.problems]


def test_a_server_is_read_with_all_its_keys() -> None:
    found = read("""
version: 1
upstreams:
  time:
    command: uvx
    args: [mcp-server-time, ""]
    env: {TZ: UTC, API_KEY: {secret: WEATHER_KEY}}
    include: ["*"]
    exclude: [delete_*]
    effects: {get_*: read, "1": write}
    trust: on_first_use
    start: eager
    timeout: 0.5
    start_timeout: 5
    concurrency: 2
    cwd: srv
  github:
    url: https://example.org:8443/mcp?x=1
    headers: {Authorization: {secret: GITHUB_MCP}, X-Team: blue}
""")
    assert found.problems == ()
    time, github = found.upstreams
    assert time == Upstream(
        name="time",
        command="uvx",
        args=("mcp-server-time", ""),
        env={"TZ": "UTC"},
        secret_env={"API_KEY": "WEATHER_KEY"},
        exclude=("delete_*",),
        effects={"get_*": "read", "1": "write"},
        trust="on_first_use",
        start="eager",
        timeout=0.5,
        start_timeout=5.0,
        concurrency=2,
        cwd="/etc/remit/srv",
        place=time.place,
    )
    assert str(time.place) == "/etc/remit/upstreams.yaml:4:3"
    assert (github.headers, github.secret_headers) == (
        {"X-Team": "blue"},
        {"Authorization": "GITHUB_MCP"},
    )


def test_what_is_not_said_is_careful() -> None:
    (one,) = server("command: x").upstreams
    assert (one.trust, one.start, one.include, one.concurrency) == ("review", "lazy", ("*",), 8)
    assert (one.timeout, one.start_timeout) == (60.0, 30.0)


def test_an_absent_file_names_no_servers_and_an_empty_one_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.yaml"
    assert read_upstreams(file) == ()
    for text in ("", "# nothing\n"):
        file.write_text(text)
        with pytest.raises(DefinitionError) as caught:
            read_upstreams(file)
        assert [p.code for p in caught.value.problems] == ["empty_file"]
    file.write_text("upstreams: {}\n")
    assert read_upstreams(file) == ()


def test_a_folder_in_its_place_and_a_file_of_others_are_told(tmp_path: Path) -> None:
    (problem,) = inspect_upstreams(tmp_path).problems
    assert (problem.code, problem.place.file) == ("unreadable", str(tmp_path))


@pytest.mark.parametrize(
    ("keys", "code", "line", "column"),
    [
        ("args: [x]", "upstream_target", 3, 5),
        ("command: x\nurl: https://a.example/", "upstream_target", 3, 5),
        ("url: https://a.example/\nargs: [x]", "upstream_target", 4, 5),
        ("url: https://a.example/\nenv: {A: b}", "upstream_target", 4, 5),
        ("command: x\nheaders: {A: b}", "upstream_target", 4, 5),
        ("command: npx -y server", "invalid_name", 3, 14),
        ("command: ''", "invalid_name", 3, 14),
        ('command: "a\\0b"', "invalid_name", 3, 14),
        ("command: 5", "wrong_type", 3, 14),
        ("command: x\nargs: -y", "wrong_type", 4, 11),
        ("command: x\nargs: [8080]", "wrong_type", 4, 12),
        ('command: x\nargs: ["a\\0"]', "invalid_name", 4, 12),
        ("command: x\ncmd: y", "unknown_key", 4, 5),
        ("command: x\ncommand: y", "duplicate_key", 4, 5),
        ("command: x\nenv: {1A: b}", "invalid_name", 4, 11),
        ("command: x\nenv: {A=B: b}", "invalid_name", 4, 11),
        ("command: x\nenv: {A: 5}", "wrong_type", 4, 14),
        ("command: x\nenv: {A: null}", "wrong_type", 4, 14),
        ('command: x\nenv: {A: "b\\0c"}', "unsafe_value", 4, 14),
        ("command: x\nenv: {A: {secret: lower}}", "invalid_name", 4, 23),
        ("command: x\nenv: {A: {secret: A, or: b}}", "unknown_key", 4, 26),
        ("command: x\nenv: {A: {}}", "missing_key", 4, 14),
        ("command: x\nenv: [A]", "wrong_type", 4, 10),
        ("command: x\ncwd: ''", "invalid_name", 4, 10),
        ("command: x\ncwd: ~nobody/x", "invalid_name", 4, 10),
        ("command: ~nobody/x", "invalid_name", 3, 14),
        ("command: x\ninclude: [get_*_all]", "invalid_pattern", 4, 15),
        ("command: x\ninclude: ['**']", "invalid_pattern", 4, 15),
        ("command: x\ninclude: ['']", "invalid_pattern", 4, 15),
        ("command: x\ninclude: []", "wrong_type", 4, 14),
        ("command: x\nexclude: ['*get']", "invalid_pattern", 4, 15),
        ('command: x\nexclude: ["a\\nb"]', "invalid_pattern", 4, 15),
        ("command: x\nexclude: [a, a]", "duplicate_key", 4, 18),
        ("command: x\neffects: {a*b: read}", "invalid_pattern", 4, 15),
        ("command: x\neffects: {a: reads}", "unknown_value", 4, 18),
        ("command: x\neffects: [a]", "wrong_type", 4, 14),
        ("command: x\ntrust: always", "unknown_value", 4, 12),
        ("command: x\nstart: now", "unknown_value", 4, 12),
        ("command: x\ntimeout: 0", "out_of_range", 4, 14),
        ("command: x\ntimeout: -1", "out_of_range", 4, 14),
        ("command: x\ntimeout: 3600.1", "out_of_range", 4, 14),
        ("command: x\ntimeout: true", "wrong_type", 4, 14),
        ("command: x\ntimeout: .inf", "wrong_type", 4, 14),
        ("command: x\nstart_timeout: 1h", "wrong_type", 4, 20),
        ("command: x\nconcurrency: 0", "out_of_range", 4, 18),
        ("command: x\nconcurrency: 257", "out_of_range", 4, 18),
        ("command: x\nconcurrency: 1.5", "wrong_type", 4, 18),
        ("url: ftp://a.example/", "bad_url", 3, 10),
        ("url: a.example/mcp", "bad_url", 3, 10),
        ("url: https:///mcp", "bad_url", 3, 10),
        ("url: https://a.example:99999/", "bad_url", 3, 10),
        ("url: 'https://[::1/'", "bad_url", 3, 10),
        ("url: 'https://a.example/a b'", "bad_url", 3, 10),
        ('url: "https://a.example/\\r\\nX: y"', "bad_url", 3, 10),
        ("url: 'https://a.example\\@b.example/'", "bad_url", 3, 10),
        ("url: https://me@a.example/", "bad_url", 3, 10),
        ("url: 'https://a.example/#x'", "bad_url", 3, 10),
        ("url: https://a.example/\nheaders: {'A B': c}", "invalid_name", 4, 15),
        ("url: https://a.example/\nheaders: {A: b, a: c}", "duplicate_key", 4, 21),
        ("url: https://a.example/\nheaders: {a: b, A: c}", "duplicate_key", 4, 21),
        ("url: https://a.example/\nheaders: {Host: b}", "invalid_name", 4, 15),
        ("url: https://a.example/\nheaders: {mcp-session-id: b}", "invalid_name", 4, 15),
        ('url: https://a.example/\nheaders: {A: "b\\r\\nX: c"}', "unsafe_value", 4, 18),
        ('url: https://a.example/\nheaders: {"A\\nB": c}', "invalid_name", 4, 15),
        ("url: https://a.example/\nheaders: {A: caf\u00e9}", "unsafe_value", 4, 18),
    ],
)
def test_a_mistake_is_told_where_it_stands(keys: str, code: str, line: int, column: int) -> None:
    found = server(keys)
    assert codes(found) == [(code, line, column)]
    assert found.errors == found.problems


@pytest.mark.parametrize(
    "name", ["Time", "1time", "a b", "a:b", "a.b", "a" * 33, "-a", "\u0430bc", "../x", '""']
)
def test_a_name_that_could_be_taken_for_another_is_refused(name: str) -> None:
    found = read(f"upstreams:\n  {name}:\n    command: x\n")
    assert codes(found) == [("invalid_name", 2, 3)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("upstreams:\n", "wrong_type"),
        ("upstreams: []\n", "wrong_type"),
        ("upstreams: {a: b}\n", "wrong_type"),
        ("servers: {}\n", "unknown_key"),
        ("version: 2\nupstreams: {}\n", "out_of_range"),
        ("mcpServers: {}\nupstreams: {}\n", "unknown_key"),
        ("upstreams: {a: &x {command: y}, b: *x}\n", "alias"),
        ("upstreams: {a: {<<: {}, command: y}}\n", "merge_key"),
        ("upstreams: !!python/object:os.system {}\n", "tag"),
        ("upstreams: {}\n---\nupstreams: {}\n", "several_documents"),
        ("upstreams: {a: {command: x}, a: {command: y}}\n", "duplicate_key"),
        ("upstreams: {a: {command: x\n", "yaml_syntax"),
        ("upstreams: " + "[" * 60 + "\n", "too_deep"),
        ("# " + "x" * (1 << 20), "too_large"),
        ("upstreams: {}\n# \x07", "control_character"),
    ],
)
def test_what_yaml_would_let_pass_is_refused(text: str, code: str) -> None:
    assert code in [problem.code for problem in read(text).errors]


def test_a_misspelt_key_is_told_with_the_one_that_was_meant() -> None:
    (problem,) = server("command: x\ntime_out: 3").problems
    assert problem.hint == "did you mean 'timeout'?"


def test_all_mistakes_of_all_servers_are_told_at_once_and_none_of_it_counts(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.yaml"
    file.write_text("upstreams:\n  a: {command: x, timeout: 0}\n  b: {}\n  c: {command: ok}\n")
    with pytest.raises(DefinitionError) as caught:
        read_upstreams(file)
    assert [(p.code, p.place.line) for p in caught.value.problems] == [
        ("out_of_range", 2),
        ("upstream_target", 3),
    ]


def test_more_servers_than_one_daemon_can_mind_are_refused() -> None:
    many = "".join(f"  s{n}: {{command: x}}\n" for n in range(MAX_UPSTREAMS + 1))
    assert [p.code for p in read(f"upstreams:\n{many}").errors] == ["too_large"]


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://a.example/mcp", True),
        ("HTTP://192.168.1.5:80/mcp", True),
        ("http://127.evil.example/mcp", True),
        ("http://localhost.evil.example/", True),
        ("http://127.0.0.1:8000/mcp", False),
        ("http://localhost:8000/mcp", False),
        ("'http://[::1]:8000/mcp'", False),
        ("https://a.example/mcp", False),
    ],
)
def test_plain_http_to_another_machine_is_warned_of(url: str, *, warned: bool) -> None:
    found = server(f"url: {url}")
    assert [p.code for p in found.problems] == (["plain_http"] if warned else [])
    assert len(found.upstreams) == 1
    assert found.errors == ()


@pytest.mark.parametrize(
    "keys",
    [
        f"command: x\nenv: {{API_KEY: {HOSTILE}}}",
        f"url: https://a.example/\nheaders: {{Authorization: Bearer {HOSTILE}}}",
        f"url: https://a.example/mcp?api_key={HOSTILE}",
        f"command: x\nargs: [--token={HOSTILE}]",
        f"command: x\nargs: [-v, --api-key, {HOSTILE}]",
        "command: x\nargs: [--header, 'Authorization: Bearer abc']",
    ],
)
def test_a_secret_that_stands_in_the_file_is_warned_of(keys: str) -> None:
    found = server(keys)
    assert [p.code for p in found.problems] == ["secret_in_file"]
    assert HOSTILE not in str([p.to_json() for p in found.problems])


@pytest.mark.parametrize(
    "keys",
    [
        f'command: x\nenv: {{API_KEY: "{HOSTILE}\\0"}}',
        f'url: https://a.example/\nheaders: {{A: "{HOSTILE}\\n"}}',
        f"command: x\nenv: {{API_KEY: [{HOSTILE}]}}",
        f"url: https://me:{HOSTILE}@a.example/",
        "command: x\nenv: {PIN: 90210}",
    ],
)
def test_no_problem_repeats_the_value_of_a_variable_header_or_address(keys: str) -> None:
    told = str([problem.to_json() for problem in server(keys).errors])
    assert told != "[]"
    assert HOSTILE not in told
    assert "90210" not in told


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("API_KEY", "x", True),
        ("apiKey", "x", True),
        ("GITHUB_PERSONAL_ACCESS_TOKEN", "x", True),
        ("DB_PASSWORD", "x", True),
        ("OTHER", "ghp_abcdefghij0123456789", True),
        ("OTHER", "sk-ant-abcdef123456", True),
        ("OTHER", "postgres://me:pw@db/x", True),
        ("OTHER", "9f86d081884c7d659a2feaa0c55ad015", True),
        ("Authorization", "Basic abc", True),
        ("TZ", "Europe/Berlin", False),
        ("API_KEY", "", False),
        ("USE_TOKEN", "true", False),
        ("AUTHOR", "somebody", False),
        ("MAX_TOKENS", "4096", False),
        ("TOKEN_URL", "https://a.example/token", False),
        ("SECRET_FILE", "/run/secrets/x", False),
        ("SECRET_FILE", "ghp_abcdefghij0123456789", True),
        ("ROOT", "/srv/me/projects/2025/some-long-folder", False),
        ("URL", "https://api.example.com/v1/mcp", False),
        ("PACKAGE", "@modelcontextprotocol/server-filesystem", False),
        ("VERSION", "mcp-server-git-2025-11-25", False),
    ],
)
def test_secrets_are_told_from_other_values(name: str, value: str, *, secret: bool) -> None:
    assert looks_secret(name, value) == secret


@pytest.mark.parametrize(
    "part", ["a", "-", "a:", "?a=", "a://", "aB1-", "Bearer ", "a.b://x:", "0"]
)
def test_a_very_long_value_is_looked_at_in_a_moment(part: str) -> None:
    assert looks_secret("x", part * (1_000_000 // len(part))) in (True, False)


def test_ordinary_arguments_are_not_taken_for_secrets() -> None:
    found = server(
        "command: docker\n"
        f"args: [run, -i, --rm, -e, API_KEY, 'mcp/x@sha256:{'0123456789abcdef' * 4}', --author, me,"
        " --id, 123e4567-e89b-42d3-a456-426614174000, --token-limit, '4096',"
        " /srv/me/a-long-path/2025]"
    )
    assert found.problems == ()


def test_a_folder_in_the_home_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/me")
    (one,) = server("command: x\ncwd: ~/tides").upstreams
    assert one.cwd == "/srv/me/tides"


def test_the_schema_for_editors_agrees_with_the_reader() -> None:
    schema = SCHEMAS["upstreams"]()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = {"command": "x", "env": {"A": {"secret": "B"}}, "include": "get_*", "timeout": 5}
    validator.validate({"version": 1, "upstreams": {"time": good, "b": {"url": "https://x/"}}})
    for bad in (
        {},
        {"command": "x", "url": "https://x/"},
        {"command": "x", "headers": {}},
        {"command": "x", "tmeout": 3},
        {"command": "x", "timeout": 0},
        {"command": "x", "include": ["a*b"]},
        {"command": "x", "env": {"A": {"secret": "b"}}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({"upstreams": {"time": bad}})


def test_the_setting_names_the_file_and_the_home_holds_it_otherwise(tmp_path: Path) -> None:
    env = {"REMIT_HOME": str(tmp_path)}
    settings = load_settings({}, env, str(tmp_path))
    assert upstreams_path(settings) == Home(tmp_path).upstreams_file == tmp_path / "upstreams.yaml"
    named = load_settings({"upstreams": "here.yaml"}, env, str(tmp_path))
    assert upstreams_path(named) == tmp_path / "here.yaml"
