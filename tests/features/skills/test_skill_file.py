"""SKILL.md as other programs write it."""

from pathlib import Path

import pytest

from remit.config.strict.kinds import Report
from remit.errors import Problem
from remit.features.skills.skill_file import read_skill_file, shown_name
from remit.model.descriptor import Descriptor


def read(text: str, folder: str = "/caps/my-skill") -> Descriptor:
    report = Report()
    found = read_skill_file(text.encode(), "SKILL.md", Path(folder), report)
    assert found is not None, report.problems
    assert not report.problems
    return found


def problems_of(text: str, folder: str = "/caps/my-skill") -> list[Problem]:
    report = Report()
    assert read_skill_file(text.encode(), "SKILL.md", Path(folder), report) is None
    return report.problems


def test_a_skill_becomes_a_descriptor() -> None:
    found = read(
        """---
name: pull-request_review
version: 1.0
description: >
  Reviews pull
  requests.
category: developer
tags: [git, 2024]
requires_tools: [git, gh]
requires_secrets: [github.token]
license: MIT
---
# Body
"""
    )
    assert (found.id, found.kind, found.name) == (
        "skill:pull-request_review",
        "skill",
        "pull-request_review",
    )
    assert found.title == "Pull Request Review"
    assert found.description == "Reviews pull requests."
    assert (found.category, found.tags) == ("developer", ("git", "2024"))
    assert (found.required_tools, found.required_secrets) == (("git", "gh"), ("github.token",))
    assert (found.source.root, found.source.content_file) == ("/caps/my-skill", "SKILL.md")


@pytest.mark.parametrize(
    "line",
    [
        "tools_required: [git, gh]",
        "requires_tools: git, gh",
        "requires_tools:\n  - git\n  - gh\n  - git",
        "requires_tools:\nmetadata:\n  agentos:\n    requires_tools: [git, gh]",
    ],
)
def test_required_tools_are_found_however_they_are_written(line: str) -> None:
    found = read(f"---\nname: x\ndescription: y\n{line}\n---\n")
    assert found.required_tools == ("git", "gh")


def test_what_the_keys_do_not_say_comes_from_the_folder_and_the_text() -> None:
    body = "# Title\n\n```sh\nls\n```\n\nKeeps  mail\nin order.\n\nMore."
    found = read(f"---\nmetadata: {{x: {{categories: [mail, work]}}}}\n---\n{body}")
    assert (found.id, found.description) == ("skill:my-skill", "Keeps mail in order.")
    assert found.category == "mail"


def test_a_skill_that_says_nothing_is_refused() -> None:
    (problem,) = problems_of("---\nname: x\n---\n# Title\n")
    assert problem.code == "missing_key"


@pytest.mark.parametrize("name", ["../etc", "a b", "/x", "x\\ny", "a" * 65, "ключ"])
def test_a_name_that_could_be_a_path_or_hide_something_is_refused(name: str) -> None:
    (problem,) = problems_of(f'---\ndescription: y\nname: "{name}"\n---\n')
    assert (problem.code, problem.place.line) in {("invalid_name", 3)}


def test_every_mistake_of_a_skill_is_told() -> None:
    found = problems_of(
        "---\nname: a b\ndescription: y\ntags: {a: 1}\nrequires_tools: [[x]]\n---\n"
    )
    assert [(one.code, one.place.line) for one in found] == [
        ("invalid_name", 2),
        ("wrong_type", 4),
        ("wrong_type", 5),
    ]


def test_a_description_is_bounded() -> None:
    (problem,) = problems_of(f"---\nname: x\ndescription: {'y' * 5000}\n---\n")
    assert problem.code == "too_large"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("github", "Github"), ("web-search", "Web Search"), ("a__b.c:d", "A B C D"), ("iOS", "IOS")],
)
def test_the_name_for_people_is_made_of_segments(name: str, shown: str) -> None:
    assert shown_name(name) == shown
