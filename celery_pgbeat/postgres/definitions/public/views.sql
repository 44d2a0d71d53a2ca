-- The views that people read, explain(), and the days of the history.
--
-- All of it is read from the tables and now() alone: it must be right when every beat is dead.

create or replace view {schema}.job as
select {shown of active_job}
from {schema}.active_job as job
union all
select {shown of finished_job}
from {schema}.finished_job;

-- When each periodic task is due next; `order by next_run_at` is an index scan.
create or replace view {schema}.upcoming as
select name, next_run_at, planned_for
from {schema}.periodic_task
where {is_on} and next_run_at is not null;

-- Make the missing partitions of today and of the coming days; returns how many, NULL if another session does it at
-- this moment. Rows of a day that are in the default partition move out of it first, in the same transaction. A table
-- lock that cannot be taken within 200 ms is an error: the caller tries again later.
create or replace function {schema}.make_days(days_ahead int default 14) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set timezone = 'UTC'
as $$
declare
    today constant date := {schema}.now() at time zone 'UTC';
    day date;
    partition text;
    made int := 0;
begin
    if (days_ahead between 0 and 366) is not true then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('days_ahead is %s, not 0 to 366', coalesce(days_ahead::text, 'null'));
    end if;
    if {schema}.try_lock('make_days') is null then
        return null;
    end if;
    for day in
        select generate_series(today, today + days_ahead, interval '1 day')::date
    loop
        partition := 'finished_job_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('{schema}.' || partition) is not null;
        execute format('create table {schema}.%I (like {schema}.finished_job including defaults including constraints)',
                       partition);
        execute format('comment on table {schema}.%I is %L', partition, 'Internal: a day of finished_job.');
        execute format('with moved as (delete from {schema}.finished_job_default '
                       'where created_at >= %L and created_at < %L returning *) '
                       'insert into {schema}.%I select * from moved', day, day + 1, partition);
        execute format('alter table {schema}.finished_job attach partition {schema}.%I for values from (%L) to (%L)',
                       partition, day, day + 1);
        made := made + 1;
    end loop;
    return made;
end
$$;

-- Drop the days of the history that are wholly older than the retention, and backfills that had ended by then; returns
-- how many days it dropped. Another session that does it at this moment is left to it.
--
-- The last records of tasks that others come after are kept, in the default partition: a yearly task has ended for
-- those that come after it, however short the retention is.
create or replace function {schema}.prune(retention interval) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set timezone = 'UTC'
as $$
declare
    keep_from constant date := (({schema}.now() - {schema}.kept_for('retention', retention)) at time zone 'UTC')::date;
    days text[];
    day text;
    kept {schema}.finished_job[] := '{}';
begin
    if {schema}.try_lock('prune') is null then
        return 0;
    end if;
    days := array(
        select child.relname
        from pg_inherits
        join pg_class child on child.oid = inhrelid
        where inhparent = '{schema}.finished_job'::regclass
            and child.relname ~ '^finished_job_[0-9]{8}$'
            and to_date(right(child.relname, 8), 'YYYYMMDD') < keep_from
        order by child.relname);
    if days <> '{}' or exists (select from {schema}.finished_job_default where created_at < keep_from) then
        kept := array(
            select final::{schema}.finished_job
            from (select distinct upstream from {schema}.dependency) as known
            cross join lateral {schema}.last_records(known.upstream) as final
            where final.created_at < keep_from);
    end if;
    foreach day in array days loop
        execute format('drop table {schema}.%I', day);
    end loop;
    delete from {schema}.finished_job_default
    where created_at < keep_from and id <> all (array(select one.id from unnest(kept) as one));
    insert into {schema}.finished_job
    select one.* from unnest(kept) as one
    where not exists (select from {schema}.finished_job_default as there where there.id = one.id);
    delete from {schema}.backfill where state <> 'running' and finished_at < keep_from;
    -- The state of names that no row has any more. A state that is being written at this moment is kept.
    delete from {schema}.periodic_task_state where name = any (array(
        select name from {schema}.periodic_task_state as known
        where coalesce(greatest(last_started_at, last_failed_at), '-infinity') < keep_from
            and not exists (select from {schema}.periodic_task as task where task.name = known.name)
        for update skip locked));
    return cardinality(days);
end
$$;

revoke execute on function {schema}.make_days(int) from public;
revoke execute on function {schema}.prune(interval) from public;

select {schema}.make_days();

-- One sentence: why a periodic task is, or is not, running now. It acts for the owner, so that its caller needs no
-- right to read arguments.
create or replace function {schema}.explain(name text) returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    task {schema}.periodic_task;
    job {schema}.active_job;
    others int;
    nodes record;
    refusals constant text := {schema}.refusals_in_words(explain.name);
