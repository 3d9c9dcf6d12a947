"""The parts that every daemon has, whatever it stores in and listens on."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remit.features.agents.token_keeper import TokenKeeper
from remit.features.capabilities.service import MadeCapabilities
from remit.features.cards.chooser import CardChooser
from remit.features.cards.config import AwarenessConfig
from remit.features.cards.library import CardLibrary
from remit.features.cards.library_cache import CardShelf
from remit.features.cards.memory import AwarenessMemory
from remit.features.cards.reviews import CardReviews
from remit.features.cards.scorers import Scorers, load_scorers
from remit.features.cards.service import Awareness
from remit.features.discovery.answers import DiscoveryConfig
from remit.features.discovery.experience import Experience
from remit.features.discovery.service import Finder, Gathered
from remit.features.extensions.service import Extensions
from remit.features.messages.mailbox import Mailbox
from remit.features.reviews.approvals import Approvals
from remit.features.reviews.capabilities import CapabilityReviews
from remit.features.upstreams.reviews import ToolReviews
from remit.features.upstreams.server import UpstreamSources, no_servers
from remit.features.upstreams.service import Upstreams
from remit.kernel.audit.denials import WINDOW
from remit.kernel.audit.log import Auditor
from remit.kernel.audit.proof import Archive
from remit.kernel.authority.approvals import Decisions
from remit.kernel.authority.clock import ForwardClock
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority
from remit.kernel.authority.session_keeper import SessionKeeper
from remit.kernel.bus.delivery import Courier
from remit.kernel.dispatch.bills import Bills
from remit.kernel.dispatch.counters import Counters
from remit.kernel.dispatch.limits import DENIALS_PER_MINUTE, Meter
from remit.kernel.dispatch.loading import bring_in
from remit.kernel.dispatch.services import Services
from remit.kernel.dispatch.tool_names import CallerNames
from remit.kernel.reload.audit import ConfigAudit
from remit.kernel.reload.reload import Reloader
from remit.kernel.store.protocol import Store
from remit.kernel.store.records import FileLimits, StateQuota
from remit.model.paths import WebAccess
from remit.text.words import estimate_tokens

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine


def _default_engine() -> "Engine":
    from remit.app.search_engine import plain_engine  # noqa: PLC0415 - numpy: only where one searches

    return plain_engine()


class Search(msgspec.Struct, frozen=True):
    """How discovery is configured; the defaults keep nothing on disk and read no folder."""

    make_engine: Callable[[], "Engine"] = _default_engine
    gather: Callable[[], Gathered] = Gathered
    usual: DiscoveryConfig = DiscoveryConfig()
    learn: bool = True


def _no_cards() -> CardLibrary:
    return CardLibrary(())


class Cards(msgspec.Struct, frozen=True):
    """How awareness is configured; the defaults know no card."""

    make_library: Callable[[], CardLibrary] = _no_cards
    make_scorers: Callable[[], Scorers] = load_scorers
    count: Callable[[str], int] = estimate_tokens
    config: AwarenessConfig = AwarenessConfig()
    has_own: Callable[[], bool] = lambda: True
    """Whether there are folders of cards besides what is built in."""


def make_services(  # noqa: PLR0913 - one argument a part
    authority: Authority,
    store: Store,
    keyring: KeyRing,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
    audit_sample: float = 0.0,
    audit_folder: Path | None = None,
    audit_keep: int = 0,
    denial_window: float = WINDOW,
    denials_per_minute: int = DENIALS_PER_MINUTE,
    approval_timeout: float = 300.0,
    approval_wait: float = 20.0,
    decisions: Decisions | None = None,
    state_value_limit: int = 262_144,
    state_quota: StateQuota | None = None,
    web: WebAccess | None = None,
    file_limits: FileLimits | None = None,
    search: Search | None = None,
    extension_modules: Iterable[str] = (),
    cards: Cards | None = None,
    upstream_sources: UpstreamSources | None = None,
) -> Services:
    """Put the long-lived parts together."""
    lapsing_clock = ForwardClock(wall_clock, clock)
    courier = Courier(authority, wall_clock)
    auditor = Auditor(
        store,
        clock=wall_clock,
        show=courier.show,
        sample=audit_sample,
        archive=Archive(audit_folder) if audit_folder else None,
        keep=audit_keep,
        window=denial_window,
    )
    auditor.denials.is_scarce = lambda: store.is_full
    reloader = Reloader(authority, courier, store, ConfigAudit(auditor))
    search = search or Search()
    experience = Experience(wall_clock, enabled=search.learn)
    finder = _finder(search, authority, experience)
    card_reviews = CardReviews(store, clock=wall_clock)
    upstreams = Upstreams(
        authority,
        reloader,
        upstream_sources or no_servers(authority.current.table),
        tell=courier.publish,
        clock=wall_clock,
    )
    finder.on_folders = courier.all_lists_changed
    finder.unavailable = lambda: upstreams.router.unavailable
    return Services(
        upstreams=upstreams,
        names=CallerNames(store),
        bills=Bills(store, wall_clock),
        tool_reviews=ToolReviews(upstreams, auditor, clock=wall_clock),
        finder=finder,
        card_reviews=card_reviews,
        awareness=_awareness(
            cards or Cards(), card_reviews, store, auditor, courier, clock=lapsing_clock
        ),
        extensions=Extensions(
            authority, reloader, finder, store, bring_in=bring_in, allowed=extension_modules
        ),
        experience=experience,
        made=MadeCapabilities(store, authority, reloader, wall_clock),
        authority=authority,
        store=store,
        keyring=keyring,
        courier=courier,
        mailbox=Mailbox(store, courier, authority, wall_clock=lapsing_clock),
        reloader=reloader,
        auditor=auditor,
        approvals=Approvals(
            store,
            auditor,
            authority.fleet,
            courier.show_holders,
            clock=lapsing_clock,
            timeout=approval_timeout,
            wait=approval_wait,
        ),
        reviews=CapabilityReviews(
            store, authority, courier, reloader, decisions or {}, clock=wall_clock
        ),
        tokens=TokenKeeper(store, keyring),
        sessions=SessionKeeper(store, authority.fleet, wall_clock),
        meter=Meter(clock, denials_per_minute=denials_per_minute),
        counters=Counters(started_at=clock()),
        clock=clock,
        wall_clock=wall_clock,
        state_value_limit=state_value_limit,
        state_quota=state_quota or StateQuota(),
        web=web or WebAccess(),
        file_limits=file_limits or FileLimits(),
    )


def _finder(search: Search, authority: Authority, experience: Experience) -> Finder:
    return Finder(
        authority,
        make_engine=search.make_engine,
        gather=search.gather,
        experience=experience,
        usual=search.usual,
    )


def _awareness(
    cards: Cards,
    reviews: CardReviews,
    store: Store,
    auditor: Auditor,
    courier: Courier,
    *,
    clock: Callable[[], float],
) -> Awareness:
    shelf = CardShelf(cards.make_library, reviews, cards.has_own)
    chooser = CardChooser(
        cards.config, shelf, clock=clock, make_scorers=cards.make_scorers, count=cards.count
    )
    memory = AwarenessMemory(store, cards.config.mode)
    return Awareness(
        cards.config, shelf, chooser, memory, auditor, tell=courier.publish, clock=clock
    )
