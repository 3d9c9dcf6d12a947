-- Who was revoked or ended, so that a question about one of that name can be answered with that.
CREATE TABLE ended (
    name TEXT PRIMARY KEY,
    ended_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX ended_when ON ended (ended_at);

INSERT OR REPLACE INTO ended (name, ended_at)
    SELECT name, max(revoked_at) FROM client_key WHERE revoked_at IS NOT NULL GROUP BY name;
