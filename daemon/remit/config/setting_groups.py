"""The groups that settings are shown in, in the order in which an operator needs them."""

from fnmatch import fnmatchcase

_OTHERS = "Further settings"
_MEMBERS: dict[str, tuple[str, ...]] = {
    "Definitions": (
        "home",
        "catalogue",
        "compositions",
        "handler*",
        "capability_dirs",
        "extension_modules",
        "upstreams",
        "watch*",
    ),
    "Where it listens": ("endpoint", "http*", "mcp_*"),
    "Logs and audit": ("log_*", "audit_*", "denial*", "disk_*"),
    "Requests and approvals": ("request_*", "drain_*", "max_*", "approval_*"),
    "Processes of agents": ("launch_*",),
    "State and files": ("state_*", "file_*"),
    "Discovery": ("search", "embedder_*", "token_counter", "learn", "tenant", "discovery_*"),
    "Cards": ("card_*", "workspace_cards", "awareness*"),
    "Fetching": ("web_fetch_*",),
}
GROUPS: tuple[str, ...] = (*_MEMBERS, _OTHERS)


def group_of(name: str) -> str:
    """The group of a setting, by its name."""
    found = (
        title
        for title, patterns in _MEMBERS.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    )
    return next(found, _OTHERS)
