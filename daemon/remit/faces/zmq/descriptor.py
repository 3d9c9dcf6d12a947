"""Descriptors of connections: telling apart those of one number, and closing from this side."""

import fcntl
import os
import select
import socket as sockets
import sys
import termios

_HUNG_UP = select.POLLRDHUP if sys.platform == "linux" else 0


def inode_of_descriptor(descriptor: int) -> int:
    """What tells two sockets apart that had the same descriptor one after the other; 0: none."""
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return 0


def is_closed(descriptor: int, inode: int) -> bool:
    """Tell whether a connection is over, or closed by the other side, whoever has noticed."""
    if inode_of_descriptor(descriptor) != inode:
        return True
    poller = select.poll()
    poller.register(descriptor, _HUNG_UP)
    return bool(poller.poll(0))


def has_taken_all(descriptor: int, inode: int) -> bool:
    """Tell whether the system holds nothing any more that was sent on a connection.

    libzmq hands on what it has as soon as the system takes it, so then it holds nothing either.
    Where the system does not say, the number of messages is the only bound.
    """
    if inode == 0 or inode_of_descriptor(descriptor) != inode:
        return True  # somebody else's by now, or closed: nothing is kept for it
    try:
        waiting = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4)
    except OSError:
        return True
    return int.from_bytes(waiting, sys.byteorder) == 0


def cut_descriptor(descriptor: int, inode: int) -> bool:
    """Close a connection from this side, if its descriptor is still the one it had."""
    try:
        copy = os.dup(descriptor)
    except OSError:
        return False
    try:
        # The copy pins the socket: it cannot be swapped between comparing and closing.
        if inode == 0 or inode_of_descriptor(copy) != inode:
            return False
        with sockets.socket(fileno=os.dup(copy)) as connection:
            connection.shutdown(sockets.SHUT_RDWR)
    except OSError:
        return False
    finally:
        os.close(copy)
    return True
