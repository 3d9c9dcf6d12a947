"""Whoever is revoked or narrowed under load gets nothing more from that moment on."""

from tests.drills.drill import figures_of


def test_nothing_is_allowed_after_a_revocation_and_nothing_wider_after_a_narrowing() -> None:
    figures = figures_of("revoke", "--rounds", "6")
    assert (figures["revoked"], figures["narrowed"]) == (4, 2)
    assert (figures["allowed_late"], figures["begun_when_gone"], figures["came_back"]) == (0, 0, 0)
    assert figures["asked"] == 4 * 200
    assert figures["cut_off"] > 0
    assert figures["hops"] > 0
    assert figures["outcomes"]["reconnect_unauthorised"] == 4
