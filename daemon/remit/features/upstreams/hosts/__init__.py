"""Files of MCP hosts, read and imported."""
