"""Opens the kernel of a daemon with its features: all that is read before the first client."""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from remit.app.features import FEATURES, served
from remit.app.workbench import definition_files
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.kernel.audit.denials import WINDOW
from remit.kernel.audit.log import AuditLog
from remit.kernel.audit.proof import Archive
from remit.kernel.audit.store import AuditRows
from remit.kernel.authority.keyring import ForwardClock, KeyRing
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.authority.session_manager import SessionManager
from remit.kernel.authority.store import PrincipalRows
from remit.kernel.bus.delivery import Delivery
from remit.kernel.dispatch.bills import BillRows, Bills
from remit.kernel.dispatch.context import Kernel
from remit.kernel.dispatch.counters import Counters
from remit.kernel.dispatch.limits import DENIALS_PER_MINUTE, RateLimiter
from remit.kernel.dispatch.tool_names import CallerNames, NameRows, OldNames
from remit.kernel.feature import Feature, Setup, Startup
from remit.kernel.reload.full_reload import Outcome
from remit.kernel.reload.last_good import open_authority, recall, with_agents
from remit.kernel.reload.reload import ConfigAudit, Reloader
from remit.kernel.store.database import Database
from remit.kernel.store.rows import BlobRows


async def open_kernel(
    settings: Settings,
    database: Database,
    table: HandlerTable,
    operator_key: str,
    features: Iterable[Feature] = FEATURES,
) -> tuple[Kernel, Outcome | None]:
    """The kernel of a daemon, and how its definitions differ from those of its last run.

    Args:
        settings: how it is configured.
        database: what outlived the last run.
        table: the handlers that are there whatever that was.
        operator_key: the public key of the operator.
        features: those that are served.

    Raises:
        DefinitionError: the definitions do not compile.
    """
    setups = load_setups(features)
    startup = Startup(settings, database, table)
    for setup in setups:
        if setup.restore is not None:
            await setup.restore(startup)
    blobs = BlobRows(database)
    kept = await recall(blobs)
    authority, difference = await open_authority(
        startup.table,
        lambda: definition_files(settings),
        blobs,
        approvals=startup.approvals,
        made=startup.capabilities,
        kept=kept,
    )
    keyring = KeyRing(operator_key, authority.fleet, PrincipalRows(database))
    await keyring.load()
    if difference is not None:
        difference = with_agents(difference, kept, authority)
    kernel = make_kernel(
        authority,
        database,
        keyring,
        audit_sample=settings.audit_sample,
        audit_folder=Home(settings.home).audit,
        audit_keep=settings.audit_keep,
        denial_window=settings.denial_window,
        denials_per_minute=settings.denials_per_minute,
    )
    build_services(kernel, startup, setups)
    for setup in setups:
        if setup.load is not None:
            await setup.load(kernel)
    return kernel, difference


def load_setups(features: Iterable[Feature] = FEATURES) -> tuple[Setup, ...]:
    """Import what opens the services of features."""
    found = (feature.load_setup() for feature in served(features))
    return tuple(setup for setup in found if setup is not None)


def make_kernel(  # noqa: PLR0913 - one argument a part
    authority: Authority,
    database: Database,
    keyring: KeyRing,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
    audit_sample: float = 0.0,
    audit_folder: Path | None = None,
    audit_keep: int = 0,
    denial_window: float = WINDOW,
    denials_per_minute: int = DENIALS_PER_MINUTE,
) -> Kernel:
    """Put the parts together that every daemon has."""
    delivery = Delivery(authority, wall_clock)
    audit_log = AuditLog(
        AuditRows(database),
        clock=wall_clock,
        show=delivery.show,
        sample=audit_sample,
        archive=Archive(audit_folder) if audit_folder else None,
        keep=audit_keep,
        window=denial_window,
    )
    audit_log.denials.is_scarce = lambda: database.is_full
    return Kernel(
        authority=authority,
        database=database,
        keyring=keyring,
        delivery=delivery,
        reloader=Reloader(authority, delivery, BlobRows(database), ConfigAudit(audit_log)),
        audit_log=audit_log,
        sessions=SessionManager(PrincipalRows(database), authority.fleet, wall_clock),
        names=CallerNames(NameRows(database)),
        old_names=OldNames(),
        bills=Bills(BillRows(database), wall_clock),
        rate_limiter=RateLimiter(clock, denials_per_minute=denials_per_minute),
        counters=Counters(started_at=clock()),
        clock=clock,
        wall_clock=wall_clock,
        lapsing_clock=ForwardClock(wall_clock, clock),
    )


def build_services(
    kernel: Kernel, startup: Startup, setups: Sequence[Setup] | None = None
) -> Kernel:
    """Let features hand their services to a kernel; no input or output."""
    for setup in load_setups() if setups is None else setups:
        if setup.build is not None:
            setup.build(kernel, startup)
    return kernel


@asynccontextmanager
async def features_running(
    kernel: Kernel, settings: Settings, features: Iterable[Feature] = FEATURES
) -> AsyncGenerator[None]:
    """Keep what features do beside the faces going, for as long as this is open."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(kernel.audit_log.rotating())
        await stack.enter_async_context(kernel.bills.keeping())
        for setup in load_setups(features):
            if setup.run is not None:
                await stack.enter_async_context(setup.run(kernel, settings))
        yield
