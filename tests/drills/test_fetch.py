"""A hundred hostile URLs and servers: nothing at home is reached, and nobody else has to wait."""

from tests.drills.drill import figures_of


def test_a_hostile_web_harms_nobody() -> None:
    figures = figures_of("fetch", "--lasting", "0")
    assert figures["cases"] >= 100
    assert figures["canary_connections"] == 0
    assert figures["refused"] + figures["answered"] + figures["failed"] == figures["cases"]
