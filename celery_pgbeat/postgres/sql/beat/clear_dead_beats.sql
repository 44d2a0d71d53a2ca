-- Clear what dead beats left: their marks and their unsent jobs. Never called for a beat that may be alive.
--
-- A row that another transaction locks is skipped, because a starting beat does not wait: its mark counts until the
-- lease is over. So do the marks on jobs of a beat whose lease is longer than ours.
with unmarked as (
    update {schema}.periodic_task
    set marked_by = null, marked_at = null
    where name = any (array(
        select name from {schema}.periodic_task
        where marked_by = any (%(beats)s::text[]) and {is_on} and next_run_at <= {schema}.now()
        order by name
        for no key update skip locked))
    returning name
),
given_back as (
    update {schema}.active_job
    set marked_by = null, marked_at = null, check_at = '-infinity'
    where check_at <= {schema}.now() + make_interval(secs => %(lease)s) and state = 'pending'
        and marked_by = any (%(beats)s::text[])
    returning id
),
left_to_others as (
    update {schema}.backfill
    set marked_by = null, marked_at = null
    where id = any (array(
        select id from {schema}.backfill
        where state = 'running' and marked_by = any (%(beats)s::text[])
        for no key update skip locked))
)
select (select count(*) from unmarked) as marks, (select count(*) from given_back) as jobs
