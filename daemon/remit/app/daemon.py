"""The daemon: every part put together, from the first key to the last answer."""

import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog

from remit import __version__
from remit.app.features import FEATURES, load_all_handlers
from remit.app.kernel import features_running, open_kernel
from remit.app.workbench import definition_paths
from remit.config.settings.home import Home, ipc_endpoint, is_socket_path, prepare_home
from remit.config.settings.launch_user import launch_user
from remit.config.settings.lock import hold_lock, remember_extensions, remember_served
from remit.config.settings.table import Settings
from remit.errors import HomeError, SettingsError, StoreError
from remit.faces.zmq.face import SocketFace, serve
from remit.faces.zmq.limits import SocketLimits
from remit.faces.zmq.peers import Peer
from remit.features.extensions.service import Extensions
from remit.kernel.audit.head import HeadFile, HeadTracker
from remit.kernel.audit.store import AuditRows
from remit.kernel.authority.revision import HandlerTable
from remit.kernel.dispatch.context import Kernel
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.handler import Handler
from remit.kernel.feature import Feature
from remit.kernel.reload.full_reload import reload_everything
from remit.kernel.reload.watch import watch_definitions
from remit.kernel.store.database import Database
from remit.kernel.store.disk import Reserve
from remit.model.principal import OPERATOR_ID, Cause
from remit_client.errors import BadKey
from remit_client.keys import Key, load_key, new_key, save_key

log = structlog.get_logger()

_THREAD_SECONDS = 0.1
_LATER = 16
"""What is opened after the sharing: libzmq's own, listening sockets, watchers."""
_OWN = 12
"""What stays free for files, processes and links of our own."""
_LEAST = 16
"""Connections without which nobody could work."""


class Daemon:
    """A running daemon."""

    def __init__(self, kernel: Kernel, dispatcher: Dispatcher, endpoints: dict[str, str]) -> None:
        self.kernel = kernel
        self.dispatcher = dispatcher
        self.endpoints = endpoints

    def ready(self, home: Home) -> dict[str, Any]:
        """What the ready line says."""
        catalogue = self.kernel.authority.catalogue
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
        kernel = self.kernel
        done = await reload_everything(kernel.reloader.reload, kernel.reload_parts, cause)
        for failure in done.failures:
            if isinstance(failure, StoreError):  # no traceback: the message says it all
                hint = "then: remit reload"
                log.error("reload_failed", problem=failure.message, hint=hint)
            else:  # a reload that breaks must not end what is in force
                log.error("reload_failed", exc_info=failure)


@asynccontextmanager
async def run_daemon(
    settings: Settings, features: Iterable[Feature] = FEATURES
) -> AsyncGenerator[Daemon]:
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
        features = tuple(features)
        table = HandlerTable(_handlers(settings, features))
        reserve = Reserve(home.reserve, settings.disk_reserve)
        database = Database(str(home.database), reserve=reserve)
        head = HeadTracker(HeadFile(home.audit_head, keys.server_secret))
        audit = AuditRows(database, head=head)
        async with database:
            await _look_at_audit(audit)
            kernel, difference = await open_kernel(
                settings, database, table, keys.operator_public, features
            )
            dispatcher = Dispatcher(kernel, timeout=settings.request_timeout)
            shares = share_descriptors(settings)
            async with (
                kernel.audit_log.denials.flushing(),  # ends last: what is counted is written
                serve(
                    dispatcher,
                    kernel.keyring,
                    endpoint=settings.endpoint or ipc_endpoint(home),
                    server_key=keys.server_secret,
                    door_of_operators=_door_of_operators(home),
                    limits=_limits(settings, shares),
                ) as face,
            ):
                _connect(kernel, face)
                await kernel.reloader.begin(difference)
                daemon = Daemon(kernel, dispatcher, {"zmq": face.endpoint})
                with _findable(home, settings, kernel):
                    async with _beside(settings, daemon, features, shares.http):
                        yield daemon


async def _look_at_audit(audit: AuditRows) -> None:
    head = await audit.audit_head()
    if head is not None and head.problem:
        log.error("audit_broken", problem=head.problem, hint="remit audit verify")


