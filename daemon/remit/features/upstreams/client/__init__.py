"""Upstream MCP servers: each is a link that starts, watches, restarts and asks one of them.

Nothing here knows who asks or whether they may: that is decided before a call comes here, by the
same rules as for every other event. What a server says is taken as text of a stranger: bounded,
checked for its shape, and never run or trusted.

From the outside in:

- `link` is what the runtime holds: calls, and how the server is (`gauge`); `shapes` are what it
  tells.
- `keeper` is the life of the server: what it is started with (`start`, `outfit`), how long to wait
  before the next start (`pauses`), which greeting it gets (`eras`), when its list is asked for
  again (`relisting`).
- `connection` is one run of it: its list (`listing`), its answers (`answers`, `numbers`), and what
  it lets the keeper know (`signs`). `endpoint` is how it is reached: as a process (`stdio`,
  `child`, `lines`) or at a URL (`http`).
- `sieve` stands between the wire and the protocol library, and lets little through, no faster than
  `pace` allows.
- `schema` and `schema_steps` use the JSON Schemas of strangers; `masks` keep secrets out of what is
  said, `chatter` puts what a server prints into the log.

`mcp` costs 0.8 s and 43 MB, so only modules that are imported when a server starts import it.
"""
