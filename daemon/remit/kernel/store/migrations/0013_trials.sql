-- How uses of tools and skills went: the latest, those that were written at once in one row that is
-- named by the number of its last one; and counts of all of them.
CREATE TABLE trial (
    last INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

-- What one tree of agents has seen of an implementation: in all (facet ''), with a tag ('#tag') or a model ('@model').
CREATE TABLE trial_voice (
    id TEXT NOT NULL,
    facet TEXT NOT NULL,
    root TEXT NOT NULL,
    successes REAL NOT NULL,
    failures REAL NOT NULL,
    turn INTEGER NOT NULL,
    PRIMARY KEY (id, facet, root)
) STRICT, WITHOUT ROWID;

CREATE TABLE trial_total (
    id TEXT PRIMARY KEY,
    success INTEGER NOT NULL,
    failure INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    bad_arguments INTEGER NOT NULL,
    unreachable INTEGER NOT NULL,
    seconds REAL NOT NULL,
    timed INTEGER NOT NULL,
    called INTEGER NOT NULL,
    recent TEXT NOT NULL
) STRICT, WITHOUT ROWID;
