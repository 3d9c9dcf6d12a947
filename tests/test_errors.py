"""Problems as people see them: a place, a message, the line with a caret, a hint."""

from remit.errors import DefinitionError, Place, Problem, by_place

PROBLEM = Problem(
    Place("a.yaml", 2, 5), "typo", "no such word", "write 'b'", source="  - c", width=1
)


def test_a_problem_reads_place_message_code_line_caret_and_hint() -> None:
    assert str(PROBLEM).split("\n") == [
        "a.yaml:2:5: no such word [typo]",
        "      - c",
        "        ^",
        "    hint: write 'b'",
    ]


def test_without_line_and_hint_one_row_is_enough() -> None:
    assert str(Problem(Place("a.yaml"), "empty", "nothing")) == "a.yaml:1:1: nothing [empty]"


def test_programs_read_the_same_without_the_line() -> None:
    assert PROBLEM.to_json() == {
        "file": "a.yaml",
        "line": 2,
        "column": 5,
        "code": "typo",
        "message": "no such word",
        "hint": "write 'b'",
    }


def test_a_very_long_line_is_cut_around_the_caret() -> None:
    long = Problem(Place("a", 1, 5001), "x", "y", source="a" * 5000 + "bb" + "c" * 5000, width=2)
    _, shown, carets = str(long).split("\n")
    assert len(shown) < 130
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "bb"


def test_a_very_long_token_does_not_flood_the_screen() -> None:
    long = Problem(Place("a", 1, 1), "x", "y", source="a" * 60_000, width=60_000)
    assert len(str(long)) < 400


def test_a_line_never_sends_commands_to_the_terminal() -> None:
    nasty = Problem(Place("a", 1, 1), "x", "y", source="\x1b[2J\t\u202eabc")
    assert all(char.isprintable() or char == "\n" for char in str(nasty))
    assert "abc" in str(nasty)


def test_problems_are_ordered_by_file_line_and_column() -> None:
    places = [Place("b"), Place("a", 10), Place("a", 2, 9), Place("a", 2, 3)]
    problems = sorted((Problem(place, "x", "y") for place in places), key=by_place)
    assert [str(p.place) for p in problems] == ["a:2:3", "a:2:9", "a:10:1", "b:1:1"]


def test_a_warning_is_no_error() -> None:
    assert PROBLEM.is_error
    assert not Problem(Place("a"), "x", "y", severity="warning").is_error


def test_the_error_tells_the_first_problem_and_carries_all() -> None:
    error = DefinitionError([PROBLEM, PROBLEM, PROBLEM])
    assert error.message == "a.yaml:2:5: no such word (and 2 more)"
    assert error.hint == "write 'b'"
    assert len(error.problems) == len(error.details["problems"]) == 3
    assert DefinitionError([PROBLEM]).message == "a.yaml:2:5: no such word"
