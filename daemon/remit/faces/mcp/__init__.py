"""The MCP face: `endpoint` is the way in over HTTP, `stdio` the one over standard streams."""
