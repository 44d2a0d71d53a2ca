-- Names in the tables of jobs are no longer than in that of the rows: one that just fitted into an index there was too long
-- for that of the history, and every statement that was to end such a job failed.
-- May run before the new code. Reads active_job once.

alter table {schema}.active_job
    add constraint active_job_names_length
        check (octet_length(periodic_task) <= 800 and octet_length(group_name) <= 800) not valid;
alter table {schema}.finished_job
    add constraint finished_job_name_length check (octet_length(periodic_task) <= 800) not valid;
alter table {schema}.periodic_task_state
    add constraint periodic_task_state_name_length check (octet_length(name) <= 800) not valid;
-- The total is the sum of the two.
alter table {schema}.backfill
    add constraint backfill_name_length check (octet_length(periodic_task) <= 800) not valid,
    drop constraint if exists backfill_counts_in_range,
    add constraint backfill_counts_in_range check (
        least(total, submitted, passed_over) >= 0
        and greatest(submitted, passed_over) <= 2000000000000000000
        and total <= 9000000000000000000) not valid;

do $$
declare
    of_table regclass;
    unlooked name;
begin
    for of_table, unlooked in
        select conrelid, conname from pg_constraint
        where connamespace = {channel}::regnamespace and contype = 'c' and not convalidated
            and conrelid not in (select inhrelid from pg_inherits)
            and conrelid <> '{schema}.finished_job'::regclass
    loop
        begin
            execute format('alter table %s validate constraint %I', of_table, unlooked);
        exception when others then
            raise warning '% has a row that its constraint % would refuse: %', of_table, unlooked, sqlerrm;
        end;
    end loop;
end
$$;
