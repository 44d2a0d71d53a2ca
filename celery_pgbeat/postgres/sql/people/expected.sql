-- Read the periodic tasks without a schedule that run after others, or one of them, with all on which they depend.
--
-- It follows the dependencies upstream, up to the tasks with a schedule of their own. Of each upstream task it returns,
-- in the order of `after`, the first and the last occurrence that has a job, or had one, since the last occurrence of
-- the row was decided: for these nothing has to be computed. The last end is looked up here and not by last_ends(): a
-- call takes longer than the search, and there may be thousands. What decides the coming runs is as in preview_row.
with recursive meant as (
    select stored.name, stored.schedule is null as follows
    from {schema}.periodic_task as stored
    where stored.after is not null and stored.schedule is null
        and case
            when %(name)s::text is null
            then stored.name = any (array(select downstream from {schema}.dependency))
            else stored.name = %(name)s::text
        end
    union
    select task.name, task.schedule is null
    from meant
    join {schema}.dependency as known on known.downstream = meant.name
    join {schema}.periodic_task as task on task.name = known.upstream
    where meant.follows
)
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
    max_runs, run_count, {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action,
    case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
    case when planned_revision <> revision and next_run_at is null then planned_for end as held_back, revision,
    planned_from, judged_from, enabled and not group_paused as enabled, problem, planned_revision, next_run_at,
    planned_for, last_run_at, planned_ahead, {schema}.now() as now, after, bounds.since, known.firsts, known.lasts
from meant
join {schema}.periodic_task as task using (name)
cross join lateral greatest(
    task.last_run_at, task.planned_from, task.start_at - interval '1 microsecond') as bounds (since)
left join lateral (
    select array_agg(least(
            under_way.earliest,
            case
                when ended.latest is not null
                then (select occurrence from {schema}.first_end(
                    given.upstream, bounds.since + interval '1 microsecond'))
            end) order by place) as firsts,
        array_agg(greatest(under_way.latest, ended.latest) order by place) as lasts
    from unnest(task.after) with ordinality as given (upstream, place)
    cross join lateral (
        select min(scheduled_for) as earliest, max(scheduled_for) as latest from {schema}.active_job as job
        where job.periodic_task = given.upstream
            and job.scheduled_for > bounds.since
    ) as under_way
    cross join lateral (
        select max(occurrence) as latest
        from (
            (select scheduled_for as occurrence from {schema}.finished_job as final
             where final.periodic_task = given.upstream and final.state <> 'skipped'
                and final.scheduled_for > bounds.since
                and final.created_at >= bounds.since - interval '1 day'
             order by scheduled_for desc
             limit 1)
            union all
            (select coalesce(last_scheduled_for, scheduled_for) from {schema}.finished_job as final
             where final.periodic_task = given.upstream and final.state = 'skipped'
                and {schema}.ends_by_skip(final.reason)
                and coalesce(last_scheduled_for, scheduled_for) > bounds.since
                and final.created_at >= bounds.since - interval '1 day'
             order by coalesce(last_scheduled_for, scheduled_for) desc
             limit 1)
        ) as final
    ) as ended
    where meant.follows
) as known on true
