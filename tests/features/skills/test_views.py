"""A skill that capabilities name is seen by their holders and by nobody else."""

import pytest

from remit.errors import Place
from remit.features.skills.views import bind_skills, binding_problems
from remit.model.capability import Capability
from remit.model.descriptor import NOBODY, Descriptor

HERE = Place("capabilities.yaml")


def capability(name: str, *skills: str) -> Capability:
    return Capability(id=name, place=HERE, skills=skills)


def skill(name: str, *capabilities: str) -> Descriptor:
    return Descriptor(id=f"skill:{name}", kind="skill", name=name, capabilities=capabilities)


CAPABILITIES = [capability("mail", "reply", "skill:sort"), capability("desk", "reply")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(skill("reply"), ("desk", "mail"), id="named-by-two"),
        pytest.param(skill("sort"), ("mail",), id="named-by-id"),
        pytest.param(skill("other"), (), id="named-by-none"),
        pytest.param(skill("other", "lab"), ("lab",), id="its-own-word-only"),
        pytest.param(skill("reply", "mail", "lab"), ("mail",), id="both-agree"),
        pytest.param(skill("reply", "lab"), (NOBODY,), id="both-disagree"),
    ],
)
def test_who_sees_a_skill(given: Descriptor, expected: tuple[str, ...]) -> None:
    (bound,) = bind_skills([given], CAPABILITIES)
    assert bound.capabilities == expected


def test_only_skills_are_bound() -> None:
    tool = Descriptor(id="tool:reply", kind="tool", name="reply")
    assert bind_skills([tool], CAPABILITIES) == (tool,)


def test_names_that_bind_nothing_are_told() -> None:
    known = [skill("reply", "lab"), skill("sorting")]
    found = {one.code: one for one in binding_problems(known, CAPABILITIES)}
    assert set(found) == {"unknown_skill", "unknown_capability", "hidden_skill"}
    assert "sorting" in found["unknown_skill"].hint
    assert not any(one.is_error for one in found.values())


def test_names_that_fit_are_not_told() -> None:
    assert binding_problems([skill("reply", "mail"), skill("sort")], CAPABILITIES) == ()
