"""What must survive a restart, behind one protocol: SQLite for daemons, memory for tests."""
