"""upstream add and remove: one server comes or goes, and every other character stays."""

import stat
from pathlib import Path

import pytest
from tests.cli.shell import Shell

from remit.errors import ConflictError
from remit.features.upstreams.file import (
    change_upstreams,
    read_upstreams,
    with_servers,
    without_server,
)
from remit.model.upstream import Upstream

COMMENTED = """\
# my servers
version: 1

upstreams:   # keep in order
  # the clock
  time:
    command: uvx      # from astral
    args: [mcp-server-time]
    # timeout: 5

  "git":
      command:   'uvx'
      args:
      - mcp-server-git

# the end
"""


def servers(shell: Shell) -> dict[str, Upstream]:
    return {one.name: one for one in read_upstreams(shell.folder / "home" / "upstreams.yaml")}


def keep(shell: Shell, text: str) -> Path:
    return shell.write("home/upstreams.yaml", text)


def test_a_command_is_written_with_all_its_options(shell: Shell) -> None:
    done = shell.run(
        *("upstream", "add", "time", "--env", "TZ=UTC", "--env", "N=8", "--secret-env", "KEY=K1"),
        *("--include", "get_*", "--include", "now", "--exclude", "x", "--trust", "on_first_use"),
        *("--start", "eager", "--timeout", "2.5", "--cwd", "sub"),
        *("--", "uvx", "mcp-server-time", "--json", "-v", "true", "a: b #c"),
    )
    assert done.code == 0, done
    assert servers(shell)["time"] == Upstream(
        name="time",
        command="uvx",
        args=("mcp-server-time", "--json", "-v", "true", "a: b #c"),
        env={"TZ": "UTC", "N": "8"},
        secret_env={"KEY": "K1"},
        include=("get_*", "now"),
        exclude=("x",),
        trust="on_first_use",
        start="eager",
        timeout=2.5,
        cwd=str(shell.folder / "sub"),
        place=servers(shell)["time"].place,
    )
    assert "K1" in done.out
    assert "no daemon runs" in done.out


def test_a_url_is_written_with_its_headers(shell: Shell) -> None:
    answer = shell.json(
        *("upstream", "add", "api", "--url", "https://a.example/mcp?x=1&y=2"),
        *("--header", "X-Team=a=b", "--secret-header", "Authorization=API_TOKEN"),
    )
    assert answer["secrets"] == ["API_TOKEN"]
    assert answer["in_force"] is False
    found = servers(shell)["api"]
    assert (found.url, found.headers) == ("https://a.example/mcp?x=1&y=2", {"X-Team": "a=b"})
    assert found.secret_headers == {"Authorization": "API_TOKEN"}


def test_the_file_is_for_its_owner_alone_and_keeps_its_mode_and_its_link(shell: Shell) -> None:
    shell.run("upstream", "add", "a", "--", "x")
    file = shell.folder / "home" / "upstreams.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    real = file.rename(shell.folder / "real.yaml")
    real.chmod(0o640)
    file.symlink_to(real)
    assert shell.run("upstream", "add", "b", "--", "x").code == 0
    assert file.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [one.name for one in read_upstreams(real)] == ["a", "b"]
    assert [path.name for path in file.parent.iterdir()] == ["upstreams.yaml"]


def test_adding_and_removing_gives_the_same_text_back(shell: Shell) -> None:
    file = keep(shell, COMMENTED)
    assert shell.run("upstream", "add", "new", "--env", "A=1", "--", "x", "--y").code == 0
    text = file.read_text()
    lines = COMMENTED.splitlines()
    assert [line for line in text.splitlines() if line in lines] == lines
    assert text.index("new:") < text.index("# the end")
    assert shell.run("upstream", "remove", "new").code == 0
    assert file.read_text() == COMMENTED


