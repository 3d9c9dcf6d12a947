CREATE TABLE agent (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    parent TEXT,
    profile TEXT NOT NULL,
    public_key TEXT NOT NULL UNIQUE,
    token_hash TEXT NOT NULL,
    created_at REAL NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- Every public key an agent ever had: agents go, but a key never comes back as somebody else.
CREATE TABLE agent_key (
    public_key TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE mail (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    recipient TEXT NOT NULL,
    sender TEXT NOT NULL,
    message BLOB NOT NULL,
    sent_at REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT;

CREATE INDEX mail_recipient ON mail (recipient, id);

CREATE INDEX mail_expires ON mail (expires_at);

CREATE TABLE review (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at REAL NOT NULL,
    expires_at REAL,
    payload BLOB NOT NULL,
    status TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at REAL,
    note TEXT NOT NULL
) STRICT;

CREATE INDEX review_status ON review (status, position);

CREATE TABLE blob (
    name TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
