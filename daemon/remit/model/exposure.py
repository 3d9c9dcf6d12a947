"""How many of its tools the host of an agent is shown before anybody looked for one."""

from typing import Literal

import msgspec

from remit.model.place import Place

Exposure = Literal["all", "discovered", "turn"]
EXPOSURES: tuple[Exposure, ...] = ("discovered", "turn", "all")
"""From few tools to many. `discovered`: the pinned ones, and what it takes to search. `turn`: those
as well, and the few that fit the last search. `all`: every tool."""


SEARCH = "discovery:discover"
"""The event by which the others are found; without it everything is listed, whatever is said."""


class PlacedExposure(msgspec.Struct, frozen=True):
    """What a profile says about it, and where."""

    mode: Exposure
    place: Place
