-- Closed sessions stay: a name that was forgotten would narrow nothing.
CREATE TABLE session (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;
