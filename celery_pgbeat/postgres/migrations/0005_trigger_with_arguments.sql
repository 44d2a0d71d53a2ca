-- Jobs that are triggered with arguments of their own. May run before the new code: it calls trigger() with the two
-- arguments that it knows, and does not know the column.

-- The function of this name has two more arguments now. Both would stay, and a call could mean either.
drop function if exists {schema}.trigger(text, boolean);

-- The arguments of a manual job that did not succeed: nothing else knows them when it is retried.
alter table {schema}.finished_job add column arguments jsonb;
