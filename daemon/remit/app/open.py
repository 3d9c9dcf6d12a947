"""What is read before the first client is served: all that outlives a run, and the definitions."""

import structlog

from remit.app.assemble import make_services
from remit.app.cards import configured_cards
from remit.app.discovery import configured_search
from remit.app.upstreams import configured_servers
from remit.app.workbench import definition_files
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.features.capabilities.service import load_made
from remit.features.extensions.memory import restore
from remit.features.reviews.capabilities import load_decisions
from remit.kernel.authority.approvals import approvals_in
from remit.kernel.authority.handlers import HandlerTable
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.dispatch.loading import bring_in
from remit.kernel.dispatch.services import Services
from remit.kernel.reload.last_good import recall
from remit.kernel.reload.reload import Outcome
from remit.kernel.reload.start import open_authority, with_agents
from remit.kernel.store.protocol import Store
from remit.kernel.store.records import FileLimits, StateQuota
from remit.model.paths import HostRules, WebAccess

log = structlog.get_logger()


async def open_services(
    settings: Settings, store: Store, table: HandlerTable, operator_key: str
) -> tuple[Services, Outcome | None]:
    """The services of a daemon, and how its definitions differ from those of its last run.

    Args:
        settings: how they are configured.
        store: what outlived the last run.
        table: the handlers that are there whatever that was.
        operator_key: the public key of the operator.

    Raises:
        DefinitionError: the definitions do not compile.
    """
    decisions = await load_decisions(store)
    search = configured_search(settings)
    restored = await restore(store, table, search.gather, settings.extension_modules, bring_in)
    upstream_sources = await configured_servers(settings, restored.table)
    kept = await recall(store)
    authority, difference = await open_authority(
        upstream_sources.restored.table,
        lambda: definition_files(settings),
        store,
        approvals=approvals_in(decisions),
        made=await load_made(store),
        kept=kept,
    )
    keyring = KeyRing(operator_key, authority.fleet)
    await keyring.load(store)
    if difference is not None:
        difference = with_agents(difference, kept, authority)
    services = make_services(
        authority,
        store,
        keyring,
        audit_sample=settings.audit_sample,
        audit_folder=Home(settings.home).audit,
        audit_keep=settings.audit_keep,
        denial_window=settings.denial_window,
        denials_per_minute=settings.denials_per_minute,
        approval_timeout=settings.approval_timeout,
        approval_wait=settings.approval_wait,
        decisions=decisions,
        state_value_limit=settings.state_value_limit,
        state_quota=StateQuota(settings.state_count_limit, settings.state_total_limit),
        web=_web_access(settings),
        file_limits=_file_limits(settings),
        search=search,
        extension_modules=settings.extension_modules,
        cards=configured_cards(settings),
        upstream_sources=upstream_sources,
    )
    services.extensions.begin(restored)
    await services.approvals.load()
    await services.tokens.load()
    return services, difference


def _web_access(settings: Settings) -> WebAccess:
    hosts = HostRules(settings.web_fetch_allow_hosts or None, settings.web_fetch_deny_hosts)
    if settings.web_fetch_private:
        log.warning("web_fetch_private", danger="agents can reach this host and its networks")
    return WebAccess(hosts, private=settings.web_fetch_private)


def _file_limits(settings: Settings) -> FileLimits:
    return FileLimits(
        size=settings.file_size_limit,
        count=settings.file_count_limit,
        total=settings.file_total_limit,
    )
