-- The tool names that somebody was shown: a name never comes to mean another event.
CREATE TABLE tool_name (
    owner TEXT NOT NULL,
    event TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (owner, event),
    UNIQUE (owner, name)
) STRICT, WITHOUT ROWID;