begin
    select * into task from {schema}.periodic_task as stored where stored.name = explain.name;
    if not found and refusals is not null then
        return {schema}.ended({schema}.quoted(explain.name) || ' is not running, and has no row: ' || refusals);
    elsif not found then
        perform {schema}.refuse_unknown(explain.name);
    end if;
    select * into nodes from {schema}.nodes_in_words();
    select * into job from {schema}.active_job as active
    where active.periodic_task = task.name
    order by active.state = 'running' desc, active.state = 'error' desc, active.wait_reason is not null,
        active.created_at
    limit 1;
    select count(*) - 1 into others from {schema}.active_job as active where active.periodic_task = task.name;
    return {schema}.ended({schema}.quoted(task.name)
        || case when job.state = 'running' then ' is running: ' else ' is not running: ' end
        || concat_ws('; ',
            {schema}.job_in_words(job, nodes.no_tracker),
            (select {schema}.lost_message_in_words() from {schema}.lost_message as lost
             where lost.job = job.id and {is_still_lost}),
            case when others > 0 then format('other jobs of it that are not final: %s', others) end,
            {schema}.row_in_words(task, nodes.no_beat, nodes.beat_seen),
            {schema}.backfills_in_words(task.name),
            case when job.id is null then {schema}.last_in_words(task.name) end,
            case when job.id is not null or {schema}.waits_for_a_beat(task) then nodes.no_beat end,
            'the row stays as it was declared before: ' || refusals));
end
$$;

revoke execute on function {schema}.explain(text) from public;

-- The columns of a periodic task that people look at, without what beats and triggers write for themselves.
create or replace view {schema}.task as
select {shown} from {schema}.periodic_task;

-- The state of each periodic task. Each row looks up its jobs by its own name, so that a page of a million rows is as
-- fast as one of a hundred. Failures are counted only if the last job did not succeed.
create or replace view {schema}.status as
select stored.name,
    {schema}.state_in_words(stored, active.job) as state,
    stored.next_run_at,
    last.state as last_state,
    last.scheduled_for as last_scheduled_for,
    case
        when {is_on stored} and stored.next_run_at <= {schema}.now()
        then {schema}.now() - stored.next_run_at
    end as lateness,
    coalesce(failing.times, 0) as failures,
    stored.problem
from {schema}.periodic_task as stored
left join lateral (
    select job from {schema}.active_job as job
    where job.periodic_task = stored.name
    order by job.state = 'running' desc, job.state = 'error' desc, job.wait_reason is not null, job.created_at
    limit 1
) as active on true
left join lateral (
    select state, coalesce(last_scheduled_for, scheduled_for) as scheduled_for, created_at
    from {schema}.finished_job
    where periodic_task = stored.name
    order by created_at desc
    limit 1
) as final on true
left join lateral (
    select state, scheduled_for
    from (
        select final.state, final.scheduled_for, final.created_at
        where final.state is not null
        union all
        (select state, scheduled_for, created_at from {schema}.active_job
         where periodic_task = stored.name
         order by created_at desc
         limit 1)
    ) as newest
    order by created_at desc, scheduled_for desc
    limit 1
) as last on true
left join lateral (
    select count(*)::int as times
    from (
        select state,
            count(*) filter (where state = 'succeeded')
                over (order by created_at desc rows unbounded preceding) as successes
        from (
            select state, created_at from {schema}.finished_job
            where periodic_task = stored.name and final.state <> 'succeeded'
            order by created_at desc
            limit 100
        ) as latest
    ) as counted
    where state = 'failed' and successes = 0
) as failing on true;

-- What should have happened and has not: each run, resumption or plan that is late by more than 2 x (lease + poll). The
-- reasons come last, so that a query for the latest hundred of a million computes a hundred of them.
create or replace view {schema}.overdue as
select late.name, late.due_at, {schema}.now() - late.due_at as late_by,
    concat_ws('; ',
        case
            when (late.job).id is not null then {schema}.job_in_words(late.job, nodes.no_tracker)
            else {schema}.row_in_words(late.task, nodes.no_beat, nodes.beat_seen)
        end,
        case late.code when 'lost_message' then {schema}.lost_message_in_words() end,
        nodes.no_beat) as reason,
    late.code
from {schema}.nodes_in_words() as nodes
cross join lateral (
    select stored.name, stored.next_run_at as due_at, stored as task, null::{schema}.active_job as job,
        case when stored.marked_at is not null then 'marked' when stored.lazy then 'lazy' else 'undecided' end as code
    from {schema}.periodic_task as stored
    where {is_on stored} and stored.next_run_at < {schema}.now()
        and stored.next_run_at < {schema}.now() - {schema}.patience(stored.mark_lease)
    union all
    select unplanned.name, unplanned.updated_at,
        (select stored from {schema}.periodic_task as stored where stored.name = unplanned.name), null, 'unplanned'
    from {schema}.to_be_planned() as unplanned
    where unplanned.updated_at < {schema}.now() - {schema}.patience(unplanned.mark_lease)
    union all
    select stored.name, stored.paused_until, stored, null, 'unresumed'
    from {schema}.periodic_task as stored
    where not stored.enabled and stored.paused_until < {schema}.now()
        and stored.paused_until < {schema}.now() - {schema}.patience(stored.mark_lease)
    union all
    -- Of the same types, or Postgres computes each column of each branch.
    select job.periodic_task::text, late.due_at, null, job, late.code
    from {schema}.active_job as job
    left join {schema}.lost_message as lost (id, noticed_at) on lost.id = job.id and {is_still_lost}
    cross join lateral {schema}.late_job(job, lost.id is not null, nodes.no_tracker is not null) as late
    -- By index: a hundred thousand jobs that people have, or may pick up, are not read for the few that are late.
    where job.check_at < 'infinity' or job.wait_reason = 'slot' or job.on_error = 'ask' and job.state = 'error'
        or job.due_by < {schema}.now()
) as late;
