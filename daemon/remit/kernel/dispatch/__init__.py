"""The one door: a request is decided, limited, decoded, run and answered here."""
