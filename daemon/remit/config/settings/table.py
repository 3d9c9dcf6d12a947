"""Every setting, written once: its type, kind, default and bounds, and its line of help.

Parsing, the options of `remit serve`, the reference page and `remit config` read `SETTINGS`, which
is derived from the fields. One Struct holds the settings of all features: every command reads them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from remit.config.settings.setting import Setting
from remit.model.launch import LaunchEntry


class Origin(msgspec.Struct, frozen=True):
    """The source of a value: a flag, a variable, `file:line`, or `default`."""

    kind: Literal["flag", "environment", "file", "default"]
    where: str

    def __str__(self) -> str:
        return self.where


class Settings(msgspec.Struct, frozen=True):
    """Every setting with a value that can be used; `load_settings` is the way to get one."""

    home: Annotated[Path, Setting("path", None, "State directory; empty: the XDG state directory.")]
    catalogue: Annotated[
        Path | None, Setting("path", None, "Capability definitions; empty: the shipped starter.")
    ]
    compositions: Annotated[
        Path | None, Setting("path", None, "Directory of profiles; empty: the shipped starter.")
    ]
    handlers: Annotated[
        tuple[str, ...], Setting("names", (), "Python modules with further event handlers.")
    ]
    handler_paths: Annotated[
        tuple[Path, ...], Setting("paths", (), "Directories where those modules are looked for.")
    ]
    capability_dirs: Annotated[
        tuple[Path, ...],
        Setting(
            "paths",
            (),
            "Further directories of skills, manifests and extensions; later ones win.",
            separator=":",
        ),
    ]
    extension_modules: Annotated[
        tuple[str, ...],
        Setting("names", (), "Modules of extensions that agents may load while the daemon runs."),
    ]
    upstreams: Annotated[
        Path | None,
        Setting("path", None, "Upstream MCP servers; empty: upstreams.yaml in the home."),
    ]
    endpoint: Annotated[
        str, Setting("endpoint", "", "Where to listen; empty: an ipc socket in the home.")
    ]
    http: Annotated[
        str, Setting("address", "", "Where to serve HTTP, as in 127.0.0.1:7421; empty: nowhere.")
    ]
    http_origins: Annotated[
        tuple[str, ...], Setting("origins", (), "Web pages whose scripts may read HTTP answers.")
    ]
    http_hosts: Annotated[
        tuple[str, ...], Setting("hosts", (), "Further names by which HTTP may be asked.")
    ]
    http_body_limit: Annotated[
        int, Setting("whole", 1_048_576, "Bytes of one HTTP body.", low=1024, high=67_108_864)
    ]
    mcp_anonymous: Annotated[
        str,
        Setting(
            "text",
            "",
            "The agent that a caller of /mcp without a token is, on loopback only; empty: nobody.",
        ),
    ]
    log_format: Annotated[
        Literal["auto", "json", "pretty"],
        Setting("choice", "auto", "How to log; auto: pretty on a terminal, else json."),
    ]
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Setting("choice", "info", "The least important message that is logged."),
    ]
    watch: Annotated[
        bool,
        Setting(
            "switch", default=True, doc="Whether edited definitions come in force by themselves."
        ),
    ]
    watch_debounce_ms: Annotated[
        int,
        Setting(
            "whole",
            300,
            "Milliseconds without a further edit before definitions are read.",
            high=60_000,
        ),
    ]
    request_timeout: Annotated[float, Setting("seconds", 30.0, "Seconds a handler may take.")]
    drain_timeout: Annotated[
        float, Setting("seconds", 4.0, "Seconds that running requests get at shutdown.")
    ]
    max_in_flight: Annotated[
        int, Setting("whole", 256, "Requests that may run at once.", high=65_536)
    ]
    max_connections: Annotated[
        int,
        Setting(
            "whole",
            0,
            "Connections of all clients; 0: as many as the descriptors of the process allow.",
            low=0,
            high=65_536,
        ),
    ]
    max_connections_per_key: Annotated[
        int, Setting("whole", 256, "Connections of one client.", high=65_536)
    ]
    audit_sample: Annotated[
        float, Setting("share", 0.0, "Share of allowed reads that the audit keeps, 0 to 1.")
    ]
    audit_keep: Annotated[
        int,
        Setting(
            "whole",
            1_000_000,
            "Rows the audit keeps at hand, older ones are archived; 0: all.",
            low=0,
            high=10**9,
        ),
    ]
    denials_per_minute: Annotated[
        int,
        Setting(
            "whole",
            600,
            "Denials of one agent in a minute; further ones are refused as over the limit.",
            high=1_000_000,
        ),
    ]
    denial_window: Annotated[
        float, Setting("seconds", 10.0, "Seconds whose repeats of a denial become one row.")
    ]
    disk_reserve: Annotated[
        int,
        Setting(
            "whole",
            2_097_152,
            "Bytes of the disk that are kept for denials and revocations; 0: none.",
            low=0,
            high=1_073_741_824,
        ),
    ]
    approval_timeout: Annotated[
        float, Setting("seconds", 300.0, "Seconds until an unanswered request lapses.")
    ]
    approval_wait: Annotated[
        float, Setting("seconds", 20.0, "Seconds that a call waits for its approval.")
    ]
    launch_commands: Annotated[
        tuple[LaunchEntry, ...], Setting("commands", (), "Commands that may be started for agents.")
    ]
    launch_user: Annotated[
        str, Setting("text", "", "The user that these run as; empty: the daemon's own.")
    ]
    launch_dir: Annotated[
        Path | None,
        Setting(
            "path", None, "Where each of them has a folder of its own; empty: launched in the home."
        ),
    ]
    state_value_limit: Annotated[
        int, Setting("whole", 262_144, "Bytes of one state value.", high=16_777_216)
    ]
    state_count_limit: Annotated[
        int, Setting("whole", 10_000, "Keys of the state of one agent.", high=10**9)
    ]
    state_total_limit: Annotated[
        int,
        Setting(
            "whole",
            67_108_864,
            "Bytes of all keys and values of the state of one agent.",
            high=10**9,
        ),
    ]
    file_size_limit: Annotated[
        int, Setting("whole", 524_288, "Bytes of one session file.", high=16_777_216)
    ]
    file_count_limit: Annotated[
        int, Setting("whole", 10_000, "Files of one session.", high=100_000)
    ]
    file_total_limit: Annotated[
        int, Setting("whole", 33_554_432, "Bytes of all files of one session.", high=1_073_741_824)
    ]
    search: Annotated[
        Literal["auto", "words", "static", "minilm", "http"],
        Setting(
            "choice",
            "auto",
            "How tools are found; auto: by static vectors where they are installed, else by words.",
        ),
    ]
    embedder_url: Annotated[
        str, Setting("text", "", "Server of vectors for search = http, OpenAI-compatible.")
    ]
    embedder_model: Annotated[str, Setting("text", "", "Model that this server is asked for.")]
    embedder_key_variable: Annotated[
        str, Setting("text", "", "Environment variable that holds the server's key.")
    ]
    token_counter: Annotated[
        Literal["auto", "llama", "chars", "o200k"],
        Setting(
            "choice", "auto", "What counts tokens; auto: llama where it is installed, else chars."
        ),
    ]
    learn: Annotated[
        bool,
        Setting(
            "switch",
            default=True,
            doc="Whether discovery learns from which tools are used after a question.",
        ),
    ]
    tenant: Annotated[
        str, Setting("word", "default", "Whose use discovery learns from; others are not mixed.")
    ]
    discovery_map_tokens: Annotated[
        int, Setting("whole", 200, "Tokens of the map of categories.", low=0, high=1_000_000)
    ]
    discovery_summary_tokens: Annotated[
        int,
        Setting("whole", 800, "Tokens of the summaries of one question.", low=0, high=1_000_000),
    ]
    discovery_detail_tokens: Annotated[
        int, Setting("whole", 2000, "Tokens of the details of one question.", low=0, high=1_000_000)
    ]
    discovery_total_tokens: Annotated[
        int, Setting("whole", 1850, "Tokens of a whole answer of discovery.", low=0, high=1_000_000)
    ]
    discovery_top_k: Annotated[
        int, Setting("whole", 5, "Summaries of one question.", low=0, high=50)
    ]
    discovery_top_n: Annotated[int, Setting("whole", 2, "Details of one question.", low=0, high=50)]
    discovery_min_relevance: Annotated[
        float, Setting("share", 0.3, "How likely anything must fit before hits are shown, 0 to 1.")
    ]
    discovery_graph_boost_factor: Annotated[
        float, Setting("share", 0.15, "What hits that belong together add to each other, at most.")
    ]
    card_dirs: Annotated[
        tuple[Path, ...],
        Setting("paths", (), "Further directories of cards; later ones win.", separator=":"),
    ]
    card_catalogues: Annotated[
        tuple[str, ...],
        Setting("catalogues", (), "URLs of cards, each with the SHA-256 that is used."),
    ]
    card_refresh_seconds: Annotated[
        float, Setting("seconds", 3600.0, "Seconds between two looks at the catalogues of cards.")
    ]
    workspace_cards: Annotated[
        bool,
        Setting(
            "switch",
            default=False,
            doc="Whether cards in .remit/cards of the working directory count.",
        ),
    ]
    awareness: Annotated[
        Literal["on", "monitor", "off"],
        Setting("choice", "on", "Whether cards are injected; monitor: only tell what would be."),
    ]
    awareness_window: Annotated[
        int, Setting("whole", 5, "Latest messages that are looked at.", high=100)
    ]
    awareness_tokens: Annotated[
        int, Setting("whole", 1500, "Tokens of all cards together.", low=0, high=20_000)
    ]
    awareness_most_tokens: Annotated[
        int,
        Setting(
            "whole",
            0,
            "Tokens of all cards in a long conversation; 0: as many as in a short one.",
            low=0,
            high=20_000,
        ),
    ]
    awareness_scorer: Annotated[str, Setting("word", "words", "What scores cards.")]
    awareness_second_scorer: Annotated[
        str, Setting("text", "", "Another scorer, to compare; empty: none.")
    ]
    awareness_second_share: Annotated[
        float, Setting("share", 0.5, "Share of sessions that it scores, 0 to 1.")
    ]
    awareness_force: Annotated[
        tuple[str, ...], Setting("ids", (), "Cards that are always injected.")
    ]
    awareness_exclude: Annotated[
        tuple[str, ...], Setting("ids", (), "Cards that are never injected.")
    ]
    awareness_thresholds: Annotated[
        tuple[str, ...], Setting("shares", (), "Other thresholds of cards, as in mail=0.4.")
    ]
    awareness_rollout: Annotated[
        tuple[str, ...],
        Setting(
            "shares",
            (),
            "Session types that get cards, each with a share of its sessions, as in main=0.1; "
            "empty: all.",
        ),
    ]
    awareness_kill_share: Annotated[
        float,
        Setting(
            "share",
            0.8,
            "Injection stops when more than this share of a day's sessions got a card; 1: never.",
        ),
    ]
    awareness_log_level: Annotated[
        Literal["none", "summary", "detailed"],
        Setting("choice", "summary", "What the audit is told of each injection of cards."),
    ]
    awareness_position: Annotated[
        Literal["after_agents", "first", "last"],
        Setting("choice", "after_agents", "Where CAPABILITIES.md stands among the files."),
    ]
    web_fetch_allow_hosts: Annotated[
        tuple[str, ...],
        Setting(
            "hosts",
            (),
            "Hosts that web_fetch may ask, as in *.example.com; empty: all public ones.",
        ),
    ]
    web_fetch_deny_hosts: Annotated[
        tuple[str, ...], Setting("hosts", (), "Hosts that web_fetch never asks.")
    ]
    web_fetch_private: Annotated[
        bool,
        Setting(
            "switch",
            default=False,
            doc="Dangerous: lets agents fetch from this host and private networks, on any port.",
        ),
    ]
    origins: dict[str, Origin]


def _row(name: str, annotation: Any) -> Setting:
    """The row of a field: the words of a choice are those of its type."""
    setting: Setting = annotation.__metadata__[0]
    choices = get_args(annotation.__origin__) if setting.kind == "choice" else ()
    return msgspec.structs.replace(setting, name=name, choices=choices)


SETTINGS: tuple[Setting, ...] = tuple(
    _row(name, annotation)
    for name, annotation in Settings.__annotations__.items()
    if name != "origins"
)
