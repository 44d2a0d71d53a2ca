-- What code has changed of a row's times is judged from its last run.
-- May run before the new code; nodes of older packages plan such a row from the change on.

alter table {schema}.periodic_task add column judged_from timestamptz;
