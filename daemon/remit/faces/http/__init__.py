"""The HTTP face: the same events over HTTP, for web services and browsers.

Every route builds a request and calls the dispatcher; nothing is decided here. Identity is the
bearer token, looked up again at every request. A slow client is cut and never delays another.
"""

from remit.faces.http.face import HttpFace, serve
from remit.faces.http.limits import AUDIENCE, Limits, Stats
from remit.faces.http.probes import Probes
from remit.faces.http.streams import Stream

__all__ = ["AUDIENCE", "HttpFace", "Limits", "Probes", "Stats", "Stream", "serve"]
