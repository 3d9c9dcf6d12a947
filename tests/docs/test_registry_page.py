"""The page about the registry: every function of the design has its place, and numbers are true."""

import pytest
from tests.docs.pages import ROOT, codes, rows, sections
from tests.docs.test_reference import built_in, commands

from remit.features.registry import entry, link, mission, resolve
from remit.features.registry.entry import Declaration

PAGE = sections(ROOT / "docs" / "reference" / "registry.md")
DESIGN = [
    *("discover", "search_tools", "search_skills", "resolve_tool"),
    *("resolve_skills", "register_base_tool", "register_composed_tool", "register_repair"),
    *("register_skill", "update_skill", "flag_skill_for_review", "list_skills_for_review"),
    *("link", "resolve_dependencies", "on_tool_repair", "preflight_check"),
    *("run_test_suite", "mark_healthy", "mark_unhealthy", "record_trial"),
    *("get_context_warnings", "track_pattern", "list_promotion_candidates", "promote_as_tool"),
    *("promote_as_skill", "reject_promotion", "archive_candidates", "archive"),
    *("restore", "list_archived", "persist", "load"),
]
"""The summary of the API in the design that the registry comes from."""
FUNCTIONS = rows(PAGE["The functions of the design it comes from"])


def test_every_function_of_the_design_has_its_place_and_no_other() -> None:
    assert sorted(FUNCTIONS) == sorted(DESIGN)


@pytest.mark.parametrize("name", DESIGN)
def test_a_function_is_an_event_and_a_command_that_are_there_or_says_when_it_comes(
    name: str,
) -> None:
    event, command = FUNCTIONS[name]
    if not codes(event):
        assert event.startswith(("not yet: comes with ", "by itself; a file comes with "))
        return
    assert codes(event)[0] in built_in()
    assert codes(command)[0].removeprefix("remit ") in {known for known, _ in commands()}


def test_the_fields_of_a_declaration_are_documented_and_no_others() -> None:
    assert set(rows(PAGE["Entries"])) == {*Declaration.__struct_fields__} - {"id"}


def test_every_state_of_health_is_documented() -> None:
    states = entry.HealthState.__args__  # type: ignore[attr-defined]
    assert set(rows(PAGE["Health"])) == set(states)


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    health, choice, linked = PAGE["Health"], PAGE["Resolve"], PAGE["Link"]
    assert f"at least {entry.ENOUGH} of its last {entry.LOOKED_AT} calls" in health
    assert f"{entry.IN_A_ROW} failed calls in a row, or a rate under {entry.BROKEN}" in health
    assert f"itself again over {entry.STEADY}" in health
    assert f"{resolve.FADING:g} / ({resolve.FADING:g} + " in choice
    assert f"{resolve.TAG_PENALTY} for each tag with at least {resolve.WARNED} trials" in choice
    assert f"under {resolve.FAILING}; {resolve.FLAKY_PENALTY} when it is flaky" in choice
    assert f"at least {resolve.MODEL_TRIALS} trials and a rate under {resolve.MODEL_RATE}" in choice
    assert f"within {resolve.NEAR}," in choice
    assert f"up to {mission.MOST_NEEDS} needs" in linked
    assert f"a probability of at least {mission.FITS}" in linked
    assert f"at most {link.MOST_SKILLS}," in linked
