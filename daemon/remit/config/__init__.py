"""Files that people write: strict YAML, settings, the state directory."""
