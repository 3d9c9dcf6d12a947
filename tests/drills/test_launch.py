"""Whoever may spawn gets nothing run but what the operator listed."""

from tests.drills.drill import figures_of


def test_no_request_makes_a_listed_program_run_something_else() -> None:
    figures = figures_of("launch", "--every", "7")
    assert figures["attempts"] > 400  # fewer where Node is not installed
    assert (figures["successes"], figures["exit_code"]) == (0, 0)
    assert figures["launched_harmlessly"] > 0
    assert figures["refused"].keys() <= {"invalid_data", "denied", "unavailable"}
