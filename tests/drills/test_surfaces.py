"""Every surface gives the same answer to the same question."""

from tests.drills.drill import figures_of


def test_no_surface_disagrees_with_another() -> None:
    figures = figures_of("surfaces", "--rounds", "1")
    assert figures["disagreements"] == 0
    assert figures["allowed"] > 0
    assert min(figures["surfaces"].values()) > 0
    asked = {"can": "commands", "mcp": "mcp_call", "http": "http", "plan": "plan"}
    assert set(asked.values()) <= figures["surfaces"].keys()
