-- Confirm that the broker took these jobs' messages: pending -> submitted.
--
-- A worker may be faster: a job that already runs keeps its state. A job that another beat has taken over
-- is that beat's to confirm. Where nobody reports (tracking = send) our knowledge ends here, so the job is final.
-- What somebody holds at this moment is stepped over and named: another beat's recover locks a row before it sees that
-- its mark is new.
-- No joins: the planner takes a table that was empty when it last looked for an empty one. The state is asked after the
-- rows are found: else the planner looks into the index of pending jobs too, where under load most of what it finds is
-- long confirmed.
with found as materialized (
    select id, tracking, state from {schema}.active_job
    where id = any (%(jobs)s::uuid[]) and marked_by = %(beat)s
    order by id
    for no key update skip locked
),
held as materialized (
    select id, tracking from found where state = 'pending'
),
ended as (
    delete from {schema}.active_job
    where id = any (array(select id from held where tracking = 'send'))
    returning *
),
kept as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, origin, state, task, queue, created_at, submitted_at, finished_at,
        run, sends, beat, busy_until)
    select id, periodic_task, scheduled_for, origin, 'submitted', task, queue, created_at, {schema}.now(), {schema}.now(),
        run, sends, beat, busy_until
    from ended
),
confirmed as (
    update {schema}.active_job
    set state = 'submitted',
        submitted_at = {schema}.now(),
        busy_until = {schema}.now() + pickup_deadline
            + make_interval(secs => coalesce((%(delays)s::jsonb ->> id::text)::float8, 0)),
        marked_by = null,
        marked_at = null
    where id = any (array(select id from held where tracking <> 'send'))
    returning id
)
select id, false as held from confirmed
union all
select id, true from (
    select id, state from {schema}.active_job
    where (select count(*) from found) < cardinality(%(jobs)s::uuid[])
        and id = any (%(jobs)s::uuid[]) and marked_by = %(beat)s and id not in (select id from found)
    offset 0) as other
where state = 'pending'
