-- Confirm that the broker took these jobs' messages: pending -> sent.
--
-- A worker may be faster: a job that already runs keeps its state. If another beat has taken a job over, that beat
-- confirms it. If no worker reports (tracking = send), nothing more is known of the job after this, so it is final. A
-- row that another transaction locks at this moment is skipped, and returned with `held` true: another beat's recover
-- locks a row before it sees that its mark is new. The only column that is in an index is `check_at`. It changes only
-- where the new deadline comes before it, or where the job was to be sent again.
--
-- A function, because that keeps its plan. A plan that was made while the table was small must serve when it has grown,
-- so it may only use indexes, and there are no joins: a thousand jobs would be compared with a thousand.
-- function
create or replace function {schema}.confirm(jobs uuid[], delays jsonb, beat text) returns table (id uuid, held boolean)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    with locked as materialized (
        select id, tracking, state from {schema}.active_job
        where id = any (confirm.jobs) and marked_by = confirm.beat
        order by id
        for no key update skip locked
    ),
    unconfirmed as materialized (
        select id, tracking from locked where state = 'pending'
    ),
    deleted as (
        delete from {schema}.active_job as job
        where id = any (array(select id from unconfirmed where tracking = 'send'))
        returning job
    ),
    archived as (
        insert into {schema}.finished_job
        select final.* from deleted
        cross join lateral {schema}.archived(job, 'untracked', sent_at => {schema}.now()) as final
    ),
    confirmed as (
        update {schema}.active_job
        set state = 'sent',
            sent_at = {schema}.now(),
            busy_until = {schema}.now() + pickup_deadline
                + make_interval(secs => coalesce((confirm.delays ->> id::text)::float8, 0)),
            check_at = least(nullif(check_at, '-infinity'), {schema}.now() + pickup_deadline
                + make_interval(secs => coalesce((confirm.delays ->> id::text)::float8, 0))),
            marked_by = null,
            marked_at = null
        where id = any (array(select id from unconfirmed where tracking <> 'send'))
        returning id
    )
    select id, false as held from confirmed
    union all
    select id, true from (
        select id, state from {schema}.active_job
        where (select count(*) from locked) < cardinality(confirm.jobs)
            and id = any (confirm.jobs) and marked_by = confirm.beat and id not in (select id from locked)
        offset 0) as other
    where state = 'pending';
end
$$;
-- call
select count(*) filter (where not held) as confirmed,
    -- Each of them only if they are not all: to read a thousand ids takes a beat as long as to write them.
    case
        when count(*) filter (where not held) < cardinality(%(jobs)s::uuid[])
            then array_agg(id) filter (where not held)
    end as some,
    array_agg(id) filter (where held) as locked
from {schema}.confirm(%(jobs)s::uuid[], %(delays)s::jsonb, %(beat)s)
