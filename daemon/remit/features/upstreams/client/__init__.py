"""A client for one upstream MCP server: starts, supervises, restarts and asks it.

Nothing here knows who asks or whether they may: that is decided before a call comes here, by the
same rules as for every other event. What a server says is taken as text of a stranger: bounded,
checked for its shape, and never run or trusted.

From the caller to the wire:

- `client` is what the feature holds: calls, and the health of the server; `state` has what all
  of them speak of: what a server is started with, its list, its limits, its signals.
- `supervisor` is the life of the server: the back-off before the next start, the protocol that it
  is greeted in, when its list is asked for again.
- `connection` is one run of it: its calls, and the signals for the supervisor; `listing` reads its
  list of tools.
- `endpoint` reaches it as a process or at a URL. `transport` is what passes between it and the
  protocol library: the lines of a process, and a filter that lets little through, and no faster
  than it is throttled to.
- `schema` uses the JSON Schemas of strangers.

`mcp` costs 0.8 s and 43 MB, so only modules that are imported when a server starts import it.
"""
