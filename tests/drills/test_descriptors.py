"""Who takes all connections takes none from the operator, and the daemon lives."""

from tests.drills.drill import figures_of


def test_floods_leave_descriptors_and_a_place_for_the_operator() -> None:
    figures = figures_of("descriptors", "--seconds", "2", "--many", "1000")
    assert figures["asked"] == figures["answered"] > 0
    assert figures["old_agent_answered"] > 0
    assert figures["half_open"] > 1000
    assert all(most < int(limit) for limit, most in figures["most_descriptors"].items())
