-- End a marked backfill that cannot go on, and write down why.
--
-- Not where the schema is newer than this package: what that cannot read a newer one may.
update {schema}.backfill
set state = 'cancelled', problem = %(problem)s, finished_at = {schema}.now(), marked_by = null, marked_at = null
where id = any (array(
    select id from {schema}.backfill
    where id = %(backfill)s::uuid and state = 'running' and marked_by = %(beat)s
        and marked_at = %(marked_at)s::timestamptz
        and %(version)s >= (select max(version) from {schema}.schema_version)
    for no key update skip locked))
returning id
