"""The address of a server on the web."""

from typing import Any

from remit.config.kinds import BAD, Report, TextKind
from remit.config.nodes import Node
from remit.config.secret_shape import is_secret_text
from remit.model.place import Place, Problem


class UrlKind(TextKind, frozen=True):
    """Where a server listens."""

    def read(self, node: Node, report: Report) -> Any:
        """Read an address; what is open to listeners on the way is warned of."""
        text = super().read(node, report)
        if text is BAD:
            return BAD
        wrong, host = _wrong_with(text)
        if wrong:
            report.add(node.place, "bad_url", wrong, "write it as in https://example.org/mcp")
            return BAD
        if text.lower().startswith("http:") and not is_loopback(host):
            message = f"whatever is sent to {host} can be read and changed on the way"
            report.extend([_warning(node.place, "plain_http", message, "use https://")])
        if is_secret_text(text):
            hint = "send it in a header: headers: {Authorization: {secret: NAME}}"
            message = "this address looks as if it held a secret"
            report.extend([_warning(node.place, "secret_in_file", message, hint)])
        return text

    def schema(self) -> dict[str, Any]:
        """An address of the web."""
        return {"type": "string", "pattern": "^https?://", "maxLength": self.limit}


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine; a name that only begins like its address is not."""
    import ipaddress  # noqa: PLC0415 - only for those who have a server by url

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _warning(place: Place, code: str, message: str, hint: str) -> Problem:
    return Problem(place, code, message, hint, "warning")


def _wrong_with(url: str) -> tuple[str, str]:
    """What is wrong with an address, and its host. The address itself may hold a secret."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for those who have a server by url

    if any(char.isspace() or not char.isprintable() or char == "\\" for char in url):
        return "an address has no blanks in it", ""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return "this is not an address", ""
    if parts.scheme.lower() not in ("http", "https"):
        return "only http and https are understood", host
    if not host:
        return "the address names no host", host
    if "@" in parts.netloc:
        return "a name and a password cannot stand in an address", host
    return ("an address ends before its '#'", host) if parts.fragment else ("", host)
