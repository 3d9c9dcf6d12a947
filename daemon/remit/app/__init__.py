"""Where the parts are put together, and the only such place."""
