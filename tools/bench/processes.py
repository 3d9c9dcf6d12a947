"""Servers that a benchmark starts: in processes of their own, ended with it, on a free port."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 30.0
_SHORTEST = 0.02


@contextmanager
def running(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stop a process when it is no longer needed."""
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def until_it_listens(port: int) -> None:
    """Wait for somebody to listen on a port.

    Raises:
        OSError: nobody did for too long.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_SHORTEST)
        else:
            return
