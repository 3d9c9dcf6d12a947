"""No agent makes the daemon hold more than its queues say, or end."""

import pytest
from tests.drills.drill import figures_of

MOST_MB = 400.0


@pytest.mark.parametrize("flood", ["names", "answers", "trees", "hangups"])
def test_a_flood_of_bytes_is_bounded_and_the_operator_is_answered(flood: str) -> None:
    figures = figures_of(
        "bytes", "--only", flood, "--connections", "8", "--seconds", "3", "--most", str(MOST_MB)
    )
    assert figures[f"{flood}_mb"] <= MOST_MB
