-- What makes races and other people's settings harmless.
-- May run before the new code; nodes of older packages idle from then on: functions answer in other types.

-- Which definitions were applied last: packages of one version may bring different ones.
alter table {schema}.schema_version add column definitions text;

-- A function cannot be replaced by one that answers in other columns.
drop function if exists {schema}.start(uuid, int, int, uuid, text, double precision);

-- Schemas made before version 6 was complete lack these.
alter table {schema}.periodic_task add column if not exists mark_lease interval;
alter table {schema}.active_job add column if not exists mark_lease interval;
create index if not exists periodic_task_of_code on {schema}.periodic_task (managed_by) where declared is not null;
create index if not exists finished_job_newest on {schema}.finished_job (created_at);
do $$
begin
    if not exists (select from pg_constraint
                   where conrelid = '{schema}.periodic_task'::regclass and conname = 'periodic_task_spans_in_range')
    then
        alter table {schema}.periodic_task
            drop constraint periodic_task_instants_in_range,
            add constraint periodic_task_instants_in_range check (
                least(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at, created_at,
                      schedule_set_at, planned_from) >= '0001-01-02 00:00+00'
                and greatest(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at,
                             created_at, schedule_set_at, planned_from) <= '9999-12-30 00:00+00'),
            add constraint periodic_task_spans_in_range check (
                (catchup_window <= interval '100 years') is not false
                and (max_run_time <= interval '1 year') is not false
                and (pickup_deadline <= interval '1 year') is not false),
            add constraint periodic_task_run_count_in_range check (run_count between 0 and 2000000000);
    end if;
end
$$;
