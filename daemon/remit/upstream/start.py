"""Everything for one start of a server."""

from collections.abc import Sequence

import msgspec

from remit.model.upstream import Upstream
from remit.upstream.chatter import Chatter
from remit.upstream.outfit import Outfit
from remit.upstream.shapes import Limits


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started, this time."""

    upstream: Upstream
    outfit: Outfit
    launcher: Sequence[str]
    limits: Limits
    errors: Chatter
    noise: Chatter
    mode: str
    """The greeting: see `eras`."""
