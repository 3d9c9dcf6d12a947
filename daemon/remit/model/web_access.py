"""Which hosts of the outside world may be asked.

A pattern is the name of a host, or `*.` and a name for everything below it. A denial beats an
allowance, and of several rules each must agree.
"""

import re

import msgspec

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_PATTERN = rf"(\*\.)?{_LABEL}(\.{_LABEL})*|\[[0-9a-f:.]+\]"
_LONGEST = 255


class HostRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lists of host patterns as an operator wrote them; without `allow_hosts` any host will do."""

    allow_hosts: tuple[str, ...] | None = None
    deny_hosts: tuple[str, ...] = ()

    def wrong_pattern(self) -> str | None:
        """The first entry that is no host pattern, or None."""
        listed = (*(self.allow_hosts or ()), *self.deny_hosts)
        return next((one for one in listed if not is_host_pattern(one)), None)

    def allow(self, host: str) -> bool:
        """Tell whether a host may be asked; it is written in ASCII, an IPv6 address in brackets."""
        host = host.lower().removesuffix(".")
        if any(_covers(pattern, host) for pattern in self.deny_hosts):
            return False
        return self.allow_hosts is None or any(_covers(one, host) for one in self.allow_hosts)


class WebAccess(msgspec.Struct, frozen=True):
    """What the operator lets the daemon ask, whoever the caller is."""

    hosts: HostRules = HostRules()
    private: bool = False
    """Dangerous: also loopback and private networks, on any port."""


def is_host_pattern(text: str) -> bool:
    """Tell whether this is how an operator writes hosts."""
    return len(text) <= _LONGEST and re.fullmatch(_PATTERN, text.lower()) is not None


def _covers(pattern: str, host: str) -> bool:
    pattern = pattern.lower()
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
