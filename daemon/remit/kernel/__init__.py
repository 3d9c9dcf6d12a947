"""What every daemon has, whatever its features: store, authority, dispatch, bus, reload."""
