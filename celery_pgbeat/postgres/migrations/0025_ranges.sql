-- What beats and workers write is bounded as well: a worker's role or a restored dump may write an instant, a span or a
-- number with which the beats' statements cannot calculate, and one such row would stop all beats.
-- May run before the new code. Reads periodic_task and active_job once.

-- A span is tried where it is used, on an instant: '12000000 months -360000000 days' compares as nothing.
-- Not valid: a row that is beyond them already must not stop the migration.
alter table {schema}.periodic_task
    drop constraint if exists periodic_task_instants_in_range,
    add constraint periodic_task_instants_in_range check (
        least(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at, created_at,
              updated_at, schedule_set_at, planned_from, failures_from, judged_from, decided_anew_at)
            >= '0001-01-02 00:00+00'
        and greatest(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at, created_at,
                     updated_at, schedule_set_at, planned_from, failures_from, judged_from, decided_anew_at)
            <= '9999-12-30 00:00+00') not valid,
    drop constraint if exists periodic_task_spans_in_range,
    add constraint periodic_task_spans_in_range check (
        catchup_window <= interval '100 years'
        and max_run_time <= interval '366 days'
        and pickup_deadline <= interval '366 days'
        and timestamp '2000-01-01' + jitter between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + min_gap between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + max_run_time between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + pickup_deadline between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + mark_lease between '2000-01-01' and '2001-01-01') not valid,
    drop constraint if exists periodic_task_run_count_in_range,
    add constraint periodic_task_counts_in_range check (
        run_count between 0 and 2000000000
        and greatest(revision, planned_revision) <= 9000000000000000000) not valid;

-- busy_until may be infinite, and check_at: nothing is calculated from them.
alter table {schema}.active_job
    add constraint active_job_instants_in_range check (
        least(scheduled_for, due_at, created_at, submitted_at, started_at, attempt_at, marked_at, busy_until)
            >= '0001-01-02 00:00+00'
        and greatest(scheduled_for, due_at, created_at, submitted_at, started_at, attempt_at, marked_at)
            <= '9999-12-30 00:00+00') not valid,
    add constraint active_job_spans_in_range check (
        timestamp '2000-01-01' + min_gap between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + max_run_time between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + pickup_deadline between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + mark_lease between '2000-01-01' and '2001-01-01') not valid,
    add constraint active_job_counts_in_range check (
        least(run, attempt, sends, resends, refusals) >= 0
        and greatest(run, attempt, sends, resends, refusals, slot) <= 2000000000) not valid,
    add constraint active_job_size check (
        pg_column_size(message) <= 720000
        and octet_length(task) <= 4000 and octet_length(queue) <= 4000 and octet_length(error) <= 8000) not valid;

alter table {schema}.finished_job
    add constraint finished_job_origin_known
        check (origin in ('schedule', 'catchup', 'backfill', 'manual')) not valid,
    add constraint finished_job_instants_in_range check (
        least(scheduled_for, last_scheduled_for, created_at, submitted_at, started_at, finished_at) >= '0001-01-02 00:00+00'
        and greatest(scheduled_for, last_scheduled_for, created_at, submitted_at, started_at, finished_at)
            <= '9999-12-30 00:00+00') not valid,
    add constraint finished_job_size check (
        octet_length(task) <= 4000 and octet_length(queue) <= 4000 and octet_length(error) <= 8000) not valid;

alter table {schema}.periodic_task_state
    add constraint periodic_task_state_instants_in_range check (
        least(last_started_at, failures_from, last_failed_at, row_created_at) >= '0001-01-02 00:00+00'
        and greatest(last_started_at, failures_from, last_failed_at, row_created_at) <= '9999-12-30 00:00+00') not valid;

alter table {schema}.backfill
    drop constraint if exists backfill_instants_in_range,
    add constraint backfill_instants_in_range check (
        least(since, reached, next_at, created_at, finished_at, marked_at) >= '0001-01-02 00:00+00'
        and greatest(until, reached, next_at, created_at, finished_at, marked_at) <= '9999-12-30 00:00+00') not valid,
    add constraint backfill_lease_in_range check (
        timestamp '2000-01-01' + mark_lease between '2000-01-01' and '2001-01-01') not valid,
    add constraint backfill_counts_in_range check (
        least(total, submitted, passed_over) >= 0
        and greatest(total, submitted, passed_over) <= 9000000000000000000) not valid;

alter table {schema}.node
    add constraint node_instants_in_range check (
        least(started_at, last_seen_at) >= '0001-01-02 00:00+00'
        and greatest(started_at, last_seen_at) <= '9999-12-30 00:00+00') not valid,
    add constraint node_size check (
        octet_length(id) <= 1000 and octet_length(hostname) <= 1000 and octet_length(version) <= 1000) not valid;

alter table {schema}.declaration
    add constraint declaration_instants_in_range check (
        least(first_seen_at, last_seen_at, listening_since) >= '0001-01-02 00:00+00'
        and greatest(first_seen_at, last_seen_at, listening_since) <= '9999-12-30 00:00+00') not valid,
    add constraint declaration_dead_after_in_range check (
        timestamp '2000-01-01' + dead_after between '2000-01-01' and '2001-01-01') not valid;

alter table {schema}.declaration_in_force
    add constraint declaration_in_force_revision_in_range check (revision <= 9000000000000000000) not valid;

alter table {schema}.alert
    add constraint alert_instants_in_range check (
        least(due_at, raised_at) >= '0001-01-02 00:00+00'
        and greatest(due_at, raised_at) <= '9999-12-30 00:00+00') not valid;

-- Once they are valid, a dump brings them with the tables, and its rows are looked at as they are restored; constraints
-- that are not valid come after the rows. The history is left out: it may be long.
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