def test_a_server_goes_with_the_comments_that_stand_on_it(shell: Shell) -> None:
    file = keep(shell, COMMENTED)
    assert shell.run("upstream", "remove", "time").code == 0
    assert file.read_text() == COMMENTED.replace(
        "  # the clock\n  time:\n    command: uvx      # from astral\n"
        "    args: [mcp-server-time]\n    # timeout: 5\n",
        "",
    )
    assert shell.run("upstream", "remove", "git").code == 0
    assert "upstreams: {}   # keep in order\n" in file.read_text()
    assert servers(shell) == {}
    assert shell.run("upstream", "add", "x", "--", "y").code == 0
    assert list(servers(shell)) == ["x"]


def test_comments_below_a_server_stay_with_it(shell: Shell) -> None:
    text = "upstreams:\n  a:\n    command: x\n    # timeout: 5\n\n    # and more\n# end\n"
    file = keep(shell, text)
    assert shell.run("upstream", "add", "b", "--", "y").code == 0
    assert file.read_text().startswith(text.removesuffix("# end\n") + "  b:\n")
    assert shell.run("upstream", "remove", "b").code == 0
    assert file.read_text() == text


def test_line_ends_that_only_yaml_knows_do_not_cost_a_neighbour(shell: Shell) -> None:
    text = 'upstreams:\n  a: {command: "x\u2028y"}\n  b: {command: z}\n  c: {command: z}\n'
    file = keep(shell, text)
    done = shell.run("upstream", "remove", "a")
    assert (done.code, file.read_text()) == (1, text)
    assert "not edited here" in done.err


def test_what_somebody_else_writes_meanwhile_is_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.yaml"
    file.write_text("upstreams: {}\n")

    def edit(text: str) -> str:
        file.write_text("upstreams: {theirs: {command: x}}\n")
        return f"{text}# ours\n"

    with pytest.raises(ConflictError):
        change_upstreams(file, edit)
    assert "theirs" in file.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["upstreams.yaml"]


def test_what_is_meant_for_the_server_does_not_change_how_we_answer(shell: Shell) -> None:
    done = shell.run("upstream", "add", "Wrong Name", "--", "x", "--json")
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet",
        "# nothing yet\n",
        "upstreams: {}",
        "upstreams: {}  # none\n",
        "upstreams:\n  {}\n",
        "upstreams: {a: {command: x}}\n",
        "upstreams: {a: {command: x}, b: {command: y}}\n",
        "{version: 1, upstreams: {a: {command: x}}}\n",
        "upstreams:\n    a: {command: x}",
        "upstreams:\n  a:\n    command: x\nversion: 1\n",
        "upstreams:\r\n  a:\r\n    command: x\r\n",
        "\ufeffupstreams: {a: {command: x}}\n",
        "upstreams:\n a:\n  command: >-\n   x\n  args:\n  - |\n    long\n\n    text\n\n# end\n",
        "upstreams:\n  a: {command: x,\n      args: [\n  y]}\n",
    ],
)
def test_every_way_of_writing_the_file_can_be_edited(text: str) -> None:
    path = Path("/etc/upstreams.yaml")
    entry = {"command": "n", "args": ["8", "\u2028", "\x07\U0001f600", "yes", "é", "- a"]}
    added = with_servers(text, {"new": entry, "other": {"url": "https://x/"}}, path)
    assert added.count("\r\n") == (added.count("\n") if "\r\n" in text else 0)
    taken = without_server(without_server(added, "new", path), "other", path)
    if "a:" in text:
        assert taken.removesuffix("\n") == text.removesuffix("\n")
        assert "a:" not in without_server(added, "a", path).replace("upstreams:", "")


