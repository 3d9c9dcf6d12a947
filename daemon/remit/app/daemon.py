"""The daemon: every part put together, from the first key to the last answer."""

import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import anyio
import structlog

from remit import __version__
from remit.app.awaring import awaring
from remit.app.descriptors import Shares, share_descriptors
from remit.app.discovering import discovering
from remit.app.handlers import load_all_handlers
from remit.app.launching import forget_identity, launching
from remit.app.opening import open_services
from remit.app.secrets import first_keys
from remit.app.upstreaming import upstreaming
from remit.app.watch import watch_definitions
from remit.app.web import web
from remit.app.workbench import definition_paths
from remit.config.home import Home, ipc_endpoint, is_socket_path, prepare_home
from remit.config.launch_user import launch_user
from remit.config.lock import hold_lock
from remit.config.served import remember_extensions, remember_served
from remit.config.settings_table import Settings
from remit.errors import HomeError, StoreError
from remit.faces.zmq import Face, Limits, serve
from remit.faces.zmq.peers import Peer
from remit.model.cause import Cause
from remit.runtime.dispatcher import Dispatcher
from remit.runtime.full_reload import reload_everything
from remit.runtime.handler import Handler
from remit.runtime.services import Services
from remit.runtime.table import HandlerTable
from remit.store.audit_head import HeadFile, HeadKeeper
from remit.store.reserve import Reserve
from remit.store.sqlite import SqliteStore

log = structlog.get_logger()

_THREAD_SECONDS = 0.1


class Daemon:
    """A running daemon."""

    def __init__(
        self, services: Services, dispatcher: Dispatcher, endpoints: dict[str, str]
    ) -> None:
        self.services = services
        self.dispatcher = dispatcher
        self.endpoints = endpoints

    def ready(self, home: Home) -> dict[str, Any]:
        """What the ready line says."""
        catalogue = self.services.authority.catalogue
        return {
            "ready": True,
            "version": __version__,
            "endpoints": self.endpoints,
            "home": str(home.path),
            "revision": catalogue.revision,
            "profiles": len(catalogue.compositions),
            "events": len(catalogue.universe.names),
        }

    async def reload(self, cause: Cause) -> None:
        """Read the definitions again; a bad edit changes nothing but the mark that says so."""
        for failure in (await reload_everything(self.services, cause)).failures:
            if isinstance(failure, StoreError):  # no traceback: the message says it all
                hint = "then: remit reload"
                log.error("reload_failed", problem=failure.message, hint=hint)
            else:  # a reload that breaks must not end what is in force
                log.error("reload_failed", exc_info=failure)


@asynccontextmanager
async def run_daemon(settings: Settings) -> AsyncGenerator[Daemon]:
    """Start every part in order, and stop them in the opposite order.

    Raises:
        HomeError: the state directory cannot be used, or another daemon runs there.
        DefinitionError: the definitions do not compile.
        SettingsError: the endpoint cannot be served.
    """
    launch_user(settings)  # one that cannot be is refused before anything is opened
    home = Home(settings.home)
    for repair in prepare_home(home):
        log.warning("home_repaired", what=repair)
    with hold_lock(home):
        keys = first_keys(home)
        table = HandlerTable(_handlers(settings))
        reserve = Reserve(home.reserve, settings.disk_reserve)
        head = HeadKeeper(HeadFile(home.audit_head, keys.server_secret))
        async with SqliteStore(str(home.database), reserve=reserve, head=head) as store:
            await _look_at_audit(store)
            services, difference = await open_services(settings, store, table, keys.operator_public)
            dispatcher = Dispatcher(services, timeout=settings.request_timeout)
            shares = share_descriptors(settings)
            async with (
                services.auditor.denials.flushing(),  # ends last: what is counted is written
                serve(
                    dispatcher,
                    services.keyring,
                    endpoint=settings.endpoint or ipc_endpoint(home),
                    server_key=keys.server_secret,
                    door_of_operators=_door_of_operators(home),
                    limits=_limits(settings, shares),
                ) as face,
            ):
                _connect(home, services, face)
                await services.reloader.begin(difference)
                daemon = Daemon(services, dispatcher, {"zmq": face.endpoint})
                with _findable(home, settings, services, face.endpoint):
                    async with _beside(settings, daemon, face.endpoint, shares.http):
                        yield daemon


async def _look_at_audit(store: SqliteStore) -> None:
    head = await store.audit_head()
    if head is not None and head.problem:
        log.error("audit_broken", problem=head.problem, hint="remit audit verify")


