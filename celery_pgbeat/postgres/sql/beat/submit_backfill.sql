-- Submit one step of a backfill: its jobs and how far it has come, fenced by this very mark.
--
-- It takes the mark off the backfill and returns one of these:
--   submitted  done
--   waiting    done, and the jobs wait: for other tasks, for slots in their group, or for people
--   conflict   nothing was done: another transaction locks the periodic task, has changed it, or has made a job first
--   lost       nothing was done: the mark was lost, another beat has marked the backfill since
-- It locks the periodic task and takes off the mark of that row before it looks what else is under way: each statement
-- of a function sees what was committed before it. So it sees what another transaction has submitted of this name, or
-- else that transaction finds its own mark taken off. And of two backfills one makes the job that an occurrence lacks.
-- One of the backfill's jobs is exclusive, so it is in the unique index that is the overlap rule: if a worker starts a
-- job in state `lost` at this moment, that job meets it there.
-- function
create or replace function {schema}.submit_backfill(
    backfill uuid,
    beat text,
    marked_at timestamptz,
    revision bigint,
    jobs uuid[],
    scheduled_fors timestamptz[],
    reached timestamptz,
    next_at timestamptz,
    total bigint,
    skipped bigint,
    pickup_deadline interval,
    timezone text,
    full_acts_as text
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    filling {schema}.backfill;
    definition {schema}.periodic_task;
    is_free boolean := true;
    wait_reason text;
begin
    select * into filling from {schema}.backfill as stored
    where stored.id = submit_backfill.backfill and stored.state = 'running'
        and stored.marked_by = submit_backfill.beat and stored.marked_at = submit_backfill.marked_at
    for no key update skip locked;
    if not found then
        return 'lost';
    end if;

    if cardinality(submit_backfill.jobs) > 0 then
        update {schema}.periodic_task as stored
        set marked_by = null, marked_at = null
        where stored.name = any (array(
            select name from {schema}.periodic_task as unchanged
            where unchanged.name = filling.periodic_task and unchanged.revision = submit_backfill.revision
            for no key update skip locked))
        returning stored.* into definition;
        is_free := found
            and ({schema}.undecided_from(definition) <= submit_backfill.reached) is not true
            and {schema}.room_of(filling) >= cardinality(submit_backfill.jobs)
            and (filling.mode = 'all' or not exists (
                select from {schema}.active_job as other
                where other.periodic_task = filling.periodic_task and other.origin <> 'manual'
                    and other.scheduled_for = any (submit_backfill.scheduled_fors)
                union all
                select from {schema}.finished_job as other
                where other.periodic_task = filling.periodic_task and other.origin <> 'manual'
                    and other.scheduled_for = any (submit_backfill.scheduled_fors)
                    and other.state <> 'skipped'
                    and (filling.mode = 'missing' or other.state in ('succeeded', 'untracked'))));
        wait_reason := case
            when {schema}.waits_for_others(definition.after, definition.schedule) then 'upstream'
            when {schema}.is_limited(definition.group_name) then 'slot'
        end;
        if is_free then
            begin
                insert into {schema}.active_job
                select created.*
                from unnest(submit_backfill.jobs, submit_backfill.scheduled_fors)
                    with ordinality as wanted (job, scheduled_for, place)
                cross join lateral (
                    select wanted.place = 1 and definition.overlap <> 'allow' and not exists (
                        select from {schema}.active_job as own
                        where own.backfill = filling.id and own.exclusive) as is_exclusive
                ) as first
                cross join lateral {schema}.new_job(
                    definition, wanted.job, wanted.scheduled_for, null, 'backfill', first.is_exclusive,
                    wait_reason, submit_backfill.pickup_deadline, submit_backfill.timezone,
                    submit_backfill.full_acts_as, filling.marked_by, filling.marked_at, filling.mark_lease,
                    filling.id) as created
                on conflict (id) do nothing;
            exception when unique_violation then
                is_free := false;
            end;
        end if;
    end if;

    if not is_free then
        update {schema}.backfill as stored set marked_by = null, marked_at = null where stored.id = filling.id;
        return 'conflict';
    end if;
    update {schema}.backfill as stored
    set reached = submit_backfill.reached,
        next_at = submit_backfill.next_at,
        total = submit_backfill.total,
        submitted = least(stored.submitted + cardinality(submit_backfill.jobs), 2000000000000000000),
        skipped = least(stored.skipped + submit_backfill.skipped, 2000000000000000000),
        state = case when submit_backfill.next_at is null then 'finished' else 'running' end,
        finished_at = case when submit_backfill.next_at is null then {schema}.now() end,
        marked_by = null,
        marked_at = null
    where stored.id = filling.id;
    return case when wait_reason is not null or definition.kind = 'human' then 'waiting' else 'submitted' end;
end
$$;
-- call
select {schema}.submit_backfill(
    %(backfill)s::uuid, %(beat)s, %(marked_at)s::timestamptz, %(revision)s::bigint, %(jobs)s::uuid[],
    %(scheduled_fors)s::timestamptz[], %(reached)s::timestamptz, %(next_at)s::timestamptz, %(total)s::bigint,
    %(skipped)s::bigint, make_interval(secs => %(pickup_deadline)s), %(timezone)s, %(full_acts_as)s) as outcome
