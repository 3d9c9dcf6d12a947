"""MCP: what an agent may use, as the tools of a host.

- `server` is the same for both ways in: lists (`toolset`), calls (`results`, `progress`), news of
  changed lists (`listeners`) and skills (`skills`, `skill_*`). All of it is asked of a `caller`.
- `endpoint` is the way in over HTTP: who may (`admission`), and sessions that outlive a request
  (`sessions`). `stdio` is the one on standard streams, line by line (`wires`).

Importing this costs little; `endpoint` and `stdio` import the library when the first host arrives.
"""
