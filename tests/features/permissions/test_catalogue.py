"""capability:* and composition:*: what there is to hold, and edits that have no effect."""

from typing import Any

import pytest
from tests.fakes import Desk, built_in_handlers, starter_files, texts

CATALOGUE = """\
  base: {description: Feet, event_patterns: ["system:*"], always_included: true}
  look:
    description: Look things up
    event_patterns: ["capability:*", "composition:*", permission:matrix]
    tags: [read]
    category: Operation
  read:
    description: Read state
    event_patterns: [state:get, state:list]
    aliases: [reading]
  write:
    description: Write state
    event_patterns: [state:set]
    requires: [read]
    resource_limits: {max_calls_per_minute: 5}
  tempting:
    description: Gives little and requires much
    event_patterns: [state:get]
    requires: [armed]
  armed:
    description: Has a weapon
    claude_tools: [Bash]
"""
READER = """\
capabilities: {look: true, read: true}
variables: {team: {type: string, default: core, allowed_values: [core, docs]}}
prompt: "For {{team}}."
"""
WRITER = "extends: reader\ncapabilities: {write: true}\n"
CHIEF = "extends: writer\n"
EXPLICIT = "allowed_tools: [state:get, state:list]\n"


@pytest.fixture
def desk() -> Desk:
    files = texts(CATALOGUE, reader=READER, writer=WRITER, chief=CHIEF, explicit=EXPLICIT)
    return Desk(built_in_handlers(), files)


async def test_a_list_of_capabilities_is_paged(desk: Desk) -> None:
    first = await desk.ask("operator", "capability:list", {"limit": 4})
    rest = await desk.ask("operator", "capability:list", {"limit": 4, "after": first["next"]})
    ids = [item["id"] for item in first["items"] + rest["items"]]
    assert ids == ["armed", "base", "look", "read", "tempting", "write"]
    assert (first["total"], rest["total"], rest["next"]) == (6, 6, None)


async def test_a_capability_tells_what_it_gives_with_all_it_requires(desk: Desk) -> None:
    told = await desk.ask("operator", "capability:get", {"id": "write"})
    assert told["events"] == ["state:get", "state:list", "state:set"]
    assert told["own_events"] == ["state:set"]
    assert told["requires"] == ["read"]
    assert told["limits"] == {"max_calls_per_minute": 5}
    assert told["held"] is True


async def test_an_old_name_of_a_capability_is_answered_with_the_new_one(desk: Desk) -> None:
    assert (await desk.ask("reader", "capability:get", {"id": "reading"}))["id"] == "read"


async def test_a_capability_shows_no_tool_that_the_caller_lacks(desk: Desk) -> None:
    told = await desk.ask("reader", "capability:get", {"id": "tempting"})
    assert told["events"] == ["state:get"]
    assert (told["claude_tools"], told["requires"]) == ([], [])
    everything = await desk.ask("operator", "capability:get", {"id": "tempting"})
    assert (everything["claude_tools"], everything["requires"]) == (["Bash"], ["armed"])


async def test_all_capabilities_that_give_an_event_are_named(desk: Desk) -> None:
    told = await desk.ask("operator", "capability:of_event", {"event": "state:get"})
    assert told["capabilities"] == ["read", "tempting", "write"]  # the last by what it requires


async def test_a_hidden_capability_is_as_unknown_as_one_that_does_not_exist(desk: Desk) -> None:
    hidden = await desk.answer("reader", "capability:get", {"id": "armed"})
    missing = await desk.answer("reader", "capability:get", {"id": "armet"})
    assert hidden.error is not None
    assert missing.error is not None
    assert hidden.error.code == missing.error.code == "not_found"
    assert "armed" not in hidden.error.hint


async def test_a_profile_is_resolved_with_variables_and_under_an_effect(desk: Desk) -> None:
    asked: dict[str, Any] = {"profile": "writer", "variables": {"team": "docs"}}
    told = await desk.ask("operator", "composition:resolve", asked)
    assert told["prompt"] == "For docs."
    assert "state:set" in told["allowed_events"]
    told = await desk.ask("operator", "composition:resolve", asked | {"max_effect": "read"})
    assert "state:set" not in told["allowed_events"]
    assert "state:get" in told["allowed_events"]
    wrong = asked | {"variables": {"team": "sales"}}
    answer = await desk.answer("operator", "composition:resolve", wrong)
    assert answer.error is not None
    assert answer.error.code == "invalid_data"


