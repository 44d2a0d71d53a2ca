-- What a person wants to be decided anew, and what is remembered of a row that was removed.
-- May run before the new code; nodes of older packages write neither.

-- For which row of that name the last start is remembered: its created_at. NULL: by a node of an older package.
alter table {schema}.periodic_task_state add column row_created_at timestamptz;

-- Since when occurrences that count as decided may be decided anew, because a person wanted it so. What identifies a
-- job's occurrence begins with it: a second job of the same instant has an id of its own.
alter table {schema}.periodic_task add column decided_anew_at timestamptz;