def _limits(settings: Settings, shares: Shares) -> Limits:
    """What clients of the socket may cost."""
    return Limits(
        in_flight=settings.max_in_flight,
        drain_seconds=settings.drain_timeout,
        connections=shares.clients,
        connections_per_key=shares.per_key,
        operators=shares.operators,
        silent=shares.silent,
        silent_operators=shares.silent_operators,
    )


def _door_of_operators(home: Home) -> str:
    """The socket beside the first one; nothing where its path would be too long."""
    return f"ipc://{home.door_of_operators}" if is_socket_path(home.door_of_operators) else ""


def _handlers(settings: Settings) -> dict[str, Handler]:
    loaded = load_all_handlers(settings)
    for failure in loaded.failures:
        log.error("handlers_not_loaded", module=failure.module, problem=str(failure))
    return loaded.handlers


def _connect(home: Home, services: Services, face: Face) -> None:
    """Tell services of connections, and the socket of what they have to say."""
    services.keyring.on_revoke = partial(_end, home, services, face.evict)
    services.courier.post = face
    services.traffic = face.stats
    services.load = face.load
    face.on_arrival = lambda peer: services.mailbox.arrived(peer.name)
    face.on_gone = partial(_forget, services)


@asynccontextmanager
async def _beside(
    settings: Settings, daemon: Daemon, endpoint: str, http_connections: int
) -> AsyncGenerator[None]:
    """Everything that goes on beside the socket, for as long as this is open."""
    services = daemon.services
    async with (
        web(
            settings,
            services,
            daemon.dispatcher,
            daemon.endpoints,
            connections=http_connections,
        ),
        _watching(settings, partial(daemon.reload, Cause("files_edited"))),
        services.auditor.rotating(),
        services.approvals.lapsing(),
        services.mailbox.delivering(),
        services.bills.keeping(),
        launching(settings, services, endpoint),
        discovering(settings, services),
        awaring(settings, services),
        upstreaming(settings, services),
    ):
        yield


@contextmanager
def _findable(home: Home, settings: Settings, services: Services, endpoint: str) -> Generator[None]:
    """Write down where and what is served, for as long as it is."""
    extensions = services.extensions

    def changed(modules: list[str]) -> None:
        try:
            remember_extensions(home, settings, modules)
        # Commands beside the daemon know less then; it is served all the same.
        except HomeError as error:
            log.warning("served_not_written", problem=error.message)

    try:
        remember_served(home, settings, endpoint, extensions.loaded.values())
        extensions.on_change = changed
        yield
    finally:
        home.endpoint.unlink(missing_ok=True)
        home.served.unlink(missing_ok=True)


@asynccontextmanager
async def _watching(
    settings: Settings, reload: Callable[[], Awaitable[None]]
) -> AsyncGenerator[None]:
    """Put edits in force by themselves, if that is wanted."""
    async with anyio.create_task_group() as tasks:
        if settings.watch:
            tasks.start_soon(
                partial(
                    watch_definitions,
                    *definition_paths(settings),
                    reload,
                    debounce_ms=settings.watch_debounce_ms,
                )
            )
        yield
        tasks.cancel_scope.cancel()


def _forget(services: Services, peer: Peer) -> None:
    services.courier.drop(peer)
    services.mailbox.gone(peer.name)


def _end(home: Home, services: Services, evict: Callable[[str], int], name: str) -> None:
    """What follows when somebody lost its key: no connection, no process, no key file."""
    log.info("principal_evicted", principal=name, connections=evict(name))
    if services.launcher is not None:
        services.launcher.end(name)
    services.bills.ended(name)
    forget_identity(home, name)


async def serve_until_stopped(
    settings: Settings, announce: Callable[[dict[str, Any]], None]
) -> None:
    """Run until SIGTERM or SIGINT; SIGHUP reloads."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with run_daemon(settings) as daemon:
            announce(daemon.ready(Home(settings.home)))
            async for received in signals:
                if received != signal.SIGHUP:
                    log.info("stopping", signal=signal.Signals(received).name)
                    break
                await daemon.reload(Cause("signal"))


def leave(code: int = 0) -> None:
    """End the process when everything is closed but a handler still blocks its thread.

    Nothing can stop such a thread, and the interpreter would wait for it.
    """
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    for thread in others:
        thread.join(_THREAD_SECONDS)
    deaf = sum(thread.is_alive() for thread in others)
    if deaf:
        log.warning("handlers_abandoned", threads=deaf)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
