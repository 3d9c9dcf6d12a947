"""Nothing that was acknowledged is lost when the daemon is killed."""

from tests.drills.drill import figures_of


def test_a_killed_daemon_keeps_its_word() -> None:
    figures = figures_of("kill", "--rounds", "3")
    assert figures["rounds"] == 3
    assert set(figures["under_way"]) == {"set", "spawn", "deny", "reload"}
    assert figures["spawns_without_answer"] > 0
