-- How much of the shared state everybody wrote last: counted as it changes, because adding it up
-- would make every write wait for a walk over the table.
CREATE TABLE state_usage (
    owner TEXT PRIMARY KEY,
    keys INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO state_usage (owner, keys, bytes)
SELECT updated_by, count(*), sum(length(CAST(key AS BLOB)) + length(value)) FROM state GROUP BY updated_by;

CREATE TRIGGER state_usage_of_a_new_key AFTER INSERT ON state
BEGIN
    INSERT INTO state_usage (owner, keys, bytes)
    VALUES (NEW.updated_by, 1, length(CAST(NEW.key AS BLOB)) + length(NEW.value))
    ON CONFLICT (owner) DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER state_usage_of_a_deleted_key AFTER DELETE ON state
BEGIN
    UPDATE state_usage SET
        keys = keys - 1, bytes = bytes - length(CAST(OLD.key AS BLOB)) - length(OLD.value)
    WHERE owner = OLD.updated_by;
    DELETE FROM state_usage WHERE owner = OLD.updated_by AND keys = 0;
END;

CREATE TRIGGER state_usage_of_a_changed_key AFTER UPDATE ON state
BEGIN
    UPDATE state_usage SET
        keys = keys - 1, bytes = bytes - length(CAST(OLD.key AS BLOB)) - length(OLD.value)
    WHERE owner = OLD.updated_by;
    INSERT INTO state_usage (owner, keys, bytes)
    VALUES (NEW.updated_by, 1, length(CAST(NEW.key AS BLOB)) + length(NEW.value))
    ON CONFLICT (owner) DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
    DELETE FROM state_usage WHERE owner = OLD.updated_by AND keys = 0;
END;
