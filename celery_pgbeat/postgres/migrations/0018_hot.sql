-- The confirm and the start of a job rewrite no index: one instant stands in for the columns that they write.
-- May run before the new code; nodes of older packages idle from then on, for they would not keep that instant.

-- By when a beat looks at the job again: '-infinity' for what is to be sent at once. The default has passed: whatever a
-- row is made by, the next look finds it.
alter table {schema}.active_job add column check_at timestamptz;
alter table {schema}.active_job alter column check_at set default 'epoch';
update {schema}.active_job set check_at = default;
alter table {schema}.active_job alter column check_at set not null;

drop index {schema}.active_job_pending;
drop index {schema}.active_job_busy;
drop index {schema}.active_job_asked;
create index active_job_to_check on {schema}.active_job (check_at, created_at);
create index active_job_asked on {schema}.active_job (id) where ask is not null;

-- A confirm writes a batch of neighbours in one statement: each needs the room of its own new version beside it.
alter table {schema}.active_job set (fillfactor = 50);
