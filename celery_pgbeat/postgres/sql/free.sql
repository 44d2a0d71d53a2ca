-- Free what dead beats left: their marks and their unsent jobs. Never called for a beat that may be alive.
--
-- A row that somebody holds is stepped over: a starting beat waits for nobody's open transaction, and the lease ends.
with unmarked as (
    update {schema}.periodic_task
    set marked_by = null, marked_at = null
    where name = any (array(
        select name from {schema}.periodic_task
        where marked_by = any (%(beats)s::text[]) and enabled and problem is null and next_run_at <= {schema}.now()
        order by name
        for no key update skip locked))
    returning name
),
given_back as (
    update {schema}.active_job
    set marked_by = null, marked_at = null
    where state = 'pending' and marked_by = any (%(beats)s::text[])
    returning id
)
select (select count(*) from unmarked) as marks, (select count(*) from given_back) as jobs
