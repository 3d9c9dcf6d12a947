"""Agents: spawned, changed, ended; their keys, tokens, prompts and processes."""
