"""One folder a feature: its events, the nouns of its domain, its rows."""
