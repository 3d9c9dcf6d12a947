"""Where requests are decided and run: the dispatcher and what it needs."""
