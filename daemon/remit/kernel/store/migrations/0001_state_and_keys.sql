CREATE TABLE state (
    key TEXT NOT NULL UNIQUE,
    value BLOB NOT NULL,
    version INTEGER NOT NULL,
    updated_at REAL NOT NULL,
    updated_by TEXT NOT NULL
) STRICT;

-- The highest version of any deleted key: a key that is made again starts above it,
-- so that a version never stands for two values.
CREATE TABLE state_floor (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    version INTEGER NOT NULL
) STRICT;

INSERT INTO state_floor (only, version) VALUES (1, 0);

CREATE TABLE client_key (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    public_key TEXT NOT NULL UNIQUE,
    profile TEXT NOT NULL,
    created_at REAL NOT NULL,
    revoked_at REAL
) STRICT;

CREATE UNIQUE INDEX client_key_living ON client_key (name) WHERE revoked_at IS NULL;
