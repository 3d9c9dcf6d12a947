"""The ZeroMQ face: agents and operators over one authenticated socket.

Order: messages of one connection are read in the order they were sent; inline answers keep it, jobs
answer when they are done. Back-pressure: a client that does not read loses pushed events first
(counted, announced), then its connection; it never delays another.
"""

from remit.faces.zmq.face import Face, serve
from remit.faces.zmq.frames import Parcel
from remit.faces.zmq.limits import Limits, Stats

__all__ = ["Face", "Limits", "Parcel", "Stats", "serve"]
