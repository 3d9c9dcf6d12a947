"""The command line. Each command imports what it needs when it runs: answers must be fast."""
