-- Read the jobs that may have changed since the last read: those not final now or then, and the new ones.
--
-- The history is read by its indexes only: of final jobs those that were made since then, and those of the ids.
with looked_at as (
    select * from {schema}.job where finished_at is null
    union
    select * from {schema}.job where created_at >= %(since)s::timestamptz
    union
    select * from {schema}.job where id = any (%(ids)s::uuid[])
)
select * from looked_at
where (%(name)s::text is null or periodic_task = %(name)s::text)
    and (%(pattern)s::text is null or periodic_task like %(pattern)s::text)
    and (%(task)s::text is null or task = %(task)s::text)
    and (%(queue)s::text is null or queue = %(queue)s::text)
    and (%(group_name)s::text is null or group_name = %(group_name)s::text)
order by created_at, id