@pytest.mark.parametrize(
    "text",
    [
        "upstreams: {\n  a: {command: x},\n}\n",
        "upstreams: { # none yet\n}\n",
        "? upstreams\n: a: {command: x}\n",
    ],
)
def test_a_text_that_cannot_be_edited_safely_is_left_alone(shell: Shell, text: str) -> None:
    file = keep(shell, text)
    done = shell.run("upstream", "add", "b", "--", "y")
    if done.code == 0:  # then it must be right
        assert "b" in servers(shell)
        return
    assert (done.code, file.read_text()) == (1, text)
    assert "not edited here" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a",), "either a command"),
        (("a", "--url", "https://x/", "--", "y"), "either a command"),
        (("a", "--url", "https://x/", "--env", "A=1"), "--env belongs to a command"),
        (("a", "--header", "A=1", "--", "y"), "--header belongs to --url"),
        (("a", "--env", "tr0ub4dor", "--", "y"), "NAME=VALUE"),
        (("a", "--env", "A=1", "--env", "A=2", "--", "y"), "twice"),
        (("a", "--env", "A=1", "--secret-env", "A=B", "--", "y"), "keep one"),
        (("a", "--secret-env", "A=lower", "--", "y"), "name of a secret"),
        (("a", "--env", "1=1", "--", "y"), "name of a variable"),
        (("A b", "--", "y"), "name of a server"),
        (("a", "--", "npx -y x"), "single word"),
        (("a", "--url", "ftp://x/"), "http and https"),
        (("a", "--url", "https://x/", "--header", "A=b\r\nC: d"), "cannot stand in a header"),
        (("a", "--include", "x*y", "--", "z"), "pattern"),
        (("a", "--cwd", "~nobody/x", "--", "z"), "folder"),
        (("a", "--timeout", "4000", "--", "z"), "3600"),
        (("a", "--timeout", "0", "--", "z"), "seconds"),
        (("a", "--trust", "always", "--", "z"), "review"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    shell: Shell, arguments: tuple[str, ...], told: str
) -> None:
    done = shell.run("upstream", "add", *arguments)
    assert done.code == 2
    assert told in done.err
    assert "tr0ub4dor" not in done.out + done.err
    assert not (shell.folder / "home").exists()


def test_a_name_that_is_there_is_replaced_only_on_demand(shell: Shell) -> None:
    file = keep(shell, COMMENTED)
    done = shell.run("upstream", "add", "time", "--", "other")
    assert (done.code, file.read_text()) == (1, COMMENTED)
    assert "--replace" in done.err
    assert shell.run("upstream", "add", "time", "--replace", "--", "other").code == 0
    assert servers(shell)["time"].command == "other"
    assert list(servers(shell)) == ["git", "time"]


def test_a_server_that_is_not_there_cannot_go(shell: Shell) -> None:
    keep(shell, COMMENTED)
    done = shell.run("upstream", "remove", "tim")
    assert done.code == 2
    assert "did you mean 'time'?" in done.err


def test_a_file_with_mistakes_is_not_edited(shell: Shell) -> None:
    file = keep(shell, "upstreams: {a: {comand: x}}\n")
    for command in (("add", "b", "--", "x"), ("remove", "a")):
        done = shell.run("upstream", *command)
        assert done.code == 2
        assert "did you mean 'command'?" in done.err
    assert file.read_text() == "upstreams: {a: {comand: x}}\n"


def test_bytes_that_are_no_text_are_told(shell: Shell) -> None:
    file = keep(shell, "")
    file.write_bytes(b"upstreams: {}\n# \xff\n")
    done = shell.run("upstream", "add", "b", "--", "x")
    assert done.code == 2
    assert "UTF-8" in done.err


def test_a_secret_on_the_command_line_is_warned_of(shell: Shell) -> None:
    done = shell.run("upstream", "add", "a", "--env", "API_KEY=hunter2", "--", "x")
    assert done.code == 0
    assert "looks like a secret" in done.err
    assert "hunter2" not in done.out + done.err


def test_an_entry_that_would_be_read_as_something_else_is_never_written() -> None:
    path = Path("/u.yaml")
    with pytest.raises(ConflictError):
        with_servers("upstreams: {\n  a: {command: x},\n}\n", {"b": {"command": "y"}}, path)
