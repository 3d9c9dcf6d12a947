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
from remit.app.handlers import load_all_handlers
from remit.app.launching import forget_identity, launching
from remit.app.parts import make_services
from remit.app.reload import open_authority
from remit.app.secrets import first_keys
from remit.app.watch import watch_definitions
from remit.app.workbench import definition_files, definition_paths
from remit.config.home import Home, ipc_endpoint, prepare_home
from remit.config.lock import hold_lock
from remit.config.served import remember_served
from remit.config.settings import Settings
from remit.faces.zmq import Limits, serve
from remit.faces.zmq.peers import Peer
from remit.runtime.capability_reviews import approvals_in, load_decisions
from remit.runtime.dispatcher import Dispatcher
from remit.runtime.keyring import KeyRing
from remit.runtime.services import Services
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

    async def reload(self) -> None:
        """Read the definitions again; a bad edit changes nothing but the mark that says so."""
        try:
            await self.services.reloader.reload()
        except Exception:  # a reload that breaks must not end what is in force
            log.exception("reload_failed")


@asynccontextmanager
async def run_daemon(settings: Settings) -> AsyncGenerator[Daemon]:
    """Start every part in order, and stop them in the opposite order.

    Raises:
        HomeError: the state directory cannot be used, or another daemon runs there.
        DefinitionError: the definitions do not compile.
        SettingsError: the endpoint cannot be served.
    """
    home = Home(settings.home)
    for repair in prepare_home(home):
        log.warning("home_repaired", what=repair)
    with hold_lock(home):
        keys = first_keys(home)
        loaded = load_all_handlers(settings)
        for failure in loaded.failures:
            log.error("handlers_not_loaded", module=failure.module, problem=str(failure))
        specs = [handler.spec for handler in loaded.handlers.values()]
        async with SqliteStore(str(home.database)) as store:
            decisions = await load_decisions(store)
            authority, difference = await open_authority(
                specs,
                lambda: definition_files(settings),
                store,
                approvals=approvals_in(decisions),
            )
            keyring = KeyRing(keys.operator_public, authority.fleet)
            await keyring.load(store)
            services = make_services(
                authority,
                loaded.handlers,
                store,
                keyring,
                audit_sample=settings.audit_sample,
                audit_folder=home.audit,
                audit_keep=settings.audit_keep,
                approval_timeout=settings.approval_timeout,
                approval_wait=settings.approval_wait,
                decisions=decisions,
                state_value_limit=settings.state_value_limit,
            )
            await services.approvals.load()
            dispatcher = Dispatcher(services, loaded.handlers, timeout=settings.request_timeout)
            async with serve(
                dispatcher,
                keyring,
                endpoint=settings.endpoint or ipc_endpoint(home),
                server_key=keys.server_secret,
                limits=Limits(
                    in_flight=settings.max_in_flight, drain_seconds=settings.drain_timeout
                ),
            ) as face:
                keyring.on_revoke = partial(_end, home, services, face.evict)
                services.courier.post = face
                face.on_arrival = lambda peer: services.mailbox.arrived(peer.name)
                face.on_gone = partial(_forget, services)
                if difference is not None:
                    services.reloader.announce(difference)
                daemon = Daemon(services, dispatcher, {"zmq": face.endpoint})
                with _findable(home, settings, face.endpoint):
                    async with (
                        _watching(settings, daemon.reload),
                        services.auditor.rotating(),
                        services.mailbox.delivering(),
                        launching(settings, services, face.endpoint),
                    ):
                        yield daemon


@contextmanager
def _findable(home: Home, settings: Settings, endpoint: str) -> Generator[None]:
    """Write down where and what is served, for as long as it is."""
    remember_served(home, settings)
    home.endpoint.write_text(endpoint + "\n", encoding="utf-8")
    try:
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
    services.courier.bus.drop(peer)
    services.mailbox.gone(peer.name)


def _end(home: Home, services: Services, evict: Callable[[str], int], name: str) -> None:
    """What follows when somebody lost its key: no connection, no process, no key file."""
    log.info("principal_evicted", principal=name, connections=evict(name))
    if services.launcher is not None:
        services.launcher.end(name)
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
                await daemon.reload()


def leave() -> None:
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
        os._exit(0)
