"""remit decides, explains and serves what each agent of a fleet may do."""

__version__ = "0.1.0"
