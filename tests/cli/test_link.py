"""The picture of a link: needs, tools, skills and what has to be done first."""

from typing import Any

from remit.cli.cards import picture


def choice(id_: str, **more: Any) -> dict[str, Any]:
    arithmetic = {"base": 0.94, "n": 50.0}
    return {"id": id_, "health": "green", "retry": False, "arithmetic": arithmetic} | more


def tool(id_: str, *, retry: bool = False) -> dict[str, Any]:
    return {"id": id_, "event": id_, "description": "Does something.", "retry": retry}


ANSWER: dict[str, Any] = {
    "needs": [
        {
            "need": "parse the CSV of the employees of Europe",
            "tool": "tool:parse",
            "relevance": 0.83,
            "choices": [choice("tool:parse"), choice("tool:parse_old")],
        },
        {
            "need": "format",
            "tool": "tool:format",
            "relevance": 1.0,
            "choices": [choice("tool:format", arithmetic={"base": 0.5, "n": 0.0})],
        },
        {"need": "pay the salaries", "tool": None, "relevance": 0.0, "choices": []},
        {"need": "sort", "tool": None, "relevance": 1.0, "choices": []},
    ],
    "tools": {
        "visible": [tool("tool:parse", retry=True), tool("tool:format")],
        "hidden": [tool("tool:split")],
        "order": ["tool:split", "tool:parse", "tool:format"],
    },
    "skills": [{"id": "skill:csv", "tools": ["tool:parse"], "tags": ["eu"]}],
    "skills_left_out": ["skill:long"],
    "conflicts": [["skill:csv", "skill:tsv"]],
    "missing": [{"need": "pay the salaries", "hint": ""}],
    "unhealthy": [
        {"id": "tool:sort", "state": "red", "reason": "operator said so", "need": "sort"},
        {"id": "tool:swap", "state": "missing", "needed_by": "tool:sort", "need": ""},
    ],
    "cycles": [["tool:a", "tool:b"]],
    "phase_0": [
        {"work": "smith", "need": "pay the salaries"},
        {"work": "repair", "need": "sort", "ids": ["tool:sort"]},
    ],
    "tokens": {"tools": 600, "skills": 300, "total": 900, "full_dump": 10_000, "saving": 0.91},
}


def test_the_picture_goes_from_needs_to_what_has_to_be_done_first() -> None:
    assert "\n".join(picture(ANSWER)) == (
        "Needs\n"
        "  parse the CSV of the employees … → tool:parse  (green, 94% of 50, 83% sure, best of 2)\n"
        "  format                           → tool:format  (green, untried, by name)\n"
        "  pay the salaries                 → MISSING\n"
        "  sort                             → nothing that can be used\n"
        "Tools\n"
        "  tool:parse  Does something.  try again when it fails\n"
        "  tool:format  Does something.\n"
        "  tool:split  hidden: another one needs it\n"
        "Skills\n"
        "  skill:csv  for tool:parse, eu\n"
        "  skill:long  left out of the prompt\n"
        "  skill:csv and skill:tsv contradict each other\n"
        "Phase 0\n"
        "  smith pay the salaries\n"
        "  repair sort\n"
        "    tool:sort is red: operator said so\n"
        "    tool:swap is missing\n"
        "    tool:a needs tool:b needs tool:a\n"
        "900 tokens (tools 600, skills 300) instead of 10,000: 91% saved"
    )


def test_a_mission_that_gets_nothing_says_so() -> None:
    nothing = {
        "needs": [ANSWER["needs"][2]],
        "tools": {"visible": [], "hidden": [], "order": []},
        "tokens": {"tools": 0, "skills": 0, "total": 0, "full_dump": 0, "saving": 0.0},
    }
    empty = ("skills", "skills_left_out", "conflicts", "missing", "unhealthy", "cycles", "phase_0")
    assert picture(nothing | {name: [] for name in empty}) == [
        "Needs",
        "  pay the salaries                 → MISSING",
        "Tools",
        "  none",
        "0 tokens (tools 0, skills 0) instead of 0: 0% saved",
    ]
