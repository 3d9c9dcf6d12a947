"""Who shows which bearer token, the same for every path of the HTTP face."""

from collections.abc import Sequence

from remit.faces.http.limits import AUDIENCE
from remit.kernel.dispatch.call import Guard
from remit.model.principal import Bearer


def bearer_of(guard: Guard, shown: Sequence[str]) -> Bearer | None:
    """Whom the `Authorization` headers of a request name; None when nobody that counts, or two."""
    scheme, _, token = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    return guard.bearer(token.strip(), AUDIENCE)
