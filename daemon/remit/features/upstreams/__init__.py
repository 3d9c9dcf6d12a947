"""Upstream MCP servers: which there are, what is trusted of them, how they are called."""
