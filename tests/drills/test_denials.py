"""A flood of denials costs the audit few rows, and loses none of its counts."""

from tests.drills.drill import figures_of


def test_a_flood_of_denials_is_counted_and_does_not_fill_the_audit() -> None:
    figures = figures_of("denials", "--seconds", "1")
    assert (figures["same_denied"], figures["names_denied"]) == (10, 10)
    assert min(figures["same_limit_exceeded"], figures["names_limit_exceeded"]) > 1000
    assert figures["same_rows_s"] < 15
