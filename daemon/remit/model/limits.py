"""What a holder may use up. Between several sources the smallest wins."""

from typing import Self

import msgspec


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Upper bounds; an absent one does not limit."""

    max_children: int | None = None
    max_depth: int | None = None
    max_calls_per_minute: int | None = None
    max_concurrent: int | None = None
    max_tokens_per_turn: int | None = None

    def smallest(self, other: "Limits") -> Self:
        """Combine two sources of limits."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return type(self)(*(_smaller(one, two) for one, two in pairs))

    @property
    def are_metered(self) -> bool:
        """Tell whether calls have to be counted."""
        return self.max_calls_per_minute is not None or self.max_concurrent is not None

    def to_json(self) -> dict[str, int]:
        """Only the limits that are set, in a stated order."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in pairs if value is not None}


def _smaller(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


NO_LIMITS = Limits()
LIMIT_NAMES: tuple[str, ...] = Limits.__struct_fields__
