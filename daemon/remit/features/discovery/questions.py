"""Questions to discovery: what they leave out, and the budgets of their answers."""

from typing import Annotated, Any

import msgspec

from remit.errors import InvalidDataError
from remit.features.discovery.graph import BOOST
from remit.model.descriptor import DescriptorKind
from remit.model.grant import Grant

Tokens = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=50)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

_BUDGETS = {
    "map_tokens": "map",
    "summary_tokens": "summary",
    "detail_tokens": "detail",
    "total_tokens": "total",
    "top_k": "top_k",
    "top_n": "top_n",
}


class DiscoveryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one question changes of what is usual; None: nothing."""

    map_tokens: Tokens | None = None
    summary_tokens: Tokens | None = None
    detail_tokens: Tokens | None = None
    total_tokens: Tokens | None = None
    top_k: Count | None = None
    top_n: Count | None = None
    min_relevance: Share | None = None
    graph_boost_factor: Share | None = None
    use_graph: bool | None = None


class Filters(msgspec.Struct, frozen=True):
    """What a question leaves out."""

    kind: DescriptorKind | None = None
    category: str | None = None
    only_available: bool = False


MAX_TOKENS = 100_000
MAX_HITS = 100
MIN_RELEVANCE = 0.3

BudgetTokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]
Hits = Annotated[int, msgspec.Meta(ge=0, le=MAX_HITS)]


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ceilings in tokens, and how many hits are shown."""

    map: BudgetTokens = 200
    summary: BudgetTokens = 800
    detail: BudgetTokens = 2_000
    total: BudgetTokens = 1_850
    """For the three together, and for the text that is rendered from them."""
    top_k: Hits = 5
    top_n: Hits = 2

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            most = MAX_HITS if name.startswith("top_") else MAX_TOKENS
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value <= most:
                raise InvalidDataError(
                    f"the budget {name} is {value!r}",
                    hint=f"choose a number from 0 to {most}",
                    details={"path": name},
                )


class Options(msgspec.Struct, frozen=True):
    """What one question may narrow or widen."""

    kind: DescriptorKind | None = None
    category: str | None = None
    only_available: bool = False
    budgets: Budgets = Budgets()
    min_relevance: float = MIN_RELEVANCE
    use_graph: bool = True
    graph_boost_factor: float = BOOST


def options_of(
    usual: DiscoveryConfig, config: DiscoveryConfig | None, grant: Grant, filters: Filters
) -> Options:
    """The options of one question; no wish goes beyond the limit of the grant."""
    wished = _given(usual) | _given(config)
    limits = {_BUDGETS[name]: wished.pop(name) for name in _BUDGETS.keys() & wished.keys()}
    budgets = Budgets(**limits)
    ceiling = grant.limits.max_tokens_per_turn
    if ceiling is not None and ceiling < budgets.total:
        budgets = msgspec.structs.replace(budgets, total=ceiling)
    return Options(
        filters.kind, filters.category, filters.only_available, budgets=budgets, **wished
    )


def _given(config: DiscoveryConfig | None) -> dict[str, Any]:
    found = msgspec.structs.asdict(config) if config is not None else {}
    return {name: value for name, value in found.items() if value is not None}
