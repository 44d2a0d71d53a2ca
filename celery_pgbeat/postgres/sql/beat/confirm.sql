-- Confirm that the broker took these jobs' messages: pending -> sent.
--
-- A worker may be faster: a job that already runs keeps its state. If another beat has taken a job over, that beat
-- confirms it. If no worker reports (tracking = send), nothing more is known of the job after this, so it is final. A
-- row that another transaction locks at this moment is skipped, and returned with `locked` true: another beat's recover
-- locks a row before it sees that its mark is new. The only column that is in an index is `check_at`. It changes only
-- where the new deadline comes before it, or where the job was to be sent again.
--
-- A function, because that keeps its plan. Left to itself, Postgres would make a new one each time, because the new one
-- seems to cost less for a few jobs; that takes as long as the confirm of some. A plan that was made while the table
-- was small must serve when it has grown, so it may only use indexes, and there are no joins: a thousand jobs would be
-- compared with a thousand. What is locked is found again by its place (`ctid`): no row moves while it is locked. No
-- statement here waits for a lock, so the order of the locks does not matter.
-- function
create or replace function {schema}.confirm(jobs uuid[], delays jsonb, beat text)
returns table (id uuid, locked boolean)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    some_wait constant boolean := confirm.delays <> '{}';
    places tid[];
begin
    -- A statement by itself: the next one finds the rows as they are locked, in their newest versions.
    places := array(
        select ctid from {schema}.active_job
        where id = any (confirm.jobs) and marked_by = confirm.beat
        for no key update skip locked);
    return query
    with deleted as (
        delete from {schema}.active_job as job
        where ctid = any (places) and state = 'pending' and tracking = 'send'
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
            error = case when starts_with(error, 'closed queue: ') then null else error end,
            busy_until = {schema}.now() + pickup_deadline
                + case when some_wait then make_interval(secs => coalesce((confirm.delays ->> id::text)::float8, 0))
                    else interval '0' end,
            check_at = least(nullif(check_at, '-infinity'), {schema}.now() + pickup_deadline
                + case when some_wait then make_interval(secs => coalesce((confirm.delays ->> id::text)::float8, 0))
                    else interval '0' end),
            marked_by = null,
            marked_at = null
        where ctid = any (places) and state = 'pending' and tracking <> 'send'
        returning id
    )
    select id, false as locked from confirmed
    union all
    select id, true from {schema}.active_job
    where cardinality(places) < cardinality(confirm.jobs) and id = any (confirm.jobs)
        and ctid <> all (places) and marked_by = confirm.beat and state = 'pending';
end
$$;
-- call
select count(*) filter (where not locked) as confirmed,
    -- Each of them only if they are not all: to read a thousand ids takes a beat as long as to write them.
    case
        when count(*) filter (where not locked) < %(count)s::int
            then array_agg(id) filter (where not locked)
    end as some,
    array_agg(id) filter (where locked) as locked
from {schema}.confirm(%(jobs)s::uuid[], %(delays)s::jsonb, %(beat)s)
