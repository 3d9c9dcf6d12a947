"""Events that come and go at run time."""
