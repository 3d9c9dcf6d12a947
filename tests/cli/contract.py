"""The examples of the contract, word for word, and every event that it names."""

from pathlib import Path

CATALOGUE = """\
# capabilities.yaml
version: 1
capabilities:
  base:
    description: What every agent needs to find its feet
    event_patterns: [system:health, system:help, system:discover]
    always_included: true
  state_read:
    description: Read shared state
    event_patterns: [state:get, state:list]
  state_write:
    description: Change shared state
    event_patterns: [state:set, state:delete]
    requires: [state_read]
  agent_messaging:
    description: Talk to other agents
    event_patterns: ["message:*", agent:send_message, conversation:active]
    mcp_tools: true
  spawn_agents:
    description: Create and manage child agents
    event_patterns: [agent:spawn, agent:terminate, agent:list, agent:status]
    requires: [agent_messaging]
    resource_limits: {max_children: 5, max_depth: 2}
  network_access:
    description: Reach the outside world
    event_patterns: [web:web_fetch]
    claude_tools: [WebFetch, WebSearch]
    security_review_required: true
"""

COMPOSITIONS = {
    "base_multi_agent": """\
# compositions/base_multi_agent.yaml: components form
name: base_multi_agent
description: A coordinator that may spawn helpers
components:
  - name: capabilities
    inline: {state_write: true, agent_messaging: true, spawn_agents: true}
  - name: tool_overrides
    inline: {additional_tools: ["custom:event"], disallowed_tools: [agent:terminate]}
""",
    "reviewer": """\
# short form, same meaning of the keys
name: reviewer
extends: base_multi_agent
mixins: [quiet]
variables: {team: {type: string, default: core, allowed_values: [core, docs]}}
capabilities: {spawn_agents: false}          # or a list: [state_read, {ref: web_fetch, config: {}}]
disallowed_tools: ["state:delete", Bash]
limits: {max_calls_per_minute: 60}
prompt: "You review the work of team {{team}}."
""",
    "base_multi_agent_explicit": """\
# explicit lists keep working
name: base_multi_agent_explicit
components:
  - name: ksi_tools
    inline: {allowed_tools: [system:health, state:get, state:set, state:list, agent:spawn, \
agent:list, agent:status, agent:send_message, agent:terminate, conversation:create, \
conversation:active, message:subscribe, message:unsubscribe, message:publish, \
message:subscriptions]}
""",
    "quiet": "name: quiet\nlimits: {max_concurrent: 1}\n",
}

NAMES = {
    "system": "health help discover stats",
    "permission": "check check_many explain matrix",
    "capability": "list get of_event",
    "composition": "list get resolve validate plan migrate",
    "agent": "spawn terminate list status send_message update",
    "message": "publish subscribe unsubscribe subscriptions",
    "event": "subscribe unsubscribe",
    "state": "get set delete list",
    "conversation": "create active",
    "discovery": "discover describe tools refresh stats",
    "awareness": "select inject",
    "tool": "register resolve verify repair preflight list",
    "skill": "register update list review",
    "link": "mission",
    "trial": "record warnings history",
    "promotion": "track list promote reject defer",
    "archive": "candidates archive restore list",
    "smith": "request propose list",
    "time": "get_current_time",
    "math": "add subtract multiply divide",
    "weather": "get_weather get_forecast",
    "file": "read_file write_file list_directory grep_files delete_file stat_file",
    "web": "web_fetch",
    "todo": "write_todos",
    "sandbox": "execute_code",
    "audit": "query",
    "review": "list decide",
    "config": "changed rejected",
    "key": "add list revoke",
    "custom": "event",
}
EVENTS = [f"{space}:{name}" for space, names in NAMES.items() for name in names.split()]


def write_contract(folder: Path) -> tuple[str, ...]:
    """Put the examples into a folder; answers the options that point a command at them."""
    (folder / "capabilities.yaml").write_text(CATALOGUE)
    (folder / "compositions").mkdir(parents=True)
    for name, text in COMPOSITIONS.items():
        (folder / "compositions" / f"{name}.yaml").write_text(text)
    (folder / "events.txt").write_text("# all of them\n\n" + "\n".join(EVENTS) + "\n")
    catalogue, compositions = folder / "capabilities.yaml", folder / "compositions"
    options = {
        "--catalogue": catalogue,
        "--compositions": compositions,
        "--events": folder / "events.txt",
    }
    return tuple(str(part) for pair in options.items() for part in pair)
