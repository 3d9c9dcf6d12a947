-- An area is the file system of one session. Its sums are kept so that a write need not count.
CREATE TABLE file_area (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    owner_key TEXT NOT NULL,
    session TEXT NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    UNIQUE (owner, owner_key, session)
) STRICT;

-- The content comes last: who asks for the rest of a row does not read its pages.
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    area INTEGER NOT NULL REFERENCES file_area (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (area, path)
) STRICT;
