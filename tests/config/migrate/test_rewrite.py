"""A migrated file: the same grant, in the operator's own handwriting."""

import re

import pytest
from tests.policy.catalogues import universe_of_names

from remit.config.definitions.files import Files, parse_definitions
from remit.config.migrate.migrate import migrate
from remit.config.migrate.rewrite import rewrite_composition
from remit.model.grant import Grant
from remit.policy.compile import compile_definitions

EVENTS = (
    *("system:health", "state:get", "state:list", "state:set", "state:delete"),
    *("agent:spawn", "agent:terminate", "agent:list", "message:publish", "message:read"),
    *("custom:event", "odd:one"),
)

CAPABILITIES = """
capabilities:
  base: {description: Base, event_patterns: [system:health], always_included: true}
  state_read: {description: Read, event_patterns: [state:get, state:list]}
  state_write:
    description: Write
    event_patterns: [state:set, state:delete]
    requires: [state_read]
  messaging: {description: Talk, event_patterns: ["message:*"], claude_tools: [TodoRead]}
  spawning:
    description: Spawn
    event_patterns: [agent:spawn, agent:terminate, agent:list]
    requires: [messaging]
"""

COMPONENTS = """\
# who wrote this, and why

name: worker   # the name
description: "Does work"
components:
  # the explicit list
  - name: ksi_tools
    inline:
      allowed_tools:
        - system:health
        # reading
        - state:get
        - 'state:list'   # quoted
        - state:set
        # the odd one is needed by the nightly job
        - odd:one        # until the job is gone
        - "team:{{team}}"

  # what it is told
  - name: prompt
    inline: 'Work, {{team}}.'
variables:
    team: {default: core}
# the end
"""

SHORT = """\
name: worker
# what it may do
allowed_tools:
- state:get   # first
- state:list
- message:*
- TodoRead

# keep an eye on this
- custom:event
prompt: |
  Work
  hard.
limits: {max_depth: 1}   # not deep
"""

MERGED = """\
name: worker
components:
- name: capabilities
  inline:
    messaging: true   # talks
- name: ksi_tools
  inline: {allowed_tools: [state:get, state:list, custom:event], disallowed_tools: [message:read]}
- name: tool_overrides
  inline:
    additional_tools: [agent:spawn, agent:terminate, agent:list]   # children
    disallowed_tools:
      - odd:one
"""

FLOW = (
    "{name: worker, allowed_tools: [state:get, state:list, custom:event], limits: {max_depth: 1}}\n"
)

ONE_LINERS = """\
name: worker
components:
  - {name: ksi_tools, inline: {allowed_tools: [state:get, state:list, state:set]}}
  - {name: prompt, inline: "Hello"}
"""

MULTILINE_FLOW = """\
name: worker
allowed_tools: [
  state:get, state:list,
  custom:event,  # for the report
  agent:list,
]
"""

SINGLE = "name: worker\nallowed_tools: state:get\n"

OVERRIDES_ONLY = """\
name: worker
components:
  - name: tool_overrides
    inline:
      additional_tools: [state:get, state:list]
  - name: limits
    inline: {max_depth: 3}
"""

LIST_FORM = """\
name: worker
capabilities: [messaging]
additional_tools:
  - state:get
  - state:list
"""

ONLY_BASE = (
    "name: worker\ncomponents:\n  - name: ksi_tools\n    inline: {allowed_tools: [system:health]}\n"
)

LISTS_ABOVE = """\
name: worker
disallowed_tools:   # first of all
- message:read
allowed_tools: [agent:terminate, state:set, 'message:*', agent:spawn]   # then these
"""

TWICE = """\
name: worker
components:
  - name: ksi_tools
    inline: {allowed_tools: [custom:event, odd:one]}
  - name: ksi_tools
    inline:
      allowed_tools: [odd:one]
  - name: tool_overrides
    inline:
      allowed_tools: [Bash, odd:one]
"""

STYLES = {
    "lists-above": LISTS_ABOVE,
    "twice": TWICE,
    "components": COMPONENTS,
    "short": SHORT,
    "merged": MERGED,
    "flow": FLOW,
    "one-liners": ONE_LINERS,
    "multiline-flow": MULTILINE_FLOW,
    "single": SINGLE,
    "overrides-only": OVERRIDES_ONLY,
    "list-form": LIST_FORM,
    "only-base": ONLY_BASE,
}


def resolved(text: str) -> tuple[Files, Grant]:
    files = Files(catalogue="capabilities.yaml", compositions=["worker.yaml"])
    files.contents = {"capabilities.yaml": CAPABILITIES.encode(), "worker.yaml": text.encode()}
    catalogue = compile_definitions(parse_definitions(files), universe_of_names(EVENTS))
    return files, catalogue.grants["worker"]


