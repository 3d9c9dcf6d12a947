"""The least of an MCP server over standard streams, for tools/lib/walk.py: one tool, `echo`."""

import json
import sys

TOOL = {"name": "echo", "description": "Says what it was told.", "inputSchema": {"type": "object"}}
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "walk", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    "ping": {},
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue  # a notification
    told = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in ANSWERS:
        told["result"] = ANSWERS[request["method"]]
    else:
        told["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(told), flush=True)
