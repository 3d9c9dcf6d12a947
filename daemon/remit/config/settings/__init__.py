"""Settings with their origins, the home, and the lock of who serves it."""
