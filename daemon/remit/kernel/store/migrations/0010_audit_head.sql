-- From this step on the head of the audit is kept outside of the database, in the file audit.head.
-- There is nothing to change in here: a log for which this step is applied has no head yet, and at
-- every later start a missing head means that somebody took it away.
SELECT 1;