def rewritten(text: str) -> str:
    files = Files(catalogue="capabilities.yaml", compositions=["worker.yaml"])
    files.contents = {"capabilities.yaml": CAPABILITIES.encode(), "worker.yaml": text.encode()}
    catalogue = compile_definitions(parse_definitions(files), universe_of_names(EVENTS))
    return rewrite_composition(text, migrate(catalogue, catalogue.compositions["worker"]))


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_rewritten_file_loads_and_grants_the_same(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    _, before = resolved(text)
    new = rewritten(text)
    _, after = resolved(new)
    assert (after.events, after.claude_tools) == (before.events, before.claude_tools)
    assert new.count("\n") == new.count(newline)


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_a_rewritten_file_is_left_alone_by_a_second_migration(text: str) -> None:
    once = rewritten(text)
    assert rewritten(once) == once


def test_a_file_without_a_last_newline_stays_so() -> None:
    new = rewritten(SINGLE.rstrip("\n"))
    assert not new.endswith("\n")


def test_comments_quotes_and_blank_lines_of_a_components_file_stay() -> None:
    assert (
        rewritten(COMPONENTS)
        == """\
# who wrote this, and why

name: worker   # the name
description: "Does work"
components:
  # the explicit list
  - name: capabilities
    inline:
      # reading
      # state:list: quoted
      state_write: true
  - name: tool_overrides
    inline:
      additional_tools:
        # the odd one is needed by the nightly job
        - odd:one  # until the job is gone
        - "team:{{team}}"
      disallowed_tools:
        - state:delete

  # what it is told
  - name: prompt
    inline: 'Work, {{team}}.'
variables:
    team: {default: core}
# the end
"""
    )


def test_the_short_form_stays_short() -> None:
    assert (
        rewritten(SHORT)
        == """\
name: worker
# what it may do
capabilities:
  messaging: true
  # state:get: first
  state_read: true
additional_tools:

# keep an eye on this
- custom:event
prompt: |
  Work
  hard.
limits: {max_depth: 1}   # not deep
"""
    )


BRACKETS_WITH_COMMENTS = """\
name: worker
allowed_tools: [
  # the first of them
  state:get,  # one
  state:list,
  message:read, agent:list,  # who is there
  odd:one,
]
"""

BETWEEN = """\
name: worker
components:
  - name: ksi_tools
    inline:
      # what it may
      allowed_tools:   # all of it
        - state:get
        - state:list
      # what it may not: "#1" is no comment
      disallowed_tools: ["message:read"]   # nobody reads
"""

ALREADY = """\
name: worker
capabilities: [state_read]
additional_tools:
  - state:get   # twice, to be sure
"""

COMMENTED = STYLES | {
    "brackets-with-comments": BRACKETS_WITH_COMMENTS,
    "between": BETWEEN,
    "already": ALREADY,
    "only-base": ONLY_BASE.replace("system:health]}", "system:health]}  # how it is"),
    "single": SINGLE.replace("state:get", "state:get  # alone"),
    "flow": FLOW.replace("}\n", "}  # short\n"),
}


@pytest.mark.parametrize("text", COMMENTED.values(), ids=COMMENTED)
def test_no_comment_is_lost(text: str) -> None:
    new = rewritten(text)
    for line in text.splitlines():
        said = re.search(r"(?:^|\s)#(.*)", line)
        assert said is None or said.group(1).strip() in new, new
    assert rewritten(new) == new


def test_a_comment_on_an_entry_stands_above_the_capability_that_it_became() -> None:
    assert "# the first of them\n# state:get: one\ncapabilities: {state_read: true}\n" in rewritten(
        BRACKETS_WITH_COMMENTS
    )


def test_existing_capabilities_and_overrides_are_extended_in_place() -> None:
    assert (
        rewritten(MERGED)
        == """\
name: worker
components:
- name: capabilities
  inline:
    messaging: true   # talks
    spawning: true
    state_read: true
- name: tool_overrides
  inline:
    additional_tools: [custom:event]   # children
    disallowed_tools:
      - odd:one
      - message:read
"""
    )


def test_brackets_stay_brackets() -> None:
    assert rewritten(FLOW) == (
        "{name: worker, additional_tools: [custom:event], limits: {max_depth: 1}, "
        "capabilities: {state_read: true}}\n"
    )
    assert "  - {name: capabilities, inline: {state_write: true}}\n" in rewritten(ONE_LINERS)


def test_a_comment_inside_brackets_moves_with_its_entry() -> None:
    assert "  - custom:event  # for the report\n" in rewritten(MULTILINE_FLOW)


def test_text_beyond_ascii_is_not_disturbed() -> None:
    text = SHORT.replace("what it may do", "für Zoë 🛠").replace("first", "zuerst, später")
    assert "# für Zoë 🛠\n" in rewritten(text)
