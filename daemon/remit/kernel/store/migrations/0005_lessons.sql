-- What use has taught; it only moves ranks, so losing the last moment of it harms nobody.
CREATE TABLE lesson (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
