"""The table of settings, and the values that come of it.

Parsing, the reference page and `remit config` all read `SETTINGS`.
"""

from pathlib import Path
from typing import Literal

import msgspec

from remit.config.settings.setting import Setting
from remit.model.agent import LaunchEntry


def _tokens(tier: str, default: int, doc: str) -> Setting:
    return Setting(f"discovery_{tier}_tokens", "whole", default, doc, low=0, high=1_000_000)


SETTINGS: tuple[Setting, ...] = (
    Setting("home", "path", None, "State directory; empty: the XDG state directory."),
    Setting("catalogue", "path", None, "Capability definitions; empty: the shipped starter."),
    Setting("compositions", "path", None, "Directory of profiles; empty: the shipped starter."),
    Setting("handlers", "names", (), "Python modules with further event handlers."),
    Setting("handler_paths", "paths", (), "Directories where those modules are looked for."),
    Setting(
        "capability_dirs",
        "paths",
        (),
        "Further directories of skills, manifests and extensions; later ones win.",
        separator=":",
    ),
    Setting(
        "extension_modules",
        "names",
        (),
        "Modules of extensions that agents may load while the daemon runs.",
    ),
    Setting("upstreams", "path", None, "Upstream MCP servers; empty: upstreams.yaml in the home."),
    Setting("endpoint", "endpoint", "", "Where to listen; empty: an ipc socket in the home."),
    Setting("http", "address", "", "Where to serve HTTP, as in 127.0.0.1:7421; empty: nowhere."),
    Setting("http_origins", "origins", (), "Web pages whose scripts may read HTTP answers."),
    Setting("http_hosts", "hosts", (), "Further names by which HTTP may be asked."),
    Setting(
        "http_body_limit", "whole", 1_048_576, "Bytes of one HTTP body.", low=1024, high=67_108_864
    ),
    Setting(
        "mcp_anonymous",
        "text",
        "",
        "The agent that a caller of /mcp without a token is, on loopback only; empty: nobody.",
    ),
    Setting(
        "log_format",
        "choice",
        "auto",
        "How to log; auto: pretty on a terminal, else json.",
        choices=("auto", "json", "pretty"),
    ),
    Setting(
        "log_level",
        "choice",
        "info",
        "The least important message that is logged.",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting(
        name="watch",
        kind="switch",
        default=True,
        doc="Whether edited definitions come in force by themselves.",
    ),
    Setting(
        "watch_debounce_ms",
        "whole",
        300,
        "Milliseconds without a further edit before definitions are read.",
        high=60_000,
    ),
    Setting("request_timeout", "seconds", 30.0, "Seconds a handler may take."),
    Setting("drain_timeout", "seconds", 4.0, "Seconds that running requests get at shutdown."),
    Setting("max_in_flight", "whole", 256, "Requests that may run at once.", high=65_536),
    Setting(
        "max_connections",
        "whole",
        0,
        "Connections of all clients; 0: as many as the descriptors of the process allow.",
        low=0,
        high=65_536,
    ),
    Setting("max_connections_per_key", "whole", 256, "Connections of one client.", high=65_536),
    Setting("audit_sample", "share", 0.0, "Share of allowed reads that the audit keeps, 0 to 1."),
    Setting(
        "audit_keep",
        "whole",
        1_000_000,
        "Rows the audit keeps at hand, older ones are archived; 0: all.",
        low=0,
        high=1_000_000_000,
    ),
    Setting(
        "denials_per_minute",
        "whole",
        600,
        "Denials of one agent in a minute; further ones are refused as over the limit.",
        high=1_000_000,
    ),
    Setting("denial_window", "seconds", 10.0, "Seconds whose repeats of a denial become one row."),
    Setting(
        "disk_reserve",
        "whole",
        2_097_152,
        "Bytes of the disk that are kept for denials and revocations; 0: none.",
        low=0,
        high=1_073_741_824,
    ),
    Setting("approval_timeout", "seconds", 300.0, "Seconds until an unanswered request lapses."),
    Setting("approval_wait", "seconds", 20.0, "Seconds that a call waits for its approval."),
    Setting("launch_commands", "commands", (), "Commands that may be started for agents."),
    Setting("launch_user", "text", "", "The user that these run as; empty: the daemon's own."),
    Setting(
        "launch_dir",
        "path",
        None,
        "Where each of them has a folder of its own; empty: launched in the home.",
    ),
    Setting("state_value_limit", "whole", 262_144, "Bytes of one state value.", high=16_777_216),
    Setting("state_count_limit", "whole", 10_000, "Keys of the state of one agent.", high=10**9),
    Setting(
        "state_total_limit",
        "whole",
        67_108_864,
        "Bytes of all keys and values of the state of one agent.",
        high=10**9,
    ),
    Setting("file_size_limit", "whole", 524_288, "Bytes of one session file.", high=16_777_216),
    Setting("file_count_limit", "whole", 10_000, "Files of one session.", high=100_000),
    Setting(
        "file_total_limit",
        "whole",
        33_554_432,
        "Bytes of all files of one session.",
        high=1_073_741_824,
    ),
    Setting(
        "search",
        "choice",
        "auto",
        "How tools are found; auto: by static vectors where they are installed, else by words.",
        choices=("auto", "words", "static", "minilm", "http"),
    ),
    Setting("embedder_url", "text", "", "Server of vectors for search = http, OpenAI-compatible."),
    Setting("embedder_model", "text", "", "Model that this server is asked for."),
    Setting(
        "embedder_key_variable", "text", "", "Environment variable that holds the server's key."
    ),
    Setting(
        "token_counter",
        "choice",
        "auto",
        "What counts tokens; auto: llama where it is installed, else chars.",
        choices=("auto", "llama", "chars", "o200k"),
    ),
    Setting(
        name="learn",
        kind="switch",
        default=True,
        doc="Whether discovery learns from which tools are used after a question.",
    ),
    Setting("tenant", "word", "default", "Whose use discovery learns from; others are not mixed."),
    _tokens("map", 200, "Tokens of the map of categories."),
    _tokens("summary", 800, "Tokens of the summaries of one question."),
    _tokens("detail", 2000, "Tokens of the details of one question."),
    _tokens("total", 1850, "Tokens of a whole answer of discovery."),
    Setting("discovery_top_k", "whole", 5, "Summaries of one question.", low=0, high=50),
    Setting("discovery_top_n", "whole", 2, "Details of one question.", low=0, high=50),
    Setting("discovery_min_relevance", "share", 0.3, "The least relevance that is shown, 0 to 1."),
    Setting(
        "card_dirs", "paths", (), "Further directories of cards; later ones win.", separator=":"
    ),
    Setting(
        name="workspace_cards",
        kind="switch",
        default=False,
        doc="Whether cards in .remit/cards of the working directory count.",
    ),
    Setting(
        "awareness",
        "choice",
        "on",
        "Whether cards are injected; monitor: only tell what would be.",
        choices=("on", "monitor", "off"),
    ),
    Setting("awareness_window", "whole", 5, "Latest messages that are looked at.", high=100),
    Setting("awareness_tokens", "whole", 1500, "Tokens of all cards together.", low=0, high=20_000),
    Setting(
        "awareness_most_tokens",
        "whole",
        0,
        "Tokens of all cards in a long conversation; 0: as many as in a short one.",
        low=0,
        high=20_000,
    ),
    Setting("awareness_scorer", "word", "words", "What scores cards."),
    Setting("awareness_second_scorer", "text", "", "Another scorer, to compare; empty: none."),
    Setting("awareness_second_share", "share", 0.5, "Share of sessions that it scores, 0 to 1."),
    Setting("awareness_force", "ids", (), "Cards that are always injected."),
    Setting("awareness_exclude", "ids", (), "Cards that are never injected."),
    Setting("awareness_thresholds", "shares", (), "Other thresholds of cards, as in mail=0.4."),
    Setting(
        "awareness_rollout",
        "shares",
        (),
        "Session types that get cards, each with a share of its sessions, as in main=0.1; "
        "empty: all.",
    ),
    Setting(
        "awareness_kill_share",
        "share",
        0.8,
        "Injection stops when more than this share of a day's sessions got a card; 1: never.",
    ),
    Setting(
        "awareness_position",
        "choice",
        "after_agents",
        "Where CAPABILITIES.md stands among the files.",
        choices=("after_agents", "first", "last"),
    ),
    Setting(
        "web_fetch_allow_hosts",
        "hosts",
        (),
        "Hosts that web_fetch may ask, as in *.example.com; empty: all public ones.",
    ),
    Setting("web_fetch_deny_hosts", "hosts", (), "Hosts that web_fetch never asks."),
    Setting(
        name="web_fetch_private",
        kind="switch",
        default=False,
        doc="Dangerous: lets agents fetch from this host and private networks, on any port.",
    ),
)


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: a flag, a variable, `file:line`, or `default`."""

    kind: Literal["flag", "environment", "file", "default"]
    where: str

    def __str__(self) -> str:
        return self.where


class Settings(msgspec.Struct, frozen=True):
    """Every setting with a value that can be used; `load_settings` is the way to get one."""

    home: Path
    catalogue: Path | None
    compositions: Path | None
    handlers: tuple[str, ...]
    handler_paths: tuple[Path, ...]
    capability_dirs: tuple[Path, ...]
    extension_modules: tuple[str, ...]
    upstreams: Path | None
    endpoint: str
    http: str
    http_origins: tuple[str, ...]
    http_hosts: tuple[str, ...]
    http_body_limit: int
    mcp_anonymous: str
    log_format: Literal["auto", "json", "pretty"]
    log_level: Literal["debug", "info", "warning", "error"]
    watch: bool
    watch_debounce_ms: int
    request_timeout: float
    drain_timeout: float
    max_in_flight: int
    max_connections: int
    max_connections_per_key: int
    audit_sample: float
    audit_keep: int
    denials_per_minute: int
    denial_window: float
    disk_reserve: int
    approval_timeout: float
    approval_wait: float
    launch_commands: tuple[LaunchEntry, ...]
    launch_user: str
    launch_dir: Path | None
    state_value_limit: int
    state_count_limit: int
    state_total_limit: int
    file_size_limit: int
    file_count_limit: int
    file_total_limit: int
    search: Literal["auto", "words", "static", "minilm", "http"]
    embedder_url: str
    embedder_model: str
    embedder_key_variable: str
    token_counter: Literal["auto", "llama", "chars", "o200k"]
    learn: bool
    tenant: str
    discovery_map_tokens: int
    discovery_summary_tokens: int
    discovery_detail_tokens: int
    discovery_total_tokens: int
    discovery_top_k: int
    discovery_top_n: int
    discovery_min_relevance: float
    card_dirs: tuple[Path, ...]
    workspace_cards: bool
    awareness: Literal["on", "monitor", "off"]
    awareness_window: int
    awareness_tokens: int
    awareness_most_tokens: int
    awareness_scorer: str
    awareness_second_scorer: str
    awareness_second_share: float
    awareness_force: tuple[str, ...]
    awareness_exclude: tuple[str, ...]
    awareness_thresholds: tuple[str, ...]
    awareness_rollout: tuple[str, ...]
    awareness_kill_share: float
    awareness_position: Literal["after_agents", "first", "last"]
    web_fetch_allow_hosts: tuple[str, ...]
    web_fetch_deny_hosts: tuple[str, ...]
    web_fetch_private: bool
    origins: dict[str, Origin]
