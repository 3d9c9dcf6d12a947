"""What mutants of `catalogue` got away with: the words and the weight of its warnings."""

from tests.policy.texts import compiled

DOUBTFUL = """
capabilities:
  web:
    description: d
    claude_tools: [WebFetsh]
"""


def test_a_model_tool_that_looks_misspelt_is_a_warning_with_its_place_and_a_hint() -> None:
    (problem,) = (
        problem
        for problem in compiled(DOUBTFUL, "name: p\ncapabilities: [web]").warnings
        if problem.code == "unknown_model_tool"
    )
    assert str(problem.place) == "capabilities.yaml:5:20"
    assert problem.message == "'WebFetsh' is no model tool that we know"
    assert problem.hint == "did you mean 'WebFetch'?"
    assert problem.severity == "warning"
    assert not problem.is_error


GATED = """
capabilities:
  net:
    description: d
    event_patterns: [web:fetch]
    claude_tools: [WebFetch]
    resource_limits: {max_depth: 2}
    system_prompt: careful
    skills: [reading]
    security_review_required: true
"""


def test_the_fingerprint_of_a_definition_is_the_same_in_every_version_of_remit() -> None:
    # Approvals are stored with it: when it changes, every approval that was given is void.
    found = compiled(GATED, "name: p\ncapabilities: [net]").scopes["net"].fingerprint
    assert found == "875ab576649652a466ad5827987dd5f25bd7c769d47df9afcc928da12c9b8742"
