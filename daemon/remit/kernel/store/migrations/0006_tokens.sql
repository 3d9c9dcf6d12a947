-- Bearer tokens of clients and of the operator. Only their hashes: whoever reads the file gets in nowhere.
CREATE TABLE token (
    hash TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    owner_key TEXT NOT NULL,
    audience TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
