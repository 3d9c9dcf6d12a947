"""YAML and JSON with the place of every node; nothing unknown is let through."""
