"""The database: one connection, one writer thread, migrations; acknowledged means on disk."""
