-- List the changes of a periodic task, a group or a named window, or of all, the latest first.
--
-- Of a name that a row has lost to a new one it lists that renaming too. A role that may not read arguments gets none.
with listed as (
    (select id from {schema}.change where %(name)s::text is null and id < %(before)s::bigint
         and (%(kind)s::text is null or kind = %(kind)s::text)
     order by id desc limit %(limit)s)
    union all
    (select id from {schema}.change where name = %(name)s::text and id < %(before)s::bigint
         and (%(kind)s::text is null or kind = %(kind)s::text)
     order by id desc limit %(limit)s)
    union all
    (select id from {schema}.change
     where action = 'renamed' and before ->> 'name' = %(name)s::text and id < %(before)s::bigint
         and (%(kind)s::text is null or kind = %(kind)s::text)
     order by id desc limit %(limit)s)
)
select change.id, change.at, change.who, change.role, change.kind, change.name, change.action, change.revision,
    change.columns, change.before, change.after, arguments.before as arguments_before,
    arguments.after as arguments_after, change.job, change.backfill, change.reason
from (select distinct id from listed order by id desc limit %(limit)s) as latest
cross join lateral (
    select id, at, who, role, kind, name, action, revision, columns, before, after, job, backfill, reason
    from {schema}.change as known where known.id = latest.id
    offset 0
) as change
cross join lateral {schema}.arguments_of_change(change.id) as arguments
order by change.id desc
