-- Run once in each database of the pairwise check: keep a situation, put it back, and read what has become of it.
create schema stage;
create table stage.active_job as table pgbeat.active_job with no data;
create table stage.open_work as table pgbeat.open_work with no data;
create table stage.finished_job as table pgbeat.finished_job with no data;
create table stage.periodic_task as table pgbeat.periodic_task with no data;
create table stage.periodic_task_state as table pgbeat.periodic_task_state with no data;
create table stage.task_group as table pgbeat.task_group with no data;
alter table stage.task_group drop column limited;  -- generated
create table stage.group_failure as table pgbeat.group_failure with no data;
create table stage.group_to_check as table pgbeat.group_to_check with no data;
create table stage.dependency as table pgbeat.dependency with no data;
create table stage.dependency_to_check as table pgbeat.dependency_to_check with no data;
create table stage.backfill as table pgbeat.backfill with no data;

create function stage.keep() returns void language sql as $$
    delete from stage.active_job; insert into stage.active_job table pgbeat.active_job;
    delete from stage.open_work; insert into stage.open_work table pgbeat.open_work;
    delete from stage.finished_job; insert into stage.finished_job table pgbeat.finished_job;
    delete from stage.periodic_task; insert into stage.periodic_task table pgbeat.periodic_task;
    delete from stage.periodic_task_state; insert into stage.periodic_task_state table pgbeat.periodic_task_state;
    delete from stage.task_group; insert into stage.task_group select
        name, max_active, ordered, rate_limit, waits_for, pause_on_failure, state, paused, pause_reason, rate_interval,
        next_turn_at, last_served
        from pgbeat.task_group;
    delete from stage.group_failure; insert into stage.group_failure table pgbeat.group_failure;
    delete from stage.group_to_check; insert into stage.group_to_check table pgbeat.group_to_check;
    delete from stage.dependency; insert into stage.dependency table pgbeat.dependency;
    delete from stage.dependency_to_check; insert into stage.dependency_to_check table pgbeat.dependency_to_check;
    delete from stage.backfill; insert into stage.backfill table pgbeat.backfill;
$$;

create function stage.empty() returns void language sql set session_replication_role = replica as $$
    delete from pgbeat.active_job; delete from pgbeat.finished_job; delete from pgbeat.periodic_task;
    delete from pgbeat.periodic_task_state; delete from pgbeat.task_group; delete from pgbeat.backfill;
    delete from pgbeat.open_work; delete from pgbeat.node; delete from pgbeat.group_failure;
    delete from pgbeat.group_to_check; delete from pgbeat.dependency; delete from pgbeat.dependency_to_check;
$$;

-- Without the triggers: the rows are put back as they were.
create function stage.restore() returns void language plpgsql set session_replication_role = replica as $$
begin
    delete from pgbeat.active_job; insert into pgbeat.active_job table stage.active_job;
    delete from pgbeat.open_work; insert into pgbeat.open_work table stage.open_work;
    delete from pgbeat.finished_job; insert into pgbeat.finished_job table stage.finished_job;
    delete from pgbeat.periodic_task; insert into pgbeat.periodic_task table stage.periodic_task;
    delete from pgbeat.periodic_task_state; insert into pgbeat.periodic_task_state table stage.periodic_task_state;
    delete from pgbeat.task_group; insert into pgbeat.task_group (
        name, max_active, ordered, rate_limit, waits_for, pause_on_failure, state, paused, pause_reason, rate_interval,
        next_turn_at, last_served)
        table stage.task_group;
    delete from pgbeat.group_failure; insert into pgbeat.group_failure table stage.group_failure;
    delete from pgbeat.group_to_check; insert into pgbeat.group_to_check table stage.group_to_check;
    delete from pgbeat.dependency; insert into pgbeat.dependency table stage.dependency;
    delete from pgbeat.dependency_to_check; insert into pgbeat.dependency_to_check table stage.dependency_to_check;
    delete from pgbeat.backfill; insert into pgbeat.backfill table stage.backfill;
end
$$;

-- What means something, a line for each row: no counters of versions, no notes for people, and of the instant at which a
-- beat looks at a job again only whether that is by when it has to. Ids that are made by chance are all the same id.
create function stage.outcome() returns text[] language plpgsql stable as $$
begin
    return (
        select array_agg(regexp_replace(
            kind || ' ' || line,
            '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}', 'new', 'g'))
        from (
            select 'active_job' as kind,
                to_jsonb(job) - '{check_at,beat,message,mark_lease,created_at}'::text[]
                || jsonb_build_object('args', job.message -> 'args', 'looked_at_in_time', job.check_at <= greatest(
                    pgbeat.now(),
                    case when job.state = 'pending' then job.marked_at + job.mark_lease else job.busy_until end)) as line
            from pgbeat.active_job as job
            union all
            select 'finished_job', to_jsonb(job) - '{beat,created_at,busy_until}'::text[]
                || jsonb_build_object('restart_data', job.restart_data is not null)
            from pgbeat.finished_job as job
            union all
            select 'open_work', to_jsonb(work) from pgbeat.open_work as work
            union all
            select 'periodic_task', to_jsonb(stored) - '{revision,planned_revision,mark_lease,updated_at,schedule_set_at,
                    failures_from,pickup_deadline,windows_revision,timezone}'::text[]
                || jsonb_build_object('planned', stored.revision = stored.planned_revision)
            from pgbeat.periodic_task as stored
            union all
            select 'periodic_task_state', to_jsonb(counted) - 'failures_from' from pgbeat.periodic_task_state as counted
            union all
            select 'task_group', to_jsonb(known) from pgbeat.task_group as known
            union all
            select 'group_failure', to_jsonb(failure) - 'failed_at' from pgbeat.group_failure as failure
            union all
            -- A job may have its turn, and no beat looks.
            select 'group_with_room', jsonb_build_object('name', name) from pgbeat.groups_with_room() as name
            where not exists (select from pgbeat.group_to_check as known where known.group_name = name)
            union all
            select 'backfill', to_jsonb(filling) - '{mark_lease,created_at}'::text[] from pgbeat.backfill as filling
        ) as lines);
end
$$;
