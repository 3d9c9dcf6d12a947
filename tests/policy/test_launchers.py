"""Which process a profile starts: what is nearest counts, and order never does."""

import itertools

import pytest
from tests.policy.texts import CAPABILITIES, compiled, refused, told

from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.model.agent import Launch
from remit.policy.compile import resolve
from remit.policy.plan import plan

PARENT = "name: parent\nlauncher: {command: low, args: [a]}\n"
MIXIN = "name: mixin\nlauncher: {command: mid}\n"
QUIET = "name: quiet\nlauncher: none\n"


def started(*profiles: str) -> Launch | None:
    """What the profile `p` starts."""
    launcher = compiled(CAPABILITIES, *profiles).grants["p"].launcher
    return None if launcher is None else launcher.launch


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("extends: parent", "low", id="a-parent"),
        pytest.param("extends: parent\nmixins: [mixin]", "mid", id="a-mixin-over-a-parent"),
        pytest.param("extends: parent\nlauncher: {command: top}", "top", id="its-own"),
        pytest.param("mixins: [mixin]\nlauncher: none", "", id="its-own-none"),
        pytest.param("extends: quiet\nmixins: [mixin]", "mid", id="over-a-none"),
        pytest.param("extends: [parent, quiet]", "", id="none-among-equals"),
    ],
)
def test_the_nearest_launcher_counts_as_a_whole(text: str, command: str) -> None:
    launch = started(PARENT, MIXIN, QUIET, f"name: p\n{text}\n")
    assert launch is not None
    assert launch.starts == command
    assert launch.args == (("a",) if command == "low" else ())


def test_a_profile_without_one_starts_nothing() -> None:
    assert started("name: p\n") is None


def test_the_order_of_equals_does_not_matter() -> None:
    texts = [PARENT, MIXIN, "name: other\nlauncher: claude\n"]
    for order in itertools.permutations(["parent", "mixin", "other"]):
        launch = started(*texts, f"name: p\nextends: [{', '.join(order)}]\n")
        assert launch is not None
        assert launch.command == "low"


def test_a_component_may_have_a_condition() -> None:
    text = """name: p
variables: {team: {default: core, allowed_values: [core, docs]}}
components:
  - {name: launcher, inline: claude, when: {team: docs}}
"""
    catalogue = compiled(CAPABILITIES, text)
    assert catalogue.grants["p"].launcher is None
    launcher = resolve(catalogue, "p", variables={"team": "docs"}).launcher
    assert launcher is not None
    assert launcher.launch == Launch(ready="claude")


def test_variables_fill_arguments_environment_and_folder() -> None:
    text = """name: p
variables: {team: {default: core}}
launcher: {command: x, args: ["--team={{team}}"], env: {T: "{{team}}"}, cwd: "/srv/{{team}}"}
"""
    launcher = resolve(compiled(CAPABILITIES, text), "p", variables={"team": "a *:b"}).launcher
    assert launcher is not None
    launch = launcher.launch
    assert (launch.args, launch.env, launch.cwd) == (
        ("--team=a *:b",),
        {"T": "a *:b"},
        "/srv/a *:b",
    )


def test_an_unknown_variable_is_an_error_at_its_place() -> None:
    text = 'name: p\nlauncher: {command: x, args: [a, "{{team}}"]}\n'
    assert told(refused(CAPABILITIES, text)) == ["p0.yaml:2:34 unknown_variable"]


def test_a_launcher_that_many_inherit_is_warned_of_once() -> None:
    children = (f"name: c{number}\nextends: parent\n" for number in range(3))
    catalogue = compiled(CAPABILITIES, PARENT, *children, QUIET)
    (warning,) = launcher_warnings(catalogue, Commands([]))
    assert (str(warning.place), warning.severity) == ("p0.yaml:2:11", "warning")
    assert "launch_commands" in warning.hint


def test_a_plan_shows_what_would_be_started_instead_and_no_value_of_a_variable() -> None:
    before = compiled(CAPABILITIES, PARENT, MIXIN, "name: gone\nlauncher: claude\n")
    edited = "name: parent\nlauncher: {ready: claude, env: {TOKEN: hidden}}\n"
    after = compiled(CAPABILITIES, edited, MIXIN)
    changes = plan(before.grants, after.grants).changes
    assert sorted(changes) == ["gone", "parent"]
    low = {"command": "low", "args": ("a",), "restart": "never", "max_restarts": 5}
    new = {"ready": "claude", "env": ["TOKEN"], "restart": "never", "max_restarts": 5}
    assert changes["parent"].launcher_changed == (low, new)
    assert changes["gone"].launcher_changed[1] is None
    assert not changes["parent"].widens
