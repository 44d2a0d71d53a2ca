-- The view `job`, and the days of the history. May run before the new code.

create view {schema}.job as
select id, periodic_task, scheduled_for, null::timestamptz as last_scheduled_for, 1 as occurrences, origin, state,
       null::text as reason, null::uuid as blocked_by, task, queue, created_at, submitted_at, started_at,
       null::timestamptz as finished_at, attempt, sends, beat, worker, error, busy_until
from {schema}.active_job
union all
select id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state,
       reason, blocked_by, task, queue, created_at, submitted_at, started_at,
       finished_at, attempt, sends, beat, worker, error, busy_until
from {schema}.finished_job;

-- What a lost job that never started needs to start after all.
create function {schema}.revival_of(job {schema}.active_job) returns jsonb
language sql stable
as $$
    select jsonb_build_object('exclusive', job.exclusive, 'message', job.message, 'on_lost', job.on_lost,
                              'tracking', job.tracking, 'max_run_time', job.max_run_time,
                              'pickup_deadline', job.pickup_deadline)
$$;

-- Make the partitions of today and of the coming days that are missing; answers how many it made.
-- Rows of a day that fell into the default partition move out of it first, in the same transaction.
-- A lock that is not to be had within 200 ms is an error: the caller comes again later.
create function {schema}.make_days(days_ahead int default 14) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set timezone = 'UTC'
as $$
declare
    day date;
    partition text;
    made int := 0;
begin
    for day in
        select generate_series(({schema}.now() at time zone 'UTC')::date, ({schema}.now() at time zone 'UTC')::date + days_ahead,
                               interval '1 day')::date
    loop
        partition := 'finished_job_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('{schema}.' || partition) is not null;
        execute format('create table {schema}.%I (like {schema}.finished_job including defaults including constraints)', partition);
        execute format('with moved as (delete from {schema}.finished_job_default where created_at >= %L and created_at < %L returning *) '
                       'insert into {schema}.%I select * from moved', day, day + 1, partition);
        execute format('alter table {schema}.finished_job attach partition {schema}.%I for values from (%L) to (%L)',
                       partition, day, day + 1);
        made := made + 1;
    end loop;
    return made;
end
$$;

-- Drop the days of the history that are wholly older than the retention; answers how many it dropped.
create function {schema}.prune(retention interval) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set timezone = 'UTC'
as $$
declare
    keep_from constant date := (({schema}.now() - retention) at time zone 'UTC')::date;
    partition text;
    dropped int := 0;
begin
    for partition in
        select child.relname
        from pg_inherits
        join pg_class child on child.oid = inhrelid
        where inhparent = '{schema}.finished_job'::regclass
            and child.relname ~ '^finished_job_[0-9]{8}$'
            and to_date(right(child.relname, 8), 'YYYYMMDD') < keep_from
        order by child.relname
    loop
        execute format('drop table {schema}.%I', partition);
        dropped := dropped + 1;
    end loop;
    delete from {schema}.finished_job_default where created_at < keep_from;
    return dropped;
end
$$;

revoke execute on function {schema}.make_days(int) from public;
revoke execute on function {schema}.prune(interval) from public;

select {schema}.make_days();
