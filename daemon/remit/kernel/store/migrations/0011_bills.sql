-- What was put before the models of a principal, in tokens: a row a day and kind, and the latest turns.
CREATE TABLE bill_day (
    principal TEXT NOT NULL,
    day INTEGER NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    full_dump INTEGER NOT NULL,
    PRIMARY KEY (principal, day, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX bill_day_by_day ON bill_day (day);

CREATE TABLE bill_turn (
    principal TEXT NOT NULL,
    number INTEGER NOT NULL,
    at REAL NOT NULL,
    sent INTEGER NOT NULL,
    full_dump INTEGER NOT NULL,
    kinds TEXT NOT NULL,
    PRIMARY KEY (principal, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX bill_turn_by_number ON bill_turn (number);