async def test_only_one_who_sees_everything_is_shown_the_text_of_a_profile(desk: Desk) -> None:
    shown = await desk.ask("operator", "composition:get", {"name": "writer"})
    assert shown["text"] == f"name: writer\n{WRITER}"
    assert shown["extends"] == ["reader"]
    own = await desk.ask("reader", "composition:get", {"name": "reader"})
    assert "text" not in own
    hidden = await desk.answer("reader", "composition:get", {"name": "writer"})
    assert hidden.error is not None
    assert hidden.error.code == "not_found"


async def test_an_edit_is_checked_and_nothing_is_put_in_force(desk: Desk) -> None:
    broken = {"compositions": {"reader.yaml": "name: reader\ncapabilities: {raed: true}\n"}}
    told = await desk.ask("operator", "composition:validate", broken)
    (error,) = told["errors"]
    assert told["ok"] is False
    assert (error["file"], error["line"], error["column"]) == ("compositions/reader.yaml", 2, 16)
    assert (error["code"], error["hint"]) == ("unknown_capability", "did you mean 'read'?")
    fine = {"compositions": {"new.yaml": "name: new\ncapabilities: {read: true}\n"}}
    told = await desk.ask("operator", "composition:validate", fine)
    assert (told["ok"], told["counts"]["profiles"]) == (True, 5)
    assert desk.authority.catalogue.revision == 1
    assert "new" not in desk.authority.catalogue.grants


async def test_a_plan_tells_what_an_edit_gives_and_takes(desk: Desk) -> None:
    edit = {
        "compositions": {"reader.yaml": "name: reader\ncapabilities: {write: true}\n"},
        "remove": ["explicit.yaml"],
    }
    told = await desk.ask("operator", "composition:plan", edit)
    assert next(iter(told["profiles"])) == "reader", "whoever gets more comes first"
    assert told["profiles"]["reader"]["granted"] == ("state:set",)
    assert "state:get" in told["profiles"]["explicit"]["revoked"]
    assert list(told)[-1] == "summary"
    assert told["summary"]["granted"] == 1


@pytest.mark.parametrize("name", ["../x.yaml", "/etc/x.yaml", "x.txt", "", "a/b.yaml"])
async def test_an_edit_names_plain_files_only(desk: Desk, name: str) -> None:
    answer = await desk.answer("operator", "composition:validate", {"compositions": {name: ""}})
    assert answer.error is not None
    assert (answer.error.code, answer.error.details) == (
        "invalid_data",
        {"path": "$.compositions"},
    )


async def test_a_drafter_hears_of_its_own_files_without_suggestions(desk: Desk) -> None:
    edit = {"compositions": {"mine.yaml": "name: mine\ncapabilities: {wriet: true}\n"}}
    told = await desk.ask("reader", "composition:validate", edit)
    (error,) = told["errors"]
    assert (error["code"], error["hint"]) == ("unknown_capability", "")
    answer = await desk.answer("reader", "composition:plan", edit)
    assert answer.error is not None
    assert answer.error.code == "invalid_definition"
    assert "write" not in repr(answer.error).replace("wriet", "")


async def test_a_drafter_sees_of_a_plan_what_it_holds_itself(desk: Desk) -> None:
    files = {
        "explicit.yaml": "name: explicit\nadditional_tools: ['state:*']\n",
        "new.yaml": "name: new\ncapabilities: {read: true}\n",
    }
    told = await desk.ask("reader", "composition:plan", {"compositions": files})
    assert "state:get" in told["profiles"]["new"]["granted"]
    assert "explicit" not in told["profiles"], "it gets more, but nothing that its author holds"
    assert "state:set" not in repr(told)


async def test_a_drafter_sees_approvals_of_its_own_events_and_no_denials_or_reviews(
    desk: Desk,
) -> None:
    guards = "approval_required: [state:get]\ndisallowed_tools: ['state:*', Bash]\n"
    files = {"new.yaml": f"name: new\ncapabilities: {{read: true}}\n{guards.splitlines()[0]}\n"}
    told = await desk.ask("reader", "composition:plan", {"compositions": files})
    assert told["profiles"]["new"]["approval_added"] == ("state:get",)
    files = {"reader.yaml": f"name: reader\ncapabilities: {{read: true}}\n{guards}"}
    answer = await desk.answer("reader", "composition:plan", {"compositions": files})
    assert "state:set" not in repr(answer)


