-- Capabilities that were made at run time, each with its author and its latest versions.
CREATE TABLE made_capability (
    id TEXT NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
