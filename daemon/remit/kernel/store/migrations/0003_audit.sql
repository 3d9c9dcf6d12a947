CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    principal TEXT NOT NULL,
    event TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    decision TEXT NOT NULL,
    revision INTEGER NOT NULL,
    origin TEXT NOT NULL,
    details BLOB NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

-- No index beside the key: each of them adds half to the price of a row, and rows are written while
-- agents wait. A question is asked by a person, and walks over a million rows in under a second.

-- The last row that was archived. The rows that are left are proved from here, and only rows up to
-- here may be deleted: moving the anchor is what opens the log for rotation.
CREATE TABLE audit_anchor (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;

INSERT INTO audit_anchor (only, seq, hash) VALUES
    (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are never changed');
END;

CREATE TRIGGER audit_is_only_rotated BEFORE DELETE ON audit
WHEN OLD.seq > (SELECT seq FROM audit_anchor)
BEGIN
    SELECT RAISE(ABORT, 'audit rows are only deleted by rotation');
END;

CREATE TRIGGER audit_anchor_moves_along_the_chain BEFORE UPDATE ON audit_anchor
WHEN NEW.hash IS NOT (SELECT hash FROM audit WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the anchor of the audit log can only move to one of its rows');
END;

CREATE TRIGGER audit_anchor_stays BEFORE DELETE ON audit_anchor
BEGIN
    SELECT RAISE(ABORT, 'the anchor of the audit log cannot be deleted');
END;