def _limits(settings: Settings, shares: "Shares") -> SocketLimits:
    """What clients of the socket may cost."""
    return SocketLimits(
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


def _handlers(settings: Settings, features: tuple[Feature, ...]) -> dict[str, Handler]:
    loaded = load_all_handlers(settings, features)
    for failure in loaded.failures:
        log.error("handlers_not_loaded", module=failure.module, problem=str(failure))
    return loaded.handlers


def _connect(kernel: Kernel, face: SocketFace) -> None:
    """Tell the kernel of connections, and the socket of what it has to say."""
    kernel.keyring.on_revoke = partial(_end, kernel, face.evict)
    kernel.delivery.post = face
    kernel.traffic = face.stats
    kernel.load = face.load
    kernel.endpoint = face.endpoint
    face.on_arrival = lambda peer: kernel.arrived(peer.name)
    face.on_gone = partial(_forget, kernel)


@asynccontextmanager
async def _beside(
    settings: Settings, daemon: Daemon, features: tuple[Feature, ...], http_connections: int
) -> AsyncGenerator[None]:
    """Everything that goes on beside the socket, for as long as this is open."""
    kernel = daemon.kernel
    async with (
        _http(settings, daemon, http_connections),
        _watching(settings, partial(daemon.reload, Cause("files_edited"))),
        features_running(kernel, settings, features),
    ):
        yield


@asynccontextmanager
async def _http(settings: Settings, daemon: Daemon, connections: int) -> AsyncGenerator[None]:
    """Serve HTTP too, if that is wanted."""
    if not settings.http:
        yield
        return
    from remit.app.http import serve_http  # noqa: PLC0415 - uvicorn and Starlette: only when it is on

    serving = serve_http(settings, daemon.kernel, daemon.dispatcher, connections=connections)
    async with serving as endpoints:
        daemon.endpoints |= endpoints
        yield


@contextmanager
def _findable(home: Home, settings: Settings, kernel: Kernel) -> Generator[None]:
    """Write down where and what is served, for as long as it is."""
    extensions = kernel.find(Extensions)

    def changed(modules: list[str]) -> None:
        try:
            remember_extensions(home, settings, modules)
        # Commands beside the daemon know less then; it is served all the same.
        except HomeError as error:
            log.warning("served_not_written", problem=error.message)

    try:
        loaded = extensions.loaded.values() if extensions is not None else ()
        remember_served(home, settings, kernel.endpoint, loaded)
        if extensions is not None:
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


def _forget(kernel: Kernel, peer: Peer) -> None:
    kernel.delivery.drop(peer)
    kernel.departed(peer.name)


def _end(kernel: Kernel, evict: Callable[[str], int], name: str) -> None:
    """What follows when somebody lost its key: no connection, no process, no key file."""
    log.info("principal_evicted", principal=name, connections=evict(name))
    kernel.ended(name)


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


class Keys(msgspec.Struct, frozen=True):
    """The keys of a daemon: its own pair, and the public half of the operator's."""

    server_secret: str
    server_public: str
    operator_public: str


def first_keys(home: Home) -> Keys:
    """The keys of this home; missing ones are made, so the first start just works.

    Raises:
        HomeError: a key cannot be read or written, or the public key beside the server's is
            another one's.
    """
    server = _key(home.server_key, "server")
    public = home.server_public_key
    if not public.exists():
        _write(public, server.public_key + "\n")
    if public.read_text(encoding="ascii").strip() != server.public_key:
        raise HomeError(
            f"{public} does not belong to {home.server_key}",
            hint=f"rm {public}; it is made again at the next start",
        )
    operator = _key(home.operator_key, OPERATOR_ID)
    return Keys(server.secret_key, server.public_key, operator.public_key)


def _key(path: Path, name: str) -> Key:
    try:
        if path.exists():
            return load_key(path)
        key = new_key(name)
        save_key(path, key)
    except BadKey as error:
        raise HomeError(
            error.message, hint=error.hint or f"restore {path} from a backup"
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return key


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="ascii")
        path.chmod(0o644)  # whatever the umask: others may read it, and no more
    except OSError as error:
        path.unlink(missing_ok=True)  # an empty one would be taken for another server's
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> HomeError:
    message = f"{path} cannot be written: {error.strerror or error}"
    return HomeError(message, hint="make room, or choose another home with --home")


# ---- how many connections this process can have, shared out before it listens ----


class Shares(msgspec.Struct, frozen=True):
    """Connections of each sort."""

    clients: int
    per_key: int
    operators: int
    silent: int
    silent_operators: int
    http: int


def share_descriptors(settings: Settings) -> Shares:
    """Share out what `ulimit -n` leaves.

    Raises:
        SettingsError: it leaves too little to work with.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = limit - _open_now() - _LATER - _OWN
    if free < _LEAST:
        message = f"a process may have {limit} descriptors here, which is too few"
        hint = f"raise it: ulimit -n {limit - free + 2 * _LEAST}"
        raise SettingsError(message, hint=hint)
    operators = min(16, max(6, free // 8))
    silent_operators = min(8, max(2, free // 16))
    silent = min(1024, max(3, free // 5))
    http = min(1024, max(3, free // 5)) if settings.http else 0
    clients = free - operators - silent_operators - silent - http
    if settings.max_connections:
        clients = min(clients, settings.max_connections)
    return Shares(
        clients=clients,
        per_key=min(settings.max_connections_per_key, max(2, clients // 2)),
        operators=operators,
        silent=silent,
        silent_operators=silent_operators,
        http=http,
    )


def _open_now() -> int:
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    return len(os.listdir(folder))  # noqa: PTH208 - numbers, and how many is what counts