@pytest.mark.parametrize(
    ("text", "hidden", "missing"),
    [
        ("capabilities: {NAME: true}", "write", "wriet"),
        ("capabilities: [NAME]", "armed", "harmed"),
        ("extends: NAME", "writer", "wrighter"),
        ("mixins: [NAME]", "writer", "wrighter"),
        ("additional_tools: ['NAME']", "state:set", "state:sat"),
        ("disallowed_tools: ['NAME']", "state:set", "state:sat"),
        ("disallowed_tools: ['NAME*']", "permission:e", "permission:x"),
        ("variables: {v: {default: 'NAME'}}\ndisallowed_tools: ['{{v}}']", "key:add", "key:ad"),
        ("components: [{name: prompt, source: NAME}]", "writer.yaml", "wrighter.yaml"),
    ],
)
async def test_a_draft_cannot_be_used_to_find_out_which_names_exist(
    desk: Desk, text: str, hidden: str, missing: str
) -> None:
    for event in ("composition:validate", "composition:plan"):
        told = []
        for name in (hidden, missing):
            draft = {"mine.yaml": f"name: mine\n{text.replace('NAME', name)}\n"}
            answer = await desk.answer("reader", event, {"compositions": draft})
            told.append(repr((answer.data, answer.error)).replace(name, "NAME"))
        assert told[0] == told[1]


@pytest.mark.parametrize(
    ("file", "profile"),
    [
        ("writer.yaml", "mine"),
        ("mine.yaml", "writer"),
        ("writer.yaml", "writer"),
        ("explicit.yaml", "writer"),
    ],
)
async def test_a_draft_that_bears_a_hidden_name_is_tried_like_any_other(
    desk: Desk, file: str, profile: str
) -> None:
    """Under another one than that, the answer is the same."""
    for event in ("composition:validate", "composition:plan"):
        for text in ("capabilities: {read: true}", "capabilities: {raed: true}", "extends: NAME"):
            told = []
            for word in ("writer", "wrixer"):
                name = profile.replace("writer", word)
                draft = {file.replace("writer", word): f"name: {name}\n{text}\n"}
                draft["two.yaml"] = f"extends: {name}\nname: two\n"
                draft = {key: one.replace("NAME", name) for key, one in draft.items()}
                answer = await desk.answer("reader", event, {"compositions": draft})
                told.append(repr((answer.data, answer.error)).replace(word, "WORD"))
            assert told[0] == told[1]


async def test_a_drafter_may_not_edit_the_catalogue_nor_remove_what_it_does_not_see(
    desk: Desk,
) -> None:
    answer = await desk.answer("reader", "composition:validate", {"catalogue": "version: 1\n"})
    assert answer.error is not None
    assert answer.error.code == "denied"
    gone = await desk.ask("reader", "composition:plan", {"remove": ["writer.yaml"]})
    none = await desk.ask("reader", "composition:plan", {"remove": ["wrighter.yaml"]})
    assert gone == none


async def test_a_drafter_is_told_why_its_variables_cannot_be_tried(desk: Desk) -> None:
    text = "name: mine\nvariables: {v: {default: get}}\nadditional_tools: ['state:{{v}}']\n"
    told = await desk.ask("reader", "composition:validate", {"compositions": {"mine.yaml": text}})
    (error,) = told["errors"]
    assert "with variables" in error["message"]


async def test_a_draft_that_cannot_be_read_is_told_with_its_place(desk: Desk) -> None:
    draft = {"mine.yaml": "name: mine\nadditional_tools: [State]\ndisallowed_tools: ['a b']\n"}
    told = await desk.ask("reader", "composition:validate", {"compositions": draft})
    (error,) = told["errors"]
    assert (error["file"], error["line"], error["code"]) == ("mine.yaml", 3, "invalid_pattern")


async def test_an_edit_that_breaks_hidden_definitions_is_refused_without_naming_them(
    desk: Desk,
) -> None:
    answer = await desk.answer("reader", "composition:plan", {"remove": ["reader.yaml"]})
    assert answer.error is not None
    assert answer.error.code == "invalid_definition"
    assert "writer" not in repr(answer.error)
    told = await desk.ask("reader", "composition:validate", {"remove": ["reader.yaml"]})
    assert told["ok"] is False
    assert len(told["errors"]) == 1
    assert "writer" not in repr(told)


async def test_the_starter_is_valid_as_the_daemon_sees_it() -> None:
    told = await Desk(built_in_handlers(), starter_files()).ask("operator", "composition:validate")
    assert (told["ok"], told["errors"]) == (True, [])
